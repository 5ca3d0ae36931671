/* A load: sends a file's content to the boards in pieces, as many as their links take. */
#include <stdio.h>
#include <string.h>

#include "keep/keep_own.h"

enum { PIECE_FLOATS = RP_RING_PIECE_BYTES / sizeof(float) };

static bool has_states(const rp_load *load) {
    return load->source == RP_KEEP_CHECKPOINT;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static rp_err offer_tensor(rp_keep *keep, uint32_t board) {
    rp_load *load = &keep->load;
    const rp_checkpoint_tensor *tensor = &load->tensor;
    rp_err err = RP_OK;
    RP_ASSERT(load->has_tensor && load->first <= tensor->count);
    load->board = board;
    while (load->first < tensor->count) {
        const size_t rest = tensor->count - load->first;
        const size_t count = rest < PIECE_FLOATS ? rest : PIECE_FLOATS;
        const rp_part part = rp_part_of_array(RP_DTYPE_F32, tensor->values + load->first, count);
        rp_Frame frame = {.which_body = RP_KIND_TENSOR,
                          .body.tensor = {.first = load->first, .total = tensor->count}};
        rp_Tensor *to = &frame.body.tensor;
        (void)snprintf(to->name, sizeof to->name, "%s", tensor->name);
        RP_TRY(rp_ring_offer_piece(keep->needs.ring, board, &frame, &part));
        load->first += count;
    }
    load->first = 0;
fail:
    return err;
}

/* Whether a layer of the stage has the tensor. */
static bool has_tensor(const rp_keep *keep, uint32_t stage) {
    const rp_model *model = keep->needs.run->model;
    const uint32_t *first = keep->load.order.cut->first;
    const uint32_t end = model->param_first[first[stage + 1]];
    const uint32_t owner = keep->load.tensor.param;
    bool has = false;
    for (uint32_t p = model->param_first[first[stage]]; p < end; p++) {
        has |= model->param[p].owner == owner;
    }
    return has;
}

/* A board that only does forwards has no optimiser, and only one version of the weights. A board
 * with several uses of a tensor gets it once. */
static bool takes_tensor(const rp_keep *keep, uint32_t index) {
    const rp_plan *plan = keep->load.order.plan;
    const rp_plan_hold *hold = &plan->hold[index];
    bool before = false;
    for (uint32_t h = plan->node[hold->node].hold_first; h < index; h++) {
        before |= has_tensor(keep, plan->hold[h].stage);
    }
    return !before && has_tensor(keep, hold->stage) &&
           (hold->role != RP_ROLE_FORWARD || keep->load.tensor.is_evaluated);
}

/* Sends the tensor to every board that holds a layer with it. */
static rp_err offer_to_holders(rp_keep *keep) {
    rp_load *load = &keep->load;
    const rp_plan *plan = load->order.plan;
    rp_err err = RP_OK;
    for (; load->hold < plan->hold_count; load->hold++) {
        if (takes_tensor(keep, load->hold)) {
            RP_TRY(offer_tensor(keep, plan->hold[load->hold].node));
        }
    }
    load->has_tensor = false;
    load->hold = 0;
fail:
    return err;
}

static rp_err offer_tensors(rp_keep *keep) {
    rp_load *load = &keep->load;
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
        RP_TRY(offer_to_holders(keep));
    }
fail:
    return err;
}

/* ---- updates done ---------------------------------------------------------------------------- */

static void raise_to(uint64_t *most, uint64_t value) {
    *most = value > *most ? value : *most;
}

/* With the same cut each stage gets its own count. With another cut all stages get the largest one:
 * counts differ only if a stage skipped a step of its own, or has nothing to train. */
static void take_applied(rp_keep *keep) {
    const rp_keep_load_order *order = &keep->load.order;
    const rp_position *from = order->position;
    const bool same = rp_cut_is_same(&from->setup.cut, order->cut);
    for (uint32_t h = 0; h < order->plan->hold_count; h++) {
        const rp_plan_hold *hold = &order->plan->hold[h];
        uint32_t count;
        uint64_t *own = rp_applied_of(keep->needs.ring, order->plan, hold, &count);
        for (uint32_t s = 0; s < from->applied.stages; s++) {
            for (uint32_t r = 0; (!same || s == hold->stage) && r < count; r++) {
                raise_to(&own[r], from->applied.of[s][r]);
            }
        }
    }
}

/* All stages and replicas have seen as many updates. */
static void take_start_updates(rp_keep *keep) {
    const rp_plan *plan = keep->load.order.plan;
    const uint64_t updates = rp_checkpoint_start_updates(keep->load.reader);
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        uint32_t count;
        uint64_t *own = rp_applied_of(keep->needs.ring, plan, &plan->hold[h], &count);
        for (uint32_t r = 0; r < count; r++) {
            raise_to(&own[r], updates);
        }
    }
}

static rp_err offer_applied(rp_keep *keep) {
    rp_load *load = &keep->load;
    rp_ring *ring = keep->needs.ring;
    rp_err err = RP_OK;
    if (load->board == 0 && has_states(load)) {
        take_applied(keep);
    } else if (load->board == 0) {
        take_start_updates(keep);
    }
    for (; load->board < ring->count; load->board++) {
        const uint32_t count = rp_keep_applied_count(load->order.plan, load->board);
        const rp_part part =
            rp_part_of_array(RP_DTYPE_U64, ring->board[load->board].train.applied, count);
        rp_Frame frame = {.which_body = RP_KIND_TENSORS_END};
        RP_TRY(rp_ring_offer_piece(ring, load->board, &frame, &part));
    }
    load->phase = has_states(load) ? RP_LOAD_GAINS : RP_LOAD_DONE;
fail:
    return err;
}

/* ---- gains, in flight ------------------------------------------------------------------------ */

static rp_err read_gains(rp_keep *keep) {
    rp_load *load = &keep->load;
    const uint64_t made_with = load->order.position->plan;
    if (load->order.is_first && made_with > 0 && made_with != rp_plan_digest(load->order.plan)) {
        rp_record_phase(rp_keep_record(keep),
                        "the checkpoint was made with another plan of the ring");
    }
    load->phase = RP_LOAD_OPEN_IN_FLIGHT;
    return load->order.estimator ? rp_checkpoint_load_gains(load->path, load->order.estimator)
                                 : RP_OK;
}

static rp_err open_in_flight(rp_keep *keep) {
    rp_load *load = &keep->load;
    const uint64_t step = load->order.position->step;
    bool usable;
    rp_err err;
    RP_ASSERT(load->in_flight_file == NULL);
    RP_TRY(rp_checkpoint_open_in_flight(&load->arena, load->order.plan, load->path, step,
                                        &load->in_flight_file, &load->in_flight, &usable));
    load->fill_step = usable ? load->in_flight.fill_step : step;
    load->phase = usable ? RP_LOAD_IN_FLIGHT : RP_LOAD_DONE;
    load->board = 0;
    load->first = 0;
fail:
    return err;
}

/* Every board gets a message, even without in-flight state; the board checks whether that is
 * valid. */
static rp_err offer_in_flight(rp_keep *keep) {
    rp_load *load = &keep->load;
    rp_err err = RP_OK;
    while (load->board < keep->needs.ring->count) {
        const rp_checkpoint_bytes *all =
            &load->in_flight.part[rp_plan_part_of(load->order.plan, load->board)];
        RP_ASSERT(load->first <= all->bytes);
        const size_t rest = all->bytes - load->first;
        const size_t bytes = rest < RP_RING_PIECE_BYTES ? rest : RP_RING_PIECE_BYTES;
        const rp_part part = rp_part_of_bytes((const char *)all->data + load->first, bytes);
        rp_Frame frame = {.which_body = RP_KIND_IN_FLIGHT,
                          .body.in_flight = {.first = load->first,
                                             .total = all->bytes,
                                             .fill_step = load->in_flight.fill_step}};
        RP_TRY(
            rp_ring_offer_piece(keep->needs.ring, load->board, &frame, bytes > 0 ? &part : NULL));
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

/* ---- the whole load -------------------------------------------------------------------------- */

void rp_keep_load_from(rp_keep *keep, const char *path, rp_keep_source source) {
    RP_ASSERT(keep->load.reader == NULL);
    keep->load.path = path;
    keep->load.source = source;
}

/* The start of the run, not a checkpoint. */
rp_err rp_keep_load_first(rp_keep *keep, rp_arena *arena) {
    const rp_init *init = keep->needs.run->init;
    char *path = NULL;
    rp_err err = RP_OK;
    if (init) {
        RP_TRY(rp_arena_string(arena, init->from, &path));
    }
    rp_keep_load_from(keep, path, RP_KEEP_INIT);
fail:
    return err;
}

rp_err rp_keep_begin_load(rp_keep *keep, const rp_keep_load_order *order) {
    rp_load *load = &keep->load;
    const rp_runfile *run = keep->needs.run;
    rp_err err = RP_OK;
    RP_ASSERT(!keep->copies.wanted); /* they have become a checkpoint */
    RP_ASSERT(load->reader == NULL && load->in_flight_file == NULL);
    RP_ASSERT(order->plan->node_count == keep->needs.ring->count);
    RP_ASSERT(order->cut->stage_count == order->plan->stage_count);
    *load = (rp_load){.path = load->path,
                      .source = load->source,
                      .order = *order,
                      .phase = load->path ? RP_LOAD_TENSORS : RP_LOAD_DONE,
                      .fill_step = order->position->step};
    rp_arena_init(&load->arena, "load", 0);
    if (load->path && load->source == RP_KEEP_INIT) {
        RP_TRY(rp_checkpoint_open_start(&load->arena, run, &load->reader));
    } else if (load->path) {
        RP_TRY(rp_checkpoint_open_reader(&load->arena, run, load->path,
                                         has_states(load) ? order->position : NULL, &load->reader));
    }
fail:
    return err;
}

void rp_keep_abandon_load(rp_keep *keep) {
    rp_checkpoint_close_reader(&keep->load.reader);
    rp_st_close(&keep->load.in_flight_file);
    rp_arena_finish(&keep->load.arena);
    RP_ASSERT(keep->load.reader == NULL && keep->load.in_flight_file == NULL);
}

rp_err rp_keep_step_load(rp_keep *keep, uint64_t *fill_step, rp_keep_outcome *out) {
    static rp_err (*const phases[])(rp_keep *) = {
        [RP_LOAD_TENSORS] = offer_tensors,     [RP_LOAD_APPLIED] = offer_applied,
        [RP_LOAD_GAINS] = read_gains,          [RP_LOAD_OPEN_IN_FLIGHT] = open_in_flight,
        [RP_LOAD_IN_FLIGHT] = offer_in_flight,
    };
    rp_load *load = &keep->load;
    rp_err err = RP_OK;
    RP_ASSERT(load->phase == RP_LOAD_DONE || load->path != NULL);
    *out = RP_KEEP_WAITS;
    while (err == RP_OK && load->phase != RP_LOAD_DONE) {
        const rp_load_phase before = load->phase;
        err = phases[before](keep);
        RP_ASSERT(err != RP_OK || load->phase > before); /* phases only advance */
        if (err == RP_OK && before == RP_LOAD_GAINS && load->order.estimator) {
            *out = RP_KEEP_OFFERED;
            return RP_OK;
        }
    }
    if (err == RP_OK) {
        *fill_step = load->fill_step;
        *out = RP_KEEP_DONE;
    }
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

rp_err rp_keep_load_is_late(const rp_keep *keep) {
    RP_ASSERT(keep->load.board < keep->needs.ring->count);
    return rp_fail(RP_ERR_TIMEOUT, "board %s accepts no message",
                   keep->needs.ring->board[keep->load.board].name);
}
