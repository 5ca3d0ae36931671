/* Which weights an op sees, and which block of memory holds them: bookkeeping only, no device.
 *
 * A block holds all trained weights of a stage in one version. An update changes the newest block
 * in place, unless a later backward still needs the block unchanged (with ENTRY and DOUBLE also a
 * later forward); then a copy is updated. Versions have numbers instead of positions in a queue, so
 * draining the pipes needs no special case.
 *
 * This code walks the stage's own op list and looks ahead in it, so the number of updates between a
 * forward and its backward is derived from the list and never configured. It is pure, so the memory
 * plan uses it too.
 *
 * Of a split stage, the half with the forwards has one block; the version that the order prescribes
 * is written there before each forward. The half with the backwards keeps the versions that
 * forwards in flight have seen.
 *
 * source  METHODS 2 to 9, 12 and 13 */
#ifndef RP_STAGE_VERSIONS_H
#define RP_STAGE_VERSIONS_H

#include "stage/job.h"

/* The weight view of one op: the weights of `block`, moved by `ahead` predicted updates. */
typedef struct {
    uint32_t block, replica;
    uint32_t ahead;
    uint32_t staleness; /* of a backward: own updates since its forward */
    /* For a backward, if the method or job->recompute keeps it: the block that its forward saw. */
    uint32_t forward;
    /* xpipe: use the prediction of the step's first microbatch in this direction again */
    bool reuse;
} rp_weight_view;

typedef struct {
    uint32_t replica;
    uint32_t from, to; /* blocks; if they differ, copy first */
} rp_version_step;

typedef struct {
    bool live;
    uint32_t users; /* forwards whose backward will see it */
    uint64_t version;
} rp_version_block;

typedef struct {
    uint64_t step, updates; /* updates: of its replica, up to the forward */
    rp_range samples;
    uint32_t left; /* samples without a backward yet */
    uint32_t block;
} rp_version_in_flight;

typedef struct {
    const rp_job *job;
    uint32_t replicas;
    rp_sched_state list; /* this stage's op list, after the last op */
    /* stage 0's op list, after the forward of the microbatch that arrived here last */
    rp_sched_state entry;
    rp_version_block *block;
    uint32_t block_count, block_max; /* block_count: the most blocks used at once so far */
    uint32_t latest[RP_REPLICAS_MAX];
    uint64_t updates[RP_REPLICAS_MAX];
    rp_version_in_flight *in_flight;
    uint32_t in_flight_count, in_flight_max;
    uint32_t forward_ahead, backward_ahead; /* spectrain, xpipe: updates predicted */
    /* Updates of forward_ahead beyond the steady staleness: a prediction-error sample waits for so
     * many updates after its backward. */
    uint32_t past_backward;
    uint32_t *steady; /* pipeoptim with horizon paper or released: by microbatch of a full step */
    uint32_t staleness_max; /* the most own updates between a forward and its backward so far */
} rp_versions;

/* in_flight_max: most forwards in flight. Starts at step 0. errors MEMORY */
rp_err rp_versions_open(rp_arena *arena, const rp_job *job, uint32_t in_flight_max,
                        rp_versions *out) RP_MUST_CHECK;
/* Starts at `step` with empty pipes. */
void rp_versions_start(rp_versions *versions, uint64_t step);

/* Ends the list before `step`; no forward of `step` or a later one may have run. */
void rp_versions_end(rp_versions *versions, uint64_t step);

/* The stage's next op; ops must come in the list's order. */
rp_weight_view rp_versions_forward(rp_versions *versions, const rp_op *op);
rp_weight_view rp_versions_backward(rp_versions *versions, const rp_op *op);
rp_version_step rp_versions_update(rp_versions *versions, const rp_op *op);

/* The block that 2BW's next step still sees; the newest if there is no older one. */
uint32_t rp_versions_older(const rp_versions *versions);

/* The most updates by which any op here is predicted ahead; 0 = no block is needed for
 * predictions. */
uint32_t rp_versions_ahead_max(const rp_versions *versions);

#endif
