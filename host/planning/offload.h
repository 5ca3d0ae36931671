/* The cost of offloading a stage's stashes while they wait (METHODS 11.1). Pure. */
#ifndef RP_PLANNING_OFFLOAD_H
#define RP_PLANNING_OFFLOAD_H

#include "planning/profile.h"

/* A stage on its board. Times and bytes are of a microbatch. */
typedef struct {
    double stash_bytes;           /* each is written once and read once */
    double write_rate, read_rate; /* bytes per second; 0: unknown */
    bool both_ways;               /* writes and reads overlap */
    double copy_s;                /* time of copies during which the device's ops wait */
    double forward_s, backward_s;
} rp_offload_cost;

/* Additional seconds of a forward and a backward; INFINITY: a rate is unknown. Transfers that take
 * no longer than both ops are hidden by them. */
double rp_offload_cost_s(const rp_offload_cost *of);

#endif
