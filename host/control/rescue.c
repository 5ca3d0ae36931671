/* The states of copies that boards keep of each other (ring.copy_steps). `copy`, at a pause: each
 * copies what it holds; its neighbour gets the copy while training goes on. `rescue`, when boards
 * were lost: what they held comes from who has it, and becomes a checkpoint like any other. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"
#include "ring/identity.h"

/* ---- copy ------------------------------------------------------------------------------------ */

/* Bytes of the copy of any board: what is in flight has an addition for each message of it. */
static uint64_t bytes_max(const rp_controller *c) {
    enum { MESSAGE = 4096 };
    uint64_t most = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *board = &c->ring.board[k];
        const uint64_t in_flight = board->in_flight_bytes + board->in_flight_bytes / 64 + MESSAGE;
        most = board->copy_bytes + in_flight > most ? board->copy_bytes + in_flight : most;
    }
    return most;
}

/* Where the run stands, as a checkpoint of here would say it. */
static rp_err note_position(rp_controller *c, rp_copy_set *set) {
    rp_err err;
    rp_copies_drop_set(set);
    rp_arena_init(&set->arena, "copies", 0);
    RP_TRY(rp_save_gather(c, &set->arena, &set->applied, &set->in_flight_bytes));
    RP_TRY(RP_ARENA_NEW(&set->arena, c->ring.count, &set->said));
    RP_TRY(RP_ARENA_NEW(&set->arena, c->ring.count, &set->holder));
    if (c->run.method.horizon == RP_HORIZON_MEASURED) {
        const rp_gain_estimator *gains = rp_train_gains(c->train.room);
        double *packed;
        RP_TRY(RP_ARENA_NEW(&set->arena, rp_gain_estimator_size(gains), &packed));
        RP_TRY(rp_gain_estimator_open(&set->arena, gains->params, &set->estimator));
        rp_gain_estimator_pack(gains, packed);
        RP_TRY(rp_gain_estimator_unpack(&set->estimator, "copies", packed));
    }
    rp_controller_read_totals(c);
    set->position = c->train.position;
fail:
    return err;
}

/* As long as the last ones are on their way there are no new ones: boards keep two. */
rp_err rp_copy_enter(rp_controller *c) {
    rp_copy_set *set = rp_copies_pending(c);
    const bool is_behind = set->step > 0;
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].copied = is_behind;
    }
    if (is_behind) {
        c->keep.copies.pace.from = c->train.position.step;
        return RP_OK;
    }
    RP_TRY(note_position(c, set));
    rp_copy_pace_ordered(c);
    const rp_Frame order = {.which_body = RP_KIND_COPY,
                            .body.copy = {.step = c->train.position.step,
                                          .keep = rp_copies_whole(c)->step,
                                          .bytes_max = bytes_max(c)}};
    for (uint32_t k = 0; k < c->ring.count; k++) {
        rp_board_state *board = &c->ring.board[k];
        board->microbatches_copied[!c->keep.copies.newest] = board->facts.microbatches;
    }
    set->step = c->train.position.step;
    set->term = c->ring.identity.term;
    set->missing = 2 * c->ring.count; /* at itself, and at the keeper */
    RP_TRY(rp_ring_post_all(&c->ring, &order));
fail:
    return err;
}

rp_err rp_copy_step(rp_controller *c) {
    return rp_controller_all_done(c) ? rp_controller_choose_next(c) : RP_OK;
}

/* ---- rescue ---------------------------------------------------------------------------------- */

static rp_err say(rp_controller *c, const char *format, uint64_t step, const char *what) {
    char text[240];
    (void)snprintf(text, sizeof text, format, step, what);
    return rp_record_event(rp_folder_record(c->folder), "copies", c->train.position.step, text);
}

/* The disk has what the boards have not. */
static rp_err fall_back(rp_controller *c, const char *why, const char *what) {
    const uint64_t step = rp_copies_whole(c)->step;
    char name[61];
    rp_err err;
    (void)snprintf(name, sizeof name, "%s", what); /* which may be the checkpoint's */
    rp_save_abandon(c);
    rp_copies_forget(c);
    RP_TRY(rp_controller_go_back_alone(c));
    RP_TRY(say(c, why, step, name));
    rp_controller_enter(c, RP_CONTROL_RESTART);
fail:
    return err;
}

static const char *find_lost(const rp_controller *c) {
    const rp_copy_set *set = &c->keep.copies.set[c->keep.copies.newest];
    for (uint32_t k = 0; k < c->setup.plan->node_count; k++) {
        if (rp_plan_saves(c->setup.plan, k) && set->holder[k] == RP_PLAN_HOST) {
            return rp_plan_node_name(c->setup.plan, k);
        }
    }
    return NULL;
}

static rp_err open_checkpoint(rp_controller *c, const rp_copy_set *set) {
    const bool measured = c->run.method.horizon == RP_HORIZON_MEASURED;
    rp_position position = set->position;
    rp_err err;
    const rp_checkpoint_content content = {.run = &c->run,
                                           .plan = c->setup.plan,
                                           .position = &position,
                                           .applied = &set->applied,
                                           .in_flight_bytes = set->in_flight_bytes,
                                           .estimator = measured ? &set->estimator : NULL,
                                           .folder = rp_folder_paths_of(c->folder)->checkpoints};
    rp_arena_init(&c->keep.save.arena, "rescue", 0);
    c->keep.save.histogram = NULL;
    RP_TRY(rp_trials_tell(c, &c->keep.save.arena, &position));
    RP_TRY(rp_checkpoint_open_writer(&c->keep.save.arena, &content, &c->keep.save.writer));
fail:
    return err;
}

rp_err rp_rescue_enter(rp_controller *c) {
    const rp_copy_set *set = rp_copies_whole(c);
    const char *lost = find_lost(c);
    rp_err err;
    if (lost) {
        return fall_back(c,
                         "nobody has a copy of step %" PRIu64
                         " of what board %s held: the run goes back to its newest checkpoint",
                         lost);
    }
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].saved = true; /* it is asked for nothing yet */
    }
    memset(set->said, 0, c->setup.plan->node_count * sizeof *set->said);
    c->keep.save.boards_left = 0;
    if (rp_disk_rests(c)) {
        return RP_OK;
    }
    err = open_checkpoint(c, set);
    if (err == RP_ERR_IO) {
        rp_save_abandon(c);
        return rp_disk_failed(c);
    }
    RP_TRY(err);
fail:
    return err;
}

/* The next of the copies that the board has, one at a time. */
static rp_err ask_board(rp_controller *c, uint32_t board) {
    const rp_copy_set *set = rp_copies_whole(c);
    rp_board_state *state = &c->ring.board[board];
    uint32_t k = 0;
    while (k < c->setup.plan->node_count &&
           (!rp_plan_saves(c->setup.plan, k) || set->holder[k] != board || set->said[k])) {
        k++;
    }
    if (!state->saved || k == c->setup.plan->node_count) {
        return RP_OK;
    }
    const rp_Frame order = {.which_body = RP_KIND_FETCH,
                            .body.fetch = {.term = set->term, .step = set->step, .node = k}};
    set->said[k] = 1;
    state->saved = false;
    state->sends = k;
    c->keep.save.boards_left++;
    return rp_ring_post(&c->ring, board, &order, NULL);
}

/* It is a checkpoint like any other now. */
static rp_err end_rescue(rp_controller *c) {
    const uint64_t step = rp_copies_whole(c)->step;
    rp_err err;
    RP_TRY(rp_identity_check(rp_folder_paths_of(c->folder)->folder, &c->ring.identity));
    const char *not_finite = rp_checkpoint_not_finite(c->keep.save.writer);
    if (not_finite) {
        return fall_back(c,
                         "the copies of step %" PRIu64
                         " are of no use, for '%s' is not finite: the run goes back to its "
                         "newest checkpoint",
                         not_finite);
    }
    err = rp_checkpoint_commit(&c->keep.save.writer);
    if (err == RP_ERR_IO) {
        return rp_disk_failed(c);
    }
    RP_TRY(err);
    rp_save_abandon(c);
    rp_copies_forget(c);
    c->keep.save.kept_step = step;
    RP_TRY(rp_disk_worked(c));
    rp_recovery_note_checkpoint(c);
    RP_TRY(rp_controller_find_kept(c));
    RP_TRY(say(c, "what the boards held behind step %" PRIu64 " is whole again, from copies%s",
               step, ""));
    rp_controller_leave_hello(c);
fail:
    return err;
}

/* Without a file the copies that have come are of no use: they are asked for again. */
static rp_err try_again(rp_controller *c) {
    if (c->keep.save.boards_left > 0 || rp_disk_rests(c)) {
        return RP_OK;
    }
    rp_save_abandon(c);
    rp_ring_note_progress(&c->ring);
    return rp_rescue_enter(c);
}

rp_err rp_rescue_step(rp_controller *c) {
    rp_err err = RP_OK;
    if (!c->keep.save.writer) {
        return try_again(c);
    }
    for (uint32_t k = 0; k < c->ring.count; k++) {
        RP_TRY(ask_board(c, k));
    }
    return c->keep.save.boards_left == 0 ? end_rescue(c) : RP_OK;
fail:
    return err;
}

/* A second fault on the way: the checkpoint is on the disk. */
void rp_rescue_abandon(rp_controller *c) {
    rp_save_abandon(c);
    rp_copies_forget(c);
}
