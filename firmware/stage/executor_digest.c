/* The executor that computes with digests: an op that is lost, repeated, or sees a wrong version
 * changes the final digests with certainty, at almost no cost.
 *
 * A sample of a boundary tensor has the bytes that its codec prescribes, but at least 16; they
 * repeat its digest. Data and targets of the set arrive unchanged and are hashed. In files the
 * first bytes of a parameter hold its digest and the rest are zero; other values are replaced by
 * their hash. Reported losses and sums of squares are meaningless numbers in (0, 1]. */
#include <string.h>

#include "stage/digest_own.h"

enum { ALIGN_BYTES = 64 };

extern const rp_executor_kind rp_executor_digest;

/* ---- memory ---------------------------------------------------------------------------------- */

static rp_err take_memory(rp_arena *arena, digest_executor *e) {
    const rp_layout *layout = e->as.base.layout;
    e->stride = rp_job_slot_samples(e->as.base.job);
    rp_err err;
    e->rows_digests = layout->tensor_count * e->stride;
    e->slot_digests = e->rows_digests + layout->layer_count + layout->far_count;
    RP_TRY(RP_ARENA_NEW(arena, layout->trained_count + 1, &e->seen));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)rp_block_total(layout) * layout->trained_count + 1,
                        &e->blocks));
    RP_TRY(RP_ARENA_NEW(arena, layout->param_count + 1, &e->running));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)layout->kept * layout->param_count + 1, &e->kept));
    RP_TRY(RP_ARENA_NEW(arena, layout->slots * e->slot_digests, &e->slots));
    RP_TRY(RP_ARENA_NEW(arena, layout->deferred_slots * e->rows_digests + 1, &e->deferred));
    RP_TRY(RP_ARENA_NEW(arena, e->rows_digests, &e->grads));
    RP_TRY(RP_ARENA_NEW(arena, RP_LOSS_RESULT * (size_t)e->as.base.job->batch, &e->results));
    RP_TRY(
        RP_ARENA_NEW(arena, RP_PROBE_NORMS * (size_t)layout->trained_count + 1, &e->probe_norms));
fail:
    return err;
}

static rp_err digest_prepare(rp_arena *arena, const rp_site *site, const rp_job *job,
                             rp_executor **out) {
    digest_executor *e;
    rp_layout *layout;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &e));
    RP_TRY(rp_layout_make(arena, job, RP_GEMM_PANEL, ALIGN_BYTES, &layout));
    layout->boundary_least = RP_DIGEST_BYTES;
    if (layout->gradient_bytes < (size_t)layout->trained_count * RP_DIGEST_BYTES) {
        layout->gradient_bytes = (size_t)layout->trained_count * RP_DIGEST_BYTES;
    }
    *e = (digest_executor){
        .as.base = {.kind = &rp_executor_digest,
                    .job = job,
                    .layout = layout,
                    .wrong_every = site->wrong_every},
        .strict = site->strict,
        .fails = site->fails,
    };
    rp_busy_open(&e->as.busy, site, job, layout);
    RP_TRY(take_memory(arena, e));
    *out = &e->as.base;
fail:
    return err;
}

static void digest_init(digest_executor *e) {
    const rp_layout *layout = e->as.base.layout;
    memset(e->blocks, 0,
           (size_t)rp_block_total(layout) * layout->trained_count * sizeof *e->blocks);
    for (uint32_t p = 0; p < layout->param_count; p++) {
        const rp_model_param *param = digest_param(e, p);
        const rp_digest start = rp_digest_init(param, e->as.base.job->seed);
        const uint32_t trained = layout->trained[p];
        e->running[p] = param->role != RP_PARAM_SCRATCH ? start : (rp_digest){0};
        for (uint32_t v = 0; trained != RP_NOT_TRAINED && v < layout->copies.versions; v++) {
            digest_block(e, (rp_block){RP_BLOCK_WEIGHTS, v})[trained] = start;
        }
        if (trained != RP_NOT_TRAINED && layout->copies.centres) {
            digest_block(e, (rp_block){RP_BLOCK_CENTRE, 0})[trained] = start;
        }
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

static rp_digest_pass pass_of(digest_executor *e, const rp_pass *pass) {
    rp_digest *slot = e->slots + pass->stash.slot * e->slot_digests;
    const bool deferred = pass->deferred.slot != RP_NO_SLOT;
    return (rp_digest_pass){
        .job = e->as.base.job,
        .layout = e->as.base.layout,
        .stride = e->stride,
        .n = pass->op->samples.count,
        .number = pass->op->step * e->as.base.job->batch + pass->op->samples.first,
        .training = pass->training,
        .strict = e->strict,
        .accumulate = pass->accumulate,
        .renewal = pass->renewal,
        .weights = rp_digest_select_values(e, pass),
        .running = e->running,
        .value = slot + pass->stash.first,
        .statistics = slot + e->rows_digests,
        .grad = deferred
                    ? e->deferred + pass->deferred.slot * e->rows_digests + pass->deferred.first
                    : e->grads,
        .gradient =
            e->as.base.layout->gradients ? digest_block(e, (rp_block){RP_BLOCK_GRADIENT, 0}) : NULL,
    };
}

static rp_digest *row_of(const rp_digest_pass *at, rp_digest *rows, uint32_t tensor) {
    return rows + (size_t)tensor * at->stride;
}

/* Writes samples as they are sent: the digest, repeated until the sample is full. */
static void write_samples(const rp_digest *row, uint32_t samples, size_t bytes, char *out) {
    for (uint32_t s = 0; s < samples; s++, out += bytes) {
        for (size_t at = 0; at < bytes; at += sizeof *row) {
            memcpy(out + at, &row[s], bytes - at < sizeof *row ? bytes - at : sizeof *row);
        }
    }
}

/* Bytes that do not repeat a digest are damaged or belong to different samples; their hash is a
 * digest that no correct run has. */
static rp_digest read_sample(const char *from, size_t bytes) {
    rp_digest out;
    RP_ASSERT(bytes >= sizeof out);
    memcpy(&out, from, sizeof out);
    return memcmp(from, from + sizeof out, bytes - sizeof out) == 0
               ? out
               : rp_digest_of_bytes(from, bytes);
}

/* Reads part `index` of all pieces, `bytes` per sample, into a row: digests, or values of the data
 * set (`is_set`), which are hashed. */
static void take_part(const rp_pass *pass, uint32_t index, size_t bytes, bool is_set,
                      rp_digest *row) {
    for (uint32_t p = 0; p < pass->in_count; p++) {
        const rp_stage_piece *piece = &pass->in[p];
        const rp_piece_cut cut = rp_piece_of(piece, &pass->op->samples);
        const char *from = (const char *)piece->part[index] + cut.from * bytes;
        for (uint32_t s = 0; s < cut.count; s++, from += bytes) {
            row[cut.at + s] = is_set ? rp_digest_of_bytes(from, bytes) : read_sample(from, bytes);
        }
    }
}

static void digest_forward(digest_executor *e, const rp_pass *pass) {
    const rp_layout *layout = e->as.base.layout;
    const rp_boundary_tensors lower = rp_layout_boundary_at(layout, pass->time, false, false);
    const rp_boundary_tensors upper = rp_layout_boundary_at(layout, pass->time, true, false);
    rp_digest_take_values(e, pass);
    const rp_digest_pass at = pass_of(e, pass);
    for (uint32_t i = 0; i < layout->input_count && pass->in_count > 0; i++) {
        /* the first stage sends digests of the data to later ones */
        const bool data = layout->tensor[i].producer == RP_LAYER_DATA && e->as.base.job->stage == 0;
        rp_digest *row = row_of(&at, at.value, i);
        take_part(pass, i, lower.bytes[i], data, row);
        for (uint32_t s = 0; data && s < at.n; s++) {
            row[s] = rp_digest_input(at.number + s, row[s]);
        }
    }
    rp_digest_run_forward(&at);
    if (pass->training && rp_executor_is_wrong(&e->as.base)) {
        row_of(&at, at.value, layout->tensor_count - 1)->low ^= 1;
    }
    for (uint32_t i = 0; i < layout->output_count && pass->in_count > 0; i++) {
        write_samples(row_of(&at, at.value, layout->outputs[i]), at.n, upper.bytes[i],
                      pass->out[i]);
    }
}

/* Stores the losses of the samples in the results, and their digests in the gradient of the
 * output. */
static void run_loss(digest_executor *e, const rp_pass *pass, const rp_digest_pass *at) {
    const rp_job *job = e->as.base.job;
    const uint32_t last = e->as.base.layout->tensor_count - 1;
    const rp_digest *y = row_of(at, at->value, last);
    rp_digest *loss = row_of(at, at->grad, last);
    const size_t bytes = rp_job_target_width_at(job, pass->time) * sizeof(float);
    take_part(pass, 0, bytes, true, loss);
    for (uint32_t s = 0; s < at->n && pass->in_count > 0; s++) {
        float *result = e->results + RP_LOSS_RESULT * ((size_t)pass->op->samples.first + s);
        loss[s] = rp_digest_loss(y[s], loss[s], pass->step_samples);
        result[0] = rp_digest_number(loss[s]);
        result[1] = rp_digest_correct(loss[s]) ? 1.0f : 0.0f;
        result[2] = (float)rp_job_target_rows_at(job, pass->time);
    }
}

static void digest_backward(digest_executor *e, const rp_pass *pass) {
    const rp_layout *layout = e->as.base.layout;
    const rp_digest_pass at = pass_of(e, pass);
    const rp_op_kind kind = pass->op->kind;
    if (kind == RP_OP_BACKWARD_WEIGHT) {
        rp_digest_run_backward(&at, false, true);
        return;
    }
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        memset(row_of(&at, at.grad, t), 0, at.n * sizeof *at.grad);
    }
    if (rp_job_is_last(e->as.base.job)) {
        run_loss(e, pass, &at);
    } else {
        const rp_boundary_tensors upper = rp_layout_boundary_at(layout, pass->time, true, true);
        for (uint32_t i = 0; i < upper.count; i++) {
            take_part(pass, i, upper.bytes[i], false, row_of(&at, at.grad, upper.tensor[i]));
        }
    }
    rp_digest_run_backward(&at, true, kind == RP_OP_BACKWARD);
    const rp_boundary_tensors lower = rp_layout_boundary_at(layout, pass->time, false, true);
    for (uint32_t i = 0; i < lower.count && pass->in_count > 0; i++) {
        write_samples(row_of(&at, at.grad, lower.tensor[i]), at.n, lower.bytes[i], pass->out[i]);
    }
}

/* ---- commands -------------------------------------------------------------------------------- */

static rp_err digest_issue(rp_executor *executor, const rp_command *command) {
    digest_executor *e = digest_executor_of(executor);
    const rp_layout *layout = e->as.base.layout;
    if (e->fails && *e->fails) {
        *e->fails = false;
        return rp_fail(RP_ERR_DEVICE, "the device has failed (a simulated fault)");
    }
    rp_busy_spend(&e->as.busy, command);
    switch (command->kind) {
    case RP_COMMAND_INIT:
        digest_init(e);
        return RP_OK;
    case RP_COMMAND_FORWARD:
        digest_forward(e, &command->pass);
        return RP_OK;
    case RP_COMMAND_LOSS: {
        const rp_digest_pass at = pass_of(e, &command->pass);
        run_loss(e, &command->pass, &at);
        return RP_OK;
    }
    case RP_COMMAND_BACKWARD:
        digest_backward(e, &command->pass);
        return RP_OK;
    case RP_COMMAND_COMMIT:
        rp_digest_run_commit(
            &(rp_digest_pass){.job = e->as.base.job, .layout = layout, .running = e->running});
        return RP_OK;
    case RP_COMMAND_KEEP:
    case RP_COMMAND_RESTORE:
        rp_digest_run_kept(e, command);
        return RP_OK;
    case RP_COMMAND_RESULTS:
        memcpy(command->read.out, e->results,
               RP_LOSS_RESULT * command->read.count * sizeof *e->results);
        return RP_OK;
    case RP_COMMAND_OVERLAP:
        rp_executor_count_none(executor, command);
        return RP_OK;
    case RP_COMMAND_ROW:
        rp_digest_read_row(e, command->read.block, (char *)command->read.out);
        return RP_OK;
    case RP_COMMAND_TIE:
        rp_digest_run_tie(e, command);
        return RP_OK;
    case RP_COMMAND_STASH:
        memcpy(command->stash.out, e->slots + command->stash.slot * e->slot_digests,
               e->slot_digests * sizeof *e->slots);
        return RP_OK;
    case RP_COMMAND_UNSTASH:
        memcpy(e->slots + command->stash.slot * e->slot_digests, command->stash.from,
               e->slot_digests * sizeof *e->slots);
        return RP_OK;
    case RP_COMMAND_PROBE_NORMS:
        memcpy(command->read.out, e->probe_norms,
               RP_PROBE_NORMS * layout->trained_count * sizeof *e->probe_norms);
        return RP_OK;
    default:
        for (uint32_t t = 0; t < layout->trained_count; t++) {
            rp_digest_run_block(e, command, t);
        }
        return RP_OK;
    }
}

static rp_executor_facts digest_facts(const rp_executor *executor) {
    const digest_executor *e = (const digest_executor *)(const void *)executor;
    const rp_layout *layout = e->as.base.layout;
    return (rp_executor_facts){
        .used_bytes = ((size_t)rp_block_total(layout) * layout->trained_count +
                       layout->slots * e->slot_digests) *
                      sizeof(rp_digest),
        .weight_copies = rp_layout_weight_copies(layout),
        .probe_copies = layout->probes,
        .stash_bytes = e->slot_digests * sizeof *e->slots,
        .in_flight_bytes = rp_digest_in_flight_bytes(e),
        .handle = -1,
    };
}

const rp_executor_kind rp_executor_digest = {
    .name = "digest",
    .prepare = digest_prepare,
    .destroy = rp_busy_executor_destroy,
    .issue = digest_issue,
    .mark = rp_busy_executor_mark,
    .poll = rp_busy_executor_poll,
    .release = rp_busy_executor_release,
    .read = rp_digest_read_region,
    .write = rp_digest_write_region,
    .drain = rp_busy_executor_drain,
    .facts = digest_facts,
};
