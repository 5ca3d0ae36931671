/* Counts the slots and the copies of the weights that a stage needs by walking its list of ops. */
#include "stage/layout.h"
#include "stage/slots.h"

/* The most microbatches (and so an upper bound of the steps) that the first stage has begun and not
 * finished. The first stage is furthest ahead. Limits by replicas and versions are ignored. */
static uint32_t steps_open_max(const rp_job *job) {
    rp_sched_shape first = rp_job_sched_shape(job, 0, job->steps);
    first.stage = 0;
    first.steps_open = 0;
    return job->method.kind->flushed ? 1 : rp_sched_in_flight(job->method.kind, &first);
}

/* A shorter job that needs as many slots and versions: it fills the pipes, runs full steps until
 * counts are steady, and has the end of an epoch, where a short step lets more steps into the
 * pipes. Steps in the middle of a long epoch are equal, so they are left out. */
static rp_job walked_job(const rp_job *job) {
    rp_job out = *job;
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
    const uint64_t epoch = rp_sched_epoch_steps(&shape);
    const uint64_t open = steps_open_max(job);
    const uint64_t enough = 2 * (open + (uint64_t)RP_REPLICAS_MAX) + 2;
    if (epoch > enough && job->steps >= epoch) {
        out.epoch_samples -= (epoch - enough) * job->batch;
        out.steps -= epoch - enough;
    }
    out.steps = out.steps < 2 * enough ? out.steps : 2 * enough;
    return out;
}

static void take_or_add(rp_slots *slots, const rp_op *op, rp_range range) {
    if (rp_slots_place(slots, op, false, range).slot == RP_NO_SLOT) {
        slots->count++; /* the array has an entry for every forward */
        (void)rp_slots_place(slots, op, false, range);
    }
}

static void release_slots(rp_slots *slots, const rp_op *op) {
    const rp_stash stash = rp_slots_find(slots, op, false);
    RP_ASSERT(stash.slot != RP_NO_SLOT);
    rp_slots_release(slots, stash.slot, op);
}

static void walk_slots(const rp_job *job, rp_slots *slots, rp_slots *deferred, const rp_op *op) {
    switch (op->kind) {
    case RP_OP_FORWARD:
        take_or_add(slots, op, rp_job_slot_range(job, op));
        if (job->role == RP_ROLE_FORWARD) { /* its stash is sent before the next forward begins */
            release_slots(slots, op);
        }
        break;
    case RP_OP_BACKWARD_INPUT:
        take_or_add(deferred, op, op->samples);
        break;
    case RP_OP_BACKWARD_WEIGHT:
        release_slots(deferred, op);
        release_slots(slots, op);
        break;
    case RP_OP_BACKWARD:
        if (job->role == RP_ROLE_BACKWARD) { /* its stash arrived before the op */
            take_or_add(slots, op, rp_job_slot_range(job, op));
        }
        release_slots(slots, op);
        break;
    default:
        break;
    }
}

/* Walks this stage's op list with the stage's bookkeeping of slots. */
static rp_err count_slots(const rp_job *job, rp_layout *layout) {
    const rp_sched_kind *kind = job->method.kind;
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
    rp_slots slots = {.count = 1};
    rp_slots deferred = {.count = kind->split_backward};
    rp_sched_state state;
    rp_arena arena;
    size_t forwards = 1;
    rp_op op;
    rp_err err;
    rp_arena_init(&arena, "slots", 0);
    for (rp_sched_start(&state, &shape); rp_job_next(job, &state, &op);) {
        forwards += op.kind == RP_OP_FORWARD || op.kind == RP_OP_BACKWARD_INPUT;
    }
    RP_TRY(RP_ARENA_NEW(&arena, forwards, &slots.slot));
    RP_TRY(RP_ARENA_NEW(&arena, forwards, &deferred.slot));
    for (rp_sched_start(&state, &shape); rp_job_next(job, &state, &op);) {
        walk_slots(job, &slots, &deferred, &op);
    }
    layout->slots = slots.count;
    layout->deferred_slots = deferred.count;
    const bool leaves = job->offload != RP_OFFLOAD_NONE && slots.count > RP_OFFLOAD_STASHES;
    layout->stashes = leaves ? RP_OFFLOAD_STASHES : slots.count;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Walks the same list with the stage's bookkeeping of versions. */
static rp_err count_versions(const rp_job *job, rp_layout *layout) {
    const rp_method *method = &job->method;
    rp_arena arena;
    rp_versions versions;
    rp_op op;
    rp_err err;
    rp_arena_init(&arena, "versions", 0);
    RP_TRY(rp_versions_open(&arena, job, layout->slots, &versions));
    uint32_t ahead = rp_versions_ahead_max(&versions);
    for (rp_sched_state list = versions.list; rp_job_next(job, &list, &op);) {
        if (op.kind == RP_OP_FORWARD) {
            ahead |= rp_versions_forward(&versions, &op)
                         .ahead; /* only at a short step if the horizon is exact */
        } else if (op.kind == RP_OP_UPDATE) {
            (void)rp_versions_update(&versions, &op);
        } else {
            (void)rp_versions_backward(&versions, &op);
        }
    }
    layout->copies.versions = versions.block_count;
    layout->replicas = versions.replicas;
    layout->copies.predicted = method->weights == RP_WEIGHTS_XPIPE ? 2 : ahead > 0 ? 1 : 0;
    /* one prediction-error sample at a time: the previous one has had its backward */
    const uint32_t least = steps_open_max(job);
    layout->probe_steps = method->probe == 0 || method->probe > least ? method->probe : least;
    layout->probes = layout->probe_steps > 0 ? 2 : 0;
    layout->copies.centres = method->kind->average != RP_AVERAGE_NONE;
    layout->copies.scratches = method->before || method->kind->average == RP_AVERAGE_REFERENCE ||
                               method->evaluate == RP_EVALUATE_MEAN;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* The most steps that have had a forward here and no update yet. A board without updates is not
 * told that a step is skipped, so it keeps no copies. */
static uint32_t count_open_steps(const rp_job *job) {
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
    uint64_t updated = 0;
    uint64_t most = 0;
    rp_sched_state state;
    rp_op op;
    if (job->role != RP_ROLE_BOTH ||
        rp_decision_maker_of(&job->method, &job->optim, job->guard) == RP_DECISION_NONE) {
        return 0;
    }
    for (rp_sched_start(&state, &shape); rp_job_next(job, &state, &op);) {
        updated = op.kind == RP_OP_UPDATE ? op.step + 1 : updated;
        most =
            op.kind == RP_OP_FORWARD && op.step + 1 - updated > most ? op.step + 1 - updated : most;
    }
    return (uint32_t)most;
}

rp_err rp_layout_count(const rp_job *job, rp_layout *layout) {
    layout->gradients = job->role != RP_ROLE_FORWARD;
    layout->peers = rp_job_is_shared(job);
    const rp_job walked = walked_job(job);
    layout->kept = count_open_steps(&walked);
    rp_err err = count_slots(&walked, layout);
    return err == RP_OK ? count_versions(&walked, layout) : err;
}

uint32_t rp_layout_weight_copies(const rp_layout *layout) {
    return layout->copies.versions + layout->copies.predicted + layout->copies.centres +
           layout->copies.scratches;
}
