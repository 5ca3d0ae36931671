/* The order shared by all unflushed schedules, and what can be computed from it in advance. */
#include <string.h>

#include "sched/replay.h"
#include "sched/split.h"

static bool may_forward(const rp_sched_state *s) {
    const rp_sched_shape *shape = &s->shape;
    if (s->f_step == shape->step_end || s->in_flight >= rp_sched_in_flight_max(shape)) {
        return false;
    }
    const uint32_t ahead = rp_sched_ahead(shape);
    if (ahead > 0 && s->f_step - s->step >= ahead) {
        return false;
    }
    if (shape->steps_open && s->f_step - s->step >= shape->steps_open) {
        return false;
    }
    const uint64_t epoch = rp_sched_epoch_steps(shape);
    return !shape->drain || s->f_step / epoch == s->step / epoch;
}

static rp_op forward_op(rp_sched_state *s) {
    const rp_op op = rp_sched_micro_op(s, RP_OP_FORWARD, s->f_step, s->f++);
    if (s->f == rp_sched_micro_count(&s->shape, s->f_step)) {
        s->f = 0;
        s->f_step++;
    }
    s->in_flight++;
    return op;
}

static rp_op update_op(rp_sched_state *s) {
    const rp_op op = {.kind = RP_OP_UPDATE,
                      .stage = s->shape.stage,
                      .step = s->step,
                      .samples = {0, rp_sched_step_samples(&s->shape, s->step)}};
    s->b = 0;
    s->step++;
    return op;
}

bool rp_sched_next_unflushed(rp_sched_state *s, rp_op *op) {
    if (s->step == s->shape.step_end) {
        return false;
    }
    if (s->b == rp_sched_micro_count(&s->shape, s->step)) {
        *op = update_op(s);
    } else if (may_forward(s)) {
        *op = forward_op(s);
    } else {
        *op = rp_sched_micro_op(s, RP_OP_BACKWARD, s->step, s->b++);
        s->in_flight--;
    }
    return true;
}

/* ---- looking ahead --------------------------------------------------------------------------- */

uint32_t rp_sched_staleness(const rp_sched_kind *kind, const rp_sched_state *behind,
                            const rp_op *forward, uint32_t replicas) {
    rp_sched_state state = *behind;
    rp_op op;
    uint32_t staleness = 0;
    if (kind->splits) {
        return (uint32_t)(forward->step - rp_sched_split_version(&state.shape, forward->step));
    }
    while (kind->next(&state, &op)) {
        if ((op.kind == RP_OP_BACKWARD || op.kind == RP_OP_BACKWARD_INPUT) &&
            op.step == forward->step && op.micro == forward->micro) {
            break;
        }
        staleness += op.kind == RP_OP_UPDATE && op.step % replicas == forward->step % replicas;
    }
    return staleness;
}

/* Steps after which the order is periodic: every stage has filled its pipes several times. */
static uint64_t steady_step(const rp_sched_shape *shape, uint32_t replicas) {
    const rp_sched_shape first = {.stages = shape->stages, .advance = shape->advance};
    /* the largest of all stages */
    const uint64_t ahead = shape->ahead[0] + (uint64_t)shape->publish;
    return 4 * (rp_sched_in_flight_max(&first) + ahead + replicas + shape->steps_open);
}

/* A similar run with full steps only, without epochs, and with its end far away. */
static rp_sched_shape endless_shape(const rp_sched_shape *shape, uint64_t steps) {
    rp_sched_shape out = *shape;
    out.step_first = 0;
    out.step_end = steps;
    out.epoch_samples = steps * shape->batch;
    out.drain = false;
    return out;
}

uint32_t rp_sched_open_behind(const rp_sched_kind *kind, uint32_t open, const rp_op *op,
                              rp_op_kind half) {
    if (op->kind == RP_OP_FORWARD) {
        return open + 1;
    }
    if (kind->sizes) {
        return op->kind == RP_OP_UPDATE ? 0 : open;
    }
    return open - (op->kind == RP_OP_BACKWARD || op->kind == half);
}

uint32_t rp_sched_in_flight(const rp_sched_kind *kind, const rp_sched_shape *shape) {
    rp_sched_state state;
    rp_op op;
    uint64_t quiet = 0; /* consecutive updates without a new maximum */
    uint32_t most = 0;
    uint32_t open = 0;
    rp_sched_start(&state, shape);
    while (quiet <= 2 * (uint64_t)most + 1 && rp_sched_next_of_stage(kind, &state, &op)) {
        open = rp_sched_open_behind(kind, open, &op, RP_OP_BACKWARD_INPUT);
        quiet = open > most ? 0 : quiet + (op.kind == RP_OP_UPDATE);
        most = open > most ? open : most;
    }
    return most;
}

/* The staleness of a microbatch; 0 if it does not exist. */
static uint32_t staleness_of(const rp_sched_kind *kind, const rp_sched_shape *run, uint64_t step,
                             uint32_t micro, uint32_t replicas) {
    rp_sched_state state;
    rp_op op;
    rp_sched_start(&state, run);
    while (state.f_step <= step && kind->next(&state, &op)) {
        if (op.kind == RP_OP_FORWARD && op.step == step && op.micro == micro) {
            return rp_sched_staleness(kind, &state, &op, replicas);
        }
    }
    return 0;
}

uint32_t rp_sched_steady_staleness(const rp_sched_kind *kind, const rp_sched_shape *shape,
                                   uint32_t micro, uint32_t replicas) {
    const uint64_t step = steady_step(shape, replicas);
    const rp_sched_shape run = endless_shape(shape, 2 * step);
    return staleness_of(kind, &run, step, micro, replicas);
}

uint32_t rp_sched_staleness_at(const rp_sched_kind *kind, const rp_sched_shape *shape,
                               uint64_t step, uint32_t replicas) {
    const uint64_t settles = steady_step(shape, replicas);
    rp_sched_shape run = *shape;
    if (step >= run.step_end) {
        return 0;
    }
    if (step > run.step_first + settles) {
        run.step_first = step - settles;
    }
    return staleness_of(kind, &run, step, 0, replicas);
}

typedef struct {
    uint32_t stage;
    uint64_t step;
    uint32_t last_micro;
    uint64_t at_forward, at_backward; /* own updates before them */
    uint64_t updates;
    double *end; /* end of every own update */
    double round_trip;
} trip;

static void follow_slot(void *context, const rp_sched_slot *slot) {
    trip *t = context;
    const rp_op *op = &slot->op;
    const bool backward = op->kind == RP_OP_BACKWARD || op->kind == RP_OP_BACKWARD_INPUT;
    if (slot->stage == 0 && backward && op->step == t->step && op->micro == t->last_micro) {
        t->round_trip = slot->start;
    }
    if (slot->stage != t->stage) {
        return;
    }
    if (op->kind == RP_OP_UPDATE) {
        t->end[t->updates++] = slot->end;
    } else if (op->step == t->step && op->micro == 0) {
        if (op->kind == RP_OP_FORWARD) {
            t->at_forward = t->updates;
        } else if (backward) {
            t->at_backward = t->updates;
        }
    }
}

rp_err rp_sched_round_trip(const rp_sched_kind *kind, const rp_sched_shape *shape,
                           uint32_t *from_forward, uint32_t *from_backward) {
    rp_arena arena;
    rp_sched_facts facts;
    rp_err err;
    rp_arena_init(&arena, "round trip", 0);
    const uint64_t step = steady_step(shape, 1);
    const rp_sched_shape run = endless_shape(shape, 2 * step);
    trip t = {
        .stage = shape->stage, .step = step, .last_micro = rp_sched_micro_count(&run, step) - 1};
    RP_TRY(RP_ARENA_NEW(&arena, 2 * step, &t.end));
    RP_TRY(rp_sched_replay(&arena, kind, &run, NULL, follow_slot, &t, &facts));
    uint64_t over = 0;
    while (over < t.updates && t.end[over] < t.round_trip) {
        over++;
    }
    *from_forward = (uint32_t)(over - t.at_forward);
    *from_backward = (uint32_t)(over - t.at_backward);
fail:
    rp_arena_finish(&arena);
    return err;
}
