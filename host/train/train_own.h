/* The room as its own files see it. */
#ifndef RP_TRAIN_TRAIN_OWN_H
#define RP_TRAIN_TRAIN_OWN_H

#include "stage/record.h"
#include "train/feed.h"
#include "train/tally.h"
#include "train/train.h"

/* Stage 0's op list at a pause, and the inputs that it has asked for by then. */
typedef struct {
    rp_sched_state list;
    rp_feed_limit limit;
} rp_feed_plan;

/* wait_chain.c: how long steps take, and whether a late one was reported. */
typedef struct {
    int64_t step_ns;  /* time of the last step, or of the segment's begin */
    int64_t usual_ns; /* time that a step takes; 0: not known yet */
    int64_t say_ns;   /* the next report is due after so long without a step; 0: none was made */
} rp_progress_watch;

/* ledger_check.c: how far the ledger was compared. */
typedef struct {
    uint64_t step;           /* it was compared up to here */
    uint64_t lost, repeated; /* samples, by the board whose ledger was wrong */
} rp_ledger_check;

/* verify.c: one stage's record, and what became of it. */
typedef enum {
    RP_CHECK_NONE,    /* the board has no such stage, or no record of it */
    RP_CHECK_ASKED,   /* the record is awaited */
    RP_CHECK_HERE,    /* it is to be sent to `judge` */
    RP_CHECK_SENT,    /* the judge's answer is awaited */
    RP_CHECK_DIFFERS, /* the first judge's answer was another one */
    RP_CHECK_DONE
} rp_check_phase;

typedef struct {
    rp_check_phase phase;
    uint32_t stage, judge;
    uint8_t *bytes;
    size_t total, got, sent;
    rp_record_digests digests[3]; /* of the run, of the first judge, of the second */
    uint32_t answers;             /* of judges: at most 2 */
} rp_check;

typedef struct {
    bool is_due, alone;     /* see verify.h */
    uint64_t step;          /* the step to verify, the segment's last */
    bool by_sample;         /* stages have sizes of their own, and so no microbatch in common */
    uint32_t micro;         /* its microbatch; `by_sample`: a sample, of which each stage has the
                               microbatch recorded that it takes back */
    uint32_t round;         /* index of the stage of each board that is verified now */
    rp_arena arena;         /* of the checks of a round */
    rp_check *check;        /* by board; NULL: no round is under way */
    rp_summary_verify told; /* so far */
} rp_verify;

/* A lane's steps that its run has not heard of. */
typedef struct {
    double loss; /* sum over the samples */
    uint64_t samples;
} rp_round_sums;

/* finite.c */
enum { RP_FINITE_TENSOR = 64, RP_FINITE_ADVICE = 120 };

typedef struct {
    uint32_t row;                  /* steps in a row, up to the newest, whose loss was not finite */
    bool any;                      /* a step since the start had a finite loss */
    char tensor[RP_FINITE_TENSOR]; /* tensor that was not finite at the last save, or "" */
} rp_finite_watch;

/* norms.c: squared norms of the gradients of the step that waits for its decision. */
typedef struct {
    uint32_t got; /* holds whose norms have come */
    uint64_t step;
    bool *of;      /* by hold of the plan: its norms have come */
    double *sumsq; /* by parameter of the model; 0 for those without a gradient */
} rp_step_norms;

/* A pass over a split. */
typedef struct {
    rp_arena arena;
    rp_split split;
    bool scores;   /* an evaluation; else it renews batch statistics */
    bool trains;   /* in a training run */
    rp_feed *feed; /* NULL: no pass is under way */
    uint64_t steps;
    uint64_t samples, correct; /* reported so far; losses are in the tally */
    uint64_t scored;           /* samples to be reported */
    bool is_over;
} rp_eval_pass;

struct rp_train {
    rp_train_needs needs;
    const rp_runfile *run;
    rp_ring *ring;
    rp_position *position;
    const rp_folder_paths *paths;
    const rp_plan *plan; /* that the boards run by; NULL: none yet */
    rp_arena plan_arena; /* of cut, tally, norms, gain */
    rp_cut cut;          /* of the plan: first layers of its stages */
    uint64_t segment_end;
    int64_t segment_start_ns;  /* 0: none is under way */
    rp_feed_plan fed, feeding; /* at the pause before this segment, and at the one after it */
    rp_feed *feed;
    rp_arena feed_arena;
    bool stopping; /* the segment ends early already, or is too short for that */
    rp_tally tally;
    rp_step_norms norms;
    rp_eval_pass pass;
    rp_checkpoint_best best;
    uint64_t stop_step; /* step at which the run ends for lack of gain; 0: it goes on */
    rp_finite_watch finite;
    rp_progress_watch progress[2]; /* of training, of an evaluation */
    uint32_t watched;              /* index of the one that is under way */
    rp_ledger_check ledger_check;
    rp_verify verify;
    rp_round_sums round;
    rp_gain_estimator estimator; /* horizon: measured */
    double *gain;                /* by parameter of the stage that is told */
};

/* segment.c: sends the order for a segment or a pass, which begins now; the wall time of the one
 * that ends, for the summary's shares; have all boards paused? */
rp_err rp_segment_begin(rp_train *train, const rp_Frame *order) RP_MUST_CHECK;
void rp_segment_note_time(rp_train *train, bool whole);
bool rp_segment_has_paused(const rp_train *train);
/* NULL: none is open. */
rp_record *rp_train_record(const rp_train *train);
/* The first stage that a board holds. */
uint32_t rp_train_first_stage(const rp_train *train, uint32_t board);
/* Whether a parameter of the model is trained, on this stage. */
bool rp_train_stage_trains(const rp_train *train, uint32_t stage, uint32_t param);
void rp_finite_note_loss(rp_train *train, double loss_sum);
/* errors FAULT: as many steps in a row as train.stop_after.non_finite had no finite loss, or were
 * skipped */
rp_err rp_finite_check_step(const rp_train *train, rp_FaultClass *fault_class) RP_MUST_CHECK;
/* Fills in the order for a segment that begins here. */
void rp_ledger_check_begin(rp_train *train, rp_Start *order);
/* All boards have paused at the position's step. errors PEER: one has not the plan's samples */
rp_err rp_ledger_check_boards(rp_train *train) RP_MUST_CHECK;
/* A segment or a pass begins; a step of it is done. errors IO */
void rp_waiting_begin(rp_train *train);
rp_err rp_waiting_note_step(rp_train *train) RP_MUST_CHECK;
/* A training segment begins that would end at `end`: chooses what is verified. Returns where the
 * segment ends. */
uint64_t rp_verify_choose(rp_train *train, uint64_t end);
/* Counts an evaluation at the position. errors IO: nothing has changed, unless *stops */
rp_err rp_best_note(rp_train *train, rp_split split, const rp_position_score *score,
                    bool *stops) RP_MUST_CHECK;
/* A step that a board has left out, or the host for all (board 0). */
void rp_reports_count_skipped(rp_train *train, uint32_t board, uint64_t step);

#endif
