/* `horizon: measured` once more (METHODS 5): probes, and the gain that they earn. */
#include <math.h>

#include "optim/average.h"
#include "replay.h"

/* Steps from probe to probe: no fewer than stage 0 has in flight, since there is one at a time. */
static uint32_t probe_every(const replay *r) {
    const uint32_t least = warm_up_of(r, 0) + 1;
    return r->run.method.probe > least ? r->run.method.probe : least;
}

bool is_probed(const replay *r, const board *b, uint32_t n) {
    return r->run.method.horizon == RP_HORIZON_MEASURED && b->tensors > 0 &&
           r->micro[n].micro == 0 && r->micro[n].step % probe_every(r) == 0;
}

/* Of a forward of `step`: what the probe two probes before its own has earned, at first 1. */
static double gain_at(const replay *r, const board *b, uint32_t step, uint32_t tensor) {
    const uint32_t probe = step / probe_every(r);
    RP_ASSERT(probe < 2 || probe - 2 < b->probes);
    return probe < 2 ? 1 : b->gain[(probe - 2) * b->tensors + tensor];
}

/* The best share of a whole prediction, <a, b> / <a, a>, the past weighing four times a probe; 0
 * for eight probes when it is none, then one half (METHODS 5). */
static void earn_gain(credit *c, double used, const float *error, const float *stale,
                      const float *moved) {
    const double product = ((double)*moved + (double)*stale - (double)*error) / 2;
    if (c->rest > 0) {
        c->gain = --c->rest > 0 ? 0 : 0.5;
    } else if (*moved > 0 && used > 0 && isfinite(product)) {
        const double past = c->aa > 0 ? 0.8 : 0;
        c->aa = past * c->aa + (1 - past) * (double)*moved / (used * used);
        c->ab = past * c->ab + (1 - past) * product / used;
        c->gain = fmin(fmax(c->ab / c->aa, 0), 1);
        if (c->gain == 0) {
            *c = (credit){.rest = 8};
        }
    }
}

/* METHODS 5.3, by tensor: |seen - true|^2, |true - then|^2 and |seen - then|^2, where true are the
 * weights that the backward of the probed microbatch finds. */
rp_err end_probe(replay *r, board *b, uint32_t n) {
    const uint32_t step = r->micro[n].step;
    const float *now = b->version[newest(b, step)];
    rp_buffer *at = rp_opencl_whole(
        b->memory, (rp_block){RP_BLOCK_WEIGHTS, 0}); /* choose_weights() writes it anew */
    float *moved;
    float *sums;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count, &moved));
    RP_TRY(RP_ARENA_NEW(&r->arena, 3 * (size_t)b->tensors, &sums));
    for (uint32_t of = 0; of < 3; of++) {
        for (uint32_t i = 0; i < b->count; i++) {
            const float error = b->probed[0][i] - now[i];
            const float stale = now[i] - b->probed[1][i];
            moved[i] = of == 0 ? error : of == 1 ? stale : error + stale;
        }
        RP_TRY(write_floats(r, at, moved, b));
        RP_TRY(rp_grad_sumsq(r->device, at, b->memory->spans, b->tensors, b->memory->norms));
        RP_TRY(rp_buffer_read_now(r->device, sums + (size_t)of * b->tensors, b->memory->norms, 0,
                                  b->tensors * sizeof(float)));
    }
    for (uint32_t t = 0; t < b->tensors; t++) {
        earn_gain(&b->credit[t], gain_at(r, b, step, t), &sums[t], &sums[b->tensors + t],
                  &sums[2 * b->tensors + t]);
        b->gain[b->probes * b->tensors + t] = b->credit[t].gain;
    }
    b->probes++;
fail:
    return err;
}

/* Tensor by tensor: the weights, and the whole prediction times its gain. */
rp_err take_shares(replay *r, const board *b, uint32_t n, const float *weights, float *out) {
    rp_err err = RP_OK;
    for (uint32_t t = 0; t < b->tensors; t++) {
        const float share = (float)gain_at(r, b, r->micro[n].step, t);
        const size_t first = b->span[2 * t];
        rp_buffer *to = share < 1 ? r->bench.centre : r->bench.out;
        RP_TRY(write_floats(r, r->bench.centre, weights, b));
        RP_TRY(share > 0
                   ? rp_average_towards(r->device, r->bench.centre, r->bench.out, b->count, share)
                   : RP_OK);
        RP_TRY(rp_buffer_read_now(r->device, out + first, to, first * sizeof(float),
                                  b->span[2 * t + 1] * sizeof(float)));
    }
fail:
    return err;
}

rp_err open_probes(replay *r, board *b) {
    const uint32_t probes = (uint32_t)r->run.steps / probe_every(r) + 1;
    rp_err err;
    b->tensors = rp_stage_layout(b->stage)->trained_count;
    RP_TRY(RP_ARENA_NEW(&r->arena, 2 * (size_t)b->tensors + 2, &b->span));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->tensors + 1, &b->credit));
    RP_TRY(RP_ARENA_NEW(&r->arena, probes * (size_t)b->tensors + 1, &b->gain));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->probed[0]));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->probed[1]));
    RP_TRY(rp_buffer_read_now(r->device, b->span, b->memory->spans, 0,
                              (2 * (size_t)b->tensors + 2) * sizeof *b->span));
    for (uint32_t t = 0; t < b->tensors; t++) {
        b->credit[t].gain = 1;
    }
fail:
    return err;
}
