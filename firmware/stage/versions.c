#include "stage/versions.h"

#include <math.h>
#include <string.h>

#include "sched/split.h"

/* ---- horizons -------------------------------------------------------------------------------- */

/* METHODS 6: t microbatches a step, d stages. Halves are rounded to even, as Python's round() does;
 * the paper leaves this open. */
static void xpipe_horizons(const rp_job *job, rp_versions *v) {
    const double t = ceil((double)job->batch / job->micro);
    const double k = job->stage;
    const double d = job->cut.stage_count;
    const double forward = nearbyint((d + t - k / 2 - 2) / t);
    const double backward = nearbyint((t + floor(k / 2) - 1) / t);
    v->forward_ahead = forward > 0 ? (uint32_t)forward : 0;
    v->backward_ahead = backward > 0 ? (uint32_t)backward : 0;
}

static rp_err find_horizons(rp_arena *arena, const rp_job *job, rp_versions *v) {
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
    const uint32_t micros = (job->batch - 1) / job->micro + 1;
    rp_err err = RP_OK;
    if (job->method.weights == RP_WEIGHTS_SPECTRAIN) {
        RP_TRY(
            rp_sched_round_trip(job->method.kind, &shape, &v->forward_ahead, &v->backward_ahead));
    } else if (job->method.weights == RP_WEIGHTS_XPIPE) {
        xpipe_horizons(job, v);
    } else if (job->method.weights == RP_WEIGHTS_PIPEOPTIM) {
        const bool released = job->method.horizon == RP_HORIZON_RELEASED;
        const bool is_bounded = rp_sched_ahead(&shape) > 0;
        RP_TRY(RP_ARENA_NEW(arena, micros, &v->steady));
        for (uint32_t m = 0; m < micros; m++) {
            v->steady[m] =
                (is_bounded ? rp_sched_split_staleness(&shape)
                            : rp_sched_steady_staleness(job->method.kind, &shape, m, v->replicas)) +
                released;
        }
    }
    if (v->forward_ahead > 0) {
        const uint32_t staleness =
            rp_sched_steady_staleness(job->method.kind, &shape, 0, v->replicas);
        v->past_backward = v->forward_ahead > staleness ? v->forward_ahead - staleness : 0;
    }
fail:
    return err;
}

uint32_t rp_versions_ahead_max(const rp_versions *v) {
    const uint32_t micros = (v->job->batch - 1) / v->job->micro + 1;
    if (v->job->role == RP_ROLE_FORWARD) { /* it receives weights that are already predicted */
        return 0;
    }
    uint32_t most = v->forward_ahead > v->backward_ahead ? v->forward_ahead : v->backward_ahead;
    for (uint32_t m = 0; v->steady && m < micros; m++) {
        most = v->steady[m] > most ? v->steady[m] : most;
    }
    return most;
}

/* The list has just passed this forward. */
static uint32_t pipeoptim_horizon(const rp_versions *v, const rp_op *op) {
    const rp_method *method = &v->job->method;
    if (method->horizon == RP_HORIZON_PAPER || method->horizon == RP_HORIZON_RELEASED) {
        return v->steady[op->micro];
    }
    return rp_sched_staleness(method->kind, &v->list, op, v->replicas);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint32_t take_block(rp_versions *v, uint64_t version) {
    uint32_t i = 0;
    while (i < v->block_count && v->block[i].live) {
        i++;
    }
    RP_ASSERT(i < v->block_max);
    v->block_count += i == v->block_count;
    v->block[i] = (rp_version_block){.live = true, .version = version};
    return i;
}

static uint32_t find_version(const rp_versions *v, uint64_t version) {
    uint32_t i = 0;
    while (i < v->block_count && !(v->block[i].live && v->block[i].version == version)) {
        i++;
    }
    RP_ASSERT(i < v->block_count); /* kept as long as the next forward needs it */
    return i;
}

/* Whether the schedule's order limits the lead of forwards over updates; the limit then determines
 * the version that they see (split.h). */
static bool is_bounded(const rp_versions *v) {
    return rp_sched_ahead(&v->list.shape) > 0;
}

/* Whether a forward sees a version that its number determines, instead of the newest one. */
static bool by_version(const rp_versions *v) {
    return is_bounded(v) || v->job->method.weights == RP_WEIGHTS_ENTRY ||
           v->job->method.weights == RP_WEIGHTS_DOUBLE;
}

/* ENTRY: the number of updates that stage 0 had issued when this microbatch entered the ring.
 * Advances `entry` to there. */
static uint64_t entry_version(const rp_versions *v, rp_sched_state *entry, const rp_op *op) {
    rp_op passed;
    do {
        const bool more = v->job->method.kind->next(entry, &passed);
        RP_ASSERT(more);
    } while (passed.kind != RP_OP_FORWARD || passed.step != op->step || passed.micro != op->micro);
    return entry->step;
}

static uint64_t doubled_version(const rp_op *op) {
    return op->step > 0 ? op->step - 1 : 0;
}

/* The oldest version that a later op needs: a forward, or on the half with the backwards a
 * backward. UINT64_MAX: no op needs one. */
static uint64_t needed_version(const rp_versions *v) {
    const rp_op_kind who = v->job->role == RP_ROLE_BACKWARD ? RP_OP_BACKWARD : RP_OP_FORWARD;
    rp_sched_state list = v->list;
    rp_sched_state entry = v->entry;
    rp_op op;
    while (rp_job_next(v->job, &list, &op)) {
        if (op.kind != who) {
            continue;
        }
        return is_bounded(v) ? rp_sched_split_version(&list.shape, op.step)
               : v->job->method.weights == RP_WEIGHTS_DOUBLE ? doubled_version(&op)
                                                             : entry_version(v, &entry, &op);
    }
    const rp_op behind = {.step = list.shape.step_end}; /* the step after the list, where the run
                                                           goes on with drained pipes */
    const bool goes_on = behind.step < v->job->steps;
    return goes_on && v->job->method.weights == RP_WEIGHTS_DOUBLE ? doubled_version(&behind)
                                                                  : UINT64_MAX;
}

/* Whether a backward sees the weights of its forward. */
static bool sees_forwards(const rp_versions *v) {
    const rp_weights_rule rule = v->job->method.weights;
    return rule == RP_WEIGHTS_STASH || rule == RP_WEIGHTS_ENTRY || rule == RP_WEIGHTS_DOUBLE;
}

/* Whether a forward's block must stay unchanged until its backward, which sees it or recomputes the
 * forward with it. */
static bool keeps_block(const rp_versions *v) {
    return sees_forwards(v) || v->job->recompute;
}

/* Whether versions are kept for ops that need them by number. Backwards that see the newest weights
 * need none. */
static bool keeps_versions(const rp_versions *v) {
    return by_version(v) && (v->job->role != RP_ROLE_BACKWARD || sees_forwards(v));
}

static bool is_latest(const rp_versions *v, uint32_t block) {
    for (uint32_t r = 0; r < v->replicas; r++) {
        if (v->latest[r] == block) {
            return true;
        }
    }
    return false;
}

static void free_blocks(rp_versions *v, uint64_t needed) {
    for (uint32_t i = 0; i < v->block_count; i++) {
        rp_version_block *block = &v->block[i];
        block->live &= block->users > 0 || is_latest(v, i) || block->version >= needed;
    }
}

/* ---- ops ------------------------------------------------------------------------------------- */

rp_err rp_versions_open(rp_arena *arena, const rp_job *job, uint32_t in_flight_max,
                        rp_versions *out) {
    rp_err err;
    *out = (rp_versions){
        .job = job,
        .replicas = rp_method_replicas(&job->method, job->cut.stage_count, job->stage),
        .in_flight_max = in_flight_max,
    };
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
    out->block_max = job->cut.stage_count * (1 + job->method.advance) + out->replicas + 2;
    out->block_max += rp_sched_ahead(&shape) > 0 ? rp_sched_split_versions(&shape) : 0;
    RP_TRY(RP_ARENA_NEW(arena, out->block_max, &out->block));
    RP_TRY(RP_ARENA_NEW(arena, in_flight_max + 1, &out->in_flight));
    RP_TRY(find_horizons(arena, job, out));
    rp_versions_start(out, 0);
fail:
    return err;
}

void rp_versions_start(rp_versions *v, uint64_t step) {
    rp_sched_shape shape = rp_job_sched_shape(v->job, step, v->job->steps);
    RP_ASSERT(step <= v->job->steps);
    rp_sched_start(&v->list, &shape);
    shape.stage = 0;
    rp_method_order(&v->job->method, &shape);
    rp_sched_start(&v->entry, &shape);
    for (uint32_t i = 0; i < v->block_count; i++) {
        v->block[i] = (rp_version_block){0};
    }
    v->in_flight_count = 0;
    for (uint32_t r = 0; r < v->replicas; r++) {
        v->latest[r] = take_block(v, step);
        v->updates[r] = 0;
    }
    if (v->job->method.weights == RP_WEIGHTS_DOUBLE && step > 0) {
        (void)take_block(v, step - 1);
    }
}

void rp_versions_end(rp_versions *v, uint64_t step) {
    v->list.shape.step_end = v->entry.shape.step_end = step;
}

/* Advances the list, whose next op must be this one. */
static void pass_op(rp_versions *v, const rp_op *op) {
    rp_op due;
    const bool more = rp_job_next(v->job, &v->list, &due);
    RP_ASSERT(more && due.kind == op->kind && due.step == op->step && due.micro == op->micro);
}

/* Adds the forward to those in flight. If backwards have sizes of their own (rp_job_holds_steps()),
 * the forwards of a step share an entry: the schedule flushes, so no update comes between them. */
static void note_in_flight(rp_versions *v, const rp_op *op, const rp_weight_view *view) {
    const rp_range range = rp_job_slot_range(v->job, op);
    const uint32_t count = v->in_flight_count;
    if (rp_job_holds_steps(v->job) && count > 0 && v->in_flight[count - 1].step == op->step) {
        return;
    }
    RP_ASSERT(v->in_flight_count < v->in_flight_max);
    v->in_flight[v->in_flight_count++] = (rp_version_in_flight){
        .step = op->step,
        .samples = range,
        .left = range.count,
        .block = view->block,
        .updates = is_bounded(v) ? v->block[view->block].version - v->list.shape.step_first
                                 : v->updates[view->replica],
    };
}

rp_weight_view rp_versions_forward(rp_versions *v, const rp_op *op) {
    const rp_weights_rule rule = v->job->method.weights;
    rp_weight_view view = {.replica = (uint32_t)(op->step % v->replicas)};
    pass_op(v, op);
    view.block = v->latest[view.replica];
    if (v->job->role == RP_ROLE_FORWARD) { /* the weights that were written there */
        return view;
    }
    if (is_bounded(v)) {
        const uint64_t version = rp_sched_split_version(&v->list.shape, op->step);
        view.block = find_version(v, version);
        if (rule == RP_WEIGHTS_PIPEOPTIM && version > v->list.shape.step_first) {
            view.ahead = v->steady[op->micro];
        }
    } else if (rule == RP_WEIGHTS_ENTRY) {
        view.block = find_version(v, entry_version(v, &v->entry, op));
    } else if (rule == RP_WEIGHTS_DOUBLE) {
        view.block = find_version(v, doubled_version(op));
    } else if (rule == RP_WEIGHTS_PIPEOPTIM) {
        view.ahead = pipeoptim_horizon(v, op);
    } else if (rule >= RP_WEIGHTS_SPECTRAIN) {
        view.ahead = v->forward_ahead;
        view.reuse = rule == RP_WEIGHTS_XPIPE && op->micro > 0;
    }
    note_in_flight(v, op, &view);
    v->block[view.block].users += keeps_block(v);
    return view;
}

/* The forward of this backward's samples. */
static rp_version_in_flight *find_in_flight(const rp_versions *v, const rp_op *op) {
    uint32_t i = 0;
    while (i < v->in_flight_count &&
           (v->in_flight[i].step != op->step || op->samples.first < v->in_flight[i].samples.first ||
            op->samples.first - v->in_flight[i].samples.first >= v->in_flight[i].samples.count)) {
        i++;
    }
    RP_ASSERT(i < v->in_flight_count);
    return &v->in_flight[i];
}

rp_weight_view rp_versions_backward(rp_versions *v, const rp_op *op) {
    const rp_weights_rule rule = v->job->method.weights;
    const bool kept = keeps_block(v);
    const bool sees = sees_forwards(v);
    rp_weight_view view = {.replica = (uint32_t)(op->step % v->replicas)};
    pass_op(v, op);
    if (v->job->role == RP_ROLE_BACKWARD) {
        const uint64_t version = rp_sched_split_version(&v->list.shape, op->step);
        view.block = sees ? find_version(v, version) : v->latest[0];
        view.staleness = (uint32_t)(op->step - version);
        v->staleness_max = view.staleness > v->staleness_max ? view.staleness : v->staleness_max;
        return view;
    }
    rp_version_in_flight *in_flight = find_in_flight(v, op);
    view.staleness = (uint32_t)(v->updates[view.replica] - in_flight->updates);
    view.block = sees ? in_flight->block : v->latest[view.replica];
    view.forward = in_flight->block;
    if (rule >= RP_WEIGHTS_SPECTRAIN) {
        view.ahead = v->backward_ahead;
        view.reuse = rule == RP_WEIGHTS_XPIPE && op->micro > 0;
    }
    v->staleness_max = view.staleness > v->staleness_max ? view.staleness : v->staleness_max;
    if (op->kind == RP_OP_BACKWARD_INPUT) {
        return view;
    }
    RP_ASSERT(op->samples.count <= in_flight->left);
    in_flight->left -= op->samples.count;
    if (in_flight->left == 0) { /* the last part of the forward has had its backward */
        v->block[in_flight->block].users -= kept;
        v->in_flight_count--;
        memmove(in_flight, in_flight + 1,
                (size_t)(v->in_flight + v->in_flight_count - in_flight) * sizeof *in_flight);
    }
    return view;
}

rp_version_step rp_versions_update(rp_versions *v, const rp_op *op) {
    rp_version_step out = {.replica = (uint32_t)(op->step % v->replicas)};
    pass_op(v, op);
    const uint64_t needed = keeps_versions(v) ? needed_version(v) : UINT64_MAX;
    out.from = v->latest[out.replica];
    const rp_version_block *from = &v->block[out.from];
    const bool frozen = from->users > 0 || from->version >= needed;
    const uint64_t version = op->step + 1;
    free_blocks(v, needed); /* not `from`, which is still the newest */
    out.to = frozen ? take_block(v, version) : out.from;
    v->latest[out.replica] = out.to;
    v->block[out.to].version = version;
    v->updates[out.replica]++;
    return out;
}

uint32_t rp_versions_older(const rp_versions *v) {
    const uint32_t latest = v->latest[0];
    for (uint32_t i = 0; i < v->block_count; i++) {
        if (v->block[i].live && v->block[i].version + 1 == v->block[latest].version) {
            return i;
        }
    }
    return latest;
}
