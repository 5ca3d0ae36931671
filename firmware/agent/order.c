/* The list of ops: a runner's position in it, and its next op, in training and in an evaluation. */
#include "agent/runner_own.h"

running_op *rp_runner_running(rp_runner *r, uint32_t index) {
    return &r->running[(r->running_first + index) % RP_RUNNER_DEPTH];
}

void rp_runner_start_order(rp_runner *r, uint64_t step) {
    rp_sched_shape shape = rp_job_sched_shape(r->held[0].job, step, r->held[0].job->steps);
    rp_sched_start(&r->sched, &shape);
    shape.stage -= shape.stage > 0;
    rp_method_order(&r->held[0].job->method, &shape);
    rp_sched_start(&r->above, &shape);
    r->fill_step = r->plan.fill_step = step;
    r->forwards = r->forwards_above = 0;
    r->in_flight = 0;
    rp_runner_start_far(r, step);
}

void rp_runner_count_in_flight(rp_runner *r, const rp_op *op) {
    r->in_flight =
        rp_sched_open_behind(r->held[0].job->method.kind, r->in_flight, op, RP_OP_BACKWARD_INPUT);
}

void rp_runner_count_above(rp_runner *r, uint64_t pause) {
    rp_op op;
    while (r->above.step < pause && r->held[0].job->method.kind->next(&r->above, &op)) {
        r->forwards_above += op.kind == RP_OP_FORWARD;
    }
    rp_runner_count_far(r, pause);
}

/* The steps of an evaluation: `batch` samples each, the last one may be short. */
static rp_sched_shape eval_shape(const rp_runner *r) {
    rp_sched_shape shape = rp_job_sched_shape(r->held[0].job, 0, UINT64_MAX);
    shape.epoch_samples = r->eval_samples;
    return shape;
}

uint32_t rp_runner_step_samples(const rp_runner *r, uint64_t step) {
    const rp_sched_shape shape = eval_shape(r);
    return rp_sched_step_samples(r->evaluating ? &shape : &r->sched.shape, step);
}

/* ---- the next op ----------------------------------------------------------------------------- */

/* A board that only updates sends its newest weights to the board with the forwards. */
static bool next_of_backward(rp_runner *r, rp_op *op) {
    *op = (rp_op){.kind = RP_OP_UPDATE,
                  .role = RP_ROLE_BACKWARD,
                  .stage = r->held[0].job->stage,
                  .step = r->eval_step++};
    return op->step == 0;
}

/* Forwards step by step; after the last microbatch of a step an UPDATE collects its results.
 * Several stages alternate in groups of one microbatch a node, as in training, while the previous
 * group passes the ring. */
static bool next_eval(rp_runner *r, rp_op *op) {
    const rp_sched_shape shape = eval_shape(r);
    if (r->held[0].job->role == RP_ROLE_BACKWARD) {
        return next_of_backward(r, op);
    }
    const uint64_t group = r->at.held_count > 1 ? rp_sched_nodes(&shape) : 1;
    if (r->eval_step == rp_sched_epoch_steps(&shape)) {
        return false;
    }
    const uint32_t count = rp_sched_micro_count(&shape, r->eval_step);
    const uint64_t positions = (count + group - 1) / group * group * r->at.held_count;
    while (r->eval_position < positions) {
        const uint64_t i = r->eval_position++;
        const uint64_t micro = i / (group * r->at.held_count) * group + i % group;
        if (micro < count) {
            *op = (rp_op){.kind = RP_OP_FORWARD, .step = r->eval_step, .micro = (uint32_t)micro};
            op->stage = r->held[i / group % r->at.held_count].job->stage;
            op->samples = rp_sched_micro_range(&shape, r->eval_step, op->micro);
            return true;
        }
    }
    *op = (rp_op){.kind = RP_OP_UPDATE, .stage = r->held[0].job->stage, .step = r->eval_step++};
    r->eval_position = 0;
    return true;
}

/* Skips an op of a split stage's other half. All forwards of an update's step have been counted
 * (rp_runner_account_forward), so the ledger has them when the update is skipped. */
static void pass_other_half(rp_runner *r, const rp_op *op) {
    runner_stage *s = &r->held[0];
    rp_runner_count_in_flight(r, op);
    if (s->job->role == RP_ROLE_FORWARD) {
        r->facts.microbatches += op->kind == RP_OP_BACKWARD || op->kind == RP_OP_BACKWARD_WEIGHT;
    }
    if (s->job->role == RP_ROLE_FORWARD && op->kind == RP_OP_UPDATE) {
        const rp_range whole = {0, rp_runner_step_samples(r, op->step)};
        rp_run_ledger_add(&s->ledger, op->step, rp_contributions_of(op->step, whole));
    }
}

static bool next_training(rp_runner *r) {
    const rp_role role = r->held[0].job->role;
    r->before = r->sched;
    if (r->at_update && r->sched.step == r->pause) {
        return false;
    }
    while (r->held[0].job->method.kind->next(&r->sched, &r->next)) {
        if (rp_role_does(role, r->next.kind)) {
            r->next.role = role;
            return true;
        }
        pass_other_half(r, &r->next);
        r->at_update = r->next.kind == RP_OP_UPDATE;
        r->before = r->sched;
        if (r->at_update && r->sched.step == r->pause) {
            return false;
        }
    }
    return false;
}

bool rp_runner_next_op(rp_runner *r) {
    return r->evaluating ? next_eval(r, &r->next) : next_training(r);
}

rp_err rp_runner_commit_part(rp_runner *r, running_op *op) {
    op->issued_ns = rp_clock_now_ns(r->at.clock);
    rp_err err = rp_stage_mark(op->stage->stage, &op->mark);
    r->running_count += err == RP_OK;
    return err;
}
