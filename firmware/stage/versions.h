/* Which weights an op sees, and which block of memory holds them: bookkeeping only, no device.
 *
 * A block holds all trained weights of a stage in one version. An update steps the newest block in
 * place, unless a backward to come (or, with ENTRY and DOUBLE, a forward to come) still needs it as
 * it is: then a copy is stepped. Versions have tags and no order in a queue, so draining the pipes
 * needs no special case.
 *
 * Follows the stage's own op list, and looks ahead in it: how many updates lie between a forward
 * and its backward is read off the list, never typed. Pure, so the memory plan walks it too.
 *
 * Of a stage that is split, the half with the forwards has one block, which the version that the
 * order names is written to ahead of each; the half with the backwards keeps those that forwards
 * under way have seen.
 *
 * source  METHODS 2 to 9, 12 and 13 */
#ifndef RP_STAGE_VERSIONS_H
#define RP_STAGE_VERSIONS_H

#include "stage/job.h"

/* The weight view of one op: the weights of `block`, moved `ahead` updates by the optimiser's own
 * rule. */
typedef struct {
    uint32_t block, replica;
    uint32_t ahead;
    uint32_t staleness; /* of a backward: own updates since its forward */
    uint32_t forward;   /* of a backward: the block of its forward, as it was where the method or
                           job->recompute keeps it */
    bool reuse;         /* xpipe: what its step's first microbatch predicted in this direction */
} rp_weight_view;

typedef struct {
    uint32_t replica;
    uint32_t from, to; /* blocks; when they differ, copy first */
} rp_version_step;

typedef struct {
    bool live;
    uint32_t users; /* forwards whose backward will see it */
    uint64_t version;
} rp_version_block;

typedef struct {
    uint64_t step, updates; /* updates: of its replica, at the forward */
    rp_range samples;
    uint32_t left; /* samples whose backward is to come */
    uint32_t block;
} rp_version_in_flight;

typedef struct {
    const rp_job *job;
    uint32_t replicas;
    rp_sched_state list;  /* this stage's, behind the last op */
    rp_sched_state entry; /* stage 0's, behind the forward of the microbatch that came last here */
    rp_version_block *block;
    uint32_t block_count, block_max; /* count: most that were ever in use */
    uint32_t latest[RP_REPLICAS_MAX];
    uint64_t updates[RP_REPLICAS_MAX];
    rp_version_in_flight *in_flight;
    uint32_t in_flight_count, in_flight_max;
    uint32_t forward_ahead, backward_ahead; /* spectrain, xpipe */
    uint32_t past_backward; /* updates of forward_ahead beyond the steady staleness: so long a probe
                               waits */
    uint32_t *steady;       /* pipeoptim paper, released: by microbatch of a full step */
    uint32_t staleness_max; /* own updates between a forward and its backward, seen so far */
} rp_versions;

/* Room for so many forwards in flight; then started at step 0. errors MEMORY */
rp_err rp_versions_open(rp_arena *arena, const rp_job *job, uint32_t in_flight_max,
                        rp_versions *out) RP_MUST_CHECK;
/* Begins at `step` with empty pipes. */
void rp_versions_start(rp_versions *versions, uint64_t step);

/* The list ends in front of `step`: no forward of it or of a later one has been. */
void rp_versions_end(rp_versions *versions, uint64_t step);

/* The stage's next op; ops come in the list's order. */
rp_weight_view rp_versions_forward(rp_versions *versions, const rp_op *op);
rp_weight_view rp_versions_backward(rp_versions *versions, const rp_op *op);
rp_version_step rp_versions_update(rp_versions *versions, const rp_op *op);

/* The block that 2BW's next step still sees; the newest where there is no older one. */
uint32_t rp_versions_older(const rp_versions *versions);

/* Most updates that any op here is predicted ahead: 0 = no block for it. */
uint32_t rp_versions_ahead_max(const rp_versions *versions);

#endif
