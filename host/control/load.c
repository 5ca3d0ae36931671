/* The state `load`: what a file holds goes to the boards in pieces, as many as their links take.
 * Then the feed opens, and training may begin. */
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"

enum { PIECE_FLOATS = RP_RING_PIECE_BYTES / sizeof(float) };

/* ---- tensors --------------------------------------------------------------------------------- */

static rp_err offer_tensor(rp_controller *c, uint32_t board) {
    rp_load *load = &c->keep.load;
    const rp_checkpoint_tensor *tensor = &load->tensor;
    rp_err err = RP_OK;
    load->board = board;
    while (load->first < tensor->count) {
        const size_t rest = tensor->count - load->first;
        const size_t count = rest < PIECE_FLOATS ? rest : PIECE_FLOATS;
        const rp_part part = rp_part_of_array(RP_DTYPE_F32, tensor->values + load->first, count);
        rp_Frame frame = {.which_body = RP_KIND_TENSOR,
                          .body.tensor = {.first = load->first, .total = tensor->count}};
        rp_Tensor *to = &frame.body.tensor;
        (void)snprintf(to->name, sizeof to->name, "%s", tensor->name);
        RP_TRY(rp_ring_offer_piece(&c->ring, board, &frame, &part));
        load->first += count;
    }
    load->first = 0;
fail:
    return err;
}

/* A board that only does forwards has no optimiser, and one version of the weights. */
static bool takes_tensor(const rp_controller *c, const rp_plan_hold *hold) {
    const rp_checkpoint_tensor *tensor = &c->keep.load.tensor;
    return hold->stage == rp_controller_stage_of(c, tensor->layer) &&
           (hold->role != RP_ROLE_FORWARD || tensor->is_evaluated);
}

/* The tensor, to every board that holds its stage. */
static rp_err offer_to_holders(rp_controller *c) {
    rp_load *load = &c->keep.load;
    rp_err err = RP_OK;
    for (; load->hold < c->setup.plan->hold_count; load->hold++) {
        if (takes_tensor(c, &c->setup.plan->hold[load->hold])) {
            RP_TRY(offer_tensor(c, c->setup.plan->hold[load->hold].node));
        }
    }
    load->has_tensor = false;
    load->hold = 0;
fail:
    return err;
}

static rp_err offer_tensors(rp_controller *c) {
    rp_load *load = &c->keep.load;
    rp_err err = RP_OK;
    for (;;) {
        if (!load->has_tensor) {
            RP_TRY(rp_checkpoint_next(load->reader, &load->tensor, &load->has_tensor));
        }
        if (!load->has_tensor) {
            load->phase = RP_LOAD_APPLIED;
            load->board = 0;
            return RP_OK;
        }
        RP_TRY(offer_to_holders(c));
    }
fail:
    return err;
}

/* ---- updates done ---------------------------------------------------------------------------- */

static void take_most(uint64_t *most, uint64_t value) {
    *most = value > *most ? value : *most;
}

/* On the same cut each stage gets its own; on another one all get the most of any: they differ only
 * where a stage has skipped a step of its own, or has nothing to train. */
static void take_applied(rp_controller *c, const rp_position *from) {
    const bool same = rp_cut_is_same(&from->setup.cut, &c->setup.plan_cut);
    for (uint32_t h = 0; h < c->setup.plan->hold_count; h++) {
        const rp_plan_hold *hold = &c->setup.plan->hold[h];
        uint32_t count;
        uint64_t *own = rp_controller_applied_of(c, hold, &count);
        for (uint32_t s = 0; s < from->applied.stages; s++) {
            for (uint32_t r = 0; (!same || s == hold->stage) && r < count; r++) {
                take_most(&own[r], from->applied.of[s][r]);
            }
        }
    }
}

static rp_err offer_applied(rp_controller *c) {
    rp_load *load = &c->keep.load;
    rp_err err = RP_OK;
    if (load->board == 0 && load->states) {
        take_applied(c, &c->train.position);
    }
    for (; load->board < c->ring.count; load->board++) {
        const uint32_t count = rp_controller_applied_count(c, load->board);
        const rp_part part =
            rp_part_of_array(RP_DTYPE_U64, c->ring.board[load->board].applied, count);
        rp_Frame frame = {.which_body = RP_KIND_TENSORS_END};
        RP_TRY(rp_ring_offer_piece(&c->ring, load->board, &frame, &part));
    }
    load->phase = load->states ? RP_LOAD_GAINS : RP_LOAD_DONE;
fail:
    return err;
}

/* ---- gains, in flight ------------------------------------------------------------------------ */

static rp_err post_gains(rp_controller *c) {
    rp_load *load = &c->keep.load;
    bool usable;
    rp_err err = RP_OK;
    if (!c->machine.begun && c->train.position.plan > 0 &&
        c->train.position.plan != rp_plan_digest(c->setup.plan)) {
        rp_record_phase(rp_folder_record(c->folder),
                        "the checkpoint was made with another plan of the ring");
    }
    if (c->run.method.horizon == RP_HORIZON_MEASURED) {
        RP_TRY(rp_checkpoint_load_gains(load->path, rp_train_gains(c->train.room)));
        RP_TRY(rp_train_repeat_gains(c->train.room));
    }
    RP_TRY(rp_checkpoint_open_in_flight(&load->arena, c->setup.plan, load->path,
                                        c->train.position.step, &load->in_flight_file,
                                        &load->in_flight, &usable));
    c->train.position.fill_step = usable ? load->in_flight.fill_step : c->train.position.step;
    load->phase = usable ? RP_LOAD_IN_FLIGHT : RP_LOAD_DONE;
    load->board = 0;
    load->first = 0;
fail:
    return err;
}

/* To every board, also when it is nothing: the board says whether that can be. */
static rp_err offer_in_flight(rp_controller *c) {
    rp_load *load = &c->keep.load;
    rp_err err = RP_OK;
    while (load->board < c->ring.count) {
        const rp_checkpoint_bytes *all =
            &load->in_flight.part[rp_plan_part_of(c->setup.plan, load->board)];
        const size_t rest = all->bytes - load->first;
        const size_t bytes = rest < RP_RING_PIECE_BYTES ? rest : RP_RING_PIECE_BYTES;
        const rp_part part = rp_part_of_bytes((const char *)all->data + load->first, bytes);
        rp_Frame frame = {.which_body = RP_KIND_IN_FLIGHT,
                          .body.in_flight = {.first = load->first,
                                             .total = all->bytes,
                                             .fill_step = load->in_flight.fill_step}};
        RP_TRY(rp_ring_offer_piece(&c->ring, load->board, &frame, bytes > 0 ? &part : NULL));
        load->first += bytes;
        if (load->first == all->bytes) {
            load->first = 0;
            load->board++;
        }
    }
    load->phase = RP_LOAD_DONE;
fail:
    return err;
}

/* ---- the state ------------------------------------------------------------------------------- */

rp_err rp_load_enter(rp_controller *c) {
    rp_load *load = &c->keep.load;
    rp_err err = RP_OK;
    RP_ASSERT(!c->keep.copies.wanted);
    c->machine.timeout_ns = rp_ring_patience_ns(&c->run);
    rp_arena_init(&load->arena, "load", 0);
    c->train.position.fill_step = c->train.position.step;
    load->phase = load->path ? RP_LOAD_TENSORS : RP_LOAD_DONE;
    load->has_tensor = false;
    load->first = 0;
    load->hold = 0;
    if (load->path && load->start && !load->states) {
        RP_TRY(rp_checkpoint_open_start(&load->arena, &c->run, &load->reader));
    } else if (load->path) {
        RP_TRY(rp_checkpoint_open_reader(&load->arena, &c->run, load->path,
                                         load->states ? &c->train.position : NULL, &load->reader));
    }
fail:
    return err;
}

void rp_load_abandon(rp_controller *c) {
    rp_checkpoint_close_reader(&c->keep.load.reader);
    rp_st_close(&c->keep.load.in_flight_file);
    rp_arena_finish(&c->keep.load.arena);
}

static rp_err leave_load(rp_controller *c) {
    rp_err err = RP_OK;
    rp_load_abandon(c);
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        RP_TRY(rp_train_open_feed(c->train.room));
    }
    c->machine.begun = c->options.purpose == RP_PURPOSE_TRAIN;
    rp_arena_seal(&c->arena); /* what comes from here on lives for a state or an assignment */
    if (c->setup.follow.phase ==
        RP_FOLLOW_ASSIGN) { /* so that a resumed run is the run as it is now */
        c->setup.follow.phase = RP_FOLLOW_SAVE;
        c->keep.unsaved = c->machine.renewed = true;
    }
    RP_TRY(rp_recovery_note_work(c));
    RP_TRY(rp_controller_choose_next(c));
fail:
    return err;
}

rp_err rp_load_step(rp_controller *c) {
    static rp_err (*const phases[])(rp_controller *) = {
        [RP_LOAD_TENSORS] = offer_tensors, [RP_LOAD_APPLIED] = offer_applied,
        [RP_LOAD_GAINS] = post_gains,      [RP_LOAD_IN_FLIGHT] = offer_in_flight,
        [RP_LOAD_DONE] = leave_load,
    };
    rp_err err = RP_OK;
    while (err == RP_OK && c->machine.next == RP_CONTROL_LOAD) {
        err = phases[c->keep.load.phase](c);
    }
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

rp_err rp_load_late(const rp_controller *c) {
    return rp_fail(RP_ERR_TIMEOUT, "board %s accepts no message",
                   c->ring.board[c->keep.load.board].name);
}
