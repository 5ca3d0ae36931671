/* A save: every board sends its tensors; the files become visible when the last byte is written. */
#include <inttypes.h>

#include "keep/keep_own.h"
#include "ring/identity.h"

/* ---- begin ----------------------------------------------------------------------------------- */

static rp_err open_files(rp_keep *keep, const rp_keep_save_order *order) {
    rp_save *save = &keep->save;
    rp_applied applied;
    uint64_t *in_flight_bytes;
    rp_err err;
    RP_TRY(
        rp_applied_gather(keep->needs.ring, order->plan, &save->arena, &applied, &in_flight_bytes));
    const rp_checkpoint_content content = {
        .run = keep->needs.run,
        .plan = order->plan,
        .position = order->position,
        .applied = &applied,
        .in_flight_bytes = in_flight_bytes,
        .estimator = order->estimator,
        .folder = rp_keep_paths(keep)->checkpoints,
        .weights = order->is_result ? rp_keep_paths(keep)->weights : NULL};
    RP_TRY(rp_checkpoint_open_writer(&save->arena, &content, &save->writer));
    RP_TRY(rp_histograms_begin(keep));
    rp_arena_seal(&save->arena);
fail:
    return err;
}

static rp_err ask_boards(rp_keep *keep) {
    const rp_Frame request = {.which_body = RP_KIND_SAVE};
    rp_ring *ring = keep->needs.ring;
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        board->keep.saved = !rp_plan_saves(keep->save.plan, k);
        board->keep.sends = k;
        keep->save.boards_left += !board->keep.saved;
        RP_TRY(board->keep.saved ? RP_OK : rp_ring_post(ring, k, &request, NULL));
    }
fail:
    return err;
}

void rp_save_reset(rp_keep *keep, const char *arena, const rp_plan *plan, uint64_t step) {
    rp_save *save = &keep->save;
    RP_ASSERT(save->writer == NULL);
    rp_arena_init(&save->arena, arena, 0);
    save->plan = plan;
    save->step = step;
    save->histogram = NULL;
    save->boards_left = 0;
    for (uint32_t k = 0; k < keep->needs.ring->count; k++) {
        keep->needs.ring->board[k].keep.saved = true; /* not asked for anything yet */
    }
}

/* Without open files no board is asked. */
rp_err rp_keep_begin_save(rp_keep *keep, const rp_keep_save_order *order, rp_keep_outcome *out) {
    rp_err err = RP_OK;
    RP_ASSERT(order->plan->node_count == keep->needs.ring->count);
    rp_save_reset(keep, "checkpoint", order->plan, order->position->step);
    *out = RP_KEEP_WAITS;
    if (rp_keep_disk_rests(keep)) {
        return RP_OK;
    }
    err = open_files(keep, order);
    if (err == RP_ERR_IO) {
        return rp_keep_disk_failed(keep, keep->save.step, out);
    }
    RP_TRY(err);
    RP_TRY(ask_boards(keep));
    RP_ASSERT(keep->save.writer != NULL);
fail:
    return err;
}

void rp_keep_abandon_save(rp_keep *keep) {
    rp_save *save = &keep->save;
    rp_checkpoint_abandon(&save->writer);
    rp_arena_finish(&save->arena);
    save->plan = NULL;
    save->histogram = NULL;
    save->boards_left = 0;
    RP_ASSERT(save->writer == NULL);
}

/* ---- end ------------------------------------------------------------------------------------- */

rp_err rp_keep_step_save(rp_keep *keep, const char **not_finite, rp_keep_outcome *out) {
    rp_err err = RP_OK;
    RP_ASSERT(keep->save.plan != NULL);
    *not_finite = NULL;
    *out = RP_KEEP_WAITS;
    if (keep->save.boards_left > 0) {
        return RP_OK;
    }
    if (!keep->save.writer) {
        RP_ASSERT(keep->disk.tries > 0);
        *out = RP_KEEP_AGAIN;
        return rp_histograms_end(keep);
    }
    RP_TRY(rp_identity_check(rp_keep_paths(keep)->folder, &keep->needs.ring->identity));
    *not_finite = rp_checkpoint_not_finite(keep->save.writer);
    *out = RP_KEEP_WHOLE;
fail:
    return err;
}

rp_err rp_save_commit(rp_keep *keep, rp_keep_outcome *out) {
    const rp_err err = rp_checkpoint_commit(&keep->save.writer);
    RP_ASSERT(keep->save.writer == NULL);
    return err == RP_ERR_IO ? rp_keep_disk_failed(keep, keep->save.step, out) : err;
}

rp_err rp_keep_commit_save(rp_keep *keep, rp_keep_outcome *out) {
    rp_save *save = &keep->save;
    rp_err err;
    RP_ASSERT(save->writer != NULL && save->boards_left == 0);
    const bool is_finite = !rp_checkpoint_not_finite(save->writer);
    *out = RP_KEEP_WAITS;
    RP_TRY(rp_histograms_end(keep));
    RP_TRY(rp_save_commit(keep, out));
    if (*out == RP_KEEP_AGAIN) {
        return RP_OK;
    }
    save->kept_step = is_finite ? save->step : save->kept_step;
    *out = is_finite ? RP_KEEP_DONE : RP_KEEP_DAMAGED;
    RP_TRY(rp_disk_note_worked(keep));
fail:
    return err;
}

rp_err rp_keep_save_is_late(const rp_keep *keep, int64_t waited_ns) {
    RP_ASSERT(keep->save.boards_left <= keep->needs.ring->count);
    return rp_fail(RP_ERR_TIMEOUT,
                   "%u boards still have tensors to send, and nothing came for %" PRId64 " s",
                   keep->save.boards_left, waited_ns / RP_NS_PER_S);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* After an error of the disk, the rest of what boards send is dropped. */
static rp_err take_written(rp_keep *keep, rp_err err, rp_keep_outcome *out) {
    if (err != RP_ERR_IO) {
        return err;
    }
    rp_checkpoint_abandon(&keep->save.writer);
    RP_ASSERT(keep->save.writer == NULL);
    return rp_keep_disk_failed(keep, keep->save.step, out);
}

static rp_err check_open(const rp_keep *keep, uint32_t board) {
    const rp_ring *ring = keep->needs.ring;
    RP_ASSERT(board < ring->count);
    return ring->board[board].keep.saved
               ? rp_fail(RP_ERR_PEER, "board %s sent more after the end of its tensors",
                         ring->board[board].name)
               : RP_OK;
}

rp_err rp_keep_on_tensor(rp_keep *keep, uint32_t board, const rp_message *message,
                         rp_keep_outcome *out) {
    const rp_Tensor *piece = &message->frame.body.tensor;
    const rp_part *part = &message->part[0];
    rp_err err;
    *out = RP_KEEP_WAITS;
    RP_TRY(check_open(keep, board));
    if (part->dtype != RP_DTYPE_F32) {
        return rp_fail(RP_ERR_PEER, "board %u sent tensor '%s' with the invalid dtype %d", board,
                       piece->name, (int)part->dtype);
    }
    if (keep->save.writer) {
        err = rp_checkpoint_write_tensor(keep->save.writer, board, piece->name, piece->first,
                                         part->data, part->bytes);
        RP_TRY(take_written(keep, err, out));
    }
    rp_histograms_add(keep, piece->name, part->data, part->bytes / sizeof(float));
    rp_ring_note_progress(keep->needs.ring);
fail:
    return err;
}

rp_err rp_keep_on_in_flight(rp_keep *keep, uint32_t board, const rp_message *message,
                            rp_keep_outcome *out) {
    rp_err err;
    *out = RP_KEEP_WAITS;
    RP_TRY(check_open(keep, board));
    if (message->part_count != 1) {
        return rp_fail(RP_ERR_PEER, "board %u sent microbatches in flight without their bytes",
                       board);
    }
    if (keep->save.writer) {
        const rp_part *part = &message->part[0];
        const uint32_t own =
            rp_plan_part_of(keep->save.plan, keep->needs.ring->board[board].keep.sends);
        err = rp_checkpoint_write_in_flight(
            keep->save.writer, own, message->frame.body.in_flight.first, part->data, part->bytes);
        RP_TRY(take_written(keep, err, out));
    }
    rp_ring_note_progress(keep->needs.ring);
fail:
    return err;
}

rp_err rp_keep_on_end(rp_keep *keep, uint32_t board) {
    rp_board_state *state = &keep->needs.ring->board[board];
    RP_ASSERT(board < keep->needs.ring->count);
    if (state->keep.saved) {
        return rp_fail(RP_ERR_PEER, "board %u ended its tensors twice", board);
    }
    RP_ASSERT(keep->save.boards_left > 0);
    rp_ring_note_progress(keep->needs.ring);
    state->keep.saved = true;
    keep->save.boards_left--;
    return RP_OK;
}
