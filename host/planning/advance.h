/* How many minibatches must be in flight so that slow links leave no board idle: `advance: auto`.
 *
 * A schedule without a flush keeps D - k forwards open on stage k, which fills the pipes when links
 * take no time. With a delay between the boards a gradient comes back later, and the board waits.
 * More forwards fill the gap; the price is staleness (or, for ea-pipe, more replicas, METHODS 9),
 * so the smallest number is taken that is not slower than the best one by more than 2 %, of those
 * that the method's limit allows (rp_method_advance_most()). Pure: costs in, a number out. */
#ifndef RP_PLANNING_ADVANCE_H
#define RP_PLANNING_ADVANCE_H

#include "sched/method.h"
#include "sched/replay.h"

typedef struct {
    uint32_t advance;
    uint32_t tried;                  /* from 0 on: numbers in .. */
    double busy[RP_ADVANCE_MAX + 1]; /* by advance: share of the time that a board works */
    double busy_most;                /* with any number in flight */
    double work;                     /* seconds of a board for a microbatch, the mean of all */
    double slowest;                  /* .. and of the slowest board, link or feed */
    double most_delay;               /* of a link, seconds */
} rp_advance_choice;

/* `shape`: batch, microbatch and stages of the run; `costs` and `feed` (of the inputs of a
 * microbatch, on their link) in seconds.
 * errors  of the replay: FAULT, MEMORY */
rp_err rp_advance_choose(const rp_method *method, const rp_sched_shape *shape,
                         const rp_sched_costs *costs, double feed,
                         rp_advance_choice *out) RP_MUST_CHECK;

/* The advance that would fill the pipes, by the slowest board and the longest link; no limit but
 * RP_ADVANCE_MAX. Pure. */
uint32_t rp_advance_wanted(const rp_advance_choice *choice);

/* Whether the choice replaces `now`: a larger advance must gain 5 % of the boards' time, a smaller
 * one is always taken, because rp_advance_choose() takes it only where it costs at most 2 %. */
bool rp_advance_pays(const rp_advance_choice *choice, uint32_t now);

/* The share of the time that a board works, in a run so long that filling and draining hardly
 * count. `costs` NULL: every op takes as long as any other, and links take no time.
 * errors  of the replay: FAULT, MEMORY */
rp_err rp_advance_busy(const rp_method *method, const rp_sched_shape *shape,
                       const rp_sched_costs *costs, double *busy) RP_MUST_CHECK;

#endif
