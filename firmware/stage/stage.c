/* Runs ops: the bookkeeping, and the commands that follow from it. */
#include "stage/stage.h"

#include "stage/stage_own.h"

static rp_err issue_average(rp_stage *stage, rp_average_term term, rp_block x, float share) {
    const rp_command command = {
        .kind = RP_COMMAND_AVERAGE,
        .average = {term, x, (float)stage->job->method.alpha, share},
    };
    return rp_stage_issue(stage, &command);
}

/* ---- counters -------------------------------------------------------------------------------- */

uint32_t rp_stage_replicas(const rp_stage *stage) {
    return stage->versions.replicas;
}

uint64_t rp_stage_applied(const rp_stage *stage, uint32_t replica) {
    RP_ASSERT(replica < RP_REPLICAS_MAX);
    return stage->applied[replica];
}

void rp_stage_set_applied(rp_stage *stage, uint32_t replica, uint64_t applied) {
    RP_ASSERT(replica < RP_REPLICAS_MAX);
    stage->applied[replica] = applied;
}

uint32_t rp_stage_staleness_max(const rp_stage *stage) {
    return stage->versions.staleness_max;
}

void rp_stage_start(rp_stage *stage, uint64_t step) {
    stage->mean_valid = false;
    stage->probe_left = 0;
    rp_stage_forget_statistics(stage, step);
    rp_versions_start(&stage->versions, step);
}

void rp_stage_end(rp_stage *stage, uint64_t step) {
    rp_versions_end(&stage->versions, step);
}

/* ---- which weights --------------------------------------------------------------------------- */

static rp_block newest_of(const rp_stage *stage, uint32_t replica) {
    return (rp_block){RP_BLOCK_WEIGHTS, stage->versions.latest[replica]};
}

rp_block rp_stage_evaluated(const rp_stage *stage) {
    const rp_versions *versions = &stage->versions;
    const uint64_t step = versions->list.step;
    switch (stage->job->method.evaluate) {
    case RP_EVALUATE_MEAN:
        return (rp_block){RP_BLOCK_SCRATCH, 0};
    case RP_EVALUATE_LATEST:
        return newest_of(stage, step > 0 ? (uint32_t)((step - 1) % versions->replicas) : 0);
    case RP_EVALUATE_CENTRE:
        break;
    }
    return stage->layout->copies.centres ? (rp_block){RP_BLOCK_CENTRE, 0} : newest_of(stage, 0);
}

rp_err rp_stage_prepare_evaluated(rp_stage *stage) {
    const rp_block mean = {RP_BLOCK_SCRATCH, 0};
    rp_err err = RP_OK;
    if (stage->job->method.evaluate != RP_EVALUATE_MEAN || stage->mean_valid ||
        stage->layout->trained_count == 0) {
        return RP_OK;
    }
    RP_TRY(rp_stage_copy(stage, newest_of(stage, 0), mean));
    for (uint32_t r = 1; r < stage->versions.replicas; r++) {
        RP_TRY(issue_average(stage, RP_TERM_TOWARDS, newest_of(stage, r), 1.0f / (float)(r + 1)));
    }
    stage->mean_valid = true;
fail:
    return err;
}

/* Chooses the weights that an op sees; issues the prediction first if they are predicted. */
static rp_err choose_weights(rp_stage *stage, const rp_weight_view *view, const rp_op *op,
                             uint32_t direction) {
    const rp_block ahead = {RP_BLOCK_PREDICTED,
                            stage->layout->copies.predicted > 1 ? direction : 0};
    rp_err err = RP_OK;
    if (view->ahead == 0) {
        stage->seen = (rp_block){RP_BLOCK_WEIGHTS, view->block};
        return RP_OK;
    }
    if (!view->reuse) {
        RP_TRY(rp_stage_run_prediction(stage, view, rp_stage_gain_at(stage, op->step), ahead));
    }
    stage->seen = ahead;
fail:
    return err;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Always finds a slot, because the memory plan has walked the same schedule. */
static rp_stash take_slot(rp_slots *slots, const rp_op *op, bool evaluating, rp_range range) {
    const rp_stash stash = rp_slots_place(slots, op, evaluating, range);
    RP_ASSERT(stash.slot != RP_NO_SLOT);
    return stash;
}

/* The slot in which a forward saves what its backward needs. In an evaluation it holds only the
 * op's samples, because steps may have another length. */
static rp_stash stash_for(rp_stage *stage, const rp_op *op, rp_stage_mode mode) {
    const bool alone = mode.evaluating || mode.alone;
    return take_slot(&stage->slots, op, mode.evaluating,
                     alone ? op->samples : rp_job_slot_range(stage->job, op));
}

/* The slot of an op whose forward has run. */
static rp_stash stash_of(const rp_slots *slots, const rp_op *op, bool evaluating) {
    const rp_stash stash = rp_slots_find(slots, op, evaluating);
    RP_ASSERT(stash.slot != RP_NO_SLOT);
    return stash;
}

/* The slot of the deferred weight gradient that the op begins or ends. */
static rp_stash deferred_of(rp_stage *stage, const rp_op *op) {
    switch (op->kind) {
    case RP_OP_BACKWARD_INPUT:
        return take_slot(&stage->deferred, op, false, op->samples);
    case RP_OP_BACKWARD_WEIGHT:
        return stash_of(&stage->deferred, op, false);
    default:
        return (rp_stash){.slot = RP_NO_SLOT};
    }
}

/* Refuses a part of a forward's samples if a layer's sums run over all of them. */
static rp_err check_part(const rp_stage *stage, const rp_op *op, const rp_stash *stash) {
    const rp_range *saved = &stage->slots.slot[stash->slot].samples;
    if (stash->whole || !stage->whole) {
        return RP_OK;
    }
    return rp_fail(RP_ERR_USAGE,
                   "layer '%s': the backward of %s needs all %u samples of its forward, found [%u, "
                   "+%u) of [%u, +%u)",
                   stage->whole->name, stage->whole->kind->name, saved->count, op->samples.first,
                   op->samples.count, saved->first, saved->count);
}

static rp_err check_pieces(const rp_op *op, const rp_stage_piece *in, uint32_t count) {
    return rp_pieces_cover(in, count, &op->samples)
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "step %llu, samples [%u, +%u): the parcels do not contain every sample "
                         "exactly once",
                         (unsigned long long)op->step, op->samples.first, op->samples.count);
}

/* The length of the samples in the pieces, which all have. */
static rp_err find_time(const rp_op *op, const rp_stage_piece *in, uint32_t count, uint32_t *out) {
    *out = count > 0 ? in[0].time : 0;
    for (uint32_t i = 1; i < count; i++) {
        if (in[i].time != *out) {
            return rp_fail(RP_ERR_PEER, "step %llu: parcels have samples of %u and of %u tokens",
                           (unsigned long long)op->step, *out, in[i].time);
        }
    }
    return RP_OK;
}

static rp_err refuse_time(const rp_op *op, uint32_t time, uint32_t expected) {
    return rp_fail(RP_ERR_PEER,
                   "step %llu, samples [%u, +%u): a parcel has samples of %u tokens, expected %u "
                   "as before (0: the longest)",
                   (unsigned long long)op->step, op->samples.first, op->samples.count, time,
                   expected);
}

/* Checks that pieces have samples of the slot's length. */
static rp_err check_time(const rp_slots *slots, uint32_t slot, const rp_op *op,
                         const rp_stage_piece *in, uint32_t count) {
    uint32_t time;
    rp_err err;
    RP_TRY(find_time(op, in, count, &time));
    if (count > 0 && time != slots->slot[slot].time) {
        return refuse_time(op, time, slots->slot[slot].time);
    }
fail:
    return err;
}

/* 1 + the slot that the list's next backward needs, for stages with offload; 0 = unknown. */
static uint32_t soon_of(const rp_stage *stage) {
    rp_sched_state list = stage->versions.list;
    rp_op op;
    if (stage->layout->stashes == stage->layout->slots) {
        return 0;
    }
    while (rp_sched_next_of_stage(stage->job->method.kind, &list, &op)) {
        if (op.kind != RP_OP_FORWARD && op.kind != RP_OP_UPDATE) {
            const rp_stash stash = rp_slots_find(&stage->slots, &op, false);
            return stash.slot == RP_NO_SLOT ? 0 : stash.slot + 1;
        }
    }
    return 0;
}

/* ---- forward --------------------------------------------------------------------------------- */

rp_err rp_stage_run_forward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                            uint32_t in_count, void *const *out, rp_stage_mode mode) {
    const uint32_t n = op->samples.count;
    rp_command command = {
        .kind = RP_COMMAND_FORWARD,
        .pass = {.op = op,
                 .weights = stage->seen,
                 .stash = stash_for(stage, op, mode),
                 .deferred = {.slot = RP_NO_SLOT},
                 .soon = soon_of(stage),
                 .training = mode.training,
                 .renewal = mode.renewal,
                 .tie = stage->far_row,
                 .tie_count = stage->far_rows,
                 .in = in,
                 .in_count = in_count,
                 .out = out},
    };
    rp_err err;
    RP_ASSERT(n > 0 && n <= rp_job_pass_samples(stage->job));
    rp_stage_set_values(stage, NULL, 0);
    RP_TRY(check_pieces(op, in, in_count));
    RP_TRY(find_time(op, in, in_count, &command.pass.time));
    if (!rp_slots_set_time(&stage->slots, command.pass.stash.slot, command.pass.time)) {
        err = refuse_time(op, command.pass.time, stage->slots.slot[command.pass.stash.slot].time);
        goto fail;
    }
    RP_TRY(rp_stage_issue(stage, &command));
    return RP_OK;
fail:
    rp_slots_release(&stage->slots, command.pass.stash.slot, op);
    return err;
}

rp_err rp_stage_forward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                        uint32_t in_count, void *const *out) {
    const rp_weight_view view = rp_versions_forward(&stage->versions, op);
    rp_err err;
    RP_TRY(choose_weights(stage, &view, op, 0));
    RP_TRY(rp_stage_run_probe(stage, op, &view));
    RP_TRY(rp_stage_keep_statistics(stage, op));
    RP_TRY(rp_stage_record_forward(stage, op, in, in_count, out));
    RP_TRY(rp_stage_run_forward(stage, op, in, in_count, out, (rp_stage_mode){.training = true}));
fail:
    return err;
}

rp_err rp_stage_forward_only(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                             uint32_t in_count, void *const *out, bool training) {
    rp_err err = rp_stage_prepare_evaluated(stage);
    if (err != RP_OK) {
        return err;
    }
    stage->seen = rp_stage_evaluated(stage);
    const uint64_t before =
        op->step * ((stage->job->batch - 1) / stage->job->micro + 1) + op->micro;
    const rp_stage_mode mode = {
        .training = training, .evaluating = true, .renewal = training ? (uint32_t)before + 1 : 0};
    return rp_stage_run_forward(stage, op, in, in_count, out, mode);
}

rp_err rp_stage_evaluate(rp_stage *stage, const rp_op *op, uint32_t step_samples,
                         const rp_stage_piece *target, uint32_t target_count) {
    rp_command command = {
        .kind = RP_COMMAND_LOSS,
        .pass = {.op = op,
                 .stash = stash_of(&stage->slots, op, true),
                 .deferred = {.slot = RP_NO_SLOT},
                 .step_samples = step_samples,
                 .in = target,
                 .in_count = target_count},
    };
    const uint32_t slot = command.pass.stash.slot;
    rp_err err;
    command.pass.time = stage->slots.slot[slot].time;
    rp_slots_release(&stage->slots, slot, op);
    RP_TRY(check_pieces(op, target, target_count));
    RP_TRY(check_time(&stage->slots, slot, op, target, target_count));
    RP_TRY(rp_stage_issue(stage, &command));
fail:
    return err;
}

void rp_stage_forget(rp_stage *stage, const rp_op *op) {
    rp_slots_release(&stage->slots, stash_of(&stage->slots, op, true).slot, op);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Whether the op has gradients or targets from outside. */
static bool takes_parcels(const rp_stage *stage, const rp_op *op) {
    return op->kind != RP_OP_BACKWARD_WEIGHT &&
           (rp_job_is_last(stage->job) || rp_layout_boundary(stage->layout, true, true).count > 0);
}

rp_err rp_stage_run_backward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                             uint32_t in_count, void *const *out) {
    const rp_sched_shape shape = rp_job_sched_shape(stage->job, 0, UINT64_MAX);
    const rp_stash stash = stash_of(&stage->slots, op, false);
    rp_err err = RP_OK;
    RP_TRY(check_part(stage, op, &stash));
    if (takes_parcels(stage, op)) {
        RP_TRY(check_pieces(op, in, in_count));
        RP_TRY(check_time(&stage->slots, stash.slot, op, in, in_count));
    }
    const rp_command command = {
        .kind = RP_COMMAND_BACKWARD,
        .pass = {.op = op,
                 .time = stage->slots.slot[stash.slot].time,
                 .weights = stage->seen,
                 .forward_weights = stage->seen_forward,
                 .stash = stash,
                 .deferred = deferred_of(stage, op),
                 .soon = soon_of(stage),
                 .ends = op->kind != RP_OP_BACKWARD_INPUT &&
                         stage->slots.slot[stash.slot].left == op->samples.count,
                 .step_samples = rp_sched_step_samples(&shape, op->step),
                 .training = true,
                 .accumulate = stage->accumulated > 0,
                 .in = in,
                 .in_count = in_count,
                 .out = out},
    };
    RP_TRY(rp_stage_issue(stage, &command));
    if (op->kind != RP_OP_BACKWARD_INPUT) {
        rp_slots_release(&stage->slots, stash.slot, op);
        stage->accumulated++;
        if (command.pass.deferred.slot != RP_NO_SLOT) {
            rp_slots_release(&stage->deferred, command.pass.deferred.slot, op);
        }
    }
fail:
    return err;
}

rp_err rp_stage_backward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                         uint32_t in_count, void *const *out) {
    const rp_weight_view view = rp_versions_backward(&stage->versions, op);
    rp_err err;
    RP_TRY(choose_weights(stage, &view, op, 1));
    stage->seen_forward = (rp_block){RP_BLOCK_WEIGHTS, view.forward};
    RP_TRY(rp_stage_run_probe(stage, op, &view));
    RP_TRY(rp_stage_record_backward(stage, op, in, in_count, out));
    RP_TRY(rp_stage_run_backward(stage, op, in, in_count, out));
    RP_TRY(rp_stage_record_gradient(stage, op));
fail:
    return err;
}

/* ---- split stages ---------------------------------------------------------------------------- */

size_t rp_stage_stash_bytes(const rp_stage *stage) {
    return rp_stage_facts(stage).stash_bytes;
}

rp_err rp_stage_read_stash(rp_stage *stage, const rp_op *op, void *out) {
    const rp_stash stash = stash_of(&stage->slots, op, false);
    const rp_command command = {.kind = RP_COMMAND_STASH,
                                .stash = {.out = out, .slot = stash.slot}};
    rp_slots_release(&stage->slots, stash.slot, op);
    return rp_stage_issue(stage, &command);
}

uint32_t rp_stage_time_of(const rp_stage *stage, const rp_op *op) {
    return stage->slots.slot[stash_of(&stage->slots, op, false).slot].time;
}

rp_err rp_stage_write_stash(rp_stage *stage, const rp_op *op, uint32_t time, const void *from) {
    const rp_stash stash = take_slot(&stage->slots, op, false, rp_job_slot_range(stage->job, op));
    const rp_command command = {.kind = RP_COMMAND_UNSTASH,
                                .stash = {.from = from, .slot = stash.slot}};
    if (!rp_slots_set_time(&stage->slots, stash.slot, time)) {
        return refuse_time(op, time, stage->slots.slot[stash.slot].time);
    }
    return rp_stage_issue(stage, &command);
}

rp_err rp_stage_read_newest(rp_stage *stage, void *out) {
    return rp_stage_read_block(stage, newest_of(stage, 0), out);
}

rp_err rp_stage_read_published(rp_stage *stage, void *out) {
    const rp_block predicted = {RP_BLOCK_PREDICTED, 0};
    const rp_weight_view view = {.block = stage->versions.latest[0],
                                 .ahead = rp_versions_ahead_max(&stage->versions)};
    rp_err err;
    if (view.ahead == 0 || stage->layout->trained_count == 0) {
        return rp_stage_read_newest(stage, out);
    }
    RP_TRY(rp_stage_run_prediction(stage, &view, NULL, predicted));
    RP_TRY(rp_stage_read_block(stage, predicted, out));
fail:
    return err;
}

rp_err rp_stage_write_newest(rp_stage *stage, const void *from) {
    const rp_command command = {.kind = RP_COMMAND_TAKE,
                                .write = {.from = from, .block = newest_of(stage, 0)}};
    return rp_stage_issue(stage, &command);
}

/* ---- update ---------------------------------------------------------------------------------- */

uint32_t rp_stage_norm_count(const rp_stage *stage) {
    return stage->layout->trained_count;
}

/* Before gradients are used: adds the anchor's term. At the first step it copies the start weights,
 * which checkpoints contain from then on. */
static rp_err add_anchor(rp_stage *stage) {
    const rp_optim *optim = &stage->job->optim;
    const rp_block start = {RP_BLOCK_STATE, rp_optim_anchor_state(optim)};
    const rp_command command = {.kind = RP_COMMAND_ANCHOR,
                                .optimise = {.weights = newest_of(stage, 0)}};
    rp_err err = RP_OK;
    if (!rp_optim_is_anchored(optim) || stage->anchored) {
        return RP_OK;
    }
    if (stage->starts && start.index != RP_OPTIM_NO_STATE) {
        RP_TRY(rp_stage_copy(stage, command.optimise.weights, start));
    }
    stage->starts = false;
    stage->anchored = true;
    RP_TRY(rp_stage_issue(stage, &command));
fail:
    return err;
}

rp_err rp_stage_norms(rp_stage *stage, float *out) {
    const rp_command command = {.kind = RP_COMMAND_NORMS, .read = {.out = out}};
    rp_err err = RP_OK;
    if (stage->layout->trained_count > 0) {
        RP_TRY(rp_stage_tie_own(stage));
        RP_TRY(add_anchor(stage));
        RP_TRY(rp_stage_issue(stage, &command));
    }
fail:
    return err;
}

rp_err rp_stage_read_gradient(rp_stage *stage, void *out) {
    return rp_stage_read_block(stage, (rp_block){RP_BLOCK_GRADIENT, 0}, out);
}

rp_err rp_stage_sum_gradients(rp_stage *stage, const void *const *gradient, uint32_t count) {
    const rp_command command = {.kind = RP_COMMAND_SUM, .sum = {gradient, count}};
    return rp_stage_issue(stage, &command);
}

rp_err rp_stage_results(rp_stage *stage, float *out, uint32_t samples) {
    const rp_command command = {.kind = RP_COMMAND_RESULTS, .read = {.out = out, .count = samples}};
    return rp_stage_issue(stage, &command);
}

rp_err rp_stage_overlap(rp_stage *stage, uint32_t *out, uint32_t samples) {
    const rp_command command = {.kind = RP_COMMAND_OVERLAP,
                                .counts = {.out = out, .count = samples}};
    return rp_stage_issue(stage, &command);
}

/* Arguments of the optimiser for a replica; `step` determines the learning rate. */
static rp_optimise optimise_of(const rp_stage *stage, uint32_t replica, uint32_t block,
                               uint64_t step) {
    const rp_job *job = stage->job;
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, UINT64_MAX);
    return (rp_optimise){
        .weights = {RP_BLOCK_WEIGHTS, block},
        .replica = replica,
        .applied = stage->applied[replica],
        .rate = (float)(stage->rate_factor * rp_lr_at(&job->lr, job->optim.lr, step, job->steps,
                                                      rp_sched_epoch_steps(&shape))),
        .grad_scale = 1.0f,
    };
}

/* Uses the learning rate of the stage's next update for all predicted updates. `gain` stays valid
 * after the copy: its memory is reused only for much later samples. */
rp_err rp_stage_run_prediction(rp_stage *stage, const rp_weight_view *view, const float *gain,
                               rp_block out) {
    rp_command command = {
        .kind = RP_COMMAND_PREDICT,
        .optimise = optimise_of(stage, view->replica, view->block, stage->versions.list.step),
    };
    command.optimise.to = out;
    command.optimise.ahead = (float)view->ahead;
    command.optimise.share = gain;
    return stage->layout->trained_count > 0 ? rp_stage_issue(stage, &command) : RP_OK;
}

/* The part of an average that precedes the local step. */
static rp_err average_before(rp_stage *stage, rp_block x, bool due) {
    const rp_method *method = &stage->job->method;
    if (due && method->kind->average == RP_AVERAGE_REFERENCE) {
        return rp_stage_copy(stage, x, (rp_block){RP_BLOCK_SCRATCH, 0});
    }
    return due && method->before ? issue_average(stage, RP_TERM_PULL, x, 1) : RP_OK;
}

static rp_err average_after(rp_stage *stage, rp_block x, bool due) {
    const rp_method *method = &stage->job->method;
    const bool reference = method->kind->average == RP_AVERAGE_REFERENCE;
    const rp_average_term term = reference        ? RP_TERM_REFERENCE
                                 : method->before ? RP_TERM_PUSH
                                                  : RP_TERM_ELASTIC;
    return due ? issue_average(stage, term, x, 1.0f / (float)stage->versions.replicas) : RP_OK;
}

rp_err rp_stage_run_update(rp_stage *stage, const rp_version_step *by, uint64_t step,
                           float grad_scale) {
    const rp_method *method = &stage->job->method;
    /* Number of the replica's update for the period of averages. Algorithm 1 of EASGD tests its
     * clock before the update is counted. */
    const uint64_t own = step / stage->versions.replicas + !method->before;
    const bool due = method->kind->average != RP_AVERAGE_NONE && own % method->period == 0;
    rp_command command = {
        .kind = RP_COMMAND_UPDATE,
        .optimise = optimise_of(stage, by->replica, by->to, step),
    };
    const rp_block x = command.optimise.weights;
    rp_err err;
    command.optimise.grad_scale = grad_scale;
    RP_TRY(average_before(stage, x, due));
    RP_TRY(rp_stage_issue(stage, &command));
    RP_TRY(average_after(stage, x, due));
    stage->applied[by->replica]++;
fail:
    return err;
}

rp_err rp_stage_update(rp_stage *stage, const rp_op *op, float grad_scale, bool skip) {
    const rp_version_step by = rp_versions_update(&stage->versions, op);
    rp_err err;
    RP_ASSERT(by.to < stage->layout->copies.versions);
    stage->accumulated = 0;
    stage->mean_valid = false;
    RP_TRY(rp_stage_decide_statistics(stage, op->step, skip));
    if (stage->layout->trained_count == 0) {
        return RP_OK;
    }
    if (by.from != by.to) {
        RP_TRY(rp_stage_copy(stage, (rp_block){RP_BLOCK_WEIGHTS, by.from},
                             (rp_block){RP_BLOCK_WEIGHTS, by.to}));
    }
    if (!skip) {
        RP_TRY(rp_stage_tie_own(stage));
        RP_TRY(add_anchor(stage));
        RP_TRY(rp_stage_run_update(stage, &by, op->step, grad_scale));
    }
    stage->tied = false;
    stage->anchored = false;
    RP_TRY(rp_stage_run_probe(stage, op, &(rp_weight_view){.replica = by.replica}));
fail:
    return err;
}
