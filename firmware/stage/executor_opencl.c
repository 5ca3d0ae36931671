/* The executor of a board: layers and optimisers on the device's one in-order queue. */
#include "base/log.h"
#include "device/ready.h"
#include "stage/opencl_own.h"

extern const rp_executor_kind rp_executor_opencl;

static void opencl_destroy(rp_executor **executor) {
    rp_opencl *e = *executor ? rp_opencl_of(*executor) : NULL;
    if (!e) {
        return;
    }
    if (rp_device_drain(e->device) != RP_OK) {
        rp_log_warn("the device's queue ended with an error");
    }
    rp_opencl_free_memory(e);
    *executor = NULL;
}

static size_t limit_bytes(const rp_opencl *e) {
    const uint64_t said = e->base.job->memory_bytes;
    return (size_t)(said ? said : rp_device_facts_of(e->device)->memory_bytes);
}

static rp_err opencl_prepare(rp_arena *arena, const rp_site *site, const rp_job *job,
                             rp_executor **out) {
    rp_opencl *e = NULL;
    rp_layout *layout;
    rp_err err;
    RP_ASSERT(site->device);
    RP_TRY(RP_ARENA_NEW(arena, 1, &e));
    *e = (rp_opencl){
        .base = {.kind = &rp_executor_opencl, .job = job, .wrong_every = site->wrong_every},
        .arena = arena,
        .device = site->device};
    RP_TRY(rp_layout_make(arena, job, rp_device_gemm(e->device),
                          rp_device_facts_of(e->device)->align_bytes, &layout));
    e->base.layout = layout;
    RP_TRY(rp_layout_check(layout, job, limit_bytes(e)));
    if (layout->stashes < layout->slots && job->offload == RP_OFFLOAD_HOST &&
        rp_device_facts_of(e->device)->unified) {
        rp_log_warn(
            "offload: host: the memory of %s is the host's, so this saves no memory; flash would",
            rp_device_facts_of(e->device)->name);
    }
    rp_device_limit_bytes(e->device, rp_device_used_bytes(e->device) + limit_bytes(e));
    err = rp_opencl_take_memory(e);
    rp_device_limit_bytes(e->device, 0);
    RP_TRY(err);
    RP_TRY(rp_device_drain(e->device));
    *out = &e->base;
    return RP_OK;
fail:
    if (e) {
        rp_executor *half = &e->base;
        opencl_destroy(&half);
    }
    return err;
}

/* In a stage without trained parameters blocks are empty, so nothing is enqueued for them. */
static bool is_empty(const rp_opencl *e, rp_command_kind kind) {
    const bool of_slots = kind == RP_COMMAND_STASH || kind == RP_COMMAND_UNSTASH;
    const bool of_blocks = kind == RP_COMMAND_NORMS || (kind >= RP_COMMAND_BLOCK && !of_slots);
    return of_blocks && e->base.layout->trained_count == 0;
}

static rp_err run_pass(rp_opencl *e, const rp_command *command) {
    const rp_pass *pass = &command->pass;
    const bool forward = command->kind == RP_COMMAND_FORWARD;
    rp_err err;
    RP_TRY(rp_opencl_begin_pass(e, pass, forward));
    if (forward) {
        RP_TRY(rp_opencl_forward(e, pass));
    } else if (command->kind == RP_COMMAND_BACKWARD) {
        RP_TRY(rp_opencl_backward(e, pass));
    } else {
        RP_TRY(rp_opencl_loss(e, pass));
    }
    RP_TRY(rp_opencl_end_pass(e, pass, forward));
fail:
    return err;
}

static rp_err opencl_issue(rp_executor *executor, const rp_command *command) {
    rp_opencl *e = rp_opencl_of(executor);
    if (is_empty(e, command->kind)) {
        return RP_OK;
    }
    switch (command->kind) {
    case RP_COMMAND_INIT:
        return rp_opencl_init(e);
    case RP_COMMAND_FORWARD:
    case RP_COMMAND_LOSS:
    case RP_COMMAND_BACKWARD:
        return run_pass(e, command);
    case RP_COMMAND_COMMIT:
        return rp_opencl_commit(e, command->step);
    case RP_COMMAND_KEEP:
        return rp_opencl_keep(e, command->kept);
    case RP_COMMAND_RESTORE:
        return rp_opencl_restore(e, command->kept);
    case RP_COMMAND_NORMS:
        return rp_opencl_norms(e, command->read.out);
    case RP_COMMAND_RESULTS:
        return rp_opencl_results(e, command->read.out, command->read.count);
    case RP_COMMAND_OVERLAP:
        return rp_opencl_overlap(e, command->counts.out, command->counts.count);
    case RP_COMMAND_BLOCK:
        return rp_opencl_read_block(e, command->read.block, command->read.out);
    case RP_COMMAND_SUM:
        return rp_opencl_sum(e, command->sum.gradient, command->sum.count);
    case RP_COMMAND_ROW:
        return rp_opencl_read_row(e, command->read.block, (char *)command->read.out);
    case RP_COMMAND_TIE:
        return rp_opencl_tie(e, command);
    case RP_COMMAND_TAKE:
        return rp_opencl_write_block(e, command->write.block, command->write.from);
    case RP_COMMAND_STASH:
    case RP_COMMAND_UNSTASH:
        return rp_opencl_move_slot(e, command->stash.slot, command->stash.out, command->stash.from);
    case RP_COMMAND_PROBE_NORMS:
        return rp_opencl_probe_norms(e, command->read.out);
    case RP_COMMAND_COPY:
        return rp_opencl_copy(e, command->move.from, command->move.to);
    case RP_COMMAND_PROBE:
        return rp_opencl_probe(e, command->move.from);
    case RP_COMMAND_PREDICT:
        return rp_opencl_predict(e, &command->optimise);
    case RP_COMMAND_UPDATE:
        return rp_opencl_update(e, &command->optimise);
    case RP_COMMAND_ANCHOR:
        return rp_opencl_anchor(e, &command->optimise);
    case RP_COMMAND_AVERAGE:
        return rp_opencl_average(e, command);
    case RP_COMMAND_KINDS:
        break;
    }
    return rp_fail(RP_ERR_FAULT, "executor: unknown command %d", (int)command->kind);
}

static rp_err opencl_mark(rp_executor *executor, rp_mark *out) {
    *out = (rp_mark){0};
    return rp_device_fence(rp_opencl_of(executor)->device, &out->fence);
}

/* If a stash could not be copied back, the results after it are wrong, so poll reports the
 * error. */
static rp_err poll_mark(rp_executor *executor, const rp_mark *at, bool *done, int64_t *end_ns) {
    rp_opencl *e = rp_opencl_of(executor);
    const rp_err err = rp_fence_poll(&at->fence, done, end_ns);
    return err == RP_OK && *done && e->spill ? rp_spill_check(e->spill) : err;
}

static void opencl_release(rp_executor *executor, rp_mark *at) {
    (void)executor;
    rp_fence_release(&at->fence);
}

static rp_err opencl_drain(rp_executor *executor) {
    rp_opencl *e = rp_opencl_of(executor);
    const rp_err err = rp_device_drain(e->device);
    return err == RP_OK && e->spill ? rp_spill_check(e->spill) : err;
}

static void opencl_rehearse(rp_executor *executor, bool on) {
    rp_device_rehearse(rp_opencl_of(executor)->device, on);
}

static rp_executor_facts opencl_facts(const rp_executor *executor) {
    const rp_opencl *e = (const rp_opencl *)(const void *)executor;
    return (rp_executor_facts){
        .used_bytes = rp_device_used_bytes(e->device),
        .weight_copies = e->weight_copies,
        .probe_copies = e->probe_copies,
        .stash_bytes = rp_opencl_stash_bytes(e),
        .in_flight_bytes = rp_opencl_in_flight_bytes(e),
        .flash_bytes = e->spill ? rp_spill_written_bytes(e->spill) : 0,
        .handle = rp_device_eventfd(e->device),
        .warms_up = true,
    };
}

const rp_executor_kind rp_executor_opencl = {
    .name = "opencl",
    .prepare = opencl_prepare,
    .destroy = opencl_destroy,
    .issue = opencl_issue,
    .mark = opencl_mark,
    .poll = poll_mark,
    .release = opencl_release,
    .read = rp_opencl_read,
    .write = rp_opencl_write,
    .drain = opencl_drain,
    .rehearse = opencl_rehearse,
    .facts = opencl_facts,
    .take_losses = rp_opencl_take_losses,
};
