/* Who takes part in a round: a pure function of what is known of the lanes. */
#ifndef RP_LANES_ROUND_H
#define RP_LANES_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "run/lanes.h"

typedef enum {
    RP_LANE_AT_WORK, /* it trains, as far as is known */
    RP_LANE_WAITS,   /* its checkpoint is there, and it waits for the others */
    RP_LANE_AWAY,    /* it was on a way back, or its controller had ended, and has not come since */
    RP_LANE_OVER     /* it has done all its steps, or was given up */
} rp_lane_condition;

typedef struct {
    rp_lane_condition condition;
    uint32_t missed;  /* rounds that were closed without it since its last one */
    uint32_t may_lag; /* at work, it may miss so many before the others wait for it */
} rp_round_lane;

typedef struct {
    rp_round_lane lane[RP_LANES_MAX];
    uint32_t count;
    double alpha;
    int64_t waited_ns; /* since the first of them waits */
    int64_t bound_ns;  /* that lanes at work are waited for */
} rp_round_facts;

typedef struct {
    bool closes;                /* now */
    double alpha[RP_LANES_MAX]; /* by lane; 0: it does not take part */
    uint32_t lag[RP_LANES_MAX]; /* rounds that a member has missed */
    uint32_t members;
} rp_round_decision;

/* A round closes with the lanes that wait, when no lane is at work that has missed as many rounds
 * as it may, or when those that wait have done so for long. Lanes that are away are not waited for:
 * one that is back at work has a part of a round behind the others.
 * Who comes late moves the centre, and is moved, less: alpha / (1 + lag). */
void rp_round_decide(const rp_round_facts *facts, rp_round_decision *out);

/* So many rounds are over, at 95 % of its arrivals, before a lane comes: what `lag: auto` allows.
 * `delay_ns`: how long after the first lane it came. A lane that comes within a round's time, or
 * within some seconds, or of which little is known, is waited for. */
enum { RP_ROUND_LAG_MOST = 8, RP_ROUND_TIMES_MAX = 32, RP_ROUND_KNOWN = 8 };
#define RP_ROUND_PATIENCE_NS (INT64_C(5) * 1000000000)
uint32_t rp_round_lag(const int64_t *delay_ns, uint32_t delays, const int64_t *round_ns,
                      uint32_t rounds);
/* The value that 95 % do not pass; 0 without any. At most RP_ROUND_TIMES_MAX of them. */
int64_t rp_round_p95(const int64_t *ns, uint32_t count);

#endif
