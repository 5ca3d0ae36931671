/* The plan of an assignment, and what it says of a board: the stages that it holds, its neighbours.
 */
#include "control/controller_own.h"
#include "planning/planfile.h"

/* ---- the plan -------------------------------------------------------------------------------- */

void rp_controller_note_boards(rp_controller *c) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *state = &c->ring.board[k];
        const rp_planfile_board board = {state->name,
                                         state->memory.slots,
                                         state->memory.weight_copies,
                                         state->memory.device_bytes,
                                         state->memory.weight_bytes,
                                         state->memory.resident_bytes};
        rp_planfile_note_board(c->setup.plan, k, &board);
    }
    if (rp_measure_has_profile(c->measure)) {
        rp_planfile_note_seconds(c->setup.plan, rp_measure_layer_seconds(c->measure));
    }
    c->setup.plan->agent_program_bytes = c->ring.spawner ? c->ring.spawner->program_bytes : 0;
}

rp_err rp_controller_know_boards(rp_controller *c, rp_arena *arena, rp_profile *bare,
                                 const rp_profile **out) {
    rp_err err;
    if (rp_measure_has_profile(c->measure)) {
        rp_measure_place(c->measure);
        *out = rp_measure_profile(c->measure);
        return RP_OK;
    }
    RP_TRY(rp_profile_open(arena, &c->run, c->ring.count, bare));
    for (uint32_t k = 0; k < c->ring.count; k++) {
        bare->board[k].name = c->ring.board[k].name;
        bare->board[k].device_memory = c->ring.board[k].hardware.device_memory;
    }
    *out = bare;
fail:
    return err;
}

void rp_setup_take_prediction(rp_plan *plan, const rp_prediction *predicted) {
    if (predicted) {
        plan->predicted_step_s = predicted->step_s;
        plan->predicted_limits = predicted->step_s > 0 ? predicted->limits : NULL;
    }
}

static rp_err predict_plan(rp_controller *c) {
    const rp_prediction *predicted;
    const rp_err err = rp_drift_open(c->measure, c->setup.plan, &predicted);
    rp_setup_take_prediction(c->setup.plan, predicted);
    return err;
}

static rp_err make_plan(rp_controller *c) {
    const rp_profile *known;
    rp_profile bare;
    const char **names;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&c->setup.plan_arena, c->ring.count, &names));
    for (uint32_t k = 0; k < c->ring.count; k++) {
        names[k] = c->ring.board[k].name;
    }
    RP_TRY(rp_controller_know_boards(c, &c->setup.plan_arena, &bare, &known));
    const rp_planfile chosen = {.run = &c->run,
                                .cut = &c->setup.now.cut,
                                .board = names,
                                .profile = known,
                                .advance = c->setup.advance_chosen ? &c->setup.advance : NULL};
    RP_TRY(rp_planfile_make(&c->setup.plan_arena, &chosen, &c->setup.plan));
    RP_TRY(predict_plan(c));
fail:
    return err;
}

/* What is asked for often. */
static rp_err read_off(rp_controller *c) {
    const rp_plan *plan = c->setup.plan;
    rp_err err;
    rp_trials_begin_plan(c);
    RP_TRY(rp_losses_open(c->measure, plan));
    RP_TRY(rp_plan_cut(&c->setup.plan_arena, plan, c->run.model, &c->setup.plan_cut));
fail:
    return err;
}

rp_err rp_controller_take_plan(rp_controller *c, rp_plan *plan) {
    rp_arena_finish(&c->setup.plan_arena);
    rp_arena_init(&c->setup.plan_arena, "plan", 0);
    c->setup.plan = plan;
    rp_drift_begin_plan(c->measure);
    const rp_err err = read_off(c);
    c->setup.plan = err == RP_OK ? plan : NULL;
    return err;
}

rp_err rp_controller_make_plan(rp_controller *c) {
    rp_err err = RP_OK;
    c->setup.plan = c->setup.given;
    rp_drift_begin_plan(c->measure);
    rp_arena_finish(&c->setup.plan_arena);
    rp_arena_init(&c->setup.plan_arena, "plan", 0);
    RP_TRY(!c->setup.given                      ? make_plan(c)
           : rp_measure_has_profile(c->measure) ? predict_plan(c) /* the planner has made it */
                                                : RP_OK);
    rp_controller_note_boards(c);
    RP_TRY(read_off(c));
    RP_TRY(rp_plan_text(&c->setup.plan_arena, c->setup.plan, &c->setup.plan_text));
    RP_TRY(rp_ring_check_text("the plan", c->setup.plan_text));
fail:
    if (err != RP_OK) {
        c->setup.plan = NULL; /* half of a plan is none */
    }
    return err;
}

/* ---- what it says ---------------------------------------------------------------------------- */

uint32_t rp_controller_first_stage(const rp_controller *c, uint32_t board) {
    return c->setup.plan->hold[c->setup.plan->node[board].hold_first].stage;
}

uint32_t rp_controller_dialled_by(const rp_controller *c, uint32_t board,
                                  uint32_t out[RP_PLAN_NEIGHBOURS_MAX]) {
    uint32_t node[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t count = rp_plan_neighbours(c->setup.plan, board, node);
    uint32_t dialled = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!rp_plan_dials(c->setup.plan, board, node[i])) {
            out[dialled++] = node[i];
        }
    }
    return dialled;
}
