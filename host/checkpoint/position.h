/* Position of a run between two segments, as stored in a checkpoint. */
#ifndef RP_CHECKPOINT_POSITION_H
#define RP_CHECKPOINT_POSITION_H

#include "plan/plan.h"
#include "run/setup.h"
#include "sched/contributions.h"

/* Updates done by stage and replica in a checkpoint, whose number of stages may differ from the
 * run's. */
typedef struct {
    uint32_t stages;
    uint64_t (*of)[RP_REPLICAS_MAX]; /* borrowed */
} rp_applied;

/* Result of the evaluation at the position's step on one part of the data. */
typedef struct {
    bool done;
    double loss;                        /* mean over the targets that count */
    uint64_t samples, counted, correct; /* counted, correct: targets */
    double mean_iou;                    /* of the classes of pixels; NAN: unknown */
} rp_position_score;

typedef struct {
    uint64_t step;      /* next step to train */
    rp_setup setup;     /* of the checkpoint; cut.stage_count 0: no checkpoint */
    uint64_t plan;      /* rp_plan_digest() of the checkpoint's plan; 0: unknown */
    uint64_t round;     /* of a lane: round in which these weights were averaged; 0: not averaged */
    uint64_t fill_step; /* where the pipes were filled: before `step` with microbatches in flight */
    rp_applied applied; /* of the checkpoint */
    uint32_t replicas;  /* of the method in the checkpoint; 0 without an average */
    rp_position_score test, validation; /* of the evaluations at this step */
    /* totals that a resumed run continues: */
    uint64_t samples, epoch_samples, epoch_counted;
    rp_run_ledger ledger; /* of all boards; its samples count from the start of the ledger */
    double epoch_loss;    /* sum over epoch_counted; see rp_record_totals */
    double seconds, segment_s;
} rp_position;

/* `split`: TEST or VALIDATION. */
static inline rp_position_score *rp_position_score_of(rp_position *position, rp_split split) {
    return split == RP_SPLIT_VALIDATION ? &position->validation : &position->test;
}

/* The setup with which a run resumes after this plan: cut, codecs, sizes and shared stages of the
 * plan, the rest from rp_setup_of(run). Arrays are in `arena`. errors MEMORY */
rp_err rp_position_setup(rp_arena *arena, const rp_runfile *run, const rp_plan *plan,
                         rp_setup *out) RP_MUST_CHECK;

/* Writes a note next to the checkpoints: the evaluation of `split` at `step`, and its result. */
rp_err rp_checkpoint_mark_evaluated(const char *folder, rp_split split, uint64_t step,
                                    const rp_position_score *score) RP_MUST_CHECK;

/* Most updates that states of start weights have seen: the most steps of a run. */
#define RP_CHECKPOINT_START_UPDATES_MAX (UINT64_C(1) << 40)

/* Parses the metadata `applied` of the checkpoint `path`: "a,b;c,d", updates by replica, stage by
 * stage, each at most `step`. *out is in `arena`. errors FORMAT: impossible for this method */
rp_err rp_checkpoint_read_applied(rp_arena *arena, const char *text, const char *path,
                                  const rp_method *method, uint64_t step,
                                  rp_applied *out) RP_MUST_CHECK;

#endif
