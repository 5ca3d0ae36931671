/* How many minibatches must be in flight so that slow links leave no board idle: `advance: auto`.
 *
 * A schedule without a flush keeps D - k forwards open on stage k, which fills the pipes when links
 * take no time. With a delay between the boards a gradient comes back later, and the board waits.
 * More forwards fill the gap; the price is staleness (or, for ea-pipe, more replicas, METHODS 9),
 * so the smallest number is taken that is not slower than the best one by more than 2 %. Pure:
 * costs in, a number out. */
#ifndef RP_PLANNING_ADVANCE_H
#define RP_PLANNING_ADVANCE_H

#include "sched/method.h"
#include "sched/replay.h"

typedef struct {
    uint32_t advance;
    double busy[RP_ADVANCE_MAX + 1]; /* by advance: share of the time that a board works */
} rp_advance_choice;

/* `shape`: batch, microbatch and stages of the run; `costs` in seconds.
 * errors  of the replay: FAULT, MEMORY */
rp_err rp_advance_choose(const rp_method *method, const rp_sched_shape *shape,
                         const rp_sched_costs *costs, rp_advance_choice *out) RP_MUST_CHECK;

/* Whether it pays to leave `now`: for 5 % of the boards' time, or for fewer in flight that cost no
 * more than 1 % of it. What was measured twice is never quite the same. */
bool rp_advance_pays(const rp_advance_choice *choice, uint32_t now);

/* The share of the time that a board works, in a run so long that filling and draining hardly
 * count. `costs` NULL: every op takes as long as any other, and links take no time.
 * errors  of the replay: FAULT, MEMORY */
rp_err rp_advance_busy(const rp_method *method, const rp_sched_shape *shape,
                       const rp_sched_costs *costs, double *busy) RP_MUST_CHECK;

#endif
