/* Step decisions: whether an update waits for one, and the last one received. */
#include "agent/runner_own.h"

bool rp_runner_asks(const rp_runner *r) {
    const rp_job *job = r->held[0].job;
    return !r->evaluating &&
           rp_decision_maker_of(&job->method, &job->optim, job->guard) != RP_DECISION_NONE;
}

rp_err rp_runner_decide_step(rp_runner *r, uint64_t step, float grad_scale, bool skip) {
    if (!r->active || !r->waiting_decision || r->next.step != step) {
        return rp_fail(RP_ERR_PEER,
                       "received a step decision for step %llu, but no update waits for it",
                       (unsigned long long)step);
    }
    r->waiting_decision = false;
    r->grad_scale = grad_scale;
    r->skip = skip;
    r->decided_end = step + 1;
    return RP_OK;
}
