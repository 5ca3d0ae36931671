/* Computing a record again: its bytes go into a stage of the same layers, its ops run there. */
#include <string.h>

#include "stage/record_own.h"

rp_job rp_stage_record_job(const rp_job *job) {
    rp_job out = *job;
    out.optim = (rp_optim){.kind = rp_optim_find("sgd"), .lr = 1};
    out.share[0] = out.share[1] = 0;
    out.recompute = false;
    out.offload = RP_OFFLOAD_NONE;
    out.leave_tensors = 0;
    if (!job->method.kind->flushed) {
        out.method = (rp_method){.kind = rp_sched_find("1f1b"), .replicas = 1, .chunks = 1};
    }
    return out;
}

/* Every number of the head is checked before it is used. */
static rp_err take_bytes(rp_stage *stage, const void *bytes, size_t count) {
    rp_stage_record *r = stage->record;
    record_head *head = &r->head;
    bool fits = count >= sizeof *head;
    if (fits) {
        memcpy(head, bytes, sizeof *head);
        fits = head->magic == RECORD_MAGIC && head->stage == stage->job->stage &&
               head->step < stage->job->steps && head->count > 0 &&
               head->count <= stage->job->micro && head->first <= stage->job->batch - head->count &&
               head->splits == stage->job->method.kind->split_backward && head->two_weights <= 1 &&
               head->adds <= 1 && rp_stage_record_move(stage, 0, 0, NULL, NULL) == count;
    }
    if (!fits) {
        return rp_fail(RP_ERR_PEER, "stage %u: %zu bytes are no record of a microbatch of it",
                       stage->job->stage, count);
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
    RP_TRY(rp_stage_sum_gradients(stage, row, 1)); /* which only writes it */
    RP_TRY(to.kind == RP_BLOCK_GRADIENT
               ? RP_OK
               : rp_stage_copy(stage, (rp_block){RP_BLOCK_GRADIENT, 0}, to));
fail:
    return err;
}

static rp_err run_op(rp_stage *stage, rp_op_kind kind, uint32_t pass) {
    const rp_stage_record *r = stage->record;
    const rp_op op = {.kind = kind,
                      .stage = stage->job->stage,
                      .step = r->head.step,
                      .micro = r->head.micro,
                      .samples = {r->head.first, r->head.count}};
    const void *const *part = (const void *const *)r->in[pass];
    const rp_stage_piece whole = {op.samples, part};
    return kind == RP_OP_FORWARD ? rp_stage_run_forward(stage, &op, &whole, 1, r->out[pass],
                                                        (rp_stage_mode){.training = true})
                                 : rp_stage_run_backward(stage, &op, &whole, 1, r->out[pass]);
}

static rp_err run_backward(rp_stage *stage) {
    const bool splits = stage->record->head.splits;
    rp_err err;
    RP_TRY(run_op(stage, splits ? RP_OP_BACKWARD_INPUT : RP_OP_BACKWARD, RECORD_BACKWARD));
    RP_TRY(splits ? run_op(stage, RP_OP_BACKWARD_WEIGHT, RECORD_BACKWARD) : RP_OK);
fail:
    return err;
}

static rp_err run_record(rp_stage *stage) {
    rp_stage_record *r = stage->record;
    rp_err err;
    stage->seen = (rp_block){RP_BLOCK_WEIGHTS, 0};
    RP_TRY(rp_stage_record_move_fixed(stage, true));
    RP_TRY(load_block(stage, r->weights[RECORD_FORWARD], stage->seen));
    RP_TRY(run_op(stage, RP_OP_FORWARD, RECORD_FORWARD));
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
    const rp_err drained = rp_stage_drain(stage); /* what was issued reads the record */
    return err != RP_OK ? err : drained;
}

rp_err rp_stage_recompute(rp_stage *stage, const void *bytes, size_t count,
                          rp_record_digests *out) {
    rp_err err;
    RP_TRY(rp_stage_record_open(stage, true));
    RP_TRY(take_bytes(stage, bytes, count));
    RP_TRY(run_record(stage));
    rp_stage_record_digest_pass(stage, RECORD_FORWARD);
    rp_stage_record_digest_pass(stage, RECORD_BACKWARD);
    rp_stage_record_digest_gradient(stage);
    *out = stage->record->digests;
fail:
    return err;
}
