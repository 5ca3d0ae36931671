/* Trains in one process, by a plain loop that keeps every version of the weights in host memory and
 * says in so many words which of them an op sees: what a ring of agents must equal bit for bit.
 *
 *   replay RUN.yaml OUT.safetensors [--set KEY=VALUE]... [--slip STAGE]
 *
 * Shared with the ring is the arithmetic: layers, optimisers, averages, and the batches. Not shared
 * are the order of ops, the books of versions, the horizons and the trust in predictions: they are
 * written here a second time, from METHODS, with neither firmware/sched nor run/steer.c nor
 * firmware/stage/versions.c, probe.c and trust.c. `--slip` is the canary: forwards of that stage
 * look at the weights one update beside those that they should. */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/board.h"
#include "base/safetensors.h"
#include "optim/average.h"
#include "run/runfile.h"
#include "stage/stage_own.h"

enum { FEED_TIMEOUT_MS = 60000, FEED_DEPTH = 2, NO_STAGE = UINT32_MAX };

/* Microbatch n, counted through the whole run. */
typedef struct {
    uint32_t step, micro;   /* micro: within its step */
    bool last;              /* of its step */
    uint32_t first_of_fill; /* the microbatch that found the pipes empty before this one came */
    rp_range samples;
} microbatch;

typedef enum { FORWARD, BACKWARD, UPDATE } act;

typedef struct {
    act act;
    uint32_t n; /* of an update: the last microbatch of its step */
} entry;

/* The weights of an op: version `version`, moved `ahead` updates by the optimiser's rule. */
typedef struct {
    uint32_t version, ahead;
} sight;

/* horizon: measured: what the probes of a tensor have shown. */
typedef struct {
    double aa, ab; /* smoothed <a, a> and <a, b>, a: predicted wholly, b: true */
    double trust;  /* that the newest probe has earned */
    uint32_t rest; /* probes that are left without a prediction */
} credit;

typedef void *parcel[RP_CUT_TENSORS_MAX]; /* [0] NULL: not here yet */

typedef struct {
    rp_job job;
    rp_stage *stage;
    uint32_t k, replicas, warm_up, steps_open;
    uint32_t count; /* floats of a version */

    entry *list;
    uint32_t list_count, at;
    uint32_t updates; /* done */

    /* version[s + 1]: what the update of step s made of its replica; version[0]: all replicas at
     * the start. Nothing here is written twice. */
    float **version;
    float *state[RP_REPLICAS_MAX][RP_OPTIM_STATES_MAX];
    uint64_t applied[RP_REPLICAS_MAX];
    float *centre;
    float *gradient;                /* of the last update */
    float *ahead[2];                /* predicted, by direction */
    const float *seen;              /* by the op that looked last */
    uint32_t tensors, *span;        /* trained; first and count of each, in floats */
    credit *credit;                 /* by tensor */
    double *trust;                  /* earned, by probe and tensor */
    uint32_t probes;                /* ended */
    float *probed[2];               /* at its forward: seen, newest */
    uint32_t *kept;                 /* by microbatch: the version that its forward saw */
    parcel *activation, *gradients; /* towards this stage, by microbatch */
} board;

/* Device memory for one optimiser step. */
typedef struct {
    rp_darena *arena;
    rp_buffer *w, *g, *out, *centre, *state[RP_OPTIM_STATES_MAX];
} bench;

typedef struct {
    rp_arena arena;
    rp_runfile run;
    rp_device *device;
    rp_optim optim;
    bench bench;
    uint32_t stages, slip;
    uint32_t full; /* microbatches of a full step */
    microbatch *micro;
    uint32_t micro_count;
    float **x; /* by step */
    char **target;
    size_t sample_floats, target_bytes;
    board *board;
} replay;

/* ---- the run, microbatch by microbatch ------------------------------------------------------- */

static rp_err list_microbatches(replay *r) {
    const rp_runfile *run = &r->run;
    const uint32_t epoch = run->data.count[RP_SPLIT_TRAIN];
    uint32_t filled = 0;
    r->full = (run->batch + run->micro - 1) / run->micro;
    rp_err err = RP_ARENA_NEW(&r->arena, run->steps * r->full, &r->micro);
    for (uint32_t step = 0; err == RP_OK && step < run->steps; step++) {
        const uint32_t done = (uint32_t)(step % run->epoch_steps) * run->batch;
        const uint32_t rest = epoch - done < run->batch ? epoch - done : run->batch;
        if (done == 0 && run->method.drain) {
            filled = r->micro_count;
        }
        for (uint32_t first = 0, i = 0; first < rest; first += run->micro, i++) {
            const uint32_t count = rest - first < run->micro ? rest - first : run->micro;
            r->micro[r->micro_count++] = (microbatch){.step = step,
                                                      .micro = i,
                                                      .last = first + count == rest,
                                                      .first_of_fill = filled,
                                                      .samples = {first, count}};
        }
    }
    return err;
}

static rp_err take_batch(rp_feeder *feeder, const rp_batch **out) {
    rp_err err;
    while ((err = rp_feeder_take(feeder, out)) == RP_ERR_AGAIN) {
        struct pollfd ready = {.fd = rp_feeder_eventfd(feeder), .events = POLLIN};
        if (poll(&ready, 1, FEED_TIMEOUT_MS) <= 0) {
            return rp_fail(RP_ERR_TIMEOUT, "no batch after %d ms", FEED_TIMEOUT_MS);
        }
    }
    return err;
}

/* All batches of the run, from the feeder that the host uses. */
static rp_err read_batches(replay *r) {
    const rp_runfile *run = &r->run;
    const bool classes = run->loss->class_target;
    rp_feeder *feeder = NULL;
    const rp_batch *batch;
    rp_err err;
    r->sample_floats = rp_shape_count(&run->data.sample);
    r->target_bytes = (classes ? 1 : run->data.target_width) * sizeof(float);
    RP_TRY(RP_ARENA_NEW(&r->arena, run->steps, &r->x));
    RP_TRY(RP_ARENA_NEW(&r->arena, run->steps, &r->target));
    RP_TRY(rp_feeder_open(&r->arena, &run->data, RP_SPLIT_TRAIN, true, run->batch, 0, run->steps,
                          FEED_DEPTH, &feeder));
    for (uint32_t step = 0; step < run->steps; step++) {
        RP_TRY(take_batch(feeder, &batch));
        RP_ASSERT(batch->step == step);
        RP_TRY(RP_ARENA_NEW(&r->arena, batch->count * r->sample_floats, &r->x[step]));
        RP_TRY(RP_ARENA_NEW(&r->arena, batch->count * r->target_bytes, &r->target[step]));
        memcpy(r->x[step], batch->x, batch->count * r->sample_floats * sizeof(float));
        memcpy(r->target[step], classes ? (const void *)batch->labels : (const void *)batch->rows,
               batch->count * r->target_bytes);
        rp_feeder_return(feeder, batch);
    }
fail:
    rp_feeder_close(&feeder);
    return err;
}

/* ---- METHODS: order, versions, horizons ------------------------------------------------------ */

/* METHODS 1: forwards ahead of the first backward; `advance` more per hop as in AvgPipe's figure
 * (METHODS 8: warm-ups 7, 5, 3, 1 of four stages, the last one being of the steady pair). */
static uint32_t warm_up_of(const replay *r, uint32_t k) {
    return (r->stages - 1 - k) * (1 + r->run.method.advance);
}

/* METHODS 9; lean: R_k = D - k. */
static uint32_t replicas_of(const replay *r, uint32_t k) {
    const rp_method *method = &r->run.method;
    return method->lean && r->stages - k < method->replicas ? r->stages - k : method->replicas;
}

/* Steps that may be begun and not updated: two versions (2BW), or a replica each (METHODS 9: x_r
 * is unchanged between F_n and B_n). */
static uint32_t steps_open_of(const replay *r, uint32_t k) {
    const rp_method *method = &r->run.method;
    if (strcmp(method->kind->name, "pipedream-2bw") == 0 || method->weights == RP_WEIGHTS_DOUBLE) {
        return 2;
    }
    const bool averages = method->kind->average != RP_AVERAGE_NONE;
    return averages && method->weights == RP_WEIGHTS_CURRENT ? replicas_of(r, k) : UINT32_MAX;
}

/* METHODS 1: the warm-up's forwards, then {F, B, U} until forwards run out, then {B, U}; U behind
 * the last microbatch of a step only. */
static rp_err write_list(replay *r, board *b) {
    const microbatch *m = r->micro;
    uint32_t f = 0;
    rp_err err = RP_ARENA_NEW(&r->arena, 2 * r->micro_count + r->run.steps, &b->list);
    for (uint32_t n = 0; err == RP_OK && n < r->micro_count; n++) {
        while (f < r->micro_count && f <= n + b->warm_up &&
               m[f].first_of_fill == m[n].first_of_fill && m[f].step - m[n].step < b->steps_open) {
            b->list[b->list_count++] = (entry){FORWARD, f++};
        }
        b->list[b->list_count++] = (entry){BACKWARD, n};
        if (m[n].last) {
            b->list[b->list_count++] = (entry){UPDATE, n};
        }
    }
    return err;
}

/* Updates that are over when microbatch n goes forward, on a stage with so long a warm-up: those of
 * all steps before the microbatch whose backward is next. */
static uint32_t updates_at_forward(const replay *r, uint32_t n, uint32_t warm_up, uint32_t open) {
    const uint32_t filled = r->micro[n].first_of_fill;
    const uint32_t step = r->micro[n].step;
    const uint32_t next = n - filled > warm_up ? n - warm_up : filled;
    const uint32_t done = r->micro[next].step;
    return step - done < open ? done : step - open + 1;
}

/* METHODS 5.1, 5.4, 5.3: D - 1 - k; min(n, D - 1 - k); D - k. With several microbatches a step, or
 * replicas, the same by its meaning: own updates between F and B, in the steady state or in fact.
 */
static uint32_t pipeoptim_ahead(const replay *r, const board *b, uint32_t n) {
    const rp_horizon horizon = r->run.method.horizon;
    const uint32_t micro = r->micro[n].micro;
    uint32_t gap = r->micro[n].step - updates_at_forward(r, n, b->warm_up, b->steps_open);
    if (horizon == RP_HORIZON_PAPER || horizon == RP_HORIZON_RELEASED) {
        gap = b->warm_up > micro ? (b->warm_up - micro + r->full - 1) / r->full : 0;
        gap = gap < b->steps_open ? gap : b->steps_open - 1;
    }
    return gap / b->replicas + (horizon == RP_HORIZON_RELEASED);
}

/* METHODS 6. The paper does not say how halves are rounded: to even, as Python does. */
static uint32_t xpipe_ahead(const replay *r, const board *b, bool backward) {
    const double t = r->full;
    const double half = backward ? floor(b->k / 2.0) : b->k / 2.0;
    const double s = backward ? (t + half - 1) / t : (r->stages + t - half - 2) / t;
    return s > 0 ? (uint32_t)nearbyint(s) : 0;
}

/* METHODS 4: floor(k / 2) pairs of a forward and a backward pass here while the step's last
 * gradient goes on to stage 0; ahead of a forward lies its first microbatch's gap as well. With one
 * microbatch a step: floor(k / 2), and D - 1 - k more. */
static uint32_t spectrain_ahead(const replay *r, const board *b, bool backward) {
    const uint32_t gap = (b->warm_up + r->full - 1) / r->full;
    const uint32_t most = b->steps_open - 1;
    const uint32_t rest = (r->full - 1 + b->k / 2) / r->full;
    return backward ? rest : rest + (gap < most ? gap : most);
}

/* The version that the next update of a replica starts from. */
static uint32_t newest(const board *b, uint32_t step) {
    uint32_t s = b->updates;
    while (s > 0 && (s - 1) % b->replicas != step % b->replicas) {
        s--;
    }
    return s;
}

/* METHODS 13, column W_fwd. */
static sight forward_sight(const replay *r, const board *b, uint32_t n) {
    const uint32_t step = r->micro[n].step;
    sight out = {.version = newest(b, step)};
    switch (r->run.method.weights) {
    case RP_WEIGHTS_ENTRY: /* METHODS 2: what was the latest on stage 0: max(n - (D - 1), 0) */
        out.version = updates_at_forward(r, n, warm_up_of(r, 0), b->steps_open);
        break;
    case RP_WEIGHTS_DOUBLE: /* METHODS 2: W^(max(b - 1, 0)) on every stage */
        out.version = step > 0 ? step - 1 : 0;
        break;
    case RP_WEIGHTS_PIPEOPTIM:
        out.ahead = pipeoptim_ahead(r, b, n);
        break;
    case RP_WEIGHTS_SPECTRAIN: /* METHODS 4 */
        out.ahead = spectrain_ahead(r, b, false);
        break;
    case RP_WEIGHTS_XPIPE:
        out.ahead = xpipe_ahead(r, b, false);
        break;
    default:
        break;
    }
    return out;
}

/* METHODS 13, column W_bwd. */
static sight backward_sight(const replay *r, const board *b, uint32_t n) {
    sight out = {.version = newest(b, r->micro[n].step)};
    switch (r->run.method.weights) {
    case RP_WEIGHTS_STASH:
    case RP_WEIGHTS_ENTRY:
    case RP_WEIGHTS_DOUBLE:
        out.version = b->kept[n];
        break;
    case RP_WEIGHTS_SPECTRAIN:
        out.ahead = spectrain_ahead(r, b, true);
        break;
    case RP_WEIGHTS_XPIPE:
        out.ahead = xpipe_ahead(r, b, true);
        break;
    default:
        break;
    }
    return out;
}

/* One update beside: the canary. */
static void slip(const board *b, sight *s) {
    if (s->ahead > 0) {
        s->ahead++;
    } else if (s->version < b->updates) {
        s->version++;
    } else if (s->version > 0) {
        s->version--;
    }
}

/* What this program has no formula for. */
static rp_err check_method(const replay *r) {
    const rp_method *method = &r->run.method;
    return method->kind->flushed || r->run.cut_auto || r->run.init
               ? rp_fail(RP_ERR_USAGE, "expected a schedule without flush, a cut, no start weights")
               : RP_OK;
}

/* ---- the optimiser, on explicit arrays ------------------------------------------------------- */

static rp_err write_floats(const replay *r, rp_buffer *to, const float *from, const board *b) {
    return rp_buffer_write_now(r->device, to, 0, from, b->count * sizeof(float));
}

static rp_err read_floats(const replay *r, float *to, const rp_buffer *from, const board *b) {
    return rp_buffer_read_now(r->device, to, from, 0, b->count * sizeof(float));
}

/* The state of a replica on the bench, with the rate of the stage's next update (METHODS 5.4: the
 * same for all updates ahead). */
static rp_err load(replay *r, const board *b, uint32_t replica, uint32_t version,
                   rp_optim_call *call) {
    const rp_runfile *run = &r->run;
    rp_err err;
    *call = (rp_optim_call){
        .device = r->device,
        .optim = &r->optim,
        .w = r->bench.w,
        .g = r->bench.g,
        .count = b->count,
        .lr = (float)rp_lr_at(&run->lr, run->optim.lr, b->updates, run->steps, run->epoch_steps),
        .t = b->applied[replica],
        .grad_scale = 1.0f,
    };
    RP_TRY(write_floats(r, r->bench.w, b->version[version], b));
    RP_TRY(write_floats(r, r->bench.g, b->gradient, b));
    for (uint32_t s = 0; s < r->optim.kind->state_count(&r->optim); s++) {
        call->state[s] = r->bench.state[s];
        RP_TRY(write_floats(r, call->state[s], b->state[replica][s], b));
    }
fail:
    return err;
}

/* ---- horizon: measured ----------------------------------------------------------------------- */

/* Steps from probe to probe: no fewer than stage 0 has in flight, since there is one at a time. */
static uint32_t probe_every(const replay *r) {
    const uint32_t least = warm_up_of(r, 0) + 1;
    return r->run.method.probe > least ? r->run.method.probe : least;
}

static bool is_probed(const replay *r, const board *b, uint32_t n) {
    return r->run.method.horizon == RP_HORIZON_MEASURED && b->tensors > 0 &&
           r->micro[n].micro == 0 && r->micro[n].step % probe_every(r) == 0;
}

/* Of a forward of `step`: what the probe two probes before its own has earned, at first 1. */
static double trust_at(const replay *r, const board *b, uint32_t step, uint32_t tensor) {
    const uint32_t probe = step / probe_every(r);
    RP_ASSERT(probe < 2 || probe - 2 < b->probes);
    return probe < 2 ? 1 : b->trust[(probe - 2) * b->tensors + tensor];
}

/* The best share of a whole prediction, <a, b> / <a, a>, the past weighing four times a probe; 0
 * for eight probes when it is none, then one half (METHODS 5). */
static void earn(credit *c, double used, const float *error, const float *stale,
                 const float *moved) {
    const double product = ((double)*moved + (double)*stale - (double)*error) / 2;
    if (c->rest > 0) {
        c->trust = --c->rest > 0 ? 0 : 0.5;
    } else if (*moved > 0 && used > 0 && isfinite(product)) {
        const double past = c->aa > 0 ? 0.8 : 0;
        c->aa = past * c->aa + (1 - past) * (double)*moved / (used * used);
        c->ab = past * c->ab + (1 - past) * product / used;
        c->trust = fmin(fmax(c->ab / c->aa, 0), 1);
        if (c->trust == 0) {
            *c = (credit){.rest = 8};
        }
    }
}

/* METHODS 5.3, by tensor: |seen - true|^2, |true - then|^2 and |seen - then|^2, where true are the
 * weights that the backward of the probed microbatch finds. */
static rp_err end_probe(replay *r, board *b, uint32_t n) {
    const uint32_t step = r->micro[n].step;
    const float *now = b->version[newest(b, step)];
    rp_buffer *at = rp_darena_whole(b->stage->weights[0].arena); /* look() writes it anew */
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
        RP_TRY(rp_grad_sumsq(r->device, at, b->stage->spans, b->tensors, b->stage->norms));
        RP_TRY(rp_buffer_read_now(r->device, sums + (size_t)of * b->tensors, b->stage->norms, 0,
                                  b->tensors * sizeof(float)));
    }
    for (uint32_t t = 0; t < b->tensors; t++) {
        earn(&b->credit[t], trust_at(r, b, step, t), &sums[t], &sums[b->tensors + t],
             &sums[2 * b->tensors + t]);
        b->trust[b->probes * b->tensors + t] = b->credit[t].trust;
    }
    b->probes++;
fail:
    return err;
}

/* Tensor by tensor: the weights, and as much of the whole prediction as it is trusted. */
static rp_err take_shares(replay *r, const board *b, uint32_t n, const float *weights, float *out) {
    rp_err err = RP_OK;
    for (uint32_t t = 0; t < b->tensors; t++) {
        const float share = (float)trust_at(r, b, r->micro[n].step, t);
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

/* ---- what an op sees ------------------------------------------------------------------------- */

/* The weights of an op of microbatch n: a version, a prediction, or (xpipe) what the first
 * microbatch of the step has predicted in this direction. */
static rp_err look(replay *r, board *b, uint32_t n, const sight *s, uint32_t direction) {
    const bool cached = r->run.method.weights == RP_WEIGHTS_XPIPE;
    const float *weights = b->version[s->version];
    rp_flat *seen = &b->stage->weights[0];
    rp_optim_call call;
    rp_err err = RP_OK;
    if (b->count == 0) {
        return RP_OK;
    }
    if (s->ahead > 0 && !(cached && r->micro[n].micro > 0)) {
        RP_TRY(load(r, b, r->micro[n].step % b->replicas, s->version, &call));
        RP_TRY(r->optim.kind->predict(&call, r->bench.out, (float)s->ahead));
        RP_TRY(read_floats(r, b->ahead[direction], r->bench.out, b));
        if (r->run.method.horizon == RP_HORIZON_MEASURED) {
            RP_TRY(take_shares(r, b, n, b->version[s->version], b->ahead[direction]));
        }
    } else if (cached && r->micro[n].micro == 0) {
        memcpy(b->ahead[direction], weights, b->count * sizeof(float));
    }
    if (s->ahead > 0 || cached) {
        weights = b->ahead[direction];
    }
    RP_TRY(write_floats(r, rp_darena_whole(seen->arena), weights, b));
    rp_stage_see(b->stage, seen);
    b->seen = weights;
fail:
    return err;
}

static rp_err average_before(replay *r, const rp_optim_call *call) {
    const rp_method *method = &r->run.method;
    if (method->kind->average == RP_AVERAGE_REFERENCE) {
        return rp_buffer_copy(r->device, r->bench.out, 0, call->w, 0, call->count * sizeof(float));
    }
    return method->before ? rp_average_pull(r->device, r->bench.out, call->w, r->bench.centre,
                                            call->count, (float)method->alpha)
                          : RP_OK;
}

static rp_err average_after(replay *r, const rp_optim_call *call) {
    const rp_method *method = &r->run.method;
    if (method->kind->average == RP_AVERAGE_REFERENCE) {
        return rp_average_reference(r->device, call->w, r->bench.centre, r->bench.out, call->count,
                                    (float)method->alpha, 1.0f / (float)method->replicas);
    }
    return method->before ? rp_average_push(r->device, call->w, r->bench.out, call->count)
                          : rp_average_elastic(r->device, call->w, r->bench.centre, call->count,
                                               (float)method->alpha);
}

static rp_err read_gradient(replay *r, board *b, uint32_t step) {
    rp_err err = read_floats(r, b->gradient, rp_darena_whole(b->stage->grads.arena), b);
    for (uint32_t i = 0; err == RP_OK && i < b->count; i++) {
        if (!isfinite(b->gradient[i])) {
            return rp_fail(RP_ERR_NUMERIC, "a gradient of step %u is not finite", step);
        }
    }
    return err;
}

/* The optimiser's step of replica n mod R, and the average if (n / R + 1) mod tau == 0
 * (METHODS 9; 8), or with `before` if n / R mod tau == 0 (METHODS 7, algorithm 1). */
static rp_err update(replay *r, board *b, uint32_t n) {
    const rp_method *method = &r->run.method;
    const uint32_t step = r->micro[n].step;
    const uint32_t replica = step % b->replicas;
    const bool averages = method->kind->average != RP_AVERAGE_NONE;
    const uint32_t own = step / b->replicas;
    const bool due = averages && (method->before ? own : own + 1) % method->period == 0;
    rp_optim_call call;
    rp_err err;
    RP_ASSERT(step == b->updates);
    b->stage->accumulated = 0;
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->version[step + 1]));
    if (b->count > 0) {
        RP_TRY(read_gradient(r, b, step));
        RP_TRY(load(r, b, replica, newest(b, step), &call));
        RP_TRY(averages ? write_floats(r, r->bench.centre, b->centre, b) : RP_OK);
        RP_TRY(due ? average_before(r, &call) : RP_OK);
        RP_TRY(r->optim.kind->step(&call));
        RP_TRY(due ? average_after(r, &call) : RP_OK);
        RP_TRY(read_floats(r, b->version[step + 1], call.w, b));
        RP_TRY(averages ? read_floats(r, b->centre, r->bench.centre, b) : RP_OK);
        for (uint32_t s = 0; s < r->optim.kind->state_count(&r->optim); s++) {
            RP_TRY(read_floats(r, b->state[replica][s], call.state[s], b));
        }
    }
    b->applied[replica]++;
    b->updates++;
fail:
    return err;
}

/* ---- forward and backward -------------------------------------------------------------------- */

static rp_op op_of(const replay *r, rp_op_kind kind, uint32_t n) {
    const microbatch *m = &r->micro[n];
    return (rp_op){.kind = kind, .step = m->step, .samples = m->samples, .micro = m->micro};
}

static rp_err new_parcel(replay *r, const rp_crossing *crossing, uint32_t n, parcel out) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; err == RP_OK && i < crossing->count; i++) {
        const size_t floats = rp_shape_count(&crossing->sample[i]) * r->micro[n].samples.count;
        err = rp_arena_alloc(&r->arena, floats, sizeof(float), &out[i]);
    }
    return err;
}

static rp_err forward(replay *r, board *b, uint32_t n, bool *done) {
    const rp_op op = op_of(r, RP_OP_FORWARD, n);
    const rp_crossing upper = rp_layout_crossing(rp_stage_layout(b->stage), true, false);
    const void *in[RP_CUT_TENSORS_MAX] = {NULL};
    parcel out = {NULL};
    rp_err err = RP_OK;
    if (b->k == 0) {
        in[0] = r->x[op.step] + op.samples.first * r->sample_floats;
    } else if (b->activation[n][0]) {
        memcpy(in, b->activation[n], sizeof in);
    } else {
        return RP_OK;
    }
    sight s = forward_sight(r, b, n);
    RP_ASSERT(b->updates == updates_at_forward(r, n, b->warm_up, b->steps_open));
    b->kept[n] = s.version;
    if (b->k == r->slip) {
        slip(b, &s);
    }
    RP_TRY(look(r, b, n, &s, 0));
    if (is_probed(r, b, n)) {
        memcpy(b->probed[0], b->seen, b->count * sizeof(float));
        memcpy(b->probed[1], b->version[newest(b, r->micro[n].step)], b->count * sizeof(float));
    }
    if (b->k + 1 < r->stages) {
        RP_TRY(new_parcel(r, &upper, n, out));
    }
    RP_TRY(rp_stage_run_forward(b->stage, &op, in, out, (rp_pass){.training = true}));
    RP_TRY(rp_device_drain(r->device));
    if (b->k + 1 < r->stages) {
        memcpy(r->board[b->k + 1].activation[n], out, sizeof out);
    }
    *done = true;
fail:
    return err;
}

static rp_err backward(replay *r, board *b, uint32_t n, bool *done) {
    const rp_op op = op_of(r, RP_OP_BACKWARD, n);
    const rp_crossing upper = rp_layout_crossing(rp_stage_layout(b->stage), true, true);
    const rp_crossing lower = rp_layout_crossing(rp_stage_layout(b->stage), false, true);
    const void *in[RP_CUT_TENSORS_MAX] = {NULL};
    parcel out = {NULL};
    rp_err err = RP_OK;
    if (b->k + 1 == r->stages) {
        in[0] = r->target[op.step] + op.samples.first * r->target_bytes;
    } else if (upper.count == 0 || b->gradients[n][0]) {
        memcpy(in, b->gradients[n], sizeof in);
    } else {
        return RP_OK;
    }
    const sight s = backward_sight(r, b, n);
    RP_TRY(is_probed(r, b, n) ? end_probe(r, b, n) : RP_OK);
    RP_TRY(look(r, b, n, &s, 1));
    RP_TRY(new_parcel(r, &lower, n, out));
    RP_TRY(rp_stage_run_backward(b->stage, &op, in, out));
    RP_TRY(rp_device_drain(r->device));
    if (b->k > 0) {
        memcpy(r->board[b->k - 1].gradients[n], out, sizeof out);
    }
    *done = true;
fail:
    return err;
}

/* All ops, stage by stage as far as each can go. */
static rp_err train(replay *r) {
    rp_err err = RP_OK;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t k = 0; k < r->stages; k++) {
            board *b = &r->board[k];
            for (bool done = true; done && b->at < b->list_count;) {
                const entry *next = &b->list[b->at];
                done = next->act == UPDATE;
                RP_TRY(next->act == FORWARD    ? forward(r, b, next->n, &done)
                       : next->act == BACKWARD ? backward(r, b, next->n, &done)
                                               : update(r, b, next->n));
                b->at += done;
                moved |= done;
            }
        }
    }
    for (uint32_t k = 0; k < r->stages; k++) {
        if (r->board[k].at < r->board[k].list_count) {
            return rp_fail(RP_ERR_FAULT, "stage %u is left with op %u of %u", k, r->board[k].at,
                           r->board[k].list_count);
        }
    }
fail:
    return err;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static rp_err parse_job(replay *r, uint32_t k, rp_job *out) {
    char *text;
    rp_node *root;
    rp_err err;
    RP_TRY(rp_runfile_assignment(&r->arena, &r->run, &r->run.cut, k, NULL, NULL, &text));
    RP_TRY(rp_config_read_text(&r->arena, text, strlen(text), "assignment", &root));
    RP_TRY(rp_job_parse(&r->arena, root, r->run.model_root, out));
fail:
    return err;
}

static rp_err open_states(replay *r, board *b) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < b->replicas; i++) {
        for (uint32_t s = 0; s < r->optim.kind->state_count(&r->optim); s++) {
            RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->state[i][s]));
        }
    }
fail:
    return err;
}

static rp_err open_probes(replay *r, board *b) {
    const uint32_t probes = (uint32_t)r->run.steps / probe_every(r) + 1;
    rp_err err;
    b->tensors = b->stage->trained_count;
    RP_TRY(RP_ARENA_NEW(&r->arena, 2 * (size_t)b->tensors + 2, &b->span));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->tensors + 1, &b->credit));
    RP_TRY(RP_ARENA_NEW(&r->arena, probes * (size_t)b->tensors + 1, &b->trust));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->probed[0]));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->probed[1]));
    RP_TRY(rp_buffer_read_now(r->device, b->span, b->stage->spans, 0,
                              (2 * (size_t)b->tensors + 2) * sizeof *b->span));
    for (uint32_t t = 0; t < b->tensors; t++) {
        b->credit[t].trust = 1;
    }
fail:
    return err;
}

static rp_err open_board(replay *r, uint32_t k) {
    board *b = &r->board[k];
    rp_err err;
    *b = (board){.k = k,
                 .replicas = replicas_of(r, k),
                 .warm_up = warm_up_of(r, k),
                 .steps_open = steps_open_of(r, k)};
    RP_TRY(parse_job(r, k, &b->job));
    RP_TRY(rp_stage_prepare(&r->arena, r->device, &b->job, &b->stage));
    b->count = (uint32_t)(rp_stage_layout(b->stage)->weight_bytes / sizeof(float));
    RP_TRY(write_list(r, b));
    RP_TRY(RP_ARENA_NEW(&r->arena, r->run.steps + 1, &b->version));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->version[0]));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->centre));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->gradient));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->ahead[0]));
    RP_TRY(RP_ARENA_NEW(&r->arena, b->count + 1, &b->ahead[1]));
    RP_TRY(open_states(r, b));
    RP_TRY(open_probes(r, b));
    RP_TRY(RP_ARENA_NEW(&r->arena, r->micro_count, &b->kept));
    RP_TRY(RP_ARENA_NEW(&r->arena, r->micro_count, &b->activation));
    RP_TRY(RP_ARENA_NEW(&r->arena, r->micro_count, &b->gradients));
    if (b->count > 0) {
        rp_buffer *first = rp_darena_whole(b->stage->weights[0].arena);
        RP_TRY(read_floats(r, b->version[0], first, b));
        RP_TRY(read_floats(r, b->centre, first, b)); /* METHODS 9: all x_r = c = W0 */
    }
fail:
    return err;
}

static rp_err open_bench(replay *r) {
    bench *at = &r->bench;
    size_t bytes = sizeof(float);
    rp_err err;
    for (uint32_t k = 0; k < r->stages; k++) {
        const size_t own = r->board[k].count * sizeof(float);
        bytes = own > bytes ? own : bytes;
    }
    RP_TRY(rp_darena_open(&r->arena, r->device, "bench", 0, 0, &at->arena));
    RP_TRY(rp_darena_take(at->arena, bytes, &at->w));
    RP_TRY(rp_darena_take(at->arena, bytes, &at->g));
    RP_TRY(rp_darena_take(at->arena, bytes, &at->out));
    RP_TRY(rp_darena_take(at->arena, bytes, &at->centre));
    for (uint32_t s = 0; s < RP_OPTIM_STATES_MAX; s++) {
        RP_TRY(rp_darena_take(at->arena, bytes, &at->state[s]));
    }
    rp_darena_seal(at->arena);
fail:
    return err;
}

static rp_err open_all(replay *r) {
    const rp_method *method = &r->run.method;
    rp_board found;
    rp_err err;
    r->stages = r->run.stages;
    r->optim = r->run.optim;
    r->optim.predicts = method->weights >= RP_WEIGHTS_PIPEOPTIM;
    r->optim.predict_decay = method->decay;
    r->optim.rule = method->weights == RP_WEIGHTS_XPIPE      ? RP_PREDICT_XPIPE
                    : method->horizon == RP_HORIZON_RELEASED ? RP_PREDICT_RELEASED
                                                             : RP_PREDICT_OWN;
    RP_TRY(list_microbatches(r));
    RP_TRY(check_method(r));
    RP_TRY(read_batches(r));
    RP_TRY(rp_board_find(&r->arena, r->run.board, &found));
    const rp_device_options options = {.platform = found.platform,
                                       .device = found.device,
                                       .threads = r->run.threads,
                                       .tuning_path = found.tuning_path};
    RP_TRY(rp_device_open(&r->arena, &options, &r->device));
    RP_TRY(RP_ARENA_NEW(&r->arena, r->stages, &r->board));
    for (uint32_t k = 0; k < r->stages; k++) {
        RP_TRY(open_board(r, k));
    }
    RP_TRY(open_bench(r));
fail:
    return err;
}

static rp_err write_param(replay *r, const rp_stage *stage, uint32_t i, uint32_t index,
                          rp_st_writer *writer) {
    const rp_stage_param *param = &stage->param[i];
    const size_t bytes = r->run.model->param[param->model_param].count * sizeof(float);
    rp_buffer *buffer = param->trained == RP_NOT_TRAINED ? param->value.buffer
                                                         : stage->weights[0].part[param->trained];
    char *values;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&r->arena, bytes, &values));
    RP_TRY(rp_buffer_read_now(r->device, values, buffer, 0, bytes));
    RP_TRY(rp_st_write(writer, index, 0, values, bytes));
fail:
    return err;
}

/* METHODS 9: mean += (x_r - mean) / (r + 1) over the replicas as their last steps left them. */
static rp_err write_mean(replay *r, board *b, rp_buffer *to) {
    const uint32_t replicas = replicas_of(r, b->stage->job->stage);
    const uint64_t steps = r->run.steps;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < replicas; i++) {
        uint64_t last = steps; /* version: of the replica's newest step, 0 when it has none */
        while (last > 0 && (last - 1) % replicas != i) {
            last--;
        }
        RP_TRY(write_floats(r, i == 0 ? to : r->bench.w, b->version[last], b));
        if (i > 0) {
            RP_TRY(rp_average_towards(r->device, to, r->bench.w, b->count, 1.0f / (float)(i + 1)));
        }
    }
fail:
    return err;
}

/* The evaluated model: of replicas what `evaluate` says, the newest version otherwise. */
static rp_err write_board(replay *r, board *b, uint32_t *index, rp_st_writer *writer) {
    const rp_method *method = &r->run.method;
    const bool averages = method->kind->average != RP_AVERAGE_NONE;
    const bool centre = averages && method->evaluate == RP_EVALUATE_CENTRE;
    rp_buffer *to = rp_darena_whole(b->stage->weights[0].arena);
    rp_err err = RP_OK;
    if (b->count > 0 && averages && method->evaluate == RP_EVALUATE_MEAN) {
        RP_TRY(write_mean(r, b, to));
    } else if (b->count > 0) {
        RP_TRY(write_floats(r, to, centre ? b->centre : b->version[r->run.steps], b));
    }
    for (uint32_t i = 0; i < b->stage->param_count; i++) {
        if (r->run.model->param[b->stage->param[i].model_param].role != RP_PARAM_SCRATCH) {
            RP_TRY(write_param(r, b->stage, i, (*index)++, writer));
        }
    }
fail:
    return err;
}

static rp_err write_file(replay *r, const char *path) {
    const rp_model *model = r->run.model;
    const char *const meta[] = {"format", "pt", NULL};
    rp_st_writer *writer = NULL;
    rp_st_entry *entries;
    uint32_t count = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&r->arena, model->param_count, &entries));
    for (uint32_t p = 0; p < model->param_count; p++) {
        const rp_model_param *param = &model->param[p];
        if (param->role == RP_PARAM_SCRATCH) {
            continue;
        }
        rp_st_entry *to = &entries[count++];
        *to = (rp_st_entry){.name = param->name,
                            .type = RP_ST_F32,
                            .dims = param->shape.dims,
                            .bytes = param->count * sizeof(float)};
        for (uint32_t d = 0; d < to->dims; d++) {
            to->dim[d] = param->shape.dim[d];
        }
    }
    RP_TRY(rp_st_create(&r->arena, path, entries, count, meta, &writer));
    for (uint32_t k = 0, index = 0; k < r->stages; k++) {
        RP_TRY(write_board(r, &r->board[k], &index, writer));
    }
    RP_TRY(rp_st_commit(&writer));
fail:
    rp_st_abandon(&writer);
    return err;
}

static void close_all(replay *r) {
    for (uint32_t k = 0; r->board && k < r->stages; k++) {
        rp_stage_destroy(&r->board[k].stage);
    }
    rp_darena_close(&r->bench.arena);
    rp_device_close(&r->device);
    rp_runfile_close(&r->run);
    rp_arena_finish(&r->arena);
}

/* Everything behind the two paths. */
static rp_err read_options(replay *r, int argc, char **argv, const char ***set, uint32_t *count) {
    rp_err err = RP_ARENA_NEW(&r->arena, (size_t)argc, set);
    for (int i = 3; err == RP_OK && i < argc; i += 2) {
        char *end;
        if (i + 1 == argc) {
            return rp_fail(RP_ERR_USAGE, "%s: expected a value behind it", argv[i]);
        }
        if (strcmp(argv[i], "--set") == 0) {
            (*set)[(*count)++] = argv[i + 1];
            continue;
        }
        r->slip = (uint32_t)strtoul(argv[i + 1], &end, 10);
        if (strcmp(argv[i], "--slip") != 0 || end == argv[i + 1] || *end) {
            return rp_fail(RP_ERR_USAGE, "%s %s: expected --set KEY=VALUE or --slip STAGE", argv[i],
                           argv[i + 1]);
        }
    }
    return err;
}

int main(int argc, char **argv) {
    replay r = {.slip = NO_STAGE};
    const char **set;
    uint32_t count = 0;
    rp_err err;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: replay RUN.yaml OUT.safetensors [--set KEY=VALUE]... "
                              "[--slip STAGE]\n");
        return 2;
    }
    rp_arena_init(&r.arena, "replay", 0);
    RP_TRY(read_options(&r, argc, argv, &set, &count));
    RP_TRY(rp_runfile_read(&r.arena, argv[1], set, count, &r.run));
    RP_TRY(open_all(&r));
    RP_TRY(train(&r));
    RP_TRY(write_file(&r, argv[2]));
fail:
    close_all(&r);
    return rp_err_exit_code(err);
}
