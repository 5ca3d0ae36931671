/* Recomputing a record: loads its bytes into a stage with the same layers and runs its ops
 * there. */
#include <string.h>

#include "stage/record_own.h"

rp_job rp_stage_record_job(const rp_job *job) {
    rp_job out = *job;
    out.optim = (rp_optim){.kind = rp_optim_find("sgd"), .lr = 1};
    out.share[0] = out.share[1] = 0;
    out.role = RP_ROLE_BOTH; /* also if the board that recorded it has half a stage */
    out.recompute = false;
    out.offload = RP_OFFLOAD_NONE;
    out.leave_tensors = 0;
    if (!job->method.kind->flushed) {
        out.method = (rp_method){.kind = rp_sched_find("1f1b"), .replicas = 1, .chunks = 1};
    }
    return out;
}

/* Checks that the forwards include the backward's samples, and no forward too much. */
static bool do_forwards_fit(const rp_job *job, const record_head *head) {
    const uint32_t size = rp_job_forward_samples(job);
    const uint32_t before = head->first - head->forward_first;
    return !rp_job_has_sizes(job) || (head->forward_count <= job->batch &&
                                      head->forward_first <= job->batch - head->forward_count &&
                                      head->forward_first <= head->first && before < size &&
                                      head->forward_count >= before + head->count &&
                                      head->forward_count - before - head->count < size);
}

/* Checks every number of the head before using it. */
static rp_err take_bytes(rp_stage *stage, const void *bytes, size_t count) {
    const rp_job *job = stage->job;
    const size_t head_bytes = rp_stage_record_head_bytes(job);
    record_head *head = &stage->record->head;
    bool fits = count >= head_bytes;
    if (fits) {
        memcpy(head, bytes, head_bytes);
        fits = head->magic == rp_stage_record_magic(job) && head->stage == job->stage &&
               head->step < job->steps && head->count > 0 &&
               head->count <= rp_job_backward_samples(job) &&
               head->first <= job->batch - head->count &&
               head->splits == job->method.kind->split_backward && head->two_weights <= 1 &&
               head->adds <= 1 && do_forwards_fit(job, head) && head->unused == 0 &&
               rp_model_has_time(job->model, head->time);
    }
    if (fits) {
        rp_stage_record_take_time(stage);
        fits = rp_stage_record_move(stage, 0, 0, NULL, NULL) == count;
    }
    if (!fits) {
        return rp_fail(RP_ERR_PEER,
                       "stage %u: %zu bytes are not a record of one of its microbatches",
                       job->stage, count);
    }
    (void)rp_stage_record_move(stage, 0, count, NULL, bytes);
    return RP_OK;
}

static rp_err load_block(rp_stage *stage, const char *from, rp_block to) {
    const void *const row[] = {from};
    rp_err err = RP_OK;
    if (stage->layout->trained_count == 0) {
        return RP_OK;
    }
    RP_TRY(rp_stage_sum_gradients(stage, row, 1)); /* a sum of one gradient is a copy */
    RP_TRY(to.kind == RP_BLOCK_GRADIENT
               ? RP_OK
               : rp_stage_copy(stage, (rp_block){RP_BLOCK_GRADIENT, 0}, to));
fail:
    return err;
}

static rp_op op_of(const rp_stage *stage, rp_op_kind kind, rp_range samples, uint32_t micro) {
    return (rp_op){.kind = kind,
                   .stage = stage->job->stage,
                   .step = stage->record->head.step,
                   .micro = micro,
                   .samples = samples};
}

/* Sets pointers to the forward's samples within those of all forwards. */
static void place_forward(rp_stage *stage, record_forward *forward) {
    rp_stage_record *r = stage->record;
    const size_t at = forward->samples.first - rp_stage_record_samples(stage, RECORD_FORWARD).first;
    size_t bytes[RP_CUT_TENSORS_MAX];
    const uint32_t tensors = rp_stage_record_inputs(stage, RECORD_FORWARD, bytes);
    for (uint32_t i = 0; i < tensors; i++) {
        forward->in[i] = r->in[RECORD_FORWARD][i] + at * bytes[i];
    }
    for (uint32_t i = 0; i < r->upper.count; i++) {
        forward->out[i] = r->result[RECORD_FORWARD][i] + at * r->upper.bytes[i];
    }
}

static rp_err run_forwards(rp_stage *stage) {
    rp_stage_record *r = stage->record;
    const rp_range all = rp_stage_record_samples(stage, RECORD_FORWARD);
    const uint32_t size = rp_job_forward_samples(stage->job);
    rp_err err = RP_OK;
    r->forward_count = 0;
    for (uint32_t done = 0; done < all.count; done += size) {
        record_forward *forward = &r->forward[r->forward_count++];
        const uint32_t rest = all.count - done;
        forward->samples = (rp_range){all.first + done, rest < size ? rest : size};
        place_forward(stage, forward);
        const rp_op op = op_of(stage, RP_OP_FORWARD, forward->samples, r->head.micro);
        const rp_stage_piece whole = {
            .samples = op.samples, .part = forward->in, .time = r->head.time};
        RP_TRY(rp_stage_run_forward(stage, &op, &whole, 1, forward->out,
                                    (rp_stage_mode){.training = true}));
    }
fail:
    return err;
}

static rp_err run_op(rp_stage *stage, rp_op_kind kind) {
    rp_stage_record *r = stage->record;
    const rp_op op =
        op_of(stage, kind, rp_stage_record_samples(stage, RECORD_BACKWARD), r->head.micro);
    const void *const *part = (const void *const *)r->in[RECORD_BACKWARD];
    const rp_stage_piece whole = {.samples = op.samples, .part = part, .time = r->head.time};
    return rp_stage_run_backward(stage, &op, &whole, 1, r->out);
}

static rp_err run_backward(rp_stage *stage) {
    const bool splits = stage->record->head.splits;
    rp_err err;
    for (uint32_t i = 0; i < stage->record->lower_grad.count; i++) {
        stage->record->out[i] = stage->record->result[RECORD_BACKWARD][i];
    }
    RP_TRY(run_op(stage, splits ? RP_OP_BACKWARD_INPUT : RP_OP_BACKWARD));
    RP_TRY(splits ? run_op(stage, RP_OP_BACKWARD_WEIGHT) : RP_OK);
fail:
    return err;
}

static rp_err run_record(rp_stage *stage) {
    rp_stage_record *r = stage->record;
    rp_err err;
    stage->seen = (rp_block){RP_BLOCK_WEIGHTS, 0};
    RP_TRY(rp_stage_record_move_fixed(stage, true));
    RP_TRY(load_block(stage, r->weights[RECORD_FORWARD], stage->seen));
    RP_TRY(run_forwards(stage));
    if (r->head.two_weights) {
        RP_TRY(load_block(stage, r->weights[RECORD_BACKWARD], stage->seen));
    }
    if (r->head.adds) {
        RP_TRY(load_block(stage, r->before, (rp_block){RP_BLOCK_GRADIENT, 0}));
    }
    stage->accumulated = r->head.adds;
    RP_TRY(run_backward(stage));
    RP_TRY(rp_stage_read_gradient(stage, r->after));
fail:;
    const rp_err drained = rp_stage_drain(stage); /* commands in the queue still use the record */
    return err != RP_OK ? err : drained;
}

rp_err rp_stage_recompute(rp_stage *stage, const void *bytes, size_t count,
                          rp_record_digests *out) {
    rp_err err;
    RP_TRY(rp_stage_record_open(stage, true));
    RP_TRY(take_bytes(stage, bytes, count));
    RP_TRY(run_record(stage));
    stage->record->digests = (rp_record_digests){0};
    for (uint32_t i = 0; i < stage->record->forward_count; i++) {
        rp_stage_record_digest_forward(stage, &stage->record->forward[i]);
    }
    rp_stage_record_digest_backward(stage);
    rp_stage_record_digest_gradient(stage);
    *out = stage->record->digests;
fail:
    return err;
}
