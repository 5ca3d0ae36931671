/* `advance: auto`: as many minibatches in flight as the links need, and with them an elastic
 * average's replicas and its alpha (METHODS 1, 9). The host looks at the links when a run begins
 * and at every pause. When they have changed, the pipes drain, and the boards get new stages. */
#include "run/controller_own.h"

#include <inttypes.h>
#include <stdio.h>

#include "run/checkpoint.h"

/* Boards that are idle answer at once; behind a profile some answers are late. */
enum { BRINGUP_TRIPS = 8, PAUSE_TRIPS = 2 };

/* Seconds from board to board: as emulated, or half of the longest round trip to a board. */
static rp_err link_delay(rp_controller *c, uint32_t trips, double *seconds) {
    int64_t round_trip_ns = 0;
    if (c->run.emulate) {
        *seconds = (c->run.link.delay_ms + c->run.link.jitter_ms) * 1e-3;
        return RP_OK;
    }
    rp_err err = rp_ring_round_trip(&c->ring, trips, &round_trip_ns);
    *seconds = (double)round_trip_ns * 1e-9 / 2;
    return err;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

static void stage_costs(const rp_controller *c, double *forward, double *backward, double *send) {
    for (uint32_t k = 0; k < c->cut.stage_count; k++) {
        const uint32_t end = c->cut.first[k + 1];
        const bool last = k + 1 == c->cut.stage_count;
        for (uint32_t i = c->cut.first[k]; i < end; i++) {
            forward[k] += c->layer_seconds[2 * (size_t)i];
            backward[k] += c->layer_seconds[2 * (size_t)i + 1];
        }
        forward[k] = larger(forward[k], c->run.pace.forward_ms * 1e-3);
        backward[k] = larger(backward[k], c->run.pace.backward_ms * 1e-3);
        send[k] = rp_controller_crossing_s(c, last ? c->cut.first[k] : end) / 2;
    }
}

/* What each advance would give on the links as they are now. */
static rp_err look(rp_controller *c, uint32_t trips, rp_advance_choice *choice) {
    double costs[4][RP_CUT_STAGES_MAX] = {{0}};
    double none[RP_CUT_STAGES_MAX] = {0};
    rp_err err;
    stage_costs(c, costs[0], costs[1], costs[2]);
    RP_TRY(link_delay(c, trips, &c->link_delay_s));
    for (uint32_t k = 0; k < c->run.stages; k++) {
        costs[3][k] = c->link_delay_s;
    }
    const rp_sched_shape shape = rp_runfile_sched_shape(&c->run, 0);
    const rp_sched_costs seconds = {.forward = costs[0],
                                    .backward_input = costs[1],
                                    .backward_weight = none,
                                    .send = costs[2],
                                    .delay = costs[3]};
    RP_TRY(rp_advance_choose(&c->run.method, &shape, &seconds, choice));
    choice->advance = choice->advance < c->advance_max ? choice->advance : c->advance_max;
fail:
    return err;
}

static void take(rp_controller *c, const rp_advance_choice *choice) {
    c->advance = *choice;
    c->advance_chosen = true;
    rp_method_set_advance(&c->run.method, c->run.stages, choice->advance);
}

/* Of the last step trained: a resumed run keeps what is said of it. */
static rp_err record(const rp_controller *c, const char *text) {
    const uint64_t step = c->position.step;
    return c->record ? rp_record_event(c->record, "advance", step - (step > 0), text) : RP_OK;
}

/* Says what is in effect now, and why. `before`: what it is better than. */
static rp_err say(const rp_controller *c, uint32_t before) {
    const rp_method *method = &c->run.method;
    const double *busy = c->advance.busy;
    char text[200];
    int used =
        snprintf(text, sizeof text, "links take %.1f ms: advance %u keeps the boards %.0f %% busy",
                 1e3 * c->link_delay_s, method->advance, 100 * busy[method->advance]);
    if (method->advance != before) {
        used += snprintf(text + used, sizeof text - (size_t)used, ", %u %.0f %%", before,
                         100 * busy[before]);
    }
    if (method->kind->average == RP_AVERAGE_ELASTIC) {
        (void)snprintf(text + used, sizeof text - (size_t)used, "; %u replicas, alpha %.3g",
                       method->replicas, method->alpha);
    }
    return record(c, text);
}

rp_err rp_controller_choose_advance(rp_controller *c) {
    rp_advance_choice choice;
    rp_err err = RP_OK;
    c->advance_max = RP_ADVANCE_MAX;
    if (!c->run.method.advance_auto || c->forwards_only || c->run.stages == 1) {
        return RP_OK;
    }
    if (!c->layer_seconds) {
        RP_TRY(rp_controller_measure(c));
    }
    if (c->position.step > 0) {
        return RP_OK; /* as its checkpoint says, which may hold microbatches in flight */
    }
    RP_TRY(look(c, BRINGUP_TRIPS, &choice));
    take(c, &choice);
fail:
    return err;
}

/* Fewer in flight than the links ask for, where a board has no memory for them. */
static rp_err assign(rp_controller *c, bool again, uint32_t least) {
    rp_method *method = &c->run.method;
    for (;;) {
        char text[200];
        rp_err err =
            again ? rp_ring_assign_again(&c->ring, &c->cut) : rp_ring_assign(&c->ring, &c->cut);
        if (err != RP_ERR_LIMIT || !method->advance_auto || method->advance <= least) {
            return err;
        }
        (void)snprintf(text, sizeof text, "not advance %u: %s", method->advance, rp_err_message());
        c->advance_max = c->advance.advance = method->advance - 1;
        take(c, &c->advance);
        err = record(c, text);
        if (err != RP_OK) {
            return err;
        }
        again = true;
    }
}

rp_err rp_controller_assign(rp_controller *c) {
    rp_err err;
    RP_TRY(assign(c, false, c->advance_chosen ? 0 : c->run.method.advance));
    RP_TRY(c->advance_chosen ? say(c, 0) : RP_OK);
fail:
    return err;
}

/* ---- links that change ----------------------------------------------------------------------- */

/* Where the pipes are empty if nothing goes in any more: behind what stage 0 has in flight. */
static uint64_t drained_at(const rp_controller *c) {
    return c->fed.list.f_step + (c->fed.list.f > 0);
}

/* The boards get the stages that the method now asks for, filled from the checkpoint of here. */
static rp_err rebuild(rp_controller *c, const rp_advance_choice *choice) {
    const uint32_t before = c->run.method.advance;
    rp_arena arena;
    char *path;
    rp_err err;
    rp_arena_init(&arena, "rebuild", 0);
    RP_TRY(rp_checkpoint_find(&arena, &c->run, c->checkpoints, &path, &c->position));
    take(c, choice);
    c->run.step_first = c->position.step;
    RP_TRY(assign(c, true, before < choice->advance ? before : choice->advance));
    RP_TRY(rp_controller_write_folder(c));
    RP_TRY(rp_controller_go_on(c, path, true));
    RP_TRY(rp_controller_save(c)); /* of this method, so that a resumed run is this one */
fail:
    rp_arena_finish(&arena);
    return err;
}

/* A few steps for the drain, and a moment for the boards: no change for less. What is in flight may
 * reach over a checkpoint's step (another is made behind it), not over an evaluation's. */
rp_err rp_controller_follow_links(rp_controller *c) {
    const uint64_t end = drained_at(c);
    const bool follows = c->run.method.advance_auto && c->run.stages > 1;
    const uint32_t before = c->run.method.advance;
    rp_advance_choice choice;
    rp_err err = RP_OK;
    if (!follows || c->position.step == 0 || end >= rp_controller_next_evaluation(c)) {
        return RP_OK;
    }
    RP_TRY(look(c, PAUSE_TRIPS, &choice));
    if (!rp_advance_pays(&choice, before)) {
        return RP_OK;
    }
    RP_TRY(rp_controller_train_segment(c, end, true));
    RP_TRY(rp_controller_save(c));
    if (c->ring.interrupts > 0) {
        return rp_fail(RP_ERR_INTERRUPTED, "interrupted after step %" PRIu64, c->position.step);
    }
    RP_TRY(rebuild(c, &choice));
    RP_TRY(c->run.method.advance != before ? say(c, before) : RP_OK);
fail:
    return err;
}
