/* Inside of a runner; only for runner.c, labels.c, finished.c and flight.c. */
#ifndef RP_AGENT_RUNNER_OWN_H
#define RP_AGENT_RUNNER_OWN_H

#include "agent/inlet.h"
#include "agent/outlet.h"
#include "agent/runner.h"

typedef struct {
    rp_op op;
    rp_fence fence;
    int64_t issued_ns;
    rp_message *input; /* borrowed by the device until the fence */
    rp_inlet *from;
    rp_outlet_slot *output;
    bool results; /* the step's losses are in the results memory */
    bool probe;   /* a probe's norms are in the probe memory */
    rp_stage_probe about;
    bool norms; /* the step's norms are in the norms memory */
} running_op;

struct rp_runner {
    rp_arena *arena;
    rp_runner_links at;
    rp_outlet forward, backward;
    rp_inlet activation, gradient, input;
    rp_message **label; /* oldest first */
    uint32_t label_count, label_max;
    rp_message *feed_head; /* taken from the feed, not placed yet */

    bool active, evaluating, ops_over;
    rp_sched_state sched;  /* behind `next` when there is one */
    rp_sched_state before; /* ahead of it */
    uint64_t pause;        /* no op is asked for behind the update of the step before it */
    bool at_update;        /* the last op issued was an update, or there was none yet */
    bool eval_training;
    uint64_t eval_step, eval_samples;
    uint32_t eval_micro;
    rp_op next;
    bool have_next;

    running_op running[RP_RUNNER_DEPTH];
    uint32_t running_count;
    int64_t last_done_ns;

    bool waiting_verdict, have_verdict, skip;
    float grad_scale;

    float *results, *norms, *probe;
    double *sumsq;

    uint64_t fill;           /* where the pipes were filled: the step that sched began at */
    rp_sched_state above;    /* the list of the stage before, at the last pause */
    uint64_t forwards_above; /* of that list, and own ones, since the fill */
    uint64_t forwards;
    uint32_t in_flight;
    size_t flight_due, flight_got; /* bytes of a checkpoint's flight: all, and those that came */
    rp_runner_facts facts;
    uint8_t *trace;
    uint32_t trace_count;
};

/* All lists as they are where the pipes are filled at `step`. */
void rp_runner_fill(rp_runner *runner, uint64_t step);
/* Walks the list of the stage before to the pause. */
void rp_runner_count_above(rp_runner *runner, uint64_t pause);
/* Samples of a step of the segment under way. */
uint32_t rp_runner_step_samples(const rp_runner *runner, uint64_t step);

/* labels.c: takes what the feed has brought. */
rp_err rp_runner_drain_feed(rp_runner *runner) RP_MUST_CHECK;
/* The labels of the op's step, or NULL when they have not come yet. */
rp_err rp_runner_find_target(rp_runner *runner, const rp_op *op, const void **target) RP_MUST_CHECK;
void rp_runner_drop_label(rp_runner *runner, uint64_t step);

/* finished.c: takes finished ops out of running[], oldest first, and reports what they gave. */
rp_err rp_runner_collect(rp_runner *runner) RP_MUST_CHECK;
/* Reports of finished steps must never find the control link full. */
bool rp_runner_may_report(const rp_runner *runner);
rp_err rp_runner_flush_trace(rp_runner *runner) RP_MUST_CHECK;

#endif
