/* Finished ops: releases what they used and reports their results to the host. */
#include "agent/runner_own.h"
#include "sched/op_limit.h"

/* longest time counted per round; more means that the process was stopped */
static const int64_t LOOKS_NS = 1 * RP_NS_PER_S;

static int64_t start_of(const rp_runner *r, const running_op *op) {
    return op->issued_ns > r->last_done_ns ? op->issued_ns : r->last_done_ns;
}

/* Earliest end of the oldest op on the emulated board; 0 = no throttle. */
static int64_t throttle_end(const rp_runner *r, const running_op *op) {
    const rp_job *job = op->stage->job;
    if (!rp_throttle_is_set(&job->throttle)) {
        return 0;
    }
    const rp_throttled_op seen = rp_job_throttled_op(job, &op->op, op->time);
    const double least_s = op->exchanges ? 0 : rp_throttle_s(&job->throttle, &seen);
    return least_s > 0 ? start_of(r, op) + (int64_t)(least_s * 1e9) : 0;
}

int64_t rp_runner_sleep_ns(const rp_runner *r, int64_t most_ns) {
    const running_op *oldest = r->running_count > 0 ? &r->running[r->running_first] : NULL;
    const int64_t throttled_ns = oldest ? throttle_end(r, oldest) : 0;
    const int64_t known_ns = oldest ? oldest->mark.end_ns : 0; /* if the executor knows it */
    const int64_t end_ns = throttled_ns > known_ns ? throttled_ns : known_ns;
    const int64_t left_ns = end_ns - rp_clock_now_ns(r->at.clock);
    const bool is_late = r->looked_ns > 0 && r->looked_ns >= end_ns;
    return end_ns == 0 || is_late || left_ns > most_ns ? most_ns : left_ns > 0 ? left_ns : 0;
}

static void return_pieces(rp_port_in *port, rp_port_pieces *pieces) {
    if (port) {
        rp_port_in_return(port, pieces);
    }
}

static rp_err account_op(rp_runner *r, const running_op *op) {
    const bool gradient = op->op.kind == RP_OP_BACKWARD || op->op.kind == RP_OP_BACKWARD_WEIGHT;
    const bool forward =
        op->op.kind == RP_OP_FORWARD && !r->evaluating && op->stage->job->role == RP_ROLE_FORWARD;
    return gradient      ? rp_runner_account_gradient(op->stage, &op->op)
           : forward     ? rp_runner_account_forward(r, op->stage, &op->op)
           : op->updates ? rp_runner_account_update(r, op->stage, &op->op)
                         : RP_OK;
}

static rp_err finish_op(rp_runner *r, running_op *op, int64_t done_ns) {
    rp_err err = RP_OK;
    int64_t start_ns = start_of(r, op);
    r->last_done_ns = done_ns;
    r->longest_ns = rp_op_longest_ns(r->longest_ns, done_ns - start_ns);
    r->facts.busy_ns += done_ns > start_ns ? done_ns - start_ns : 0;
    r->facts.ops++;
    return_pieces(op->from, &op->input);
    return_pieces(op->labels, &op->target);
    return_pieces(op->rows, &op->row);
    if (op->rows_read) {
        rp_runner_return_rows(r, op);
    }
    if (!r->evaluating && !op->exchanges) {
        rp_stage_record_finish(op->stage->stage, &op->op); /* before the output is sent */
    }
    if (op->output) {
        rp_port_out_fill(op->output);
    }
    if (op->stash) {
        rp_port_out_fill(op->stash);
    }
    if (op->values) {
        rp_port_out_fill(op->values);
    }
    if (op->exchanges) { /* not an op of the schedule */
        op->stage->all = op->sum.count > 0 ? op->sum : op->stage->all;
        return RP_OK;
    }
    RP_TRY(account_op(r, op));
    RP_TRY(rp_runner_record_op(r, &op->op, start_ns, done_ns > start_ns ? done_ns : start_ns));
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        if (op->results && r->held[h].label) {
            RP_TRY(rp_runner_report_results(r, &r->held[h], &op->op));
        }
    }
    if (op->op.kind == RP_OP_UPDATE) {
        RP_TRY(rp_runner_flush_trace(r)); /* so that the host can show which boards are busy */
    }
    for (uint32_t h = 0; op->norms && h < r->at.held_count; h++) {
        RP_TRY(rp_runner_report_norms(r, &r->held[h], &op->op));
    }
    if (op->probe) {
        RP_TRY(rp_runner_report_probe(r, op));
    }
fail:
    return err;
}

/* Adds to the run time of the oldest op. Time in which this process was stopped is not counted. */
static void note_at_work(rp_runner *r, const running_op *op) {
    const int64_t now_ns = rp_clock_now_ns(r->at.clock);
    const int64_t start_ns = start_of(r, op);
    const int64_t since_ns = now_ns - (r->looked_ns > start_ns ? r->looked_ns : start_ns);
    r->at_work_ns += since_ns < LOOKS_NS ? since_ns : LOOKS_NS;
    r->looked_ns = now_ns;
}

rp_err rp_runner_collect(rp_runner *r) {
    while (r->running_count > 0) {
        running_op *op = rp_runner_running(r, 0);
        bool done;
        int64_t done_ns = 0;
        rp_err err = rp_stage_poll(op->stage->stage, &op->mark, &done, &done_ns);
        if (err != RP_OK || !done) {
            note_at_work(r, op);
            return err;
        }
        r->at_work_ns = r->looked_ns = 0;
        const int64_t throttled_ns = throttle_end(r, op);
        if (throttled_ns > rp_clock_now_ns(r->at.clock)) {
            return RP_OK;
        }
        done_ns = done_ns > throttled_ns ? done_ns : throttled_ns;
        rp_stage_release(op->stage->stage, &op->mark);
        r->running_first = (r->running_first + 1) % RP_RUNNER_DEPTH;
        r->running_count--;
        err = finish_op(r, op, done_ns);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}
