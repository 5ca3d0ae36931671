/* Decides which lanes take part in a round: a pure function of facts about the lanes. */
#ifndef RP_LANES_ROUND_H
#define RP_LANES_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "run/lanes.h"

typedef enum {
    RP_LANE_AT_WORK, /* it trains, as far as known */
    RP_LANE_WAITS,   /* its checkpoint is written, and it waits for the round */
    RP_LANE_AWAY,    /* it was in recovery, or its controller had ended, and has not reached a round
                        since */
    RP_LANE_OVER     /* it has done all its steps, or was given up */
} rp_lane_condition;

typedef struct {
    rp_lane_condition condition;
    uint32_t missed;  /* rounds closed without it since its last one */
    uint32_t may_lag; /* while it works, it may miss this many rounds before the run waits for it */
} rp_round_lane;

typedef struct {
    rp_round_lane lane[RP_LANES_MAX];
    uint32_t count;
    double alpha;
    int64_t waited_ns; /* since the first lane waits */
    int64_t bound_ns;  /* longest wait for lanes that work */
} rp_round_facts;

typedef struct {
    bool closes;                /* the round closes now */
    double alpha[RP_LANES_MAX]; /* by lane; 0: does not take part */
    uint32_t lag[RP_LANES_MAX]; /* rounds that a member has missed */
    uint32_t members;
} rp_round_decision;

/* A round closes with the lanes that wait, as soon as every working lane may still miss a round, or
 * the wait has lasted bound_ns. Lanes that are away are not waited for; a lane that comes back may
 * be a fraction of a round late. A late lane moves the centre less, and is moved less: alpha / (1 +
 * lag). */
void rp_round_decide(const rp_round_facts *facts, rp_round_decision *out);

/* Returns the lag that `lag: auto` allows: the number of rounds that pass before the lane arrives,
 * at its 95th percentile. `delay_ns`: its delays after the first lane. 0 for a lane that arrives
 * within a round's time or within some seconds, or about which little is known. */
enum { RP_ROUND_LAG_MOST = 8, RP_ROUND_TIMES_MAX = 32, RP_ROUND_KNOWN = 8 };
#define RP_ROUND_PATIENCE_NS (INT64_C(5) * 1000000000)
uint32_t rp_round_lag(const int64_t *delay_ns, uint32_t delays, const int64_t *round_ns,
                      uint32_t rounds);
/* The 95th percentile; 0 without values. At most RP_ROUND_TIMES_MAX values. */
int64_t rp_round_p95(const int64_t *ns, uint32_t count);

#endif
