/* Private to the room stage. */
#ifndef RP_STAGE_STAGE_OWN_H
#define RP_STAGE_STAGE_OWN_H

#include "stage/slots.h"
#include "stage/stage.h"

/* Prediction gains: the newest sets, by the step from which they are in effect. */
enum { RP_GAIN_ENTRIES = 6 };
typedef struct {
    uint64_t step[RP_GAIN_ENTRIES];
    float *share[RP_GAIN_ENTRIES]; /* by trained parameter */
    uint32_t count;
} rp_stage_gains;

typedef struct rp_stage_record rp_stage_record;

struct rp_stage {
    rp_executor *executor;
    const rp_job *job;
    const rp_layout *layout; /* owned by the executor */
    rp_versions versions;
    rp_slots slots, deferred; /* indices are those of the executor's memory */
    const rp_layer
        *whole; /* a layer whose backward needs all samples of its forward; NULL = none */

    rp_block seen;         /* weights that the op being issued sees */
    rp_block seen_forward; /* of a backward: the weights that its forward saw, for recomputation */
    bool mean_valid;       /* the scratch block holds the current mean of the replicas */
    rp_stage_gains gain;
    /* a prediction-error sample is complete, so its norms can be read */
    bool probe_done;
    uint32_t probe_left; /* own updates until that sample can be completed; 0 = none waits */
    rp_stage_probe probe_about;
    const rp_tie_row *far_row; /* for the next forward: values of tensors of other stages */
    uint32_t far_rows;
    bool starts;          /* at step 0 the next update begins from the start weights */
    bool anchored;        /* the gradients have the anchor's term */
    bool tied;            /* the gradients of tied tensors are those of all uses */
    uint32_t accumulated; /* weight gradients that are summed in the gradient block */
    double rate_factor;   /* factor of every learning rate here (METHODS 11) */
    uint64_t applied[RP_REPLICAS_MAX];
    /* For each copy of the running statistics: the step before which it was made, or RP_NO_STEP. */
    uint64_t *kept_step;
    uint64_t keep_next;      /* the next step whose first forward makes a copy */
    rp_stage_record *record; /* NULL: nothing has been recorded yet */
};

#define RP_NO_STEP UINT64_MAX

/* statistics.c: copies of the running statistics from before a step. _open allocates layout->kept
 * copies, _forget drops them at a start, _keep is called before each training forward, and _decide
 * after the decision on the step. */
rp_err rp_stage_open_statistics(rp_arena *arena, rp_stage *stage) RP_MUST_CHECK;
void rp_stage_forget_statistics(rp_stage *stage, uint64_t step);
rp_err rp_stage_keep_statistics(rp_stage *stage, const rp_op *op) RP_MUST_CHECK;
rp_err rp_stage_decide_statistics(rp_stage *stage, uint64_t step, bool skip) RP_MUST_CHECK;

/* stage_issue.c */
rp_err rp_stage_issue(rp_stage *stage, const rp_command *command) RP_MUST_CHECK;
rp_err rp_stage_copy(rp_stage *stage, rp_block from, rp_block to) RP_MUST_CHECK;
/* Copies the trained parameters of a block to the host, packed, layout->gradient_bytes; `out` is
 * borrowed until the mark. */
rp_err rp_stage_read_block(rp_stage *stage, rp_block block, void *out) RP_MUST_CHECK;

/* Before gradients are used: adds up those of tied tensors whose uses are all here. */
rp_err rp_stage_tie_own(rp_stage *stage) RP_MUST_CHECK;

/* record.c: called before a forward or a backward whose weights have been chosen, and after a
 * backward. They do nothing for an op that is not recorded. */
rp_err rp_stage_record_forward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                               uint32_t in_count, void *const *out) RP_MUST_CHECK;
rp_err rp_stage_record_backward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                                uint32_t in_count, void *const *out) RP_MUST_CHECK;
rp_err rp_stage_record_gradient(rp_stage *stage, const rp_op *op) RP_MUST_CHECK;
void rp_stage_record_free(rp_stage *stage);

/* The block that is evaluated, and the commands that must be issued before it is read. */
rp_block rp_stage_evaluated(const rp_stage *stage);
rp_err rp_stage_prepare_evaluated(rp_stage *stage) RP_MUST_CHECK;

/* Ops without the bookkeeping of versions, with the weights in stage->seen: for training ops,
 * evaluations and dry runs. */
typedef struct {
    bool training;    /* layers behave as in training */
    bool evaluating;  /* part of an evaluation, whose steps are numbered from 0 */
    bool alone;       /* the slot holds only this op's samples */
    uint32_t renewal; /* see rp_layer_call */
} rp_stage_mode;
rp_err rp_stage_run_forward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                            uint32_t in_count, void *const *out, rp_stage_mode mode) RP_MUST_CHECK;
rp_err rp_stage_run_backward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                             uint32_t in_count, void *const *out) RP_MUST_CHECK;
rp_err rp_stage_run_update(rp_stage *stage, const rp_version_step *by, uint64_t step,
                           float grad_scale) RP_MUST_CHECK;
rp_err rp_stage_run_prediction(rp_stage *stage, const rp_weight_view *view, const float *gain,
                               rp_block out) RP_MUST_CHECK;

/* stage_open.c: runs each command that a step of the job needs once, on zeros. */
rp_err rp_stage_warm_up(rp_stage *stage) RP_MUST_CHECK;

/* Steps from a prediction-error sample to the first use of its gains. Its backward and the host's
 * answer must arrive in between. */
uint64_t rp_stage_gain_delay(const rp_stage *stage);
/* Prediction gains of the forward of `step`; NULL = 1 for every parameter. */
const float *rp_stage_gain_at(const rp_stage *stage, uint64_t step);

/* Called after an op's weights have been chosen and after an update; does nothing unless the op
 * begins or ends a prediction-error sample. */
rp_err rp_stage_run_probe(rp_stage *stage, const rp_op *op,
                          const rp_weight_view *view) RP_MUST_CHECK;
/* The bookkeeping of prediction-error samples, also repeated when a run is resumed: whether one
 * begins or ends with this op. */
bool rp_stage_probe_walk(rp_stage *stage, const rp_op *op, const rp_weight_view *view);

#endif
