#include "stage/job.h"

#include <stdlib.h>
#include <string.h>

#include "nn/fuse.h"
#include "nn/rounding.h"

static rp_err read_shape(rp_node *root, const char *key, rp_shape *out) {
    rp_node *list = rp_node_find(root, key);
    if (!list || !rp_node_is_list(list) || rp_node_count(list) > RP_DIMS_MAX - 1) {
        return rp_node_fail(root, "%s: expected a list of 1 to %d sizes", key, RP_DIMS_MAX - 1);
    }
    *out = (rp_shape){.dims = rp_node_count(list)};
    for (uint32_t i = 0; i < out->dims; i++) {
        const rp_node *item = rp_node_item(list, i);
        const char *text = rp_node_is_scalar(item) ? rp_node_text(item) : "";
        char *end;
        unsigned long value = strtoul(text, &end, 10);
        if (end == text || *end || value == 0 || value > 1u << 24) {
            return rp_node_fail(item, "%s: expected a size from 1 to %u", key, 1u << 24);
        }
        out->dim[i] = (uint32_t)value;
    }
    if (!rp_shape_check(out)) {
        return rp_node_fail(list, "%s: too many elements", key);
    }
    return RP_OK;
}

static rp_err read_numbers(rp_node *root, rp_job *job, uint32_t *stages) {
    rp_err err;
    static const char *const needed[] = {"stage",      "cut",           "stages", "batch",
                                         "microbatch", "epoch_samples", "steps",  "seed"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        RP_TRY(rp_node_need(root, needed[i]));
    }
    RP_TRY(rp_node_u32(root, "stages", 1, RP_CUT_STAGES_MAX, stages));
    RP_TRY(rp_node_u32(root, "stage", 0, *stages - 1, &job->stage));
    RP_TRY(rp_node_u32(root, "batch", 1, RP_BATCH_MAX, &job->batch));
    RP_TRY(rp_node_u32(root, "microbatch", 1, job->batch, &job->micro));
    RP_TRY(rp_node_u64(root, "epoch_samples", 1, UINT32_MAX, &job->epoch_samples));
    RP_TRY(rp_node_u64(root, "steps", 0, UINT64_C(1) << 40, &job->steps));
    RP_TRY(rp_node_u64(root, "step_first", 0, job->steps, &job->step_first));
    RP_TRY(rp_node_u64(root, "seed", 0, UINT64_MAX, &job->seed));
    job->target_width = 1;
    RP_TRY(rp_node_u32(root, "target_width", 1, 1u << 20, &job->target_width));
    uint32_t memory_mib = 0;
    RP_TRY(rp_node_u32(root, "memory_mib", 0, 1u << 24, &memory_mib));
    job->memory_bytes = (uint64_t)memory_mib << 20;
    RP_TRY(rp_node_u64(root, "memory_bytes", 0, UINT64_C(1) << 44, &job->memory_bytes));
    job->guard = true;
    RP_TRY(rp_node_bool(root, "guard", &job->guard));
    bool shuffle = true; /* sent by older hosts; has no effect */
    RP_TRY(rp_node_bool(root, "shuffle", &shuffle));
    RP_TRY(rp_node_bool(root, "copies", &job->copies));
    RP_TRY(rp_rounding_read(root, "storage", &job->storage));
fail:
    return err;
}

static rp_err read_list(rp_node *normalise, const char *key, double min, uint32_t count,
                        float *out) {
    const rp_node *list = rp_node_find(normalise, key);
    if (!list || !rp_node_is_list(list) || rp_node_count(list) != count) {
        return rp_node_fail(normalise, "%s: expected a list of as many numbers as `mean` has", key);
    }
    for (uint32_t i = 0; i < count; i++) {
        double value;
        rp_err err = rp_node_item_f64(list, i, min, 1e6, &value);
        if (err != RP_OK) {
            return err;
        }
        out[i] = (float)value;
    }
    return RP_OK;
}

static rp_err read_pixels(rp_node *root, const rp_shape *sample, rp_pixel_norm *out) {
    rp_node *normalise = rp_node_find(root, "normalise");
    const rp_node *mean = normalise ? rp_node_find(normalise, "mean") : NULL;
    rp_err err = RP_OK;
    if (!normalise) {
        return RP_OK;
    }
    const uint32_t groups = mean && rp_node_is_list(mean) ? rp_node_count(mean) : 0;
    if (groups == 0 || groups > RP_PIXEL_GROUPS_MAX || rp_shape_count(sample) % groups > 0) {
        return rp_node_fail(normalise,
                            "expected {mean: [..], std: [..]} of 1 to %d numbers, as many as the "
                            "sample has channels",
                            RP_PIXEL_GROUPS_MAX);
    }
    RP_TRY(read_list(normalise, "mean", -1e6, groups, out->mean));
    RP_TRY(read_list(normalise, "std", 1e-6, groups, out->deviation));
    RP_TRY(rp_node_done(normalise));
    out->groups = groups;
fail:
    return err;
}

static rp_err read_data(rp_node *root, rp_model_data *out) {
    static const char *const types[] = {"f32", "i32", NULL};
    uint32_t ids = 0;
    rp_err err;
    *out = (rp_model_data){0};
    RP_TRY(read_shape(root, "sample", &out->sample));
    RP_TRY(rp_node_word(root, "sample_type", types, &ids));
    RP_TRY(rp_node_u32(root, "classes", 0, 1u << 20, &out->classes));
    RP_TRY(rp_node_u32(root, "tokens", 0, 1u << 20, &out->tokens));
    out->type = ids ? RP_I32 : RP_F32;
fail:
    return err;
}

uint32_t rp_job_target_rows(const rp_job *job) {
    return job->loss->class_target ? job->target_width - job->loss_options.ignores : 1;
}

/* The classes are the last dimension of the model's output. */
uint32_t rp_job_target_rows_at(const rp_job *job, uint32_t time) {
    const rp_model_view view = rp_model_view_at(job->model, time);
    const rp_shape *out = rp_model_view_shape(&view, job->model->layer_count - 1);
    const uint32_t rows = rp_job_target_rows(job);
    return rows > 1 && time > 0 ? (uint32_t)(rp_shape_count(out) / out->dim[out->dims - 1]) : rows;
}

uint32_t rp_job_target_width_at(const rp_job *job, uint32_t time) {
    return time == 0
               ? job->target_width
               : job->target_width - rp_job_target_rows(job) + rp_job_target_rows_at(job, time);
}

/* Checks that the loss fits the model's output and the targets. */
static rp_err check_output(const rp_job *job, rp_node *root) {
    const rp_shape *shape = rp_model_out(job->model);
    const size_t outputs = rp_shape_count(shape);
    if (!job->loss->class_target && outputs != job->target_width) {
        return rp_node_fail(root, "loss %s: the model has %zu outputs, the targets %u columns",
                            job->loss->name, outputs, job->target_width);
    }
    if (job->loss_options.ignores && job->target_width < 2) {
        return rp_node_fail(root, "target_width: expected at least 2 with `ignore`");
    }
    const bool held = rp_err_hold(true);
    const rp_err err = rp_loss_check_layout(shape, rp_job_target_rows(job), &job->loss_options);
    (void)rp_err_hold(held);
    return err == RP_OK ? RP_OK : rp_node_fail(root, "%s", rp_err_message());
}

/* Reads `times`. Targets of another kind than classes have one shape. */
static rp_err read_times(rp_arena *arena, rp_node *root, rp_job *job) {
    rp_node *list = rp_node_find(root, "times");
    const uint32_t most = rp_model_time(job->model);
    uint32_t time[RP_MODEL_TIMES_MAX];
    rp_err err = RP_OK;
    if (!list) {
        return RP_OK;
    }
    const uint32_t count = rp_node_is_list(list) ? rp_node_count(list) : 0;
    if (count == 0 || count > RP_MODEL_TIMES_MAX || most == 0 || !job->loss->class_target ||
        job->loss_options.classes_first) {
        return rp_node_fail(list,
                            "expected a list of 1 to %d lengths, for samples of token ids and "
                            "targets that are classes",
                            RP_MODEL_TIMES_MAX);
    }
    for (uint32_t k = 0; k < count; k++) {
        RP_TRY(rp_node_item_u32(list, k, k > 0 ? time[k - 1] + 1 : 1, most - 1, &time[k]));
    }
    RP_TRY(rp_model_add_times(arena, job->model, time, count));
fail:
    return err;
}

static rp_err read_advance(rp_node *root, uint32_t stages, rp_method *method) {
    uint32_t advance = 0;
    rp_err err;
    if (!method->advance_auto) {
        return RP_OK;
    }
    RP_TRY(rp_node_need(root, "advance"));
    RP_TRY(rp_node_u32(root, "advance", 0, RP_ADVANCE_MAX, &advance));
    rp_method_set_advance(method, stages, advance);
fail:
    return err;
}

/* Reads the sizes of microbatches from the run file; a plan overrides them. */
static rp_err read_sizes(rp_arena *arena, rp_node *root, rp_job *job) {
    const rp_cut *cut = &job->cut;
    uint32_t(*size)[2];
    rp_err err;
    RP_TRY(rp_method_sizes(arena, &job->method, root, cut->stage_count, job->micro, &size));
    for (uint32_t k = 0; size && k < cut->stage_count; k++) {
        const bool alike = size[k][0] == job->micro && size[k][1] == job->micro;
        const rp_layer *layer = rp_cut_whole_layer(job->model, cut, k);
        if (size[k][0] > job->batch || size[k][1] > job->batch || (layer && !alike)) {
            return rp_node_fail(rp_node_find(root, "schedule"),
                                "stage %u: microbatches of %u and %u samples; expected at most %u, "
                                "or %u for a stage with batch statistics",
                                k, size[k][0], size[k][1], job->batch, job->micro);
        }
        size[k][1] = layer ? 0 : size[k][1];
    }
    job->size = size;
fail:
    return err;
}

/* As for sizes, a plan overrides this; only tests have no plan. */
static rp_err read_recompute(rp_arena *arena, rp_node *root, rp_job *job) {
    bool *stage;
    bool *begins;
    bool is_auto;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, job->cut.stage_count, &stage));
    RP_TRY(RP_ARENA_NEW(arena, job->model->layer_count, &begins));
    RP_TRY(rp_recompute_read(root, job->model, &job->cut, stage, begins, &is_auto));
    job->recompute = stage[job->stage];
    job->group_begins = begins;
    char whose[RP_METHOD_WHOSE_BYTES];
    const char *why = rp_method_refuses_again(&job->method, job->stage, rp_job_holds_steps(job));
    if (job->recompute && why) {
        return rp_node_fail(rp_node_find(root, "recompute"), "%s: %s",
                            rp_method_whose(&job->method, job->stage, whose), why);
    }
fail:
    return err;
}

static rp_err read_offload(rp_arena *arena, rp_node *root, rp_job *job) {
    rp_offload *stage;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, job->cut.stage_count, &stage));
    RP_TRY(rp_offload_read(root, job->cut.stage_count, stage));
    job->offload = stage[job->stage] == RP_OFFLOAD_AUTO ? RP_OFFLOAD_NONE : stage[job->stage];
fail:
    return err;
}

rp_err rp_job_parse(rp_arena *arena, rp_node *root, rp_node *model_root, rp_job *out) {
    *out = (rp_job){0};
    rp_err err;
    uint32_t stages = 1;
    rp_model_data data;
    RP_TRY(read_numbers(root, out, &stages));
    RP_TRY(read_data(root, &data));
    RP_TRY(read_pixels(root, &data.sample, &out->pixels));
    RP_TRY(rp_model_parse(arena, model_root, &data, &out->model));
    RP_TRY(rp_cut_parse(arena, out->model, rp_node_find(root, "cut"), &out->cut));
    if (out->cut.stage_count != stages) {
        return rp_node_fail(root, "cut: makes %u stages, but `stages` is %u", out->cut.stage_count,
                            stages);
    }
    RP_TRY(rp_node_need(root, "loss"));
    RP_TRY(rp_loss_parse(root, &out->loss, &out->loss_options));
    RP_TRY(check_output(out, root));
    RP_TRY(rp_node_need(root, "optimizer"));
    RP_TRY(rp_optim_parse(&out->optim, rp_node_find(root, "optimizer")));
    RP_TRY(rp_optim_parse_anchor(&out->optim.anchor, root));
    RP_TRY(rp_optim_check_anchor(&out->optim, rp_node_find(root, "optimizer")));
    RP_TRY(rp_lr_parse(&out->lr, rp_node_find(root, "lr_schedule")));
    RP_TRY(rp_method_parse(root, stages, &out->method));
    RP_TRY(rp_method_fit_stages(&out->method, stages, rp_node_find(root, "schedule")));
    RP_TRY(read_advance(root, stages, &out->method));
    RP_TRY(read_sizes(arena, root, out));
    RP_TRY(read_recompute(arena, root, out));
    RP_TRY(read_offload(arena, root, out));
    if (!out->method.kind
             ->split_backward) { /* otherwise both halves would compute the relu's backward */
        RP_TRY(rp_model_fuse(out->model, &out->cut, &out->fused));
    }
    RP_TRY(read_times(arena, root, out));
    RP_TRY(rp_method_fit_model(&out->method, out->model, rp_node_find(root, "schedule")));
    RP_TRY(rp_method_fit(&out->method, &out->optim, rp_node_find(root, "optimizer")));
    RP_TRY(rp_throttle_parse(root, &out->throttle));
    (void)rp_node_find(root, "link"); /* agent/wiring.c reads `link` and `peers` */
    (void)rp_node_find(root, "peers");
    RP_TRY(rp_node_done(root));
fail:
    return err;
}

rp_err rp_method_fit(const rp_method *method, rp_optim *optim, const rp_node *node) {
    optim->predicts = rp_method_predicts(method);
    optim->predict_decay = method->decay;
    optim->rule = method->weights == RP_WEIGHTS_XPIPE      ? RP_PREDICT_XPIPE
                  : method->horizon == RP_HORIZON_RELEASED ? RP_PREDICT_RELEASED
                                                           : RP_PREDICT_OWN;
    if (method->decay && !(optim->kind->decoupled && optim->weight_decay > 0)) {
        return rp_node_fail(node,
                            "`decay: true` of the schedule predicts a weight decay that is "
                            "separate from the gradient, which %s does not have here; expected "
                            "adamw with weight_decay, or drop `decay`",
                            optim->kind->name);
    }
    if (rp_optim_is_anchored(optim) && method->kind->average != RP_AVERAGE_NONE) {
        return rp_node_fail(node,
                            "train.anchor: schedule %s has several replicas of the weights, which "
                            "their own centre already pulls; expected another schedule",
                            method->kind->name);
    }
    if (!method->kind->flushed && optim->clip_norm > 0) {
        return rp_node_fail(
            node,
            "clip_norm: bounds the norm over all stages, but with schedule %s no step waits for "
            "all stages; expected clip_norm_stage, the norm of each stage, or a flushed schedule",
            method->kind->name);
    }
    return RP_OK;
}

rp_sched_shape rp_job_sched_shape(const rp_job *job, uint64_t step_first, uint64_t step_end) {
    rp_sched_shape shape = {
        .stages = job->cut.stage_count,
        .stage = job->stage,
        .share = {job->share[0], job->share[1]},
        .step_first = step_first,
        .step_end = step_end,
        .epoch_samples = job->epoch_samples,
        .batch = job->batch,
        .micro = rp_job_forward_samples(job),
        .micro_backward = rp_job_holds_steps(job) ? rp_job_backward_samples(job) : 0,
    };
    rp_method_order(&job->method, &shape);
    return shape;
}

bool rp_job_next(const rp_job *job, rp_sched_state *list, rp_op *op) {
    while (rp_sched_next_of_stage(job->method.kind, list, op)) {
        if (rp_role_does(job->role, op->kind)) {
            op->role = job->role;
            return true;
        }
    }
    return false;
}

rp_err rp_method_fit_model(const rp_method *method, const rp_model *model, const rp_node *node) {
    for (uint32_t p = 0; !method->kind->flushed && p < model->param_count; p++) {
        if (model->param[p].role == RP_PARAM_SCRATCH) {
            return rp_node_fail(node,
                                "schedule %s does not flush, but layer '%s' sums over the "
                                "microbatches of a step (deferred); expected a flushed schedule",
                                method->kind->name, model->layer[model->param[p].layer].name);
        }
    }
    return RP_OK;
}

double rp_job_staleness(const rp_job *job) {
    const uint32_t micros = (job->batch - 1) / job->micro + 1;
    const uint32_t replicas = rp_method_replicas(&job->method, job->cut.stage_count, job->stage);
    rp_sched_shape shape = rp_job_sched_shape(job, 0, UINT64_MAX);
    uint64_t sum = 0;
    shape.share[0] = shape.share[1] = 0;
    for (uint32_t m = 0; !job->method.kind->flushed && m < micros; m++) {
        sum += rp_sched_steady_staleness(job->method.kind, &shape, m, replicas);
    }
    return (double)sum / micros;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

bool rp_job_has_sizes(const rp_job *job) {
    return job->size != NULL;
}

uint32_t rp_job_forward_samples(const rp_job *job) {
    return rp_job_has_sizes(job) ? job->size[job->stage][0] : job->micro;
}

bool rp_job_holds_steps(const rp_job *job) {
    return rp_job_has_sizes(job) && job->size[job->stage][1] > 0;
}

uint32_t rp_job_backward_samples(const rp_job *job) {
    return rp_job_holds_steps(job) ? job->size[job->stage][1] : rp_job_forward_samples(job);
}

uint32_t rp_job_pass_samples(const rp_job *job) {
    const uint32_t forward = rp_job_forward_samples(job);
    const uint32_t backward = rp_job_backward_samples(job);
    return forward > backward ? forward : backward;
}

uint32_t rp_job_parcel_samples(const rp_job *job) {
    uint32_t most = job->micro;
    for (uint32_t k = 0; rp_job_has_sizes(job) && k < job->cut.stage_count; k++) {
        for (uint32_t d = 0; d < 2; d++) {
            most = job->size[k][d] > most ? job->size[k][d] : most;
        }
    }
    return most;
}

/* A share of a shorter step may have one sample more, because its ends are rounded. */
uint32_t rp_job_slot_samples(const rp_job *job) {
    const uint32_t pass = rp_job_pass_samples(job);
    const uint32_t own = rp_job_own_samples(job, job->batch).count + rp_job_is_shared(job);
    return rp_job_holds_steps(job) && own > pass ? own : pass;
}

rp_range rp_job_slot_range(const rp_job *job, const rp_op *op) {
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, UINT64_MAX);
    return rp_job_holds_steps(job)
               ? rp_job_own_samples(job, rp_sched_step_samples(&shape, op->step))
               : op->samples;
}

bool rp_job_is_shared(const rp_job *job) {
    return job->share[0] > 0 || (job->share[1] > 0 && job->share[1] < 1);
}

rp_range rp_job_own_samples(const rp_job *job, uint32_t step_samples) {
    return rp_sched_share(job->share, step_samples);
}

rp_throttled_op rp_job_throttled_op(const rp_job *job, const rp_op *op, uint32_t time) {
    const rp_model_view view = rp_model_view_at(job->model, time);
    rp_throttled_op out = {.kind = op->kind, .samples = op->samples.count, .micro = job->micro};
    for (uint32_t i = job->cut.first[job->stage]; i < job->cut.first[job->stage + 1]; i++) {
        out.flops[0] += view.plan[i].flops_forward;
        out.flops[1] += view.plan[i].flops_backward;
    }
    return out;
}

bool rp_job_is_last(const rp_job *job) {
    return job->stage + 1 == job->cut.stage_count;
}

rp_decision_maker rp_decision_maker_of(const rp_method *method, const rp_optim *optim, bool guard) {
    if (!guard && !(optim->clip_norm > 0) && !(optim->clip_norm_stage > 0)) {
        return RP_DECISION_NONE;
    }
    return method->kind->flushed ? RP_DECISION_HOST : RP_DECISION_OWN;
}
