#include <inttypes.h>

#include "link/link.h"
#include "train/tally.h"

/* A board stops when this many of its messages are not acked; then other boards wait for its
 * gradients. */
enum { STEPS_AHEAD = RP_LINK_CONTROL_MAX };

rp_err rp_tally_open(rp_arena *arena, const rp_plan *plan, rp_tally *out) {
    rp_err err;
    *out = (rp_tally){.plan = plan};
    RP_TRY(RP_ARENA_NEW(arena, plan->hold_count, &out->hold));
    RP_TRY(RP_ARENA_NEW(arena, plan->hold_count, &out->scorer));
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        const rp_plan_hold *hold = &plan->hold[h];
        if (hold->stage + 1 == plan->stage_count && hold->role != RP_ROLE_FORWARD) {
            out->hold[out->count++] = hold;
        }
        if (hold->stage + 1 == plan->stage_count && hold->role != RP_ROLE_BACKWARD) {
            out->scorer[out->scorers++] = hold;
        }
    }
    RP_ASSERT(out->count > 0 && out->scorers > 0);
    out->room = out->count > 1 ? STEPS_AHEAD : 1;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)out->room * out->count, &out->part));
    RP_TRY(RP_ARENA_NEW(arena, out->scorers, &out->pass));
fail:
    return err;
}

/* Index of the board in the list; `count`: not found. */
static uint32_t find_board(const rp_plan_hold *const *hold, uint32_t count, uint32_t board) {
    uint32_t i = 0;
    while (i < count && hold[i]->node != board) {
        i++;
    }
    return i;
}

static rp_err refuse_board(const rp_tally *tally, uint32_t board) {
    return rp_fail(RP_ERR_PEER, "board %s reports results, which only boards of the last stage may",
                   rp_plan_node_name(tally->plan, board));
}

rp_err rp_tally_add_step(rp_tally *tally, uint32_t board, uint64_t due, const rp_StepDone *done) {
    const uint32_t i = find_board(tally->hold, tally->count, board);
    if (i == tally->count) {
        return refuse_board(tally, board);
    }
    rp_tally_part *part = &tally->part[done->step % tally->room * tally->count + i];
    const rp_range own =
        rp_sched_share(tally->hold[i]->share, rp_plan_step_samples(tally->plan, done->step));
    if (done->step < due || done->step >= due + tally->room || part->is_here || own.count == 0 ||
        done->samples != own.count) {
        return rp_fail(RP_ERR_PEER,
                       "board %s reports step %" PRIu64 " of %u samples, expected step %" PRIu64,
                       rp_plan_node_name(tally->plan, board), done->step, done->samples, due);
    }
    RP_ASSERT(done->step - due < tally->room);
    *part = (rp_tally_part){true, {done->loss_sum, done->ignored}};
    return RP_OK;
}

bool rp_tally_take_step(rp_tally *tally, uint64_t step, rp_loss_sum *out) {
    rp_tally_part *part = &tally->part[step % tally->room * tally->count];
    const uint32_t samples = rp_plan_step_samples(tally->plan, step);
    rp_loss_sum sum = {0};
    for (uint32_t i = 0; i < tally->count; i++) {
        const bool has_part = rp_sched_share(tally->hold[i]->share, samples).count > 0;
        if (has_part && !part[i].is_here) {
            return false; /* boards without samples of the step report nothing */
        }
        sum.loss += part[i].sum.loss;
        sum.ignored += part[i].sum.ignored;
    }
    for (uint32_t i = 0; i < tally->count; i++) {
        part[i] = (rp_tally_part){0};
    }
    *out = sum;
    return true;
}

void rp_tally_begin_pass(rp_tally *tally) {
    for (uint32_t i = 0; i < tally->scorers; i++) {
        tally->pass[i] = (rp_loss_sum){0};
    }
}

rp_err rp_tally_add_pass(rp_tally *tally, uint32_t board, const rp_EvaluateDone *done) {
    const uint32_t i = find_board(tally->scorer, tally->scorers, board);
    if (i == tally->scorers) {
        return refuse_board(tally, board);
    }
    tally->pass[i].loss += done->loss_sum;
    tally->pass[i].ignored += done->ignored;
    return RP_OK;
}

rp_loss_sum rp_tally_pass_sum(const rp_tally *tally) {
    rp_loss_sum sum = {0};
    for (uint32_t i = 0; i < tally->scorers; i++) {
        sum.loss += tally->pass[i].loss;
        sum.ignored += tally->pass[i].ignored;
    }
    return sum;
}
