/* Makes the plan of an assignment and answers questions about it. */
#include "measure/drift.h"
#include "measure/losses.h"
#include "planning/planfile.h"
#include "setup/setup_own.h"

/* ---- the plan -------------------------------------------------------------------------------- */

void rp_arrangement_note_boards(rp_arrangement *a) {
    RP_ASSERT(a->plan && a->plan->node_count == a->ring->count);
    for (uint32_t k = 0; k < a->ring->count; k++) {
        const rp_board_state *state = &a->ring->board[k];
        const rp_planfile_board board = {state->name,
                                         state->memory.slots,
                                         state->memory.weight_copies,
                                         state->memory.device_bytes,
                                         state->memory.weight_bytes,
                                         state->memory.resident_bytes};
        rp_planfile_note_board(a->plan, k, &board);
    }
    if (rp_measure_has_profile(a->measure)) {
        rp_planfile_note_seconds(a->plan, rp_measure_layer_seconds(a->measure));
    }
    a->plan->agent_program_bytes = a->ring->spawner ? a->ring->spawner->program_bytes : 0;
}

rp_err rp_arrangement_know_boards(rp_arrangement *a, rp_arena *arena, rp_profile *bare,
                                  const rp_profile **out) {
    rp_err err;
    if (rp_measure_has_profile(a->measure)) {
        rp_measure_place(a->measure);
        *out = rp_measure_profile(a->measure);
        return RP_OK;
    }
    RP_TRY(rp_profile_open(arena, &a->run, a->ring->count, bare));
    for (uint32_t k = 0; k < a->ring->count; k++) {
        bare->board[k].name = a->ring->board[k].name;
        bare->board[k].device_memory = a->ring->board[k].hardware.device_memory;
    }
    *out = bare;
fail:
    return err;
}

void rp_arrangement_take_prediction(rp_plan *plan, const rp_prediction *predicted) {
    if (predicted) {
        plan->predicted_step_s = predicted->step_s;
        plan->predicted_limits = predicted->step_s > 0 ? predicted->limits : NULL;
    }
}

static rp_err predict_plan(rp_arrangement *a) {
    const rp_prediction *predicted;
    const rp_err err = rp_drift_open(a->measure, a->plan, &predicted);
    rp_arrangement_take_prediction(a->plan, predicted);
    return err;
}

/* Without a profile the plan keeps the times noted before the run was stopped. */
static void keep_notes(rp_arrangement *a) {
    const rp_plan *was = a->former;
    if (!was || rp_measure_has_profile(a->measure) || was->stage_count != a->plan->stage_count) {
        return;
    }
    a->plan->predicted_step_s = was->predicted_step_s;
    a->plan->predicted_limits = was->predicted_limits;
    for (uint32_t k = 0; k < was->stage_count; k++) {
        a->plan->stage[k].measured = was->stage[k].measured;
    }
}

static rp_err make_plan(rp_arrangement *a) {
    RP_ASSERT(!a->given && a->now.cut.stage_count == a->run.stages);
    const rp_profile *known;
    rp_profile bare;
    const char **names;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&a->plan_arena, a->ring->count, &names));
    for (uint32_t k = 0; k < a->ring->count; k++) {
        names[k] = a->ring->board[k].name;
    }
    RP_TRY(rp_arrangement_know_boards(a, &a->plan_arena, &bare, &known));
    const rp_planfile chosen = {.run = &a->run,
                                .cut = &a->now.cut,
                                .board = names,
                                .group = a->now.group,
                                .share = a->now.share,
                                .profile = known,
                                .advance = a->advance_chosen ? &a->advance : NULL};
    RP_TRY(rp_planfile_make(&a->plan_arena, &chosen, &a->plan));
    RP_ASSERT(a->plan->stage_count == a->now.cut.stage_count);
    keep_notes(a);
    RP_TRY(predict_plan(a));
fail:
    return err;
}

/* Derives what is needed often. */
static rp_err derive_cut(rp_arrangement *a) {
    const rp_plan *plan = a->plan;
    rp_err err;
    RP_TRY(rp_losses_open(a->measure, plan));
    RP_TRY(rp_plan_cut(&a->plan_arena, plan, a->run.model, &a->plan_cut));
    RP_ASSERT(a->plan_cut.stage_count == plan->stage_count);
fail:
    return err;
}

rp_err rp_arrangement_take_plan(rp_arrangement *a, rp_plan *plan) {
    RP_ASSERT(plan->node_count == a->ring->count);
    rp_arena_finish(&a->plan_arena);
    rp_arena_init(&a->plan_arena, "plan", 0);
    a->plan = plan;
    rp_drift_begin_plan(a->measure);
    const rp_err err = derive_cut(a);
    a->plan = err == RP_OK ? plan : NULL;
    return err;
}

rp_err rp_arrangement_make_plan(rp_arrangement *a) {
    rp_err err = RP_OK;
    a->plan = a->given;
    rp_drift_begin_plan(a->measure);
    rp_arena_finish(&a->plan_arena);
    rp_arena_init(&a->plan_arena, "plan", 0);
    RP_TRY(!a->given                            ? make_plan(a)
           : rp_measure_has_profile(a->measure) ? predict_plan(a) /* a planner made it */
                                                : RP_OK);
    rp_arrangement_note_boards(a);
    RP_TRY(derive_cut(a));
    RP_TRY(rp_plan_text(&a->plan_arena, a->plan, &a->plan_text));
    RP_TRY(rp_ring_check_text("the plan", a->plan_text));
fail:
    if (err != RP_OK) {
        a->plan = NULL; /* an incomplete plan is not kept */
    }
    return err;
}

/* ---- what it says ---------------------------------------------------------------------------- */

uint32_t rp_arrangement_first_stage(const rp_arrangement *a, uint32_t board) {
    RP_ASSERT(a->plan && board < a->plan->node_count);
    return a->plan->hold[a->plan->node[board].hold_first].stage;
}
