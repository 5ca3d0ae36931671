/* What all seeds of a simulation of sites share: the run file, the sites and their times. */
#ifndef RP_SIMSITES_SUBJECT_H
#define RP_SIMSITES_SUBJECT_H

#include "federation/federation.h"
#include "federation/round_time.h"
#include "federation/trace.h"
#include "simsites/standin.h"
#include "sites/rules.h"

/* All pointers are in `arena`. */
typedef struct {
    rp_arena arena;
    rp_runfile run;
    rp_split_list list;
    rp_federation_cost cost;
    rp_trace_site *trace; /* [sites]; NULL: all sites are always there */
    rp_round_time *time;  /* [sites]; an unknown line takes no time */
    rp_standin standin;
    rp_round_rules rules; /* options of `sites` for a site's round */
    bool keeps_state;     /* a site keeps something from one round to the next */
    bool has_options;     /* rules change what leaves a site, or what it keeps */
    double round_s;       /* of the longest round without faults */
} rp_sim_sites_subject;

/* `executor`: "digest": an op takes a fixed time; "timed": as `profile`, a profile.json, or
 * ring.throttle says.
 * errors  those of the run file, the split file, the trace and the profile; USAGE: the time of a
 *         step is unknown */
rp_err rp_sim_sites_open(const char *run_path, const char *const *set, uint32_t set_count,
                         const char *executor, const char *profile,
                         rp_sim_sites_subject *out) RP_MUST_CHECK;
void rp_sim_sites_close(rp_sim_sites_subject *subject);

#endif
