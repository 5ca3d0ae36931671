/* Trains in one process, by a plain loop that keeps every version of the weights in host memory and
 * says in so many words which of them an op sees: what a ring of agents must equal bit for bit.
 *
 *   replay RUN.yaml OUT.safetensors [--set KEY=VALUE]... [--slip STAGE]
 *
 * Shared with the ring is the arithmetic: layers, optimisers, averages, and the batches. Not shared
 * are the order of ops, the books of versions, the horizons, the prediction gains and the codecs:
 * they are written here a second time, from METHODS, with neither firmware/sched nor
 * planning/gain_estimator.c nor firmware/codec, nor firmware/stage/versions.c, probe.c, gain.c and
 * opencl_parcels.c. `--slip` is the
 * canary: the run is replayed once more, into OUT.safetensors.slipped, and there the forwards of
 * that stage look at weights that are one update off. */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/board.h"
#include "base/safetensors.h"
#include "optim/average.h"
#include "replay.h"

enum { FEED_TIMEOUT_MS = 60000, FEED_DEPTH = 2, NO_STAGE = UINT32_MAX };

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

/* Of a sample in the step. */
static size_t floats_at(const replay *r, uint64_t step) {
    const uint32_t time = r->time[step];
    return time > 0 ? (size_t)r->run.data.parts * time : r->sample_floats;
}

static size_t target_bytes_at(const replay *r, uint64_t step) {
    const rp_data *data = &r->run.data;
    const uint32_t left_out = r->time[step] > 0 && data->by_token ? data->time - r->time[step] : 0;
    return r->target_bytes - left_out * sizeof(float);
}

/* All batches of the run, from the feeder that the host uses. */
static rp_err read_batches(replay *r) {
    const rp_runfile *run = &r->run;
    const bool classes = run->loss->class_target;
    rp_feeder *feeder = NULL;
    const rp_batch *batch;
    rp_err err;
    r->sample_floats = rp_shape_count(&run->data.sample);
    r->target_bytes = rp_data_row_width(&run->data) * sizeof(float);
    RP_TRY(RP_ARENA_NEW(&r->arena, run->steps, &r->x));
    RP_TRY(RP_ARENA_NEW(&r->arena, run->steps, &r->target));
    RP_TRY(RP_ARENA_NEW(&r->arena, run->steps, &r->time));
    RP_TRY(rp_feeder_open(&r->arena, &run->data, RP_FEEDER_THREAD, RP_SPLIT_TRAIN, true, run->batch,
                          0, run->steps, FEED_DEPTH, &feeder));
    for (uint32_t step = 0; step < run->steps; step++) {
        RP_TRY(take_batch(feeder, &batch));
        RP_ASSERT(batch->step == step);
        r->time[step] = batch->time;
        RP_TRY(RP_ARENA_NEW(&r->arena, batch->count * r->sample_floats, &r->x[step]));
        RP_TRY(RP_ARENA_NEW(&r->arena, batch->count * r->target_bytes, &r->target[step]));
        memcpy(r->x[step], batch->x, batch->count * floats_at(r, step) * sizeof(float));
        memcpy(r->target[step], classes ? (const void *)batch->labels : (const void *)batch->rows,
               batch->count * target_bytes_at(r, step));
        rp_feeder_return(feeder, batch);
    }
fail:
    rp_feeder_close(&feeder);
    return err;
}

/* ---- the optimiser, on explicit arrays ------------------------------------------------------- */

rp_err write_floats(const replay *r, rp_buffer *to, const float *from, const board *b) {
    return rp_buffer_write_now(r->device, to, 0, from, b->count * sizeof(float));
}

static rp_err read_floats(const replay *r, float *to, const rp_buffer *from, const board *b) {
    return rp_buffer_read_now(r->device, to, from, 0, b->count * sizeof(float));
}

/* The state of a replica on the bench, with the rate of the stage's next update (METHODS 5.4: the
 * same for all updates ahead). */
static rp_err load_tensor(replay *r, const board *b, uint32_t replica, uint32_t version,
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

/* ---- what an op sees ------------------------------------------------------------------------- */

void slip_version(const board *b, weight_view *s) {
    if (s->ahead > 0) {
        s->ahead++;
    } else if (s->version < b->updates) {
        s->version++;
    } else if (s->version > 0) {
        s->version--;
    }
}

/* A version, a prediction, or (xpipe) what the first
 * microbatch of the step has predicted in this direction. */
rp_err choose_weights(replay *r, board *b, uint32_t n, const weight_view *s, uint32_t direction) {
    const bool cached = r->run.method.weights == RP_WEIGHTS_XPIPE;
    const float *weights = b->version[s->version];
    const rp_block seen = {RP_BLOCK_WEIGHTS, 0};
    rp_optim_call call;
    rp_err err = RP_OK;
    if (b->count == 0) {
        return RP_OK;
    }
    if (s->ahead > 0 && !(cached && r->micro[n].micro > 0)) {
        RP_TRY(load_tensor(r, b, r->micro[n].step % b->replicas, s->version, &call));
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
    RP_TRY(write_floats(r, rp_opencl_whole(b->memory, seen), weights, b));
    b->stage->seen = seen;
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

static rp_buffer *weights_of(const board *b) {
    return rp_opencl_whole(b->memory, (rp_block){RP_BLOCK_WEIGHTS, 0});
}

static rp_buffer *gradients_of(const board *b) {
    return rp_opencl_whole(b->memory, (rp_block){RP_BLOCK_GRADIENT, 0});
}

static rp_err read_gradient(replay *r, board *b, uint32_t step) {
    rp_err err = read_floats(r, b->gradient, gradients_of(b), b);
    for (uint32_t i = 0; err == RP_OK && i < b->count; i++) {
        if (!isfinite(b->gradient[i])) {
            return rp_fail(RP_ERR_NUMERIC, "a gradient of step %u is not finite", step);
        }
    }
    return err;
}

/* The optimiser's step of replica n mod R, and the average if (n / R + 1) mod tau == 0
 * (METHODS 9; 8), or with `before` if n / R mod tau == 0 (METHODS 7, algorithm 1). */
rp_err run_update(replay *r, board *b, uint32_t n) {
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
        RP_TRY(load_tensor(r, b, replica, newest(b, step), &call));
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

static rp_err new_parcel(replay *r, const rp_boundary_tensors *boundary, uint32_t n, parcel out) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; err == RP_OK && i < boundary->count; i++) {
        const size_t floats = rp_shape_count(&boundary->sample[i]) * r->micro[n].samples.count;
        err = rp_arena_alloc(&r->arena, floats, sizeof(float), &out[i]);
    }
    return err;
}

static rp_err run_forward(replay *r, board *b, uint32_t n, bool *done) {
    const rp_op op = op_of(r, RP_OP_FORWARD, n);
    const rp_boundary_tensors upper =
        rp_layout_boundary_at(rp_stage_layout(b->stage), r->time[op.step], true, false);
    const void *in[RP_CUT_TENSORS_MAX] = {NULL};
    const rp_stage_piece whole = {.samples = op.samples, .part = in, .time = r->time[op.step]};
    parcel out = {NULL};
    rp_err err = RP_OK;
    if (b->k == 0) {
        in[0] = r->x[op.step] + op.samples.first * floats_at(r, op.step);
    } else if (b->activation[n][0]) {
        memcpy(in, b->activation[n], sizeof in);
    } else {
        return RP_OK;
    }
    weight_view s = forward_view(r, b, n);
    RP_ASSERT(b->updates == updates_at_forward(r, n, b->warm_up, b->steps_open));
    b->kept[n] = s.version;
    if (b->k == r->slip) {
        slip_version(b, &s);
    }
    RP_TRY(choose_weights(r, b, n, &s, 0));
    if (is_probed(r, b, n)) {
        memcpy(b->probed[0], b->seen, b->count * sizeof(float));
        memcpy(b->probed[1], b->version[newest(b, r->micro[n].step)], b->count * sizeof(float));
    }
    if (b->k + 1 < r->stages) {
        RP_TRY(new_parcel(r, &upper, n, out));
    }
    RP_TRY(rp_stage_run_forward(b->stage, &op, &whole, 1, out, (rp_stage_mode){.training = true}));
    RP_TRY(rp_device_drain(r->device));
    if (b->k + 1 < r->stages) {
        RP_TRY(send_parcel(r, b->k, false, n, &upper, out));
        memcpy(r->board[b->k + 1].activation[n], out, sizeof out);
    }
    *done = true;
fail:
    return err;
}

static rp_err run_backward(replay *r, board *b, uint32_t n, bool *done) {
    const rp_op op = op_of(r, RP_OP_BACKWARD, n);
    const rp_boundary_tensors upper =
        rp_layout_boundary_at(rp_stage_layout(b->stage), r->time[op.step], true, true);
    const rp_boundary_tensors lower =
        rp_layout_boundary_at(rp_stage_layout(b->stage), r->time[op.step], false, true);
    const void *in[RP_CUT_TENSORS_MAX] = {NULL};
    const rp_stage_piece whole = {.samples = op.samples, .part = in, .time = r->time[op.step]};
    parcel out = {NULL};
    rp_err err = RP_OK;
    if (b->k + 1 == r->stages) {
        in[0] = r->target[op.step] + op.samples.first * target_bytes_at(r, op.step);
    } else if (upper.count == 0 || b->gradients[n][0]) {
        memcpy(in, b->gradients[n], sizeof in);
    } else {
        return RP_OK;
    }
    const weight_view s = backward_view(r, b, n);
    RP_TRY(is_probed(r, b, n) ? end_probe(r, b, n) : RP_OK);
    RP_TRY(choose_weights(r, b, n, &s, 1));
    RP_TRY(new_parcel(r, &lower, n, out));
    RP_TRY(rp_stage_run_backward(b->stage, &op, &whole, 1, out));
    RP_TRY(rp_device_drain(r->device));
    if (b->k > 0) {
        RP_TRY(send_parcel(r, b->k - 1, true, n, &lower, out));
        memcpy(r->board[b->k - 1].gradients[n], out, sizeof out);
    }
    *done = true;
fail:
    return err;
}

/* All ops, stage by stage as far as each can go. */
static rp_err train_steps(replay *r) {
    rp_err err = RP_OK;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t k = 0; k < r->stages; k++) {
            board *b = &r->board[k];
            for (bool done = true; done && b->at < b->list_count;) {
                const entry *next = &b->list[b->at];
                done = next->act == UPDATE;
                RP_TRY(next->act == FORWARD    ? run_forward(r, b, next->n, &done)
                       : next->act == BACKWARD ? run_backward(r, b, next->n, &done)
                                               : run_update(r, b, next->n));
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
    RP_TRY(rp_runfile_assignment(&r->arena, &r->run, &r->run.cut, k, NULL, &text));
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

static rp_err open_board(replay *r, uint32_t k) {
    board *b = &r->board[k];
    const rp_site site = {.device = r->device};
    rp_err err;
    *b = (board){.k = k,
                 .replicas = replicas_of(r, k),
                 .warm_up = warm_up_of(r, k),
                 .steps_open = steps_open_of(r, k)};
    RP_TRY(parse_job(r, k, &b->job));
    RP_TRY(rp_stage_prepare(&r->arena, rp_executor_find("opencl"), &site, &b->job, &b->stage));
    b->memory = rp_opencl_of(rp_stage_executor(b->stage));
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
        const rp_buffer *first = weights_of(b);
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

/* What this program has no formula for: zb-h1 and interleaved-1f1b are others of the flushed. */
static rp_err check_method(const replay *r) {
    const rp_sched_kind *kind = r->run.method.kind;
    const bool flushes = strcmp(kind->name, "gpipe") == 0 || strcmp(kind->name, "1f1b") == 0;
    return (kind->flushed && !kind->sizes && !flushes) || (kind->sizes && r->run.codec) ||
                   r->run.cut_auto || r->run.init
               ? rp_fail(RP_ERR_USAGE,
                         "expected gpipe, 1f1b, a schedule without flush, or umpipe without "
                         "links.codec; a cut, and no start weights")
               : RP_OK;
}

static rp_err open_all(replay *r) {
    const rp_method *method = &r->run.method;
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
    RP_TRY(RP_ARENA_NEW(&r->arena, r->stages, &r->board));
    for (uint32_t k = 0; k < r->stages; k++) {
        RP_TRY(open_board(r, k));
    }
    RP_TRY(open_bench(r));
fail:
    return err;
}

static rp_err write_param(replay *r, const board *b, uint32_t i, uint32_t index,
                          rp_st_writer *writer) {
    const rp_layout *layout = rp_stage_layout(b->stage);
    const size_t bytes = r->run.model->param[layout->param_first + i].count * sizeof(float);
    const rp_region region = {RP_REGION_BLOCK, {RP_BLOCK_WEIGHTS, 0}, i};
    char *values;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&r->arena, bytes, &values));
    RP_TRY(rp_opencl_read(rp_stage_executor(b->stage), &region, 0, bytes, values));
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
    const rp_layout *layout = rp_stage_layout(b->stage);
    rp_buffer *to = weights_of(b);
    rp_err err = RP_OK;
    if (b->count > 0 && averages && method->evaluate == RP_EVALUATE_MEAN) {
        RP_TRY(write_mean(r, b, to));
    } else if (b->count > 0) {
        RP_TRY(write_floats(r, to, centre ? b->centre : b->version[r->run.steps], b));
    }
    for (uint32_t i = 0; i < layout->param_count; i++) {
        if (r->run.model->param[layout->param_first + i].role != RP_PARAM_SCRATCH) {
            RP_TRY(write_param(r, b, i, (*index)++, writer));
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
    RP_TRY(rp_st_create(&r->arena, path, entries, count, meta, false, &writer));
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
    rp_runfile_close(&r->run);
    rp_arena_finish(&r->arena);
}

/* ---- the program ----------------------------------------------------------------------------- */

typedef struct {
    const char *path, *out;
    const char **set;
    uint32_t set_count, slip;
} arguments;

/* Everything behind the two paths. */
static rp_err read_options(rp_arena *arena, int argc, char **argv, arguments *args) {
    rp_err err = RP_ARENA_NEW(arena, (size_t)argc, &args->set);
    for (int i = 3; err == RP_OK && i < argc; i += 2) {
        char *end;
        if (i + 1 == argc) {
            return rp_fail(RP_ERR_USAGE, "%s: expected a value behind it", argv[i]);
        }
        if (strcmp(argv[i], "--set") == 0) {
            args->set[args->set_count++] = argv[i + 1];
            continue;
        }
        args->slip = (uint32_t)strtoul(argv[i + 1], &end, 10);
        if (strcmp(argv[i], "--slip") != 0 || end == argv[i + 1] || *end) {
            return rp_fail(RP_ERR_USAGE, "%s %s: expected --set KEY=VALUE or --slip STAGE", argv[i],
                           argv[i + 1]);
        }
    }
    return err;
}

static rp_err open_device(rp_arena *arena, const arguments *args, rp_device **out) {
    rp_runfile run = {0};
    rp_board found;
    rp_err err;
    RP_TRY(rp_runfile_read(arena, args->path, args->set, args->set_count, &run));
    RP_TRY(rp_board_find(arena, run.board, run.threads, &found));
    RP_TRY(rp_board_open_device(arena, &found, run.threads, out));
fail:
    rp_runfile_close(&run);
    return err;
}

static rp_err replay_run(rp_device *device, const arguments *args, uint32_t slip, const char *out) {
    replay r = {.slip = slip, .device = device};
    rp_err err;
    rp_arena_init(&r.arena, "replay", 0);
    RP_TRY(rp_runfile_read(&r.arena, args->path, args->set, args->set_count, &r.run));
    RP_TRY(open_all(&r));
    RP_TRY(r.run.method.kind->sizes ? train_umpipe(&r) : train_steps(&r));
    RP_TRY(write_file(&r, out));
fail:
    close_all(&r);
    return err;
}

int main(int argc, char **argv) {
    arguments args = {.slip = NO_STAGE};
    rp_arena arena;
    rp_device *device = NULL;
    char *slipped;
    rp_err err;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: replay RUN.yaml OUT.safetensors [--set KEY=VALUE]... "
                              "[--slip STAGE]\n");
        return 2;
    }
    args.path = argv[1];
    args.out = argv[2];
    rp_arena_init(&arena, "replay", 0);
    RP_TRY(read_options(&arena, argc, argv, &args));
    RP_TRY(open_device(&arena, &args, &device));
    RP_TRY(replay_run(device, &args, NO_STAGE, args.out));
    if (args.slip != NO_STAGE) {
        RP_TRY(rp_arena_printf(&arena, &slipped, "%s.slipped", args.out));
        RP_TRY(replay_run(device, &args, args.slip, slipped));
    }
fail:
    rp_device_close(&device);
    rp_arena_finish(&arena);
    return rp_err_exit_code(err);
}
