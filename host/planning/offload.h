/* What it costs to have stashes elsewhere while they wait, in seconds of a microbatch: offload, and
 * stages that are split (METHODS 11.1, 11.2). Pure. */
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

/* Of a stage that is split. */
typedef struct {
    double forward_s, backward_s; /* of a microbatch, each on its own board */
    double stash_s;               /* that its stash keeps the wire busy */
} rp_split_cost;

/* A microbatch from the ring's boards: what the slowest of them takes. */
double rp_split_period_s(const rp_split_cost *stage, uint32_t count);

/* Wires hold the ring up no longer than its boards do. errors  USAGE: a stash takes longer on its
 * wire than the period; board[stage]: names of the forward's and the backward's */
rp_err rp_split_check(const rp_split_cost *stage, uint32_t count,
                      const char *const (*board)[2]) RP_MUST_CHECK;

#endif
