/* The struct of this room, for its own files. */
#ifndef RP_TRAIN_TRAIN_OWN_H
#define RP_TRAIN_TRAIN_OWN_H

#include "stage/record.h"
#include "train/feed.h"
#include "train/overlap.h"
#include "train/tally.h"
#include "train/train.h"

/* Stage 0's op list at a pause, and the inputs that it has requested by then. */
typedef struct {
    rp_sched_state list;
    rp_feed_limit limit;
} rp_feed_plan;

/* wait_chain.c: the duration of steps, and whether a late one was reported. */
typedef struct {
    int64_t step_ns;  /* time of the last step, or of the start of the segment */
    int64_t usual_ns; /* usual duration of a step; 0: unknown */
    int64_t say_ns;   /* wait without a step at which the next report is due; 0: no report yet */
} rp_progress_watch;

/* ledger_check.c: progress of the comparison. */
typedef struct {
    uint64_t step;           /* compared up to this step */
    uint64_t lost, repeated; /* samples missing or counted twice by a board with a wrong ledger */
} rp_ledger_check;

/* verify.c: one stage's record and the state of its verification. */
typedef enum {
    RP_CHECK_NONE,    /* the board has no such stage, or no record of it */
    RP_CHECK_ASKED,   /* waiting for the record */
    RP_CHECK_HERE,    /* to be sent to `judge` */
    RP_CHECK_SENT,    /* waiting for the judge's answer */
    RP_CHECK_DIFFERS, /* the first judge's answer differs */
    RP_CHECK_DONE
} rp_check_phase;

typedef struct {
    rp_check_phase phase;
    uint32_t stage, judge;
    uint8_t *bytes;
    size_t total, got, sent;
    rp_record_digests digests[3]; /* from the run, the first judge, the second judge */
    uint32_t answers;             /* answers of judges, at most 2 */
} rp_check;

typedef struct {
    bool is_due, alone; /* see verify.h */
    uint64_t step;      /* the step to verify, the last of the segment */
    bool by_sample;     /* stages have different sizes of microbatches */
    uint32_t micro;     /* its microbatch; with `by_sample` a sample, and each stage verifies the
                           backward microbatch that contains it */
    uint32_t round;     /* index of the stage, among those of each board, that is verified now */
    rp_arena arena;     /* memory of a round's checks */
    rp_check *check;    /* by board; NULL: no round in progress */
    rp_summary_verify told; /* totals so far */
} rp_verify;

/* A lane's steps since its last report to the run. */
typedef struct {
    double loss; /* sum over targets */
    uint64_t counted;
} rp_round_sums;

/* finite.c */
enum { RP_FINITE_TENSOR = 64, RP_FINITE_ADVICE = 256 };

typedef struct {
    uint32_t row; /* consecutive steps, up to the newest, with a loss that was not finite */
    bool any;     /* some step since the start had a finite loss */
    char tensor[RP_FINITE_TENSOR]; /* tensor that was not finite at the last save, or "" */
} rp_finite_watch;

/* norms.c: squared gradient norms of the step that awaits its decision. */
typedef struct {
    uint32_t got; /* number of holds whose norms have arrived */
    uint64_t step;
    bool *of;      /* by hold of the plan: its norms have arrived */
    double *sumsq; /* by parameter of the model; 0 without a gradient */
} rp_step_norms;

/* A pass over a split. */
typedef struct {
    rp_arena arena;
    rp_split split;
    bool scores;   /* an evaluation; else it renews batch statistics */
    bool trains;   /* in a training run */
    rp_feed *feed; /* NULL: no pass in progress */
    uint64_t steps;
    uint64_t samples, correct; /* reported so far; losses are in the tally */
    uint64_t scored;           /* samples to be reported */
    rp_overlap overlap;        /* of what was reported, in `arena` */
    double mean_iou;           /* at the end; NAN: unknown */
    bool is_over;
} rp_eval_pass;

struct rp_train {
    rp_train_needs needs;
    const rp_runfile *run;
    rp_ring *ring;
    rp_position *position;
    const rp_folder_paths *paths;
    const rp_plan *plan; /* plan of the boards; NULL: none yet */
    rp_arena plan_arena; /* memory of cut, tally, norms, gain */
    rp_cut cut;          /* first layers of the plan's stages */
    uint64_t segment_end;
    int64_t segment_start_ns;  /* 0: no segment or pass */
    rp_feed_plan fed, feeding; /* at the pause before this segment, and at the one after it */
    rp_feed *feed;
    rp_arena feed_arena;
    bool stopping; /* the segment is already ending early, or is too short for that */
    rp_tally tally;
    rp_step_norms norms;
    rp_eval_pass pass;
    rp_checkpoint_best best;
    uint64_t stop_step; /* step at which the run stops for lack of gain; 0: none */
    rp_finite_watch finite;
    rp_progress_watch progress[2]; /* for training, and for an evaluation */
    uint32_t watched;              /* index of the current one */
    rp_ledger_check ledger_check;
    rp_verify verify;
    rp_round_sums round;
    rp_gain_estimator estimator; /* horizon: measured */
    double *gain;                /* by parameter of the stage that is addressed */
};

/* segment.c. _begin: sends the order for a segment or pass, which begins now. _note_time: adds its
 * duration to the summary's shares. _has_paused: all boards have paused. */
rp_err rp_segment_begin(rp_train *train, const rp_Frame *order) RP_MUST_CHECK;
void rp_segment_note_time(rp_train *train, bool whole);
bool rp_segment_has_paused(const rp_train *train);
/* NULL: no record is open. */
rp_record *rp_train_record(const rp_train *train);
rp_record_score rp_train_record_score(const rp_position_score *score);
/* How many targets of `samples` samples count. */
uint64_t rp_train_counted(const rp_train *train, uint64_t samples, uint64_t ignored);
/* errors  PEER: more targets of `samples` samples do not count than the run allows */
rp_err rp_train_check_ignored(const rp_train *train, uint32_t board, uint64_t samples,
                              uint64_t ignored) RP_MUST_CHECK;
/* The first stage that a board holds. */
uint32_t rp_train_first_stage(const rp_train *train, uint32_t board);
/* The parameter is trained on this stage. */
bool rp_train_stage_trains(const rp_train *train, uint32_t stage, uint32_t param);
/* What to know about the run's storage when a gradient is not finite; NULL: nothing. */
const char *rp_finite_storage_advice(const rp_runfile *run);
void rp_finite_note_loss(rp_train *train, double loss_sum);
/* errors FAULT: train.stop_after.non_finite consecutive steps had no finite loss, or were
 * skipped */
rp_err rp_finite_check_step(const rp_train *train, rp_FaultClass *fault_class) RP_MUST_CHECK;
/* Fills in the order for a segment that begins at the position. */
void rp_ledger_check_begin(rp_train *train, rp_Start *order);
/* Compares all ledgers at the position's step, when all boards have paused. errors PEER: a ledger
 * differs from the plan */
rp_err rp_ledger_check_boards(rp_train *train) RP_MUST_CHECK;
/* A segment or pass begins; a step of it is done. errors IO */
void rp_waiting_begin(rp_train *train);
rp_err rp_waiting_note_step(rp_train *train) RP_MUST_CHECK;
/* For a segment that would end at `end`: chooses what is verified. Returns the actual end. */
uint64_t rp_verify_choose(rp_train *train, uint64_t end);
/* Counts an evaluation at the position. errors IO: nothing has changed, unless *stops */
rp_err rp_best_note(rp_train *train, rp_split split, const rp_position_score *score,
                    bool *stops) RP_MUST_CHECK;
/* Counts a step that a board skipped, or the host for all boards (board 0). */
void rp_reports_count_skipped(rp_train *train, uint32_t board, uint64_t step);

#endif
