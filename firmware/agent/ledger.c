/* The ledger of the stages here: which samples' gradients an update contains, and that it has each
 * sample of its step exactly once. For a stage that several boards share it includes those of all
 * of them. */
#include <inttypes.h>

#include "agent/runner_own.h"

void rp_runner_begin_account(rp_runner *r, uint64_t digest) {
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        r->held[h].ledger = (rp_run_ledger){.digest = digest};
    }
}

static rp_err fail_account(const runner_stage *s, uint64_t step, const char *whose, uint32_t found,
                           uint32_t due) {
    return rp_fail(RP_ERR_PEER,
                   "the ledger of stage %u: the update of step %" PRIu64
                   " has gradients of %u samples%s, expected %u, each once",
                   s->job->stage, step + 1, found, whose, due);
}

/* A backward has added its samples' gradients. */
rp_err rp_runner_account_gradient(runner_stage *s, const rp_op *op) {
    if (s->own.count > 0 && s->account_step != op->step) {
        return rp_fail(RP_ERR_PEER,
                       "the ledger of stage %u: a gradient of step %" PRIu64
                       " arrived before step %" PRIu64 " was complete",
                       s->job->stage, op->step + 1, s->account_step + 1);
    }
    s->account_step = op->step;
    rp_contributions_add(&s->own, op->step, op->samples);
    return RP_OK;
}

static rp_err refuse_forward(const runner_stage *s, const rp_range *whole) {
    return rp_fail(RP_ERR_PEER,
                   "the ledger of stage %u: step %" PRIu64
                   " had forwards of %u samples, expected %u, each once",
                   s->job->stage, s->account_step + 1, s->own.count, whole->count);
}

/* Forwards run step by step. A board with only forwards counts each sample once; its backward, on
 * another board, adds the gradient. */
rp_err rp_runner_account_forward(const rp_runner *r, runner_stage *s, const rp_op *op) {
    const rp_range whole = {0, rp_runner_step_samples(r, op->step)};
    if (s->own.count > 0 && s->account_step != op->step) {
        return refuse_forward(s, &whole);
    }
    s->account_step = op->step;
    rp_contributions_add(&s->own, op->step, op->samples);
    if (s->own.count < whole.count) {
        return RP_OK;
    }
    if (!rp_contributions_equal(s->own, rp_contributions_of(op->step, whole))) {
        return refuse_forward(s, &whole);
    }
    s->own = (rp_contributions){0};
    return RP_OK;
}

rp_err rp_runner_account_update(const rp_runner *r, runner_stage *s, const rp_op *op) {
    const rp_range whole = {0, rp_runner_step_samples(r, op->step)};
    const rp_range part = rp_job_own_samples(s->job, whole.count);
    const rp_contributions due = rp_contributions_of(op->step, whole);
    const rp_contributions own_due =
        part.count == whole.count ? due : rp_contributions_of(op->step, part);
    /* without weights, boards that share the stage exchange nothing, so each accounts for its
     * part */
    const bool has_all = s->summands || !rp_job_is_shared(s->job);
    const rp_contributions all = s->all.count > 0 ? s->all : has_all ? s->own : due;
    rp_err err = RP_OK;
    if (!rp_contributions_equal(s->own, own_due)) {
        err = fail_account(s, op->step, part.count < whole.count ? " of this board" : "",
                           s->own.count, own_due.count);
    } else if (!rp_contributions_equal(all, due)) {
        err = fail_account(s, op->step, " of all boards", all.count, due.count);
    }
    rp_run_ledger_add(&s->ledger, op->step, all);
    s->own = s->all = (rp_contributions){0};
    return err;
}

rp_err rp_runner_ledger(const rp_runner *r, rp_run_ledger *out) {
    *out = r->held[0].ledger;
    for (uint32_t h = 1; h < r->at.held_count; h++) {
        const runner_stage *s = &r->held[h];
        if (s->ledger.digest != out->digest || s->ledger.samples != out->samples) {
            return rp_fail(RP_ERR_PEER,
                           "the ledgers of stages %u and %u differ: %" PRIu64 " and %" PRIu64
                           " samples",
                           r->held[0].job->stage, s->job->stage, out->samples, s->ledger.samples);
        }
    }
    return RP_OK;
}
