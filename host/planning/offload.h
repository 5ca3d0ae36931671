/* What it costs to have stashes elsewhere while they wait, in seconds of a microbatch: offload
 * (METHODS 11.1). Pure. */
#ifndef RP_PLANNING_OFFLOAD_H
#define RP_PLANNING_OFFLOAD_H

#include "planning/profile.h"

/* Of a stage on its board. */
typedef struct {
    double stash_bytes;           /* of a microbatch: they leave once and come back once */
    double write_rate, read_rate; /* bytes a second; 0: not known */
    bool both_ways;               /* at once; else they take turns */
    double copy_s;                /* that the device's ops have to wait for besides */
    double forward_s, backward_s; /* of a microbatch */
} rp_offload_cost;

/* How much longer a forward and a backward take; INFINITY: a rate is not known. Copies are hidden
 * as long as they take no longer than the two ops. */
double rp_offload_cost_s(const rp_offload_cost *of);

#endif
