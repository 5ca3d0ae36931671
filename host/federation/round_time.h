/* How long a round takes, before it starts, by the cost model of the planner: a site starts its
 * ring, receives the centre, trains its steps, and sends its weights back. */
#ifndef RP_FEDERATION_ROUND_TIME_H
#define RP_FEDERATION_ROUND_TIME_H

#include "data/split_file.h"
#include "federation/federation.h"
#include "run/runfile.h"

/* What is known of the time of ops. All zeros: only what `ring.throttle` says. */
typedef struct {
    const char *profile;   /* path of profile.json, for rings of all sites; NULL: none */
    double planned_step_s; /* of a step in the ring of the run file; 0: not planned */
    double op_s[2];     /* forward and backward of any layer, of a simulation; 0: not simulated */
    bool has_all_sites; /* a board that the profile lacks counts as its first one */
} rp_round_costs;

/* Times in seconds; NAN: unknown. */
typedef struct {
    uint64_t steps, samples; /* of a round */
    uint32_t batch;
    double start_s;      /* of the ring, and its end */
    double step_s;       /* one step */
    double down_s, up_s; /* the centre to the site, its weights back */
} rp_round_time;

/* The sum. NAN: a part of it is unknown. */
double rp_round_time_s(const rp_round_time *time);

/* The time of a round of each site in the order of the split file. `cost`: of the same run.
 * A site's weights travel over the line between the host and the first board of its ring, as
 * ring.link says.
 * errors  those of rp_runfile_read() for a site's own run file; those of rp_profile_read(); those
 *         of rp_planfile_make() and rp_predict() */
rp_err rp_round_times(rp_arena *arena, const rp_runfile *run, const rp_split_list *list,
                      const rp_federation_cost *cost, const rp_round_costs *costs,
                      rp_round_time **out) RP_MUST_CHECK;

/* A round before it starts. */
typedef struct {
    const char *site;   /* whose round takes longest, or the first one with an unknown time */
    rp_round_time time; /* its */
    double round_s;     /* of all sites of the round; NAN: unknown */
    bool at_most;       /* it depends on the sites that take part; these are the slowest ones */
} rp_round_forecast;
/* errors  those of rp_split_file_read() and rp_round_times() */
rp_err rp_round_predict(rp_arena *arena, const rp_runfile *run, const rp_federation_cost *cost,
                        const rp_round_costs *costs, rp_round_forecast *out) RP_MUST_CHECK;

/* Seconds of a round of all `count` sites, of which `at_once` train at a time, in their order.
 * NAN: the time of a site is unknown. Pure. */
double rp_round_length_s(const rp_round_time *time, uint32_t count, uint32_t at_once);

/* Keeps the `size` sites whose rounds take longest, in their order, at the first places. An unknown
 * time counts as the longest. */
void rp_round_keep_longest(rp_round_time *time, uint32_t count, uint32_t size);

#endif
