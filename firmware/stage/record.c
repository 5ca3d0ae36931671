/* Recording the operands of a microbatch's ops while they are issued. */
#include <stddef.h>
#include <string.h>

#include "stage/record_own.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static const rp_block gradient = {RP_BLOCK_GRADIENT, 0};

/* ---- samples --------------------------------------------------------------------------------- */

uint64_t rp_stage_record_magic(const rp_job *job) {
    return job->model->view_count > 0 ? RECORD_TIMES_MAGIC
           : rp_job_has_sizes(job)    ? RECORD_SIZES_MAGIC
                                      : RECORD_MAGIC;
}

size_t rp_stage_record_head_bytes(const rp_job *job) {
    return job->model->view_count > 0 ? sizeof(record_head)
           : rp_job_has_sizes(job)    ? offsetof(record_head, time)
                                      : offsetof(record_head, forward_first);
}

rp_range rp_stage_record_samples(const rp_stage *stage, uint32_t pass) {
    const record_head *head = &stage->record->head;
    return pass == RECORD_FORWARD && rp_job_has_sizes(stage->job)
               ? (rp_range){head->forward_first, head->forward_count}
               : (rp_range){head->first, head->count};
}

static uint32_t forwards_most(const rp_job *job) {
    return rp_job_has_sizes(job)
               ? (rp_job_backward_samples(job) - 1) / rp_job_forward_samples(job) + 2
               : 1;
}

/* The most samples of a pass. The first and the last of several forwards may extend beyond the
 * backward. */
static size_t samples_most(const rp_job *job, uint32_t pass) {
    const size_t all = (size_t)forwards_most(job) * rp_job_forward_samples(job);
    return pass == RECORD_BACKWARD ? rp_job_backward_samples(job)
           : all < job->batch      ? all
                                   : job->batch;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static size_t target_bytes(const rp_job *job, uint32_t time) {
    return rp_job_target_width_at(job, time) * sizeof(float);
}

void rp_stage_record_take_time(rp_stage *stage) {
    rp_stage_record *r = stage->record;
    const uint32_t time = r->head.time;
    r->lower = rp_layout_boundary_at(stage->layout, time, false, false);
    r->upper = rp_layout_boundary_at(stage->layout, time, true, false);
    r->lower_grad = rp_layout_boundary_at(stage->layout, time, false, true);
    r->upper_grad = rp_layout_boundary_at(stage->layout, time, true, true);
}

uint32_t rp_stage_record_inputs(const rp_stage *stage, uint32_t pass,
                                size_t bytes[RP_CUT_TENSORS_MAX]) {
    const rp_stage_record *r = stage->record;
    const rp_boundary_tensors *from = pass == RECORD_FORWARD ? &r->lower : &r->upper_grad;
    if (pass == RECORD_BACKWARD && rp_job_is_last(stage->job)) {
        bytes[0] = target_bytes(stage->job, r->head.time);
        return 1;
    }
    memcpy(bytes, from->bytes, from->count * sizeof *bytes);
    return from->count;
}

static const rp_boundary_tensors *outputs_of(const rp_stage_record *r, uint32_t pass) {
    return pass == RECORD_FORWARD ? &r->upper : &r->lower_grad;
}

typedef struct {
    char *at;
    size_t bytes;
} part;
enum { PARTS_MAX = 5 + RECORD_PASSES * RP_CUT_TENSORS_MAX };

static uint32_t list_parts(const rp_stage *stage, part out[PARTS_MAX]) {
    rp_stage_record *r = stage->record;
    const size_t weights = stage->layout->trained_count ? stage->layout->gradient_bytes : 0;
    uint32_t count = 0;
    out[count++] = (part){(char *)&r->head, rp_stage_record_head_bytes(stage->job)};
    out[count++] = (part){r->fixed, r->fixed_bytes};
    out[count++] = (part){r->weights[RECORD_FORWARD], weights};
    for (uint32_t pass = 0; pass < RECORD_PASSES; pass++) {
        size_t bytes[RP_CUT_TENSORS_MAX];
        const uint32_t tensors = rp_stage_record_inputs(stage, pass, bytes);
        for (uint32_t i = 0; i < tensors; i++) {
            const rp_range samples = rp_stage_record_samples(stage, pass);
            out[count++] = (part){r->in[pass][i], bytes[i] * samples.count};
        }
    }
    out[count++] = (part){r->weights[RECORD_BACKWARD], r->head.two_weights ? weights : 0};
    out[count++] = (part){r->before, r->head.adds ? weights : 0};
    return count;
}

size_t rp_stage_record_move(const rp_stage *stage, size_t first, size_t count, void *out,
                            const void *in) {
    part parts[PARTS_MAX];
    const uint32_t part_count = list_parts(stage, parts);
    size_t begin = 0;
    for (uint32_t i = 0; i < part_count; i++) {
        const size_t from = first > begin ? first : begin;
        const size_t part_end = begin + parts[i].bytes;
        const size_t end = first + count < part_end ? first + count : part_end;
        if (from < end && in) {
            memcpy(parts[i].at + (from - begin), (const char *)in + (from - first), end - from);
        } else if (from < end && out) {
            memcpy((char *)out + (from - first), parts[i].at + (from - begin), end - from);
        }
        begin = part_end;
    }
    return begin;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const rp_model_param *param_at(const rp_stage *stage, uint32_t param) {
    return &stage->job->model->param[stage->layout->param_first + param];
}

static size_t fixed_bytes(const rp_stage *stage) {
    size_t bytes = 0;
    for (uint32_t p = 0; p < stage->layout->param_count; p++) {
        const rp_model_param *param = param_at(stage, p);
        bytes += param->role == RP_PARAM_FROZEN ? param->count * sizeof(float) : 0;
    }
    return bytes;
}

static rp_err take_tensors(rp_stage *stage, uint32_t pass, bool outputs) {
    rp_stage_record *r = stage->record;
    const rp_boundary_tensors *to = outputs_of(r, pass);
    const size_t most = samples_most(stage->job, pass);
    size_t bytes[RP_CUT_TENSORS_MAX];
    const uint32_t tensors = rp_stage_record_inputs(stage, pass, bytes);
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < tensors; i++) {
        RP_TRY(RP_ARENA_NEW(&r->arena, bytes[i] * most, &r->in[pass][i]));
    }
    for (uint32_t i = 0; outputs && i < to->count; i++) {
        RP_TRY(RP_ARENA_NEW(&r->arena, to->bytes[i] * most, &r->result[pass][i]));
    }
fail:
    return err;
}

rp_err rp_stage_record_open(rp_stage *stage, bool outputs) {
    const rp_layout *layout = stage->layout;
    rp_stage_record *r;
    rp_arena arena;
    rp_err err;
    if (stage->record) {
        return RP_OK;
    }
    rp_arena_init(&arena, "record", 0);
    RP_TRY(RP_ARENA_NEW(&arena, 1, &r));
    r->arena = arena;
    stage->record = r;
    rp_stage_record_take_time(stage); /* the longest */
    r->fixed_bytes = fixed_bytes(stage);
    RP_TRY(RP_ARENA_NEW(&r->arena, forwards_most(stage->job), &r->forward));
    RP_TRY(RP_ARENA_NEW(&r->arena, r->fixed_bytes + 1, &r->fixed));
    RP_TRY(RP_ARENA_NEW(&r->arena, layout->gradient_bytes + 1, &r->before));
    RP_TRY(RP_ARENA_NEW(&r->arena, layout->gradient_bytes + 1, &r->after));
    for (uint32_t pass = 0; pass < RECORD_PASSES; pass++) {
        RP_TRY(RP_ARENA_NEW(&r->arena, layout->gradient_bytes + 1, &r->weights[pass]));
        RP_TRY(take_tensors(stage, pass, outputs));
    }
    rp_arena_seal(&r->arena);
    return RP_OK;
fail:
    rp_stage_record_free(stage);
    return err;
}

void rp_stage_record_free(rp_stage *stage) {
    if (stage->record) {
        rp_arena arena = stage->record->arena; /* the record itself is in this arena */
        rp_arena_finish(&arena);
        stage->record = NULL;
    }
}

rp_err rp_stage_record_bytes_max(const rp_job *job, size_t *out) {
    const size_t digest = 16; /* bytes of a parameter or sample in the digest executor */
    rp_boundary_tensors boundary[2];
    rp_layout *layout;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "record", 0);
    RP_TRY(rp_layout_make(&arena, job, RP_GEMM_PANEL, 64, &layout));
    size_t bytes = sizeof(record_head);
    for (uint32_t p = 0; p < layout->param_count; p++) {
        const rp_model_param *param = &job->model->param[layout->param_first + p];
        const size_t floats = param->count * sizeof(float);
        bytes += RECORD_PASSES * (floats + digest) + floats + digest;
    }
    boundary[0] = rp_layout_boundary(layout, false, false);
    boundary[1] = rp_layout_boundary(layout, true, true);
    for (uint32_t b = 0; b < 2; b++) {
        bytes += (boundary[b].sample_bytes + boundary[b].count * digest) *
                 samples_most(job, b > 0 ? RECORD_BACKWARD : RECORD_FORWARD);
    }
    *out = bytes + target_bytes(job, 0) * samples_most(job, RECORD_BACKWARD);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- while ops are issued -------------------------------------------------------------------- */

/* The samples of the backward that includes the sample; count 0: another board has it. */
static rp_range find_wanted(const rp_job *job, uint64_t step, uint32_t sample) {
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, UINT64_MAX);
    const uint32_t count = rp_sched_backward_count(&shape, step);
    rp_range found = {0, 0};
    for (uint32_t i = 0; i < count && found.count == 0; i++) {
        const rp_range own = rp_sched_backward_range(&shape, step, i);
        found = sample >= own.first && sample - own.first < own.count ? own : found;
    }
    return found;
}

rp_err rp_stage_record_begin(rp_stage *stage, uint64_t step, uint32_t micro) {
    rp_err err;
    RP_TRY(rp_stage_record_open(stage, false));
    rp_stage_record *r = stage->record;
    r->step = step;
    r->micro = micro;
    r->wanted = find_wanted(stage->job, step, micro);
    r->is_wanted = true;
    r->done[RECORD_FORWARD] = r->done[RECORD_BACKWARD] = r->has_gradient = false;
    r->forward_count = 0;
    r->head = (record_head){0};
    r->digests = (rp_record_digests){0};
fail:
    return err;
}

static bool ranges_meet(rp_range a, rp_range b) {
    return a.first < b.first + b.count && b.first < a.first + a.count;
}

static bool is_recorded(const rp_stage *stage, const rp_op *op) {
    const rp_stage_record *r = stage->record;
    const bool is_of_step = r && r->is_wanted && op->step == r->step;
    return is_of_step && (rp_job_has_sizes(stage->job) ? ranges_meet(op->samples, r->wanted)
                                                       : op->micro == r->micro);
}

/* Whether the op is the backward of exactly the recorded forwards' samples; an order may divide
 * backwards differently. */
static bool is_backward_of(const rp_stage *stage, const rp_op *op) {
    const rp_stage_record *r = stage->record;
    return is_recorded(stage, op) && r->done[RECORD_FORWARD] &&
           op->samples.first == r->head.first && op->samples.count == r->head.count;
}

static void record_inputs(rp_stage *stage, uint32_t pass, const rp_op *op, const rp_stage_piece *in,
                          uint32_t in_count) {
    const uint32_t before = op->samples.first - rp_stage_record_samples(stage, pass).first;
    size_t bytes[RP_CUT_TENSORS_MAX];
    const uint32_t tensors = rp_stage_record_inputs(stage, pass, bytes);
    for (uint32_t p = 0; p < in_count; p++) {
        const rp_piece_cut cut = rp_piece_of(&in[p], &op->samples);
        for (uint32_t i = 0; i < tensors; i++) {
            memcpy(stage->record->in[pass][i] + (before + cut.at) * bytes[i],
                   (const char *)in[p].part[i] + cut.from * bytes[i], cut.count * bytes[i]);
        }
    }
}

static rp_err read_seen(rp_stage *stage, uint32_t pass) {
    return stage->layout->trained_count > 0
               ? rp_stage_read_block(stage, stage->seen, stage->record->weights[pass])
               : RP_OK;
}

/* Forwards arrive in the order of their samples, without gaps. */
static void note_forward(rp_stage *stage, const rp_op *op, uint32_t time, void *const *out) {
    rp_stage_record *r = stage->record;
    const rp_range wanted = rp_job_has_sizes(stage->job) ? r->wanted : op->samples;
    record_forward *forward = &r->forward[r->forward_count];
    if (r->forward_count++ == 0) {
        r->head = (record_head){.magic = rp_stage_record_magic(stage->job),
                                .stage = stage->job->stage,
                                .step = op->step,
                                .first = wanted.first,
                                .count = wanted.count,
                                .micro = op->micro,
                                .forward_first = op->samples.first,
                                .time = time};
        rp_stage_record_take_time(stage);
    }
    r->head.forward_count += op->samples.count;
    forward->samples = op->samples;
    memcpy(forward->out, out, r->upper.count * sizeof *out);
    r->done[RECORD_FORWARD] = op->samples.first + op->samples.count >= wanted.first + wanted.count;
}

rp_err rp_stage_record_forward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                               uint32_t in_count, void *const *out) {
    if (!is_recorded(stage, op) || !rp_pieces_cover(in, in_count, &op->samples) ||
        stage->record->forward_count == forwards_most(stage->job)) {
        return RP_OK; /* rp_stage_run_forward() reports incomplete pieces */
    }
    note_forward(stage, op, in[0].time, out);
    record_inputs(stage, RECORD_FORWARD, op, in, in_count);
    return stage->record->forward_count == 1 ? read_seen(stage, RECORD_FORWARD) : RP_OK;
}

rp_err rp_stage_record_backward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                                uint32_t in_count, void *const *out) {
    rp_err err = RP_OK;
    if (!is_backward_of(stage, op)) {
        return RP_OK;
    }
    rp_stage_record *r = stage->record;
    r->head.splits = op->kind != RP_OP_BACKWARD;
    if (op->kind != RP_OP_BACKWARD_WEIGHT) {
        record_inputs(stage, RECORD_BACKWARD, op, in, in_count);
        memcpy(r->out, out, r->lower_grad.count * sizeof *out);
        r->done[RECORD_BACKWARD] = true;
        RP_TRY(read_seen(stage, RECORD_BACKWARD));
    }
    r->head.adds = stage->accumulated > 0;
    if (op->kind != RP_OP_BACKWARD_INPUT && r->head.adds) {
        RP_TRY(rp_stage_read_block(stage, gradient, r->before));
    }
fail:
    return err;
}

rp_err rp_stage_record_gradient(rp_stage *stage, const rp_op *op) {
    if (!is_backward_of(stage, op) || op->kind == RP_OP_BACKWARD_INPUT) {
        return RP_OK;
    }
    stage->record->has_gradient = true;
    return rp_stage_read_block(stage, gradient, stage->record->after);
}

/* ---- after their marks ----------------------------------------------------------------------- */

static uint64_t digest_of(const rp_boundary_tensors *of, void *const *out, uint32_t samples,
                          uint64_t digest) {
    for (uint32_t i = 0; i < of->count; i++) {
        digest = XXH3_64bits_withSeed(out[i], of->bytes[i] * samples, digest + i);
    }
    return digest;
}

void rp_stage_record_digest_forward(rp_stage *stage, const record_forward *forward) {
    rp_stage_record *r = stage->record;
    r->digests.forward =
        digest_of(&r->upper, forward->out, forward->samples.count, r->digests.forward);
}

void rp_stage_record_digest_backward(rp_stage *stage) {
    rp_stage_record *r = stage->record;
    r->digests.backward = digest_of(&r->lower_grad, r->out, r->head.count, 0);
}

void rp_stage_record_digest_gradient(rp_stage *stage) {
    const rp_layout *layout = stage->layout;
    stage->record->digests.gradient =
        layout->trained_count ? XXH3_64bits(stage->record->after, layout->gradient_bytes) : 0;
}

void rp_stage_record_finish(rp_stage *stage, const rp_op *op) {
    const bool whole = op->kind == RP_OP_BACKWARD;
    if (!is_recorded(stage, op)) {
        return;
    }
    const rp_stage_record *r = stage->record;
    for (uint32_t i = 0; op->kind == RP_OP_FORWARD && i < r->forward_count; i++) {
        if (r->forward[i].samples.first == op->samples.first) {
            rp_stage_record_digest_forward(stage, &r->forward[i]);
        }
    }
    if ((whole || op->kind == RP_OP_BACKWARD_INPUT) && r->done[RECORD_BACKWARD] &&
        is_backward_of(stage, op)) {
        rp_stage_record_digest_backward(stage);
    }
    if ((whole || op->kind == RP_OP_BACKWARD_WEIGHT) && r->has_gradient &&
        is_backward_of(stage, op)) {
        rp_stage_record_digest_gradient(stage);
    }
}

/* ---- between segments ------------------------------------------------------------------------ */

rp_err rp_stage_record_move_fixed(rp_stage *stage, bool writes) {
    const rp_executor_kind *kind = stage->executor->kind;
    char *at = stage->record->fixed;
    rp_err err = RP_OK;
    for (uint32_t p = 0; p < stage->layout->param_count; p++) {
        const rp_region region = {RP_REGION_BLOCK, {RP_BLOCK_WEIGHTS, 0}, p};
        const size_t bytes = param_at(stage, p)->count * sizeof(float);
        if (param_at(stage, p)->role != RP_PARAM_FROZEN) {
            continue;
        }
        RP_TRY(writes ? kind->write(stage->executor, &region, 0, bytes, at)
                      : kind->read(stage->executor, &region, 0, bytes, at));
        at += bytes;
    }
fail:
    return err;
}

rp_err rp_stage_record_end(rp_stage *stage, size_t *total, rp_record_digests *out) {
    rp_stage_record *r = stage->record;
    rp_err err = RP_OK;
    *total = 0;
    if (!r || !r->is_wanted) {
        return RP_OK;
    }
    r->is_wanted = false;
    if (!r->done[RECORD_FORWARD] || !r->done[RECORD_BACKWARD] || !r->has_gradient) {
        return RP_OK;
    }
    r->head.two_weights = stage->layout->trained_count > 0 &&
                          memcmp(r->weights[RECORD_FORWARD], r->weights[RECORD_BACKWARD],
                                 stage->layout->gradient_bytes) != 0;
    RP_TRY(rp_stage_record_move_fixed(stage, false));
    *total = rp_stage_record_move(stage, 0, 0, NULL, NULL);
    *out = r->digests;
fail:
    return err;
}

void rp_stage_record_read(const rp_stage *stage, size_t first, size_t count, void *out) {
    (void)rp_stage_record_move(stage, first, count, out, NULL);
}
