#include "sched/sched.h"

#include <stdio.h>
#include <string.h>

const rp_sched_kind *rp_sched_find(const char *name) {
    for (const rp_sched_kind *const *kind = rp_sched_kinds; *kind; kind++) {
        if (strcmp((*kind)->name, name) == 0) {
            return *kind;
        }
    }
    return NULL;
}

bool rp_role_does(rp_role role, rp_op_kind kind) {
    switch (role) {
    case RP_ROLE_FORWARD:
        return kind == RP_OP_FORWARD;
    case RP_ROLE_BACKWARD:
        return kind != RP_OP_FORWARD;
    case RP_ROLE_AVERAGE:
        return kind == RP_OP_UPDATE;
    default:
        return true;
    }
}

const char *rp_op_letter(rp_op_kind kind) {
    static const char *const letters[RP_OP_KINDS] = {"F", "B", "B", "W", "U"};
    RP_ASSERT((unsigned)kind < RP_OP_KINDS);
    return letters[kind];
}

uint32_t rp_sched_in_flight_max(const rp_sched_shape *shape) {
    const uint32_t ahead = rp_sched_ahead(shape);
    if (ahead > 0) {
        return ahead * ((shape->batch - 1) / shape->micro + 1);
    }
    const uint32_t behind = shape->stages - 1 - shape->stage;
    return 1 + behind + behind * shape->advance;
}

uint64_t rp_sched_epoch_steps(const rp_sched_shape *shape) {
    return (shape->epoch_samples - 1) / shape->batch + 1;
}

uint32_t rp_sched_step_samples(const rp_sched_shape *shape, uint64_t step) {
    const uint64_t first = step % rp_sched_epoch_steps(shape) * shape->batch;
    const uint64_t rest = shape->epoch_samples - first;
    return rest < shape->batch ? (uint32_t)rest : shape->batch;
}

rp_range rp_sched_share(const double share[2], uint32_t step_samples) {
    const double samples = step_samples;
    if (!(share[1] > 0)) {
        return (rp_range){0, step_samples};
    }
    const uint32_t first = (uint32_t)(share[0] * samples + 0.5);
    const uint32_t end = (uint32_t)(share[1] * samples + 0.5);
    return (rp_range){first, end - first};
}

uint32_t rp_sched_micro_count(const rp_sched_shape *shape, uint64_t step) {
    const rp_range own = rp_sched_share(shape->share, rp_sched_step_samples(shape, step));
    return own.count > 0 ? (own.count - 1) / shape->micro + 1 : 0;
}

rp_range rp_sched_micro_range(const rp_sched_shape *shape, uint64_t step, uint32_t micro) {
    const rp_range own = rp_sched_share(shape->share, rp_sched_step_samples(shape, step));
    RP_ASSERT(micro < rp_sched_micro_count(shape, step));
    const uint32_t first = micro * shape->micro;
    const uint32_t rest = own.count - first;
    return (rp_range){own.first + first, rest < shape->micro ? rest : shape->micro};
}

uint32_t rp_sched_backward_count(const rp_sched_shape *shape, uint64_t step) {
    rp_sched_shape backward = *shape;
    backward.micro = shape->micro_backward ? shape->micro_backward : shape->micro;
    return rp_sched_micro_count(&backward, step);
}

rp_range rp_sched_backward_range(const rp_sched_shape *shape, uint64_t step, uint32_t micro) {
    const uint32_t size = shape->micro_backward;
    if (size == 0) {
        return rp_sched_micro_range(shape, step, micro);
    }
    const rp_range own = rp_sched_share(shape->share, rp_sched_step_samples(shape, step));
    const uint32_t count = rp_sched_backward_count(shape, step);
    RP_ASSERT(micro < count);
    const uint32_t rest = own.count - (count - 1) * size; /* size of microbatch 0 */
    return micro > 0 ? (rp_range){own.first + rest + (micro - 1) * size, size}
                     : (rp_range){own.first, rest};
}

uint32_t rp_sched_nodes(const rp_sched_shape *shape) {
    return shape->chunks > 1 ? shape->stages / shape->chunks : shape->stages;
}

uint32_t rp_sched_node(const rp_sched_shape *shape) {
    return shape->stage % rp_sched_nodes(shape);
}

bool rp_sched_next_of_stage(const rp_sched_kind *kind, rp_sched_state *state, rp_op *op) {
    while (kind->next(state, op)) {
        if (op->stage == state->shape.stage) {
            return true;
        }
    }
    return false;
}

void rp_sched_start(rp_sched_state *state, const rp_sched_shape *shape) {
    RP_ASSERT(shape->stage < shape->stages);
    RP_ASSERT(shape->chunks < 2 || shape->stages % shape->chunks == 0);
    RP_ASSERT(shape->epoch_samples > 0 && shape->batch > 0 && shape->micro > 0);
    RP_ASSERT(shape->step_first <= shape->step_end);
    *state =
        (rp_sched_state){.shape = *shape, .step = shape->step_first, .f_step = shape->step_first};
}

rp_op rp_sched_micro_op(const rp_sched_state *state, rp_op_kind kind, uint64_t step,
                        uint64_t micro) {
    return (rp_op){.kind = kind,
                   .stage = state->shape.stage,
                   .step = step,
                   .samples = rp_sched_micro_range(&state->shape, step, (uint32_t)micro),
                   .micro = (uint32_t)micro};
}

rp_op rp_sched_backward_op(const rp_sched_state *state, uint64_t step, uint64_t micro) {
    return (rp_op){.kind = RP_OP_BACKWARD,
                   .stage = state->shape.stage,
                   .step = step,
                   .samples = rp_sched_backward_range(&state->shape, step, (uint32_t)micro),
                   .micro = (uint32_t)micro};
}

rp_op rp_sched_end_step(rp_sched_state *state) {
    const rp_op op = {.kind = RP_OP_UPDATE,
                      .stage = state->shape.stage,
                      .step = state->step,
                      .samples = {0, rp_sched_step_samples(&state->shape, state->step)}};
    state->f = state->b = state->w = 0;
    state->step++;
    return op;
}
