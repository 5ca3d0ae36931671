/* A line's rate, delay and loss over time: each point holds until the next one. The trace repeats
 * after the last. */
#ifndef RP_TRANSPORT_TRACE_H
#define RP_TRANSPORT_TRACE_H

#include "base/arena.h"

enum { RP_TRACE_POINTS_MAX = 16384 };

/* Longest trace, and shortest time that a point holds. */
#define RP_TRACE_PERIOD_MAX_S 86400.0
#define RP_TRACE_HOLD_MIN_S 0.001

typedef struct {
    double at_s;      /* since the trace's start; the first is 0 */
    double rate_mbit; /* 0: nothing is sent */
    double delay_ms;
    double loss; /* probability per packet */
} rp_trace_point;

/* Values that the trace does not have are taken from the line's profile. */
typedef struct {
    bool has_rate, has_delay, has_loss;
    double period_s;
    uint32_t count;
    const rp_trace_point *point;
} rp_link_trace;

/* The problem in plain language, or NULL if the trace is valid: points ascend from 0 to below the
 * period, values are in range, and some rate is above 0. *index: the point that is wrong. */
const char *rp_link_trace_wrong(const rp_link_trace *trace, uint32_t *index);

/* The point in force `since_ns` after the start. */
const rp_trace_point *rp_link_trace_at(const rp_link_trace *trace, int64_t since_ns);

/* Time at which `bits`, sent from `since_ns` on, have been sent; needs has_rate. */
int64_t rp_link_trace_end_ns(const rp_link_trace *trace, int64_t since_ns, double bits);

/* Over a whole period: the mean rate (0 without has_rate), the time-weighted mean delay, and the
 * longest time for which the rate is at most `most_mbit`. */
double rp_link_trace_mean_mbit(const rp_link_trace *trace);
double rp_link_trace_mean_delay_ms(const rp_link_trace *trace);
double rp_link_trace_longest_s(const rp_link_trace *trace, double most_mbit);

/* One line: "60 rd 0,10,20 1.5,8,25" (period; which of rate, delay, loss it has; points). Reads
 * back equal. errors MEMORY; parse: FORMAT */
rp_err rp_link_trace_text(const rp_link_trace *trace, rp_arena *arena, char **out) RP_MUST_CHECK;
rp_err rp_link_trace_parse(rp_arena *arena, const char *text,
                           const rp_link_trace **out) RP_MUST_CHECK;

#endif
