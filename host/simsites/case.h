/* A simulation of a federated run with any seed. */
#ifndef RP_SIMSITES_CASE_H
#define RP_SIMSITES_CASE_H

#include "sim/faults.h"
#include "simsites/reference.h"

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

#endif
