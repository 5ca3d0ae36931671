/* How long a step of a plan takes: its replay, with what was measured of boards and wires.
 *
 * A wire is busy for as long as the bytes take at its rate, each direction for itself; where
 * directions, or several wires, take turns, one parcel at a time in the order in which they are
 * ready. The latency only delays, and so do copies to and from the devices. Windows hold senders
 * back as in a run. The host's inputs and labels travel over their own wires, and boards that share
 * a stage exchange gradients before its update. An op takes what was measured of its layers, of
 * codecs, predictions and averages, and of its handling where that was measured. */
#ifndef RP_PLANNING_PREDICT_H
#define RP_PLANNING_PREDICT_H

#include "plan/plan.h"
#include "planning/profile.h"

/* Of a step far from a run's begin and end, with all its microbatches. */
typedef struct {
    double step_s;
    double work_s;  /* of it the busiest board computes */
    uint32_t board; /* the busiest */
    double wire_s;  /* of it the busiest wire is in use, in one direction .. */
    uint32_t from, to;
    bool takes_turns; /* .. or, with all that take turns with it, in all directions */
    char limits[160]; /* what the step waits for most, for people */
    uint32_t holds;
    double (*op_s)[RP_OP_KINDS]; /* [holds], as the plan has them: of a full microbatch; 0: the hold
                                    does no such op */
} rp_prediction;

/* `profile`: with its boards at their places. `delay_s`: of a wire whose latency nobody knows.
 * errors  those of rp_plan_replay() */
rp_err rp_predict(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                  const rp_plan *plan, double delay_s, rp_prediction *out) RP_MUST_CHECK;

#endif
