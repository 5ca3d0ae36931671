#include "sim/reference.h"

#include <math.h>
#include <string.h>

/* Microbatch n, counted through the whole run. */
typedef struct {
    uint32_t step, micro;   /* micro: its number within the step */
    bool last;              /* the last one of its step */
    uint32_t first_of_fill; /* newest microbatch, up to this one, that found the pipes empty */
    rp_range samples;
} microbatch;

/* Weights of an op on one stage: after `version` updates, then predicted `ahead` more updates. */
typedef struct {
    uint32_t version, ahead;
} view;

typedef struct {
    const rp_reference *of;
    const rp_job *job;
    rp_job whole; /* all layers as one stage; only its tensors and parameters are used */
    rp_layout *layout;
    rp_arena arena;
    uint32_t stages, full;     /* full: microbatches in a full step */
    bool is_bounded;           /* the schedule limits how far forwards run ahead: METHODS 12 */
    uint32_t stride;           /* samples in a row of `value` and `grad` */
    uint32_t (*round_trip)[2]; /* by stage */
    microbatch *micro;
    uint32_t micro_count;
    uint32_t *stage_of; /* by trained parameter */
    /* [s + 1]: the replica of step s after its update; [0]: the start of all replicas. Then by
     * trained parameter; `state` has all states of the optimiser for each. */
    rp_digest **weight, **state;
    rp_digest *centre, *gradient, *spare_gradient, *running, *spare_running;
    rp_digest *seen[2]; /* by direction: the weights that an op uses, of all stages */
    rp_digest *value, *grad, *statistics;
} loop;

/* ---- the run --------------------------------------------------------------------------------- */

static rp_err list_microbatches(loop *r) {
    const rp_sched_shape shape = rp_job_sched_shape(r->job, 0, r->job->steps);
    const uint64_t epoch = rp_sched_epoch_steps(&shape);
    uint32_t filled = 0;
    r->full = (r->job->batch - 1) / r->job->micro + 1;
    rp_err err = RP_ARENA_NEW(&r->arena, r->job->steps * r->full + 1, &r->micro);
    for (uint32_t step = 0; err == RP_OK && step < r->job->steps; step++) {
        const uint32_t count = rp_sched_step_samples(&shape, step);
        filled = r->job->method.drain && step % epoch == 0 ? r->micro_count : filled;
        for (uint32_t first = 0, i = 0; first < count; first += r->job->micro, i++) {
            const uint32_t rest = count - first;
            const uint32_t n = rest < r->job->micro ? rest : r->job->micro;
            r->micro[r->micro_count++] =
                (microbatch){step, i, first + n == count, filled, {first, n}};
        }
    }
    return err;
}

/* ---- METHODS: which weights ------------------------------------------------------------------ */

/* METHODS 1: forwards before the first backward; METHODS 8: `advance` more for each hop. */
static uint32_t warm_up_of(const loop *r, uint32_t k) {
    return (r->stages - 1 - k) * (1 + r->job->method.advance);
}

/* METHODS 9; lean: R_k = D - k. */
static uint32_t replicas_of(const loop *r, uint32_t k) {
    const rp_method *method = &r->job->method;
    return method->lean && r->stages - k < method->replicas ? r->stages - k : method->replicas;
}

/* Steps that may be begun before the first of them is updated: two with two versions (2BW), one for
 * each replica when averaging (METHODS 9: x_r is unchanged between F_n and B_n). */
static uint32_t steps_open_of(const loop *r, uint32_t k) {
    const rp_method *method = &r->job->method;
    if (strcmp(method->kind->name, "pipedream-2bw") == 0 || method->weights == RP_WEIGHTS_DOUBLE) {
        return 2;
    }
    const bool averages = method->kind->average != RP_AVERAGE_NONE;
    return averages && method->weights == RP_WEIGHTS_CURRENT ? replicas_of(r, k) : UINT32_MAX;
}

/* Updates that stage k has made when microbatch n goes forward: all steps before the step of the
 * microbatch whose backward is next. */
static uint32_t updates_at_forward(const loop *r, uint32_t n, uint32_t k, uint32_t open_of) {
    const uint32_t filled = r->micro[n].first_of_fill;
    const uint32_t step = r->micro[n].step;
    const uint32_t warm_up = warm_up_of(r, k);
    const uint32_t open = steps_open_of(r, open_of);
    if (r->job->method.kind->flushed) {
        return step;
    }
    const uint32_t done = r->micro[n - filled > warm_up ? n - warm_up : filled].step;
    return step - done < open ? done : step - open + 1;
}

/* METHODS 12.1: minibatch n of stage k sees W after max(0, n - ahead + 1) updates, rounded down to
 * a multiple of `publish`. */
static view split_view(const loop *r, uint32_t step, uint32_t k) {
    const rp_method *method = &r->job->method;
    uint32_t boards = 0; /* boards of stages k and later: METHODS 12.2 */
    for (uint32_t j = k; j < r->stages; j++) {
        boards += rp_method_is_split(method, j) ? 2 : 1;
    }
    const uint32_t ahead = method->ahead_count == 0   ? boards
                           : method->ahead_count == 1 ? method->ahead[0]
                                                      : method->ahead[k];
    const uint32_t updates = step + 1 > ahead ? step + 1 - ahead : 0;
    view out = {.version = updates - updates % (method->publish > 1 ? method->publish : 1)};
    if (method->weights == RP_WEIGHTS_PIPEOPTIM && out.version > 0) { /* METHODS 12.5 */
        out.ahead = ahead - 1 + (method->horizon == RP_HORIZON_RELEASED);
    }
    return out;
}

/* Newest version that belongs to the replica of `step`, after `updates` updates. */
static uint32_t newest_version(uint32_t updates, uint32_t step, uint32_t replicas) {
    while (updates > 0 && (updates - 1) % replicas != step % replicas) {
        updates--;
    }
    return updates;
}

/* METHODS 5.1, 5.4, 5.3: the replica's updates between F and B, expected or actual by `horizon`. */
static uint32_t pipeoptim_ahead(const loop *r, uint32_t n, uint32_t k) {
    const rp_horizon horizon = r->job->method.horizon;
    const uint32_t micro = r->micro[n].micro;
    const uint32_t warm_up = warm_up_of(r, k);
    const uint32_t open = steps_open_of(r, k);
    uint32_t staleness = r->micro[n].step - updates_at_forward(r, n, k, k);
    if (horizon == RP_HORIZON_PAPER || horizon == RP_HORIZON_RELEASED) {
        staleness = warm_up > micro ? (warm_up - micro + r->full - 1) / r->full : 0;
        staleness = staleness < open ? staleness : open - 1;
    }
    return staleness / replicas_of(r, k) + (horizon == RP_HORIZON_RELEASED);
}

/* METHODS 11: (1 + staleness)^-p; staleness is the mean over the microbatches of a full step.
 * Microbatch m goes forward `warm_up` microbatches before its backward. */
static double rate_factor(const loop *r, uint32_t k) {
    const uint32_t warm_up = r->job->method.kind->flushed ? 0 : warm_up_of(r, k);
    const uint32_t open = steps_open_of(r, k);
    const rp_optim *optim = &r->job->optim;
    uint32_t sum = 0;
    if (optim->staleness_per_stage > 0) {
        return pow(1.0 + optim->staleness_per_stage * (r->stages - 1 - k), -optim->staleness_power);
    }
    for (uint32_t m = 0; m < r->full; m++) {
        const uint32_t steps = warm_up > m ? (warm_up - m + r->full - 1) / r->full : 0;
        sum += (steps < open ? steps : open - 1) / replicas_of(r, k);
    }
    return pow(1.0 + (double)sum / r->full, -optim->staleness_power);
}

/* METHODS 6; halves are rounded to even. */
static uint32_t xpipe_ahead(const loop *r, uint32_t k, bool backward) {
    const double t = r->full;
    const double half = backward ? floor(k / 2.0) : k / 2.0;
    const double s = backward ? (t + half - 1) / t : (r->stages + t - half - 2) / t;
    return s > 0 ? (uint32_t)nearbyint(s) : 0;
}

/* METHODS 4: updates of the stage until the step's last gradient reaches stage 0, from an event
 * simulation with ops of equal length. If the microbatch divides the batch, it is floor(k / 2) from
 * the backward and D - 1 - k more from the forward, both rounded up to steps. */
static uint32_t spectrain_ahead(const loop *r, uint32_t k, bool backward) {
    return backward ? r->round_trip[k][1] : r->round_trip[k][0];
}

static rp_err find_round_trips(loop *r) {
    rp_err err = RP_ARENA_NEW(&r->arena, r->stages, &r->round_trip);
    for (uint32_t k = 0;
         err == RP_OK && k < r->stages && r->job->method.weights == RP_WEIGHTS_SPECTRAIN; k++) {
        rp_sched_shape shape = rp_job_sched_shape(r->job, 0, r->job->steps);
        shape.stage = k;
        rp_method_order(&r->job->method, &shape);
        RP_TRY(rp_sched_round_trip(r->job->method.kind, &shape, &r->round_trip[k][0],
                                   &r->round_trip[k][1]));
    }
fail:
    return err;
}

/* METHODS 13, column W_fwd. */
static view forward_view(const loop *r, uint32_t n, uint32_t k) {
    const uint32_t step = r->micro[n].step;
    view out = {.version = newest_version(updates_at_forward(r, n, k, k), step, replicas_of(r, k))};
    if (r->is_bounded) {
        return split_view(r, step, k);
    }
    switch (r->job->method.weights) {
    case RP_WEIGHTS_ENTRY: /* METHODS 2: the newest version on stage 0 */
        out.version = updates_at_forward(r, n, 0, k);
        break;
    case RP_WEIGHTS_DOUBLE: /* METHODS 2: W^(max(b - 1, 0)) on every stage */
        out.version = step > 0 ? step - 1 : 0;
        break;
    case RP_WEIGHTS_PIPEOPTIM:
        out.ahead = pipeoptim_ahead(r, n, k);
        break;
    case RP_WEIGHTS_SPECTRAIN:
        out.ahead = spectrain_ahead(r, k, false);
        break;
    case RP_WEIGHTS_XPIPE:
        out.ahead = xpipe_ahead(r, k, false);
        break;
    default:
        break;
    }
    return out;
}

/* METHODS 13, column W_bwd. All earlier steps have been updated. */
static view backward_view(const loop *r, uint32_t n, uint32_t k) {
    const uint32_t step = r->micro[n].step;
    view out = {.version = newest_version(step, step, replicas_of(r, k))};
    switch (r->job->method.weights) {
    case RP_WEIGHTS_STASH:
    case RP_WEIGHTS_ENTRY:
    case RP_WEIGHTS_DOUBLE:
        out.version = forward_view(r, n, k).version;
        break;
    case RP_WEIGHTS_SPECTRAIN:
        out.ahead = spectrain_ahead(r, k, true);
        break;
    case RP_WEIGHTS_XPIPE:
        out.ahead = xpipe_ahead(r, k, true);
        break;
    default:
        break;
    }
    return out;
}

/* ---- the optimiser --------------------------------------------------------------------------- */

static const rp_model_param *param_of(const loop *r, uint32_t trained) {
    uint32_t p = 0;
    while (r->layout->trained[p] != trained) {
        p++;
    }
    return &r->job->model->param[r->job->model->param[p].owner];
}

/* Optimiser operands for `version` v of a parameter; v belongs to replica (v - 1) mod R. */
static rp_digest_optimise optimise_of(const loop *r, uint32_t trained, uint32_t version,
                                      uint32_t replicas, uint32_t updates) {
    const rp_sched_shape shape = rp_job_sched_shape(r->job, 0, UINT64_MAX);
    const uint32_t states = r->layout->state_count;
    rp_digest_optimise out = {
        .param = param_of(r, trained),
        .weight = r->weight[version][trained],
        .gradient = r->gradient[trained],
        .state_count = r->job->optim.kind->state_count(&r->job->optim),
        .rate = (float)(rate_factor(r, r->stage_of[trained]) *
                        rp_lr_at(&r->job->lr, r->job->optim.lr, updates, r->job->steps,
                                 rp_sched_epoch_steps(&shape))),
        .grad_scale = 1.0f,
        .applied = version > 0 ? (version - 1) / replicas + 1 : 0,
    };
    for (uint32_t s = 0; s < states; s++) {
        out.state[s] = r->state[version][trained * states + s];
    }
    return out;
}

/* METHODS 11: min(1, most / norm) of the step's gradient on stage k. Like the executor, takes the
 * number of a digest for its sum of squares. */
static float clip_scale(const loop *r, uint32_t k) {
    const double most = r->job->optim.clip_norm_stage;
    double squares = 0;
    for (uint32_t t = 0; t < r->layout->trained_count; t++) {
        const bool counts = r->stage_of[t] == k && !r->layout->repeats[t];
        squares += counts ? (double)rp_digest_number(r->gradient[t]) : 0;
    }
    return most > 0 ? (float)fmin(1.0, most / (sqrt(squares) + 1e-6)) : 1.0f;
}

/* Whether the tensor's first use is on another stage, which sends the values. */
static bool is_far(const loop *r, uint32_t trained) {
    uint32_t p = 0;
    while (r->layout->trained[p] != trained) {
        p++;
    }
    return !r->job->method.kind->flushed &&
           r->job->cut.first[r->stage_of[trained] + 1] <= r->job->model->param[p].layer;
}

/* Collects the weights that every stage uses in one direction. With XPipe the first microbatch of a
 * step predicts for the whole step. */
static void select_views(loop *r, uint32_t n, bool backward) {
    const bool cached = r->job->method.weights == RP_WEIGHTS_XPIPE;
    for (uint32_t t = 0; t < r->layout->trained_count; t++) {
        const uint32_t k = r->stage_of[t];
        const view at = backward ? backward_view(r, n, k) : forward_view(r, n, k);
        const uint32_t updates = backward ? r->micro[n].step : updates_at_forward(r, n, k, k);
        if (backward && is_far(r, t)) { /* what the forward has seen */
            r->seen[1][t] = r->seen[0][t];
            continue;
        }
        const rp_digest_optimise by = optimise_of(r, t, at.version, replicas_of(r, k), updates);
        if (!cached || r->micro[n].micro == 0) {
            r->seen[backward][t] =
                at.ahead > 0 ? rp_digest_predict(&by, (float)at.ahead, 1.0f) : by.weight;
        }
    }
}

static void average_replicas(loop *r, uint32_t t, uint32_t own, uint32_t replicas, rp_digest *x,
                             rp_digest *scratch, bool after) {
    const rp_method *method = &r->job->method;
    const bool reference = method->kind->average == RP_AVERAGE_REFERENCE;
    const uint32_t clock = method->before ? own : own + 1;
    if (method->kind->average == RP_AVERAGE_NONE || clock % method->period != 0) {
        return;
    }
    if (!after && reference) {
        *scratch = *x;
    }
    if (after || (method->before && !reference)) {
        const rp_average_term term = !after           ? RP_TERM_PULL
                                     : reference      ? RP_TERM_REFERENCE
                                     : method->before ? RP_TERM_PUSH
                                                      : RP_TERM_ELASTIC;
        /* only RP_TERM_REFERENCE uses the share, 1 / replicas */
        rp_digest_average(term, param_of(r, t), x, &r->centre[t], scratch, (float)method->alpha,
                          1.0f / (float)replicas);
    }
}

/* METHODS 15: all uses of a tensor get use_1 + use_2 + ..., in the order of the layers. */
static void tie_gradients(loop *r) {
    const rp_model *model = r->job->model;
    for (uint32_t owner = 0; owner < model->param_count; owner++) {
        const uint32_t first = r->layout->trained[owner];
        if (!model->param[owner].tied || model->param[owner].owner != owner ||
            first == RP_NOT_TRAINED) {
            continue;
        }
        rp_digest sum = r->gradient[first];
        for (uint32_t p = owner + 1; p < model->param_count; p++) {
            const uint32_t t = r->layout->trained[p];
            sum = model->param[p].owner == owner ? rp_digest_tie(sum, r->gradient[t]) : sum;
        }
        for (uint32_t p = owner; p < model->param_count; p++) {
            if (model->param[p].owner == owner) {
                r->gradient[r->layout->trained[p]] = sum;
            }
        }
    }
}

/* Before clipping: adds the anchor's term to all gradients. */
static void anchor_gradients(loop *r, uint32_t step) {
    const rp_optim *optim = &r->job->optim;
    const uint32_t anchor = rp_optim_anchor_state(optim);
    const uint32_t drift = rp_optim_drift_state(optim);
    const rp_digest zero = {0};
    for (uint32_t t = 0; rp_optim_is_anchored(optim) && t < r->layout->trained_count; t++) {
        const rp_digest_optimise by = optimise_of(r, t, step, 1, step);
        r->gradient[t] = rp_digest_anchor(
            by.param, by.gradient, by.weight, anchor == RP_OPTIM_NO_STATE ? zero : by.state[anchor],
            drift == RP_OPTIM_NO_STATE ? zero : by.state[drift], (float)optim->anchor.mu);
    }
}

/* Optimiser step of replica n mod R; averages if (n / R + 1) mod tau == 0 (METHODS 8, 9), or with
 * `before` if n / R mod tau == 0 (METHODS 7, algorithm 1). */
static void update_model(loop *r, uint32_t step) {
    const uint32_t states = r->layout->state_count;
    tie_gradients(r);
    anchor_gradients(r, step);
    for (uint32_t t = 0; t < r->layout->trained_count; t++) {
        const uint32_t replicas = replicas_of(r, r->stage_of[t]);
        rp_digest_optimise by =
            optimise_of(r, t, newest_version(step, step, replicas), replicas, step);
        rp_digest scratch = {0};
        by.grad_scale = clip_scale(r, r->stage_of[t]);
        average_replicas(r, t, step / replicas, replicas, &by.weight, &scratch, false);
        rp_digest_update(&by);
        average_replicas(r, t, step / replicas, replicas, &by.weight, &scratch, true);
        r->weight[step + 1][t] = by.weight;
        memcpy(&r->state[step + 1][t * states], by.state, states * sizeof *by.state);
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* First sample of microbatch n in a row: rows hold a step with sizes, else only a microbatch. */
static uint32_t place_of(const loop *r, uint32_t n) {
    return r->job->size ? r->micro[n].samples.first : 0;
}

static rp_digest *statistics_of(const loop *r, uint32_t n) {
    return r->statistics + (r->job->size ? r->micro[n].micro * r->layout->layer_count : 0);
}

static rp_digest_pass pass_of(const loop *r, uint32_t n, bool backward) {
    const microbatch *m = &r->micro[n];
    const uint32_t place = place_of(r, n);
    return (rp_digest_pass){
        .job = &r->whole,
        .layout = r->layout,
        .stride = r->stride,
        .n = m->samples.count,
        .number = (uint64_t)m->step * r->job->batch + m->samples.first,
        .training = true,
        .strict = r->of->strict,
        .weights = r->seen[backward],
        .running = r->running,
        .value = r->value + place,
        .grad = r->grad + place,
        .statistics = statistics_of(r, n),
        .gradient = r->gradient,
    };
}

/* Fills in the microbatch's data, and its targets where run_backward() puts the loss. */
static void fill_rows(loop *r, uint32_t n, rp_digest *targets) {
    const microbatch *m = &r->micro[n];
    rp_digest *row = &r->value[(size_t)r->layout->data_tensor * r->stride + place_of(r, n)];
    for (uint32_t s = 0; s < m->samples.count; s++) {
        rp_digest data;
        const uint32_t index = m->samples.first + s;
        r->of->sample(r->of->context, m->step, index, &data, &targets[s]);
        row[s] = rp_digest_input((uint64_t)m->step * r->job->batch + index, data);
    }
}

/* Forward. `spare`: only recomputes the values and leaves the running statistics as they are. */
static void run_forward(loop *r, uint32_t n, bool spare) {
    const uint32_t rows = r->layout->tensor_count;
    rp_digest_pass pass = pass_of(r, n, false);
    for (uint32_t t = 0; t < rows; t++) {
        memset(pass.grad + (size_t)t * r->stride, 0, pass.n * sizeof *pass.grad);
    }
    fill_rows(r, n, pass.grad + (size_t)(rows - 1) * r->stride);
    if (spare) {
        memcpy(r->spare_running, r->running, r->layout->param_count * sizeof *r->running);
        pass.running = r->spare_running;
    }
    select_views(r, n, false);
    rp_digest_run_forward(&pass);
}

/* Must follow the forward of the same microbatch. */
static void run_backward(loop *r, uint32_t n, bool accumulate) {
    const rp_sched_shape shape = rp_job_sched_shape(r->job, 0, UINT64_MAX);
    const uint32_t last = r->layout->tensor_count - 1;
    rp_digest_pass pass = pass_of(r, n, true);
    rp_digest *loss = &pass.grad[(size_t)last * r->stride];
    const rp_digest *y = &pass.value[(size_t)last * r->stride];
    for (uint32_t s = 0; s < pass.n; s++) {
        loss[s] = rp_digest_loss(y[s], loss[s], rp_sched_step_samples(&shape, r->micro[n].step));
    }
    pass.accumulate = accumulate;
    select_views(r, n, true);
    rp_digest_run_backward(&pass, true, true);
}

static uint32_t end_of_step(const loop *r, uint32_t first) {
    uint32_t end = first;
    while (!r->micro[end].last) {
        end++;
    }
    return end + 1;
}

/* GPipe runs backwards from the last microbatch to the first; only a strict sum shows the order. */
static void run_reversed(loop *r, uint32_t first, uint32_t end) {
    for (uint32_t n = first; n < end; n++) {
        run_forward(r, n, false);
    }
    for (uint32_t n = end; n-- > first;) {
        run_forward(r, n, true);
        run_backward(r, n, n + 1 < end);
    }
}

/* ---- METHODS 14: sizes by stage and direction ------------------------------------------------ */

/* Sums stage k's weight gradients over its backwards, from the last sample to the first, in the
 * stage's own size. Values and gradients of all samples of the step are in the rows already. */
static void sum_stage(loop *r, uint32_t k, uint32_t first, uint32_t end) {
    const uint32_t own = r->job->size[k][1];
    const rp_range last = r->micro[end - 1].samples;
    const uint32_t all = last.first + last.count;
    uint32_t left = all;
    for (uint32_t n = end; left > 0; n -= n > first + 1) {
        const uint32_t size = own ? own : r->micro[n - 1].samples.count;
        const uint32_t count = size < left ? size : left;
        rp_digest_pass pass = pass_of(r, first, true);
        left -= count;
        pass.n = count;
        pass.number += left;
        pass.value += left;
        pass.grad += left;
        pass.statistics = statistics_of(r, n - 1); /* used when the size is the forward's */
        pass.gradient = r->spare_gradient;
        pass.accumulate = left + count < all;
        rp_digest_run_backward(&pass, false, true);
    }
    for (uint32_t t = 0; t < r->layout->trained_count; t++) {
        r->gradient[t] = r->stage_of[t] == k ? r->spare_gradient[t] : r->gradient[t];
    }
}

/* Runs forwards and value gradients in the run's microbatches, over which batch statistics are
 * taken; then sums weight gradients by stage. */
static void run_sizes(loop *r, uint32_t first, uint32_t end) {
    for (uint32_t n = first; n < end; n++) {
        run_forward(r, n, false);
    }
    for (uint32_t n = first; n < end; n++) {
        run_backward(r, n, false);
    }
    for (uint32_t k = 0; k < r->stages; k++) {
        sum_stage(r, k, first, end);
    }
}

static void train_steps(loop *r) {
    const bool reversed = strcmp(r->job->method.kind->name, "gpipe") == 0;
    for (uint32_t n = 0; n < r->micro_count;) {
        const uint32_t end = end_of_step(r, n);
        const uint32_t step = r->micro[n].step;
        if (r->job->size) {
            run_sizes(r, n, end);
        } else if (reversed) {
            run_reversed(r, n, end);
        }
        for (uint32_t m = n; !r->job->size && !reversed && m < end; m++) {
            run_forward(r, m, false);
            run_backward(r, m, m > n);
        }
        rp_digest_run_commit(
            &(rp_digest_pass){.job = &r->whole, .layout = r->layout, .running = r->running});
        update_model(r, step);
        n = end;
    }
}

/* ---- begin and end --------------------------------------------------------------------------- */

static rp_err check_method(const rp_job *job) {
    const rp_method *method = &job->method;
    if (method->horizon == RP_HORIZON_MEASURED && method->weights == RP_WEIGHTS_PIPEOPTIM) {
        return rp_fail(RP_ERR_USAGE, "no reference: horizon: measured depends on measurements");
    }
    if (method->kind->flushed && method->weights != RP_WEIGHTS_CURRENT) {
        return rp_fail(RP_ERR_USAGE, "no reference for other weights over a flushed schedule");
    }
    if (job->optim.clip_norm > 0) {
        return rp_fail(RP_ERR_USAGE, "no reference: clip_norm depends on the host's answers");
    }
    return RP_OK;
}

static rp_err open_versions(loop *r) {
    const size_t count = r->layout->trained_count + 1;
    const uint64_t versions = r->job->steps + 1;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&r->arena, versions, &r->weight));
    RP_TRY(RP_ARENA_NEW(&r->arena, versions, &r->state));
    for (uint64_t v = 0; v < versions; v++) {
        RP_TRY(RP_ARENA_NEW(&r->arena, count, &r->weight[v]));
        RP_TRY(RP_ARENA_NEW(&r->arena, count * (r->layout->state_count + 1), &r->state[v]));
    }
    RP_TRY(RP_ARENA_NEW(&r->arena, count, &r->centre));
    RP_TRY(RP_ARENA_NEW(&r->arena, count, &r->gradient));
    RP_TRY(RP_ARENA_NEW(&r->arena, count, &r->spare_gradient));
    RP_TRY(RP_ARENA_NEW(&r->arena, count, &r->seen[0]));
    RP_TRY(RP_ARENA_NEW(&r->arena, count, &r->seen[1]));
fail:
    return err;
}

static rp_err open_rows(loop *r) {
    const size_t rows = (size_t)r->layout->tensor_count * r->stride;
    const size_t statistics = (size_t)r->layout->layer_count * (r->job->size ? r->full : 1);
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&r->arena, rows, &r->value));
    RP_TRY(RP_ARENA_NEW(&r->arena, rows, &r->grad));
    RP_TRY(RP_ARENA_NEW(&r->arena, statistics, &r->statistics));
    RP_TRY(RP_ARENA_NEW(&r->arena, r->layout->param_count + 1, &r->running));
    RP_TRY(RP_ARENA_NEW(&r->arena, r->layout->param_count + 1, &r->spare_running));
fail:
    return err;
}

/* Finds the stage of each parameter and sets its start value. */
static rp_err start_weights(loop *r) {
    const rp_model *model = r->job->model;
    rp_err err = RP_ARENA_NEW(&r->arena, r->layout->trained_count + 1, &r->stage_of);
    for (uint32_t p = 0; err == RP_OK && p < model->param_count; p++) {
        const rp_digest start = rp_digest_init(&model->param[p], r->job->seed);
        const uint32_t t = r->layout->trained[p];
        if (t == RP_NOT_TRAINED) {
            r->running[p] = model->param[p].role != RP_PARAM_SCRATCH ? start : (rp_digest){0};
            continue;
        }
        /* METHODS 15: without a flush all uses have the versions of the first one's stage */
        const bool flushed = r->job->method.kind->flushed;
        const uint32_t of = flushed ? p : model->param[p].owner;
        while (r->job->cut.first[r->stage_of[t] + 1] <= model->param[of].layer) {
            r->stage_of[t]++;
        }
        r->weight[0][t] = r->centre[t] = start; /* METHODS 9: all x_r = c = W0 */
        const uint32_t anchor = rp_optim_anchor_state(&r->job->optim);
        if (anchor != RP_OPTIM_NO_STATE) {
            r->state[0][t * r->layout->state_count + anchor] = start;
        }
    }
    return err;
}

/* METHODS 9: mean += (x_r - mean) / (r + 1) over the replicas after their last steps. */
static rp_digest mean_of(const loop *r, uint32_t t) {
    const uint32_t replicas = replicas_of(r, r->stage_of[t]);
    const uint32_t steps = (uint32_t)r->job->steps;
    rp_digest mean = r->weight[newest_version(steps, 0, replicas)][t];
    for (uint32_t i = 1; i < replicas; i++) {
        rp_digest x = r->weight[newest_version(steps, i, replicas)][t];
        rp_digest_average(RP_TERM_TOWARDS, param_of(r, t), &x, NULL, &mean,
                          (float)r->job->method.alpha, 1.0f / (float)(i + 1));
    }
    return mean;
}

static void give_result(const loop *r, rp_digest *out) {
    const rp_method *method = &r->job->method;
    const bool averages = method->kind->average != RP_AVERAGE_NONE;
    for (uint32_t p = 0; p < r->job->model->param_count; p++) {
        const uint32_t t = r->layout->trained[p];
        if (t == RP_NOT_TRAINED) {
            const bool scratch = r->job->model->param[p].role == RP_PARAM_SCRATCH;
            out[p] = scratch ? (rp_digest){0} : r->running[p];
        } else if (averages && method->evaluate == RP_EVALUATE_CENTRE) {
            out[p] = r->centre[t];
        } else if (averages && method->evaluate == RP_EVALUATE_MEAN) {
            out[p] = mean_of(r, t);
        } else {
            out[p] = r->weight[r->job->steps][t];
        }
    }
}

rp_err rp_reference_run(const rp_reference *reference, rp_digest *out) {
    loop r = {.of = reference,
              .job = reference->job,
              .whole = *reference->job,
              .stride = reference->job->size ? reference->job->batch : reference->job->micro,
              .stages = reference->job->cut.stage_count};
    const rp_sched_shape shape = rp_job_sched_shape(r.job, 0, r.job->steps);
    rp_err err;
    rp_arena_init(&r.arena, "reference", 0);
    r.is_bounded = rp_sched_ahead(&shape) > 0;
    r.whole.stage = 0;
    const uint32_t all[] = {0, r.job->model->layer_count};
    r.whole.cut = (rp_cut){.stage_count = 1, .first = all};
    r.whole.method =
        (rp_method){.kind = rp_sched_find("gpipe"), .replicas = 1, .period = 1, .chunks = 1};
    RP_TRY(check_method(r.job));
    RP_TRY(rp_layout_make(&r.arena, &r.whole, RP_GEMM_PANEL, RP_DIGEST_BYTES, &r.layout));
    RP_TRY(find_round_trips(&r));
    RP_TRY(list_microbatches(&r));
    RP_TRY(open_versions(&r));
    RP_TRY(open_rows(&r));
    RP_TRY(start_weights(&r));
    train_steps(&r);
    give_result(&r, out);
fail:
    rp_arena_finish(&r.arena);
    return err;
}
