/* A microbatch that is computed again on another board. The stage that trains it keeps what its
 * forward and its backward were given (weights, inputs, gradients), as one run of bytes, and
 * digests of what came out; a stage of the same layers elsewhere computes it from these bytes. Ops
 * of equal boards give the same bits, so digests that differ say that one of the boards has
 * computed wrong.
 *
 * Recording issues reads behind the op's own commands and waits for nothing; it holds up to four
 * copies of the stage's weights in host memory. What an optimiser makes of the gradient is not
 * recorded. */
#ifndef RP_STAGE_RECORD_H
#define RP_STAGE_RECORD_H

#include "stage/stage.h"

typedef struct rp_stage_record rp_stage_record;

/* Of what leaves the stage: activations, gradients for the stage before, gradients of the weights.
 */
typedef struct {
    uint64_t forward, backward, gradient;
} rp_record_digests;

/* Microbatch `micro` of `step` is recorded, in place of the one before. Where a backward has a size
 * of its own (rp_job_has_sizes()) `micro` is a sample of the step: of that the backward that takes
 * it is recorded, and all forwards that have samples of it. errors MEMORY */
rp_err rp_stage_record_begin(rp_stage *stage, uint64_t step, uint32_t micro) RP_MUST_CHECK;
/* Behind the mark of every op that has outputs, before they are sent. */
void rp_stage_record_finish(rp_stage *stage, const rp_op *op);

/* Between segments: the record's bytes, *total of them; 0: the microbatch has not come by here from
 * its forward to its backward. Blocking copies. */
rp_err rp_stage_record_end(rp_stage *stage, size_t *total, rp_record_digests *out) RP_MUST_CHECK;
void rp_stage_record_read(const rp_stage *stage, size_t first, size_t count, void *out);

/* The job of a stage that only computes records again: with one version of the weights, and without
 * an optimiser's state. */
rp_job rp_stage_record_job(const rp_job *job);
/* A record of this job has at most so many bytes. errors MEMORY */
rp_err rp_stage_record_bytes_max(const rp_job *job, size_t *out) RP_MUST_CHECK;
/* Computes it again on a stage of rp_stage_record_job(). Blocks.
 * errors PEER: bytes that no record of this stage has; MEMORY; DEVICE */
rp_err rp_stage_recompute(rp_stage *stage, const void *bytes, size_t count,
                          rp_record_digests *out) RP_MUST_CHECK;

#endif
