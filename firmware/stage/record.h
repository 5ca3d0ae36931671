/* Records a microbatch so that another board can compute it again. The stage that trains the
 * microbatch stores the operands of its forward and backward (weights, inputs, gradients) as one
 * sequence of bytes, and digests of the results. A stage with the same layers on another board
 * repeats the computation from these bytes. Equal boards compute equal bits, so different digests
 * mean that one of the two boards has computed wrong.
 *
 * Recording adds reads after the op's own commands and waits for nothing. It needs up to four
 * copies of the stage's weights in host memory. The optimiser step is not recorded. */
#ifndef RP_STAGE_RECORD_H
#define RP_STAGE_RECORD_H

#include "stage/stage.h"

typedef struct rp_stage_record rp_stage_record;

/* Digests of the activations, of the gradients for the previous stage, and of the gradients of the
 * weights. */
typedef struct {
    uint64_t forward, backward, gradient;
} rp_record_digests;

/* Starts to record microbatch `micro` of `step`; a previous record is dropped. If backwards have
 * their own size (rp_job_has_sizes()), `micro` is a sample of the step: its backward is recorded,
 * with all forwards that share samples with it. errors MEMORY */
rp_err rp_stage_record_begin(rp_stage *stage, uint64_t step, uint32_t micro) RP_MUST_CHECK;
/* Call after the mark of every op with outputs has passed, before they are sent. */
void rp_stage_record_finish(rp_stage *stage, const rp_op *op);

/* Between segments: stops recording. *total: bytes of the record; 0 if not all ops of the
 * microbatch ran here since it began. Copies block. */
rp_err rp_stage_record_end(rp_stage *stage, size_t *total, rp_record_digests *out) RP_MUST_CHECK;
void rp_stage_record_read(const rp_stage *stage, size_t first, size_t count, void *out);

/* The job of a stage that only recomputes records: one version of the weights, no optimiser
 * state. */
rp_job rp_stage_record_job(const rp_job *job);
/* The most bytes of a record of this job. errors MEMORY */
rp_err rp_stage_record_bytes_max(const rp_job *job, size_t *out) RP_MUST_CHECK;
/* Recomputes a record on a stage with rp_stage_record_job(). Blocks. errors PEER: the bytes are no
 * record of this stage; MEMORY; DEVICE */
rp_err rp_stage_recompute(rp_stage *stage, const void *bytes, size_t count,
                          rp_record_digests *out) RP_MUST_CHECK;

#endif
