/* Commands of the opencl executor on whole blocks: optimiser steps, predictions, averages,
 * norms. */
#include "optim/average.h"
#include "stage/opencl_own.h"

static const rp_block gradient = {RP_BLOCK_GRADIENT, 0};

static uint32_t floats_of(const rp_opencl *e) {
    return (uint32_t)(e->base.layout->weight_bytes / sizeof(float));
}

rp_err rp_opencl_copy(rp_opencl *e, rp_block from, rp_block to) {
    return rp_buffer_copy(e->device, rp_opencl_whole(e, to), 0, rp_opencl_whole(e, from), 0,
                          e->base.layout->weight_bytes);
}

static rp_err sum_squares(rp_opencl *e, const rp_buffer *of, rp_buffer *out) {
    return rp_grad_sumsq(e->device, of, e->spans, e->base.layout->trained_count, out);
}

static rp_err read_floats(rp_opencl *e, float *out, const rp_buffer *from, uint32_t count) {
    return rp_buffer_read(e->device, out, from, 0, count * sizeof(float));
}

rp_err rp_opencl_norms(rp_opencl *e, float *out) {
    rp_err err;
    RP_TRY(sum_squares(e, rp_opencl_whole(e, gradient), e->norms));
    RP_TRY(read_floats(e, out, e->norms, e->base.layout->trained_count));
fail:
    return err;
}

rp_err rp_opencl_results(rp_opencl *e, float *out, uint32_t samples) {
    return read_floats(e, out, e->results, RP_LOSS_RESULT * samples);
}

rp_err rp_opencl_overlap(rp_opencl *e, uint32_t *out, uint32_t samples) {
    return rp_buffer_read(e->device, out, e->overlap, 0,
                          2 * (size_t)rp_layout_overlap_classes(e->base.job) * samples *
                              sizeof *out);
}

/* Copies a block by parameter, because its parts are aligned on the device but packed on the host.
 * Exactly one of `out` and `in` is not NULL. */
static rp_err move_block(rp_opencl *e, rp_block block, float *out, const float *in) {
    const rp_layout *layout = e->base.layout;
    const rp_flat *flat = rp_opencl_flat(e, block);
    size_t first = 0;
    rp_err err = RP_OK;
    for (uint32_t p = 0; p < layout->param_count; p++) {
        const size_t count = rp_shape_count(&e->param[p].grad.shape);
        const size_t bytes = count * sizeof(float);
        if (layout->trained[p] == RP_NOT_TRAINED) {
            continue;
        }
        rp_buffer *part = flat->part[layout->trained[p]];
        RP_TRY(out ? rp_buffer_read(e->device, out + first, part, 0, bytes)
                   : rp_buffer_write(e->device, part, 0, in + first, bytes));
        first += count;
    }
fail:
    return err;
}

rp_err rp_opencl_read_block(rp_opencl *e, rp_block block, float *out) {
    return move_block(e, block, out, NULL);
}

rp_err rp_opencl_write_block(rp_opencl *e, rp_block block, const float *from) {
    return move_block(e, block, NULL, from);
}

rp_err rp_opencl_sum(rp_opencl *e, const void *const *summand, uint32_t count) {
    const rp_block peer = {RP_BLOCK_PEER, 0};
    rp_buffer *sum = rp_opencl_whole(e, gradient);
    rp_err err;
    RP_TRY(move_block(e, gradient, NULL, summand[0]));
    for (uint32_t i = 1; i < count; i++) {
        RP_TRY(move_block(e, peer, NULL, summand[i]));
        RP_TRY(rp_average_add(e->device, sum, sum, rp_opencl_whole(e, peer), 1.0f, floats_of(e)));
    }
fail:
    return err;
}

/* In place, in two blocks; probe.c defines b, e and a. */
rp_err rp_opencl_probe(rp_opencl *e, rp_block newest_block) {
    const uint32_t count = floats_of(e);
    const rp_buffer *newest = rp_opencl_whole(e, newest_block);
    rp_buffer *seen = rp_opencl_whole(e, (rp_block){RP_BLOCK_PROBE, 0});
    rp_buffer *then = rp_opencl_whole(e, (rp_block){RP_BLOCK_PROBE, 1});
    rp_err err;
    RP_TRY(rp_average_add(e->device, then, newest, then, -1.0f, count)); /* b */
    RP_TRY(rp_average_add(e->device, seen, seen, newest, -1.0f, count)); /* e */
    RP_TRY(sum_squares(e, seen, e->probe_norms[0]));
    RP_TRY(sum_squares(e, then, e->probe_norms[1]));
    RP_TRY(rp_average_add(e->device, seen, seen, then, 1.0f, count)); /* a */
    RP_TRY(sum_squares(e, seen, e->probe_norms[2]));
fail:
    return err;
}

rp_err rp_opencl_probe_norms(rp_opencl *e, float *out) {
    const uint32_t count = e->base.layout->trained_count;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < RP_PROBE_NORMS; i++) {
        RP_TRY(read_floats(e, out + (size_t)i * count, e->probe_norms[i], count));
    }
fail:
    return err;
}

static rp_optim_call optim_call(const rp_opencl *e, const rp_optimise *by) {
    const uint32_t states = e->base.layout->state_count;
    rp_optim_call call = {
        .device = e->device,
        .optim = &e->base.job->optim,
        .w = rp_opencl_whole(e, by->weights),
        .g = rp_opencl_whole(e, gradient),
        .count = floats_of(e),
        .lr = by->rate,
        .t = by->applied,
        .grad_scale = by->grad_scale,
    };
    for (uint32_t s = 0; s < states; s++) {
        call.state[s] = rp_opencl_whole(e, (rp_block){RP_BLOCK_STATE, by->replica * states + s});
    }
    return call;
}

rp_err rp_opencl_predict(rp_opencl *e, const rp_optimise *by) {
    const uint32_t count = e->base.layout->trained_count;
    rp_buffer *to = rp_opencl_whole(e, by->to);
    const rp_optim_call call = optim_call(e, by);
    rp_err err;
    RP_TRY(call.optim->kind->predict(&call, to, by->ahead));
    if (by->share) {
        RP_TRY(rp_buffer_write(e->device, e->shares, 0, by->share, count * sizeof *by->share));
        RP_TRY(rp_optim_in_shares(&call, to, e->spans, e->shares, count));
    }
fail:
    return err;
}

/* Limits the call to one trained parameter; its numbers are those of a call for whole blocks. */
static void limit_call(const rp_opencl *e, const rp_optimise *by, uint32_t trained, uint32_t count,
                       rp_optim_call *call) {
    const uint32_t states = e->base.layout->state_count;
    call->w = rp_opencl_flat(e, by->weights)->part[trained];
    call->g = rp_opencl_flat(e, gradient)->part[trained];
    call->count = count;
    for (uint32_t s = 0; s < states; s++) {
        const rp_block state = {RP_BLOCK_STATE, by->replica * states + s};
        call->state[s] = rp_opencl_flat(e, state)->part[trained];
    }
}

rp_err rp_opencl_update(rp_opencl *e, const rp_optimise *by) {
    const rp_layout *layout = e->base.layout;
    rp_optim_call call = optim_call(e, by);
    rp_err err = RP_OK;
    if (layout->far_count == 0) {
        return call.optim->kind->step(&call);
    }
    for (uint32_t p = 0; p < layout->param_count; p++) { /* all but the copies of far tensors */
        const uint32_t t = layout->trained[p];
        if (t != RP_NOT_TRAINED && !layout->far[t]) {
            limit_call(e, by, t, (uint32_t)rp_shape_count(&e->param[p].grad.shape), &call);
            RP_TRY(call.optim->kind->step(&call));
        }
    }
fail:
    return err;
}

/* A state of the optimiser, which may be RP_OPTIM_NO_STATE. */
static rp_buffer *state_of(const rp_optim_call *call, uint32_t state) {
    return state == RP_OPTIM_NO_STATE ? NULL : call->state[state];
}

static rp_err anchor_gradient(const rp_optim_call *call, rp_buffer *g) {
    return rp_optim_anchor_gradient(call, g, state_of(call, rp_optim_anchor_state(call->optim)),
                                    state_of(call, rp_optim_drift_state(call->optim)));
}

rp_err rp_opencl_anchor(rp_opencl *e, const rp_optimise *by) {
    const rp_layout *layout = e->base.layout;
    rp_optim_call call = optim_call(e, by);
    rp_err err = RP_OK;
    if (layout->far_count == 0) {
        return anchor_gradient(&call, rp_opencl_whole(e, gradient));
    }
    for (uint32_t p = 0; p < layout->param_count; p++) { /* all but the copies of far tensors */
        const uint32_t t = layout->trained[p];
        if (t != RP_NOT_TRAINED && !layout->far[t]) {
            limit_call(e, by, t, (uint32_t)rp_shape_count(&e->param[p].grad.shape), &call);
            RP_TRY(anchor_gradient(&call, rp_opencl_flat(e, gradient)->part[t]));
        }
    }
fail:
    return err;
}

rp_err rp_opencl_average(rp_opencl *e, const rp_command *command) {
    const uint32_t count = floats_of(e);
    const float alpha = command->average.alpha;
    const float share = command->average.share;
    rp_buffer *x = rp_opencl_whole(e, command->average.x);
    rp_buffer *centre =
        e->base.layout->copies.centres ? rp_opencl_whole(e, (rp_block){RP_BLOCK_CENTRE, 0}) : NULL;
    rp_buffer *scratch = e->base.layout->copies.scratches
                             ? rp_opencl_whole(e, (rp_block){RP_BLOCK_SCRATCH, 0})
                             : NULL;
    switch (command->average.term) {
    case RP_TERM_ELASTIC:
        return rp_average_elastic(e->device, x, centre, count, alpha);
    case RP_TERM_PULL:
        return rp_average_pull(e->device, scratch, x, centre, count, alpha);
    case RP_TERM_PUSH:
        return rp_average_push(e->device, x, scratch, count);
    case RP_TERM_REFERENCE:
        return rp_average_reference(e->device, x, centre, scratch, count, alpha, share);
    case RP_TERM_TOWARDS:
        return rp_average_towards(e->device, scratch, x, count, share);
    }
    return rp_fail(RP_ERR_FAULT, "executor: unknown term %d of an average",
                   (int)command->average.term);
}
