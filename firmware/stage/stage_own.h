/* Inside of a stage; only for the files of this room. */
#ifndef RP_STAGE_STAGE_OWN_H
#define RP_STAGE_STAGE_OWN_H

#include "stage/slots.h"
#include "stage/stage.h"

/* Prediction gains: the newest entries, by effect. */
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
    const rp_layout *layout; /* the executor's */
    rp_versions versions;
    rp_slots slots, deferred; /* the executor's memory has their numbers */
    const rp_layer *whole;    /* one whose backward takes all samples of a forward; NULL = none */

    rp_block seen;         /* weights that the op being issued sees */
    rp_block seen_forward; /* of a backward: those of its forward, which is computed again */
    bool mean_valid;       /* the scratch block holds the mean of the replicas as they are */
    rp_stage_gains gain;
    bool probe_done;     /* its norms can be read behind the last op */
    uint32_t probe_left; /* own updates until the weights that it waits for, 0 = it does not */
    rp_stage_probe probe_about;
    uint32_t accumulated; /* weight gradients in the gradient block */
    double rate_factor;   /* on every learning rate here: METHODS 11 */
    uint64_t applied[RP_REPLICAS_MAX];
    uint64_t *kept_step; /* by copy of the running statistics: the step before which it was made, or
                            RP_NO_STEP */
    uint64_t keep_next;  /* the first step whose first forward makes a copy */
    rp_stage_record *record; /* NULL: nothing has ever been recorded here */
};

#define RP_NO_STEP UINT64_MAX

/* statistics.c: running statistics as they were before a step. _open makes layout->kept copies,
 * _forget drops them at a start, _keep is called before each training forward, and _decide after
 * the decision on the step. */
rp_err rp_stage_open_statistics(rp_arena *arena, rp_stage *stage) RP_MUST_CHECK;
void rp_stage_forget_statistics(rp_stage *stage, uint64_t step);
rp_err rp_stage_keep_statistics(rp_stage *stage, const rp_op *op) RP_MUST_CHECK;
rp_err rp_stage_decide_statistics(rp_stage *stage, uint64_t step, bool skip) RP_MUST_CHECK;

/* stage_issue.c */
rp_err rp_stage_issue(rp_stage *stage, const rp_command *command) RP_MUST_CHECK;
rp_err rp_stage_copy(rp_stage *stage, rp_block from, rp_block to) RP_MUST_CHECK;
/* Trained parameters one behind the other, layout->gradient_bytes; `out` is borrowed until the
 * mark.
 */
rp_err rp_stage_read_block(rp_stage *stage, rp_block block, void *out) RP_MUST_CHECK;

/* record.c: ahead of a forward and a backward, whose weights have been chosen, and behind a
 * backward; nothing for an op that is not recorded. */
rp_err rp_stage_record_forward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                               uint32_t in_count, void *const *out) RP_MUST_CHECK;
rp_err rp_stage_record_backward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                                uint32_t in_count, void *const *out) RP_MUST_CHECK;
rp_err rp_stage_record_gradient(rp_stage *stage, const rp_op *op) RP_MUST_CHECK;
void rp_stage_record_free(rp_stage *stage);

/* The model that is evaluated, and what must be issued before it is read. */
rp_block rp_stage_evaluated(const rp_stage *stage);
rp_err rp_stage_prepare_evaluated(rp_stage *stage) RP_MUST_CHECK;

/* Ops without the bookkeeping of versions, on the weights that stage->seen names: for the ops
 * proper, for evaluations, and for dry runs. */
typedef struct {
    bool training;    /* layers behave as in training */
    bool evaluating;  /* an evaluation's: its steps count from 0 again */
    bool alone;       /* a slot for its own samples, whatever else a step has */
    uint32_t renewal; /* rp_layer_call's */
} rp_stage_mode;
rp_err rp_stage_run_forward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                            uint32_t in_count, void *const *out, rp_stage_mode mode) RP_MUST_CHECK;
rp_err rp_stage_run_backward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                             uint32_t in_count, void *const *out) RP_MUST_CHECK;
rp_err rp_stage_run_update(rp_stage *stage, const rp_version_step *by, uint64_t step,
                           float grad_scale) RP_MUST_CHECK;
rp_err rp_stage_run_prediction(rp_stage *stage, const rp_weight_view *view, const float *gain,
                               rp_block out) RP_MUST_CHECK;

/* stage_open.c: every command that a step of the job takes, once, on zeros. */
rp_err rp_stage_warm_up(rp_stage *stage) RP_MUST_CHECK;

/* Steps behind a probe at which its gain takes effect: its backward and the answer fit between. */
uint64_t rp_stage_gain_delay(const rp_stage *stage);
/* Of the forward of `step`, NULL = 1 for every parameter. */
const float *rp_stage_gain_at(const rp_stage *stage, uint64_t step);

/* Behind the choice of an op's weights, and behind an update; nothing where no probe is due. */
rp_err rp_stage_run_probe(rp_stage *stage, const rp_op *op,
                          const rp_weight_view *view) RP_MUST_CHECK;
/* The probe's bookkeeping, repeated when a run is resumed: does one begin or end with this op? */
bool rp_stage_probe_walk(rp_stage *stage, const rp_op *op, const rp_weight_view *view);

#endif
