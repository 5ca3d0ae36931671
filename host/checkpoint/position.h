/* Where a run stands between two segments, and what a checkpoint says of that. */
#ifndef RP_CHECKPOINT_POSITION_H
#define RP_CHECKPOINT_POSITION_H

#include "plan/plan.h"
#include "run/setup.h"
#include "sched/contributions.h"

/* Updates done, by stage and replica: of a checkpoint, which may be of another number of stages. */
typedef struct {
    uint32_t stages;
    uint64_t (*of)[RP_REPLICAS_MAX]; /* borrowed */
} rp_applied;

/* What the evaluation at the position's step gave on one part of the data. */
typedef struct {
    bool done;
    double loss; /* mean over the samples */
    uint64_t samples, correct;
} rp_position_score;

typedef struct {
    uint64_t step;      /* next step to train */
    rp_setup setup;     /* that its checkpoint was made with; cut.stage_count 0: no checkpoint */
    uint64_t plan;      /* rp_plan_digest() of the plan that it was made with; 0: it does not say */
    uint64_t round;     /* of a lane, in which its weights here were averaged; 0: not */
    uint64_t fill_step; /* where the pipes were filled: before `step` with microbatches in flight */
    rp_applied applied; /* as its checkpoint says */
    uint32_t replicas;  /* of the method then; 0 without an average */
    rp_position_score test, validation; /* of the evaluations at this step */
    /* what a resumed run goes on counting from */
    uint64_t samples, epoch_samples;
    rp_run_ledger ledger; /* that all boards had here; its samples: since it is kept */
    double epoch_loss;    /* sum over epoch_samples; see rp_record_totals */
    double seconds, segment_s;
} rp_position;

/* TEST or VALIDATION. */
static inline rp_position_score *rp_position_score_of(rp_position *position, rp_split split) {
    return split == RP_SPLIT_VALIDATION ? &position->validation : &position->test;
}

/* What the ring has by this plan, and a run goes on with: cut, codecs, sizes, boards that share
 * stages; else as rp_setup_of(run). In `arena`. errors MEMORY */
rp_err rp_position_setup(rp_arena *arena, const rp_runfile *run, const rp_plan *plan,
                         rp_setup *out) RP_MUST_CHECK;

/* Notes beside the checkpoints the evaluation of `split` done at `step`, and what it gave. */
rp_err rp_checkpoint_mark_evaluated(const char *folder, rp_split split, uint64_t step,
                                    const rp_position_score *score) RP_MUST_CHECK;

/* The metadata `applied` of the checkpoint `path` at `step`: "a,b;c,d", updates by replica, stage
 * by stage; they lie in `arena`. errors FORMAT when no run of this method can have written it */
rp_err rp_checkpoint_read_applied(rp_arena *arena, const char *text, const char *path,
                                  const rp_method *method, uint64_t step,
                                  rp_applied *out) RP_MUST_CHECK;

#endif
