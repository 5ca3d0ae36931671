/* Segments of training and passes of evaluation: what goes to the boards and what they report. */
#ifndef RP_CONTROL_OWN_TRAIN_H
#define RP_CONTROL_OWN_TRAIN_H

#include "checkpoint/checkpoint.h"
#include "control/feed.h"
#include "ring/ring.h"
#include "stage/record.h"

typedef struct rp_controller rp_controller;

/* Stage 0's op list at a pause, and the inputs that it has asked for by then. */
typedef struct {
    rp_sched_state list;
    rp_feed_limit limit;
} rp_feed_plan;

/* waiting.c: how long steps take, and whether it has been said that one takes too long. */
typedef struct {
    int64_t step_ns;  /* when the last one was done, or the segment began */
    int64_t usual_ns; /* that one takes; 0: not known yet */
    int64_t say_ns;   /* it is said again behind so long; 0: it is not said */
} rp_progress_watch;

/* account.c: the ledger, as far as it has been compared. */
typedef struct {
    uint64_t step;           /* it was compared up to here */
    uint64_t lost, repeated; /* samples, by the board whose ledger was wrong */
} rp_account;

/* verify.c: one stage's record, and what became of it. */
typedef enum {
    RP_CHECK_NONE,    /* the board has no such stage, or no record of it */
    RP_CHECK_ASKED,   /* the record is awaited */
    RP_CHECK_HERE,    /* it is to be sent to `judge` */
    RP_CHECK_SENT,    /* whose answer is awaited */
    RP_CHECK_DIFFERS, /* the first judge's was another one */
    RP_CHECK_DONE
} rp_check_phase;

typedef struct {
    rp_check_phase phase;
    uint32_t stage, judge;
    uint8_t *bytes;
    size_t total, got, sent;
    rp_record_digests digests[3]; /* of the run, of the first judge, of the second */
    uint32_t answers;             /* of them */
} rp_check;

typedef struct {
    bool is_due;            /* the segment has a microbatch that is recorded */
    bool alone;             /* and ends for its sake alone: nothing is saved */
    uint64_t step;          /* that it is of, the segment's last */
    uint32_t micro;         /* which one of it; with sizes by stage: a sample, of which each stage
                               has the microbatch recorded that it takes back */
    uint32_t round;         /* stage so many of every board */
    rp_arena arena;         /* of the checks of a round */
    rp_check *check;        /* by board */
    uint32_t wrong;         /* RP_FAULT_NO_BOARD, or a board that is to leave the ring */
    rp_summary_verify told; /* so far */
} rp_verify;

/* round.c: of the steps that this lane's run has not heard of. */
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

/* tally.c: results of the boards that share the last stage. */
typedef struct {
    bool is_here;
    double loss;
} rp_tally_part;

typedef struct {
    const rp_plan *plan;
    const rp_plan_hold **hold;   /* [count], of the last stage: boards with its backward */
    const rp_plan_hold **scorer; /* [scorers], .. and those with its forward, which evaluate */
    uint32_t count, scorers;
    uint32_t room;       /* steps */
    rp_tally_part *part; /* [room][count], by step modulo room */
    double *pass_loss;   /* [scorers] */
} rp_tally;

/* reports.c: squared norms of the gradients of the step that waits for its decision. */
typedef struct {
    uint32_t got; /* holds whose have come */
    uint64_t step;
    bool *of;      /* by hold of the plan: they have come */
    double *sumsq; /* by parameter of the model; 0 for those without a gradient */
} rp_step_norms;

/* A pass over a split. */
typedef struct {
    rp_arena arena;
    rp_split split; /* of an evaluation */
    rp_feed *feed;
    uint64_t steps;
    uint64_t samples, correct; /* reported so far; losses are in the tally */
    uint64_t scored;           /* to be reported */
    bool is_over;              /* evaluated; its score still has to be written */
} rp_eval_pass;

typedef struct {
    rp_position position;
    bool has_statistics; /* the model has layers with running statistics */
    bool renewed;        /* batch statistics are of this pause */
    uint64_t segment_end;
    int64_t segment_start_ns;  /* 0: none is under way */
    rp_feed_plan fed, feeding; /* at the pause before this segment, and at the one behind it */
    rp_feed *feed;
    rp_arena feed_arena;
    bool stopping;
    rp_tally tally;
    rp_step_norms norms;
    rp_eval_pass pass;
    rp_checkpoint_best best;
    uint64_t stop_step; /* step at which the run ends for lack of gain; 0: it goes on */
    rp_finite_watch finite;
    rp_progress_watch progress[2]; /* of training, of an evaluation */
    rp_account account;
    rp_verify verify;
    rp_round_sums round;
    rp_gain_estimator estimator; /* horizon: measured */
    double *gain;                /* of the stage that is told */
} rp_train;

void rp_finite_note_loss(rp_controller *c, double loss_sum);
/* errors FAULT: as many steps in a row as train.stop_after.non_finite had no finite loss, or were
 * skipped */
rp_err rp_finite_check_step(rp_controller *c) RP_MUST_CHECK;
/* The boards have saved. `tensor` is not finite, or NULL. errors FAULT: the run needs what it saved
 */
rp_err rp_finite_note_saved(rp_controller *c, const char *tensor) RP_MUST_CHECK;
/* errors FAULT: the weights or their score are not finite; or the last losses are not, and the run
 * has no score or never had a finite loss. Never fails where train.stop_after.non_finite is 0 */
rp_err rp_finite_check_end(rp_controller *c) RP_MUST_CHECK;
/* Checks the score of an evaluation. errors NUMERIC */
rp_err rp_finite_check_score(rp_controller *c, const rp_position_score *score) RP_MUST_CHECK;
/* errors MEMORY */
rp_err rp_tally_open(rp_arena *arena, const rp_plan *plan, rp_tally *out) RP_MUST_CHECK;
/* A board's part of a step; `due`: the step that is complete next.
 * errors PEER: another board, another step, or other samples than the plan says */
rp_err rp_tally_add_step(rp_tally *tally, uint32_t board, uint64_t due,
                         const rp_StepDone *done) RP_MUST_CHECK;
/* True: all parts of the step were there, and are gone; their losses are summed in the order of the
 * plan's holds. */
bool rp_tally_take_step(rp_tally *tally, uint64_t step, double *loss_sum) RP_MUST_CHECK;
/* The same of a pass without training. */
void rp_tally_begin_pass(rp_tally *tally);
rp_err rp_tally_add_pass(rp_tally *tally, uint32_t board, double loss_sum) RP_MUST_CHECK;
double rp_tally_pass_loss(const rp_tally *tally);
/* round.c */
bool rp_round_is_due(const rp_controller *c); /* of a lane, at a pause behind its checkpoint */
rp_err rp_round_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_round_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_round_late(const rp_controller *c) RP_MUST_CHECK;
/* verify.c: the records of a segment's last step */
rp_err rp_verify_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_verify_step(rp_controller *c) RP_MUST_CHECK;
void rp_verify_abandon(rp_controller *c);
rp_err rp_verify_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_verify_on_record(rp_controller *c, uint32_t board,
                           const rp_message *message) RP_MUST_CHECK;
rp_err rp_verify_on_recomputed(rp_controller *c, uint32_t board,
                               const rp_message *message) RP_MUST_CHECK;
/* segment.c: train, drain, evaluate, statistics */
rp_err rp_train_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_drain_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_train_step(rp_controller *c) RP_MUST_CHECK;
void rp_train_abandon(rp_controller *c);
rp_err rp_evaluate_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_evaluate_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_statistics_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_statistics_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_late(const rp_controller *c) RP_MUST_CHECK;
/* Before a training segment on new stages: position.step and position.fill_step are where it
 * begins. */
rp_err rp_controller_open_feed(rp_controller *c) RP_MUST_CHECK;
void rp_controller_close_feeds(rp_controller *c);
uint64_t rp_controller_end(const rp_controller *c); /* the step behind which the run is over */
/* An evaluation at the position. */
rp_err rp_controller_note_best(rp_controller *c, rp_split split,
                               const rp_position_score *score) RP_MUST_CHECK;
void rp_controller_resume_best(rp_controller *c); /* what was noted before the run was resumed */
/* The order for a segment that begins here. */
void rp_account_begin(rp_controller *c, rp_Start *order);
/* All boards have paused at the position's step. errors PEER: one has not the plan's samples */
rp_err rp_account_check(rp_controller *c) RP_MUST_CHECK;
rp_summary_ledger rp_account_told(const rp_controller *c);
/* What the boards report while a segment runs. */
rp_err rp_report_step(rp_controller *c, double loss_sum) RP_MUST_CHECK; /* at the position */
rp_err rp_report_on_step_done(rp_controller *c, uint32_t board,
                              const rp_message *message) RP_MUST_CHECK;
rp_err rp_report_on_evaluated(rp_controller *c, uint32_t board,
                              const rp_message *message) RP_MUST_CHECK;
rp_err rp_report_on_norms(rp_controller *c, uint32_t board,
                          const rp_message *message) RP_MUST_CHECK;
rp_err rp_report_on_skipped(rp_controller *c, uint32_t board,
                            const rp_message *message) RP_MUST_CHECK;
rp_err rp_report_on_prediction(rp_controller *c, uint32_t board,
                               const rp_message *message) RP_MUST_CHECK;
rp_err rp_report_on_trace(rp_controller *c, uint32_t board,
                          const rp_message *message) RP_MUST_CHECK;
/* waiting.c */
rp_err rp_report_on_waiting(rp_controller *c, uint32_t board,
                            const rp_message *message) RP_MUST_CHECK;
/* A segment begins; a step of it is done; once a round: is it overdue? errors IO */
void rp_waiting_begin(rp_controller *c);
rp_err rp_waiting_note_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_waiting_look(rp_controller *c) RP_MUST_CHECK;
/* hang.c: errors  FAULT: *board answers but makes no progress, and no other board can go on */
rp_err rp_hang_look(rp_controller *c, uint32_t *board) RP_MUST_CHECK;
/* The boards of a resumed run hear again what is in effect and what is to come. */
rp_err rp_controller_repeat_gains(rp_controller *c) RP_MUST_CHECK;

#endif
