/* Runs one seed: starts the federated run again until it has finished, then compares what it came
 * to with the reference. */
#ifndef RP_SIMSITES_LIVES_H
#define RP_SIMSITES_LIVES_H

#include "sim/seeds.h"
#include "simsites/reference.h"
#include "simsites/virtual.h"

/* What all seeds share; pointers are borrowed. */
typedef struct {
    const rp_sim_sites_subject *subject;
    const rp_sim_round *asked; /* [rounds] */
    const char *run_path;
    const char *const *set;
    uint32_t set_count;
    const char *out;             /* run folder that stays; NULL: a temporary one */
    const rp_sim_faults *faults; /* of every seed; NULL: drawn, or none */
    bool draws_faults;
    bool json;
    FILE *progress; /* of the run; NULL: not shown */
    FILE *result;   /* gets the result of the run once it has finished; NULL: not shown */
    FILE *trace;    /* gets faults and events; NULL: not shown */
} rp_sim_sites_case;

/* errors  IO, MEMORY; the run's own outcome is in *out */
rp_err rp_sim_sites_judge(const rp_sim_sites_case *what, uint64_t seed,
                          rp_sim_result *out) RP_MUST_CHECK;

#endif
