/* The state `save`: every board sends its tensors; the files appear when the last byte is there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"
#include "ring/identity.h"

static rp_err find_applied(rp_controller *c, rp_arena *arena, rp_applied *out) {
    rp_err err;
    *out = (rp_applied){.stages = c->setup.plan->stage_count};
    RP_TRY(RP_ARENA_NEW(arena, out->stages, &out->of));
    for (uint32_t k = 0; k < out->stages; k++) {
        uint32_t count;
        const uint64_t *own = rp_controller_applied_of(c, rp_controller_first_hold(c, k), &count);
        memcpy(out->of[k], own, count * sizeof *own);
    }
fail:
    return err;
}

rp_err rp_save_gather(rp_controller *c, rp_arena *arena, rp_applied *applied,
                      uint64_t **in_flight_bytes) {
    rp_err err;
    RP_TRY(find_applied(c, arena, applied));
    RP_TRY(RP_ARENA_NEW(arena, rp_plan_parts(c->setup.plan), in_flight_bytes));
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (rp_plan_saves(c->setup.plan, k)) {
            (*in_flight_bytes)[rp_plan_part_of(c->setup.plan, k)] =
                c->ring.board[k].in_flight_bytes;
        }
    }
fail:
    return err;
}

static rp_err open_files(rp_controller *c) {
    const bool measured = c->run.method.horizon == RP_HORIZON_MEASURED;
    rp_applied applied;
    uint64_t *in_flight_bytes;
    rp_err err;
    RP_TRY(rp_save_gather(c, &c->keep.save.arena, &applied, &in_flight_bytes));
    rp_controller_read_totals(c);
    rp_position position = c->train.position;
    RP_TRY(rp_trials_tell(c, &c->keep.save.arena, &position));
    const rp_checkpoint_content content = {.run = &c->run,
                                           .plan = c->setup.plan,
                                           .position = &position,
                                           .applied = &applied,
                                           .in_flight_bytes = in_flight_bytes,
                                           .estimator =
                                               measured ? rp_train_gains(c->train.room) : NULL,
                                           .folder = rp_folder_paths_of(c->folder)->checkpoints,
                                           .weights = c->train.position.step == rp_controller_end(c)
                                                          ? rp_folder_paths_of(c->folder)->weights
                                                          : NULL};
    RP_TRY(rp_checkpoint_open_writer(&c->keep.save.arena, &content, &c->keep.save.writer));
    RP_TRY(rp_histograms_begin(c));
    rp_arena_seal(&c->keep.save.arena);
fail:
    return err;
}

static rp_err ask_boards(rp_controller *c) {
    const rp_Frame request = {.which_body = RP_KIND_SAVE};
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].saved = !rp_plan_saves(c->setup.plan, k);
        c->ring.board[k].sends = k;
        c->keep.save.boards_left += !c->ring.board[k].saved;
        RP_TRY(c->ring.board[k].saved ? RP_OK : rp_ring_post(&c->ring, k, &request, NULL));
    }
fail:
    return err;
}

/* Without files no board is asked for anything. */
rp_err rp_save_enter(rp_controller *c) {
    rp_err err = RP_OK;
    rp_arena_init(&c->keep.save.arena, "checkpoint", 0);
    c->keep.save.histogram = NULL;
    c->keep.save.boards_left = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].saved = true;
    }
    if (rp_disk_rests(c)) {
        return RP_OK;
    }
    err = open_files(c);
    if (err == RP_ERR_IO) {
        return rp_disk_failed(c);
    }
    RP_TRY(err);
    RP_TRY(ask_boards(c));
fail:
    return err;
}

void rp_save_abandon(rp_controller *c) {
    rp_checkpoint_abandon(&c->keep.save.writer);
    rp_arena_finish(&c->keep.save.arena);
}

static rp_err commit_files(rp_controller *c) {
    rp_err err;
    RP_TRY(rp_identity_check(rp_folder_paths_of(c->folder)->folder, &c->ring.identity));
    const char *not_finite = rp_checkpoint_not_finite(c->keep.save.writer);
    RP_TRY(rp_train_note_saved(c->train.room, not_finite, c->keep.save.kept_step,
                               c->setup.follow.phase != RP_FOLLOW_NONE, &c->machine.reported));
    RP_TRY(rp_histograms_end(c));
    err = rp_checkpoint_commit(&c->keep.save.writer);
    if (err == RP_ERR_IO) {
        return rp_disk_failed(c);
    }
    RP_TRY(err);
    if (!not_finite) {
        c->keep.save.kept_step = c->train.position.step;
        rp_recovery_note_checkpoint(c);
    }
    RP_TRY(rp_disk_worked(c));
fail:
    return err;
}

/* Training goes on from a pause without a checkpoint, but these do not. */
static bool needs_checkpoint(const rp_controller *c) {
    rp_split split;
    const bool scores = c->run.keep_best && rp_controller_evaluation_due(c, &split);
    return scores || c->train.position.step == rp_controller_end(c) || c->machine.interrupts > 0 ||
           c->setup.follow.phase != RP_FOLLOW_NONE || c->keep.adopt.phase == RP_ADOPT_SAVE ||
           rp_round_is_due(c);
}

rp_err rp_save_step(rp_controller *c) {
    rp_err err;
    if (c->keep.save.boards_left > 0) {
        return RP_OK;
    }
    RP_TRY(c->keep.save.writer ? commit_files(c) : rp_histograms_end(c));
    const bool tries_again = c->keep.disk.tries > 0 && needs_checkpoint(c);
    if (tries_again && rp_disk_rests(c)) {
        return RP_OK;
    }
    rp_save_abandon(c);
    if (tries_again) {
        rp_ring_note_progress(&c->ring);
        return rp_save_enter(c);
    }
    c->keep.unsaved = false;
    RP_TRY(rp_controller_choose_next(c));
fail:
    return err;
}

rp_err rp_save_late(const rp_controller *c) {
    return rp_fail(RP_ERR_TIMEOUT,
                   "%u boards still have tensors to send, and nothing came for %" PRId64 " s",
                   c->keep.save.boards_left, c->machine.timeout_ns / RP_NS_PER_S);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The rest of what boards send is of no use then. */
static rp_err take_written(rp_controller *c, rp_err err) {
    if (err != RP_ERR_IO) {
        return err;
    }
    rp_checkpoint_abandon(&c->keep.save.writer);
    return rp_disk_failed(c);
}

static rp_err check_open(const rp_controller *c, uint32_t board) {
    return c->ring.board[board].saved
               ? rp_fail(RP_ERR_PEER, "board %s sent more after the end of its tensors",
                         c->ring.board[board].name)
               : RP_OK;
}

rp_err rp_save_on_tensor(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Tensor *piece = &message->frame.body.tensor;
    const rp_part *part = &message->part[0];
    rp_err err;
    RP_TRY(check_open(c, board));
    if (part->dtype != RP_DTYPE_F32) {
        return rp_fail(RP_ERR_PEER, "board %u sent tensor '%s' of dtype %d, which no model has",
                       board, piece->name, (int)part->dtype);
    }
    RP_TRY(c->keep.save.writer
               ? take_written(c, rp_checkpoint_write_tensor(c->keep.save.writer, board, piece->name,
                                                            piece->first, part->data, part->bytes))
               : RP_OK);
    rp_histograms_add(c, piece->name, part->data, part->bytes / sizeof(float));
    rp_ring_note_progress(&c->ring);
fail:
    return err;
}

rp_err rp_save_on_in_flight(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_err err;
    RP_TRY(check_open(c, board));
    if (message->part_count != 1) {
        return rp_fail(RP_ERR_PEER, "board %u sent microbatches in flight without their bytes",
                       board);
    }
    const uint32_t own = rp_plan_part_of(c->setup.plan, c->ring.board[board].sends);
    const uint64_t first = message->frame.body.in_flight.first;
    const rp_part *part = &message->part[0];
    RP_TRY(c->keep.save.writer
               ? take_written(c, rp_checkpoint_write_in_flight(c->keep.save.writer, own, first,
                                                               part->data, part->bytes))
               : RP_OK);
    rp_ring_note_progress(&c->ring);
fail:
    return err;
}

rp_err rp_save_on_end(rp_controller *c, uint32_t board, const rp_message *message) {
    (void)message;
    if (c->ring.board[board].saved) {
        return rp_fail(RP_ERR_PEER, "board %u ended its tensors twice", board);
    }
    rp_ring_note_progress(&c->ring);
    c->ring.board[board].saved = true;
    c->keep.save.boards_left--;
    return RP_OK;
}
