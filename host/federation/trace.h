/* Availability of sites over time, as JSON in FedScale's form:
 *
 *   {"site-0": {"active": [0, 30], "inactive": [10, 40], "finish_time": 60}, ...}
 *
 * A site is there from active[i] to before inactive[i], in seconds; the times repeat after
 * finish_time. Further keys of a site are ignored (FedScale: duration, model).
 * source  FedScale (2105.11367), client_behave_trace */
#ifndef RP_FEDERATION_TRACE_H
#define RP_FEDERATION_TRACE_H

#include <stdbool.h>

#include "base/arena.h"

enum { RP_TRACE_INTERVALS_MAX = 100000 };

typedef struct {
    const double *on, *off; /* [count] ascending: on[i] < off[i] <= on[i + 1], off <= period */
    uint32_t count;
    double period_s; /* above 0 */
} rp_trace_site;

/* Reads the trace of each of `name` [sites].
 * errors  USAGE with path, site and what was expected; MEMORY */
rp_err rp_trace_read(rp_arena *arena, const char *path, const char *const *name, uint32_t sites,
                     rp_trace_site **out) RP_MUST_CHECK;

/* Is the site there at this time, at least 0? */
bool rp_trace_is_there(const rp_trace_site *site, double at_s);

#endif
