/* The executor without numbers: a pass takes as long as a profile says, and nothing is computed or
 * written. Parcels have their real sizes, so links take their real time; all parcels may borrow one
 * block of zeros. Tensors read as zeros, and writes are ignored. */
#include <string.h>

#include "stage/busy.h"

enum { ALIGN_BYTES = 64 };

typedef struct {
    rp_busy_executor as; /* first member: used by the shared functions of busy.h */
    void *zeros;
} timed_executor;

extern const rp_executor_kind rp_executor_timed;

static timed_executor *executor_of(rp_executor *executor) {
    return (timed_executor *)(void *)executor; /* the base is its first member */
}

/* Largest parcel that leaves the stage. */
static size_t parcel_bytes_max(const rp_layout *layout, const rp_job *job) {
    const size_t forward = rp_layout_boundary(layout, true, false).sample_bytes;
    const size_t backward = rp_layout_boundary(layout, false, true).sample_bytes;
    const size_t boundary = (forward > backward ? forward : backward) * rp_job_pass_samples(job);
    const size_t row =
        layout->gradient_bytes > layout->slot_bytes ? layout->gradient_bytes : layout->slot_bytes;
    const size_t widest = boundary > row ? boundary : row;
    return widest > layout->tie_row_bytes ? widest : layout->tie_row_bytes;
}

static rp_err timed_prepare(rp_arena *arena, const rp_site *site, const rp_job *job,
                            rp_executor **out) {
    timed_executor *e;
    rp_layout *layout;
    char *zeros;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &e));
    RP_TRY(rp_layout_make(arena, job, RP_GEMM_PANEL, ALIGN_BYTES, &layout));
    RP_TRY(RP_ARENA_NEW(arena, parcel_bytes_max(layout, job) + 1, &zeros));
    *e = (timed_executor){
        .as.base = {.kind = &rp_executor_timed, .job = job, .layout = layout},
        .zeros = zeros,
    };
    rp_busy_open(&e->as.busy, site, job, layout);
    *out = &e->as.base;
fail:
    return err;
}

/* Losses of 0; every target counts. */
static void give_results(const rp_job *job, float *out, uint32_t samples) {
    for (uint32_t i = 0; i < samples; i++) {
        float *result = out + RP_LOSS_RESULT * (size_t)i;
        result[0] = result[1] = 0;
        result[2] = (float)rp_job_target_rows(job);
    }
}

static rp_err timed_issue(rp_executor *executor, const rp_command *command) {
    timed_executor *e = executor_of(executor);
    const uint32_t trained = e->as.base.layout->trained_count;
    rp_busy_spend(&e->as.busy, command);
    switch (command->kind) {
    case RP_COMMAND_NORMS:
        memset(command->read.out, 0, trained * sizeof(float));
        return RP_OK;
    case RP_COMMAND_PROBE_NORMS:
        memset(command->read.out, 0, RP_PROBE_NORMS * trained * sizeof(float));
        return RP_OK;
    case RP_COMMAND_OVERLAP:
        rp_executor_count_none(executor, command);
        return RP_OK;
    case RP_COMMAND_RESULTS:
        give_results(executor->job, command->read.out, command->read.count);
        return RP_OK;
    default:
        return RP_OK;
    }
}

static rp_err read_zeros(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                         void *out) {
    (void)executor;
    (void)region;
    (void)first;
    memset(out, 0, count);
    return RP_OK;
}

static rp_err timed_forget(rp_executor *executor, const rp_region *region, size_t first,
                           size_t count, const void *from) {
    (void)executor;
    (void)region;
    (void)first;
    (void)count;
    (void)from;
    return RP_OK;
}

/* Reports the bytes that a real executor would use, so that a plan can be checked. */
static rp_executor_facts timed_facts(const rp_executor *executor) {
    const timed_executor *e = (const timed_executor *)(const void *)executor;
    return (rp_executor_facts){
        .used_bytes = e->as.base.layout->total_bytes,
        .weight_copies = rp_layout_weight_copies(e->as.base.layout),
        .probe_copies = e->as.base.layout->probes,
        .stash_bytes = e->as.base.layout->slot_bytes,
        .handle = -1,
        .zeros = e->zeros,
    };
}

const rp_executor_kind rp_executor_timed = {
    .name = "timed",
    .prepare = timed_prepare,
    .destroy = rp_busy_executor_destroy,
    .issue = timed_issue,
    .mark = rp_busy_executor_mark,
    .poll = rp_busy_executor_poll,
    .release = rp_busy_executor_release,
    .read = read_zeros,
    .write = timed_forget,
    .drain = rp_busy_executor_drain,
    .facts = timed_facts,
};
