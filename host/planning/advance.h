/* Chooses `advance: auto`: how many more forwards must be in flight so that slow links leave no
 * board idle.
 *
 * A schedule without a flush keeps D - k forwards in flight on stage k of D. If links delay
 * parcels, a gradient comes back later and the board waits. More forwards fill that time, at the
 * price of staleness (for ea-pipe: of more replicas, METHODS 9). So the smallest advance is chosen
 * that is at most 2 % slower than the best one within the method's limit
 * (rp_method_advance_most()). Pure. */
#ifndef RP_PLANNING_ADVANCE_H
#define RP_PLANNING_ADVANCE_H

#include "sched/method.h"
#include "sched/replay.h"

typedef struct {
    uint32_t advance;
    uint32_t tried;                  /* advances 0 to tried - 1 are in `busy` */
    double busy[RP_ADVANCE_MAX + 1]; /* by advance: fraction of the time that boards compute */
    double busy_most;                /* upper bound for any advance */
    double work;       /* seconds that a board computes for a microbatch, mean of all boards */
    double slowest;    /* seconds for a microbatch of the slowest board, link or feed */
    double most_delay; /* longest latency of a link, in seconds */
} rp_advance_choice;

/* `shape`: batch, microbatch and stages of the run. `costs` and `feed`, the inputs of a microbatch
 * on their link, are in seconds.
 * errors  of the replay: FAULT, MEMORY */
rp_err rp_advance_choose(const rp_method *method, const rp_sched_shape *shape,
                         const rp_sched_costs *costs, double feed,
                         rp_advance_choice *out) RP_MUST_CHECK;

/* The advance that would keep the slowest board busy during the longest round trip, at most
 * RP_ADVANCE_MAX. Pure. */
uint32_t rp_advance_wanted(const rp_advance_choice *choice);

/* Whether the choice should replace the advance `now`. A larger advance must gain 5 % of the
 * boards' time. A smaller one is always taken, because it costs at most 2 %. */
bool rp_advance_pays(const rp_advance_choice *choice, uint32_t now);

/* The fraction of the time that boards compute, in a run of many steps, where filling and draining
 * hardly count. `costs` NULL: all ops take equally long, and links take no time.
 * errors  of the replay: FAULT, MEMORY */
rp_err rp_advance_busy(const rp_method *method, const rp_sched_shape *shape,
                       const rp_sched_costs *costs, double *busy) RP_MUST_CHECK;

#endif
