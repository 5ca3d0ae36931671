/* Predicts the time of a step of a plan, by its replay with the profile's costs.
 *
 * An op takes the time of its layers, codecs, predictions, averages and, if measured, handling. A
 * parcel occupies its wire for its bytes at the wire's rate. On a medium that directions or wires
 * share, it does so one parcel at a time, in the order in which they are ready. Latency and copies
 * to and from devices only delay. Windows block senders as in a run. The host's inputs and labels
 * have their own wires, and boards that share a stage exchange gradients before its update. */
#ifndef RP_PLANNING_PREDICT_H
#define RP_PLANNING_PREDICT_H

#include "plan/plan.h"
#include "planning/profile.h"

/* A step in the middle of a run, with all its microbatches. */
typedef struct {
    double step_s;
    double work_s;  /* seconds that the busiest board computes */
    uint32_t board; /* the busiest board */
    double wire_s;  /* seconds that the busiest wire is occupied, or its medium */
    uint32_t from, to;
    bool takes_turns; /* that wire shares a medium */
    char limits[160]; /* what limits the step, as a clause for people */
    uint32_t holds;
    double (*op_s)[RP_OP_KINDS]; /* [holds]: op of a full microbatch by kind, without handling; 0:
                                    the hold has no such op */
} rp_prediction;

/* `profile`: with the plan's boards at their places. `delay_s`: assumed latency of a wire that was
 * not measured. errors  those of rp_plan_replay() */
rp_err rp_predict(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                  const rp_plan *plan, double delay_s, rp_prediction *out) RP_MUST_CHECK;

#endif
