/* A rescue: the state of lost boards is fetched from boards with copies, and becomes a
 * checkpoint. */
#include <string.h>

#include "keep/copies.h"
#include "keep/keep_own.h"
#include "ring/identity.h"

static rp_err open_files(rp_keep *keep, const rp_copy_set *set) {
    const bool measured = keep->needs.run->method.horizon == RP_HORIZON_MEASURED;
    const rp_checkpoint_content content = {.run = keep->needs.run,
                                           .plan = keep->save.plan,
                                           .position = &set->position,
                                           .applied = &set->applied,
                                           .in_flight_bytes = set->in_flight_bytes,
                                           .estimator = measured ? &set->estimator : NULL,
                                           .folder = rp_keep_paths(keep)->checkpoints};
    return rp_checkpoint_open_writer(&keep->save.arena, &content, &keep->save.writer);
}

rp_err rp_keep_begin_rescue(rp_keep *keep, const rp_plan *plan, rp_keep_outcome *out) {
    const rp_copy_set *set = rp_copies_whole(keep);
    RP_ASSERT(keep->copies.wanted && set->step > keep->save.kept_step);
    RP_ASSERT(set->position.step == set->step);
    RP_ASSERT(plan->node_count >= keep->needs.ring->count); /* boards may have left since */
    RP_ASSERT(rp_keep_find_lost(keep, plan) == NULL);
    rp_save_reset(keep, "rescue", plan, set->step);
    memset(set->said, 0, plan->node_count * sizeof *set->said);
    *out = RP_KEEP_WAITS;
    if (rp_keep_disk_rests(keep)) {
        return RP_OK;
    }
    const rp_err err = open_files(keep, set);
    if (err == RP_ERR_IO) {
        rp_keep_abandon_save(keep);
        return rp_keep_disk_failed(keep, set->step, out);
    }
    return err;
}

/* Asks a board for the next copy that it has, one at a time. */
static rp_err ask_board(rp_keep *keep, uint32_t board) {
    const rp_copy_set *set = rp_copies_whole(keep);
    const rp_plan *plan = keep->save.plan;
    rp_board_state *state = &keep->needs.ring->board[board];
    uint32_t k = 0;
    while (k < plan->node_count &&
           (!rp_plan_saves(plan, k) || set->holder[k] != board || set->said[k])) {
        k++;
    }
    if (!state->keep.saved || k == plan->node_count) {
        return RP_OK;
    }
    const rp_Frame order = {.which_body = RP_KIND_FETCH,
                            .body.fetch = {.term = set->term, .step = set->step, .node = k}};
    set->said[k] = 1;
    state->keep.saved = false;
    state->keep.sends = k;
    keep->save.boards_left++;
    RP_ASSERT(keep->save.boards_left <= keep->needs.ring->count);
    return rp_ring_post(keep->needs.ring, board, &order, NULL);
}

/* From here on it is an ordinary checkpoint. */
static rp_err end_rescue(rp_keep *keep, const char **not_finite, rp_keep_outcome *out) {
    const uint64_t step = rp_copies_whole(keep)->step;
    rp_err err;
    RP_ASSERT(keep->save.step == step);
    RP_TRY(rp_identity_check(rp_keep_paths(keep)->folder, &keep->needs.ring->identity));
    *not_finite = rp_checkpoint_not_finite(keep->save.writer);
    if (*not_finite) {
        *out = RP_KEEP_DAMAGED;
        return RP_OK;
    }
    RP_TRY(rp_save_commit(keep, out));
    if (*out == RP_KEEP_AGAIN) {
        *out = RP_KEEP_WAITS; /* the next step checks whether the disk rests */
        return RP_OK;
    }
    rp_keep_abandon_rescue(keep);
    keep->save.kept_step = step;
    *out = RP_KEEP_DONE;
    RP_TRY(rp_disk_note_worked(keep));
fail:
    return err;
}

rp_err rp_keep_step_rescue(rp_keep *keep, const char **not_finite, rp_keep_outcome *out) {
    rp_err err = RP_OK;
    RP_ASSERT(keep->copies.wanted);
    *not_finite = NULL;
    *out = RP_KEEP_WAITS;
    if (!keep->save.writer) { /* then the received copies are dropped */
        RP_ASSERT(keep->disk.tries > 0);
        *out =
            keep->save.boards_left > 0 || rp_keep_disk_rests(keep) ? RP_KEEP_WAITS : RP_KEEP_AGAIN;
        return RP_OK;
    }
    for (uint32_t k = 0; k < keep->needs.ring->count; k++) {
        RP_TRY(ask_board(keep, k));
    }
    return keep->save.boards_left == 0 ? end_rescue(keep, not_finite, out) : RP_OK;
fail:
    return err;
}

void rp_keep_abandon_rescue(rp_keep *keep) {
    rp_keep_abandon_save(keep);
    rp_keep_forget_copies(keep);
}
