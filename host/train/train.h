/* One segment of a run: what the host sends to the boards between two pauses, and what they report.
 *
 * A segment trains up to a pause or drains the pipes. A pass does not train: it evaluates a split
 * or renews batch statistics. The caller begins one, steps it once a round, hands over the boards'
 * messages, and acts on the returned values. Nothing here waits or decides what follows. */
#ifndef RP_TRAIN_TRAIN_H
#define RP_TRAIN_TRAIN_H

#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "folder/folder.h"
#include "ring/ring.h"
#include "train/tally.h"

typedef struct rp_train rp_train;

/* All pointers are borrowed until rp_train_close(). */
typedef struct {
    const rp_runfile *run;
    rp_ring *ring;
    rp_position *position;   /* of the run; updated here during a segment */
    const rp_folder *folder; /* its record may be NULL: then nothing is recorded */
    rp_feeder_mode feeder;
} rp_train_needs;

/* Allocates the room in `arena`. Run file, ring and record may be opened later.
 * errors MEMORY */
rp_err rp_train_open(rp_arena *arena, const rp_train_needs *needs, rp_train **out) RP_MUST_CHECK;
/* Accepts NULL. Frees memory outside the arena. Close the feed links first, because their parcels
 * borrow batches. */
void rp_train_close(rp_train *train);
void rp_train_close_feeds(rp_train *train);
/* Sets the plan by which the boards run; borrowed until the next one. errors MEMORY */
rp_err rp_train_open_plan(rp_train *train, const rp_plan *plan) RP_MUST_CHECK;
/* Opens the gain estimator (horizon: measured) in `arena`, once in a run. errors MEMORY */
rp_err rp_train_open_gains(rp_train *train, rp_arena *arena) RP_MUST_CHECK;
/* Opens the feed for training from the position's step and fill_step. errors of the feeder */
rp_err rp_train_open_feed(rp_train *train) RP_MUST_CHECK;
/* The run goes back: forgets the segment and the boards' reports on it. */
void rp_train_go_back(rp_train *train);

/* ---- segments -------------------------------------------------------------------------------- */

/* Trains from the position to a pause before step `end`, or right after an earlier step that is to
 * be verified. errors of the ring */
rp_err rp_train_begin(rp_train *train, uint64_t end) RP_MUST_CHECK;
/* Trains until the pipes are empty, without new inputs. */
rp_err rp_train_begin_drain(rp_train *train) RP_MUST_CHECK;
/* Feeds the boards. `stop`: end the segment at the first step of which nothing was sent. *paused:
 * all boards have paused; call rp_train_end_segment() next. Sets *fault_class only with FATAL
 * errors. errors FAULT: losses or gradients are not finite; of the ring */
rp_err rp_train_step(rp_train *train, bool stop, bool *paused,
                     rp_FaultClass *fault_class) RP_MUST_CHECK;
/* Records the segment's duration, and compares the boards' ledgers with the plan.
 * errors PEER: a ledger differs from the plan */
rp_err rp_train_end_segment(rp_train *train) RP_MUST_CHECK;
/* Ends an interrupted segment; does nothing without one. */
void rp_train_abandon(rp_train *train);
/* When the segment or pass began; 0: not now. */
int64_t rp_train_segment_start_ns(const rp_train *train);
/* Seconds since then. */
double rp_train_segment_s(const rp_train *train);
/* The last step of the run: by the run file, or by an early stop. */
uint64_t rp_train_end(const rp_train *train);
/* The step at which the run stops for lack of gain; 0: none. */
uint64_t rp_train_stop_step(const rp_train *train);
/* The step at which the pipes would be empty if no more inputs were sent. */
uint64_t rp_train_drained_at(const rp_train *train);
/* The feed for training is open: the boards have been loaded. */
bool rp_train_has_feed(const rp_train *train);
/* Readable when a batch can be sent; -1: nothing to wait for. */
int rp_train_eventfd(const rp_train *train);
/* Ledger totals for the summary; `known`: all boards support ledgers. */
rp_summary_ledger rp_train_tell_ledger(const rp_train *train);
/* The estimator of prediction gains, which changes as boards report. NULL: this run measures
 * none. */
rp_gain_estimator *rp_train_gains(rp_train *train);
/* Sends the boards of a resumed run the gains in effect and the pending ones. */
rp_err rp_train_repeat_gains(rp_train *train) RP_MUST_CHECK;

/* ---- passes ---------------------------------------------------------------------------------- */

/* An evaluation is due at the position's step; *split: of this split. */
bool rp_train_is_evaluation_due(const rp_train *train, rp_split *split);
/* Scores a split. `trains`: in a training run, so a validation split is recorded as such. */
rp_err rp_train_begin_evaluation(rp_train *train, rp_split split, bool trains) RP_MUST_CHECK;
/* Renews batch statistics with a part of the training data. */
rp_err rp_train_begin_statistics(rp_train *train) RP_MUST_CHECK;
/* *over: the pass has ended, and the position has its score; later calls have no effect. errors of
 * the ring, of the record */
rp_err rp_train_step_pass(rp_train *train, bool *over) RP_MUST_CHECK;
/* Stores the score next to the checkpoint of its step, and compares it with the best one. *stops:
 * the run ends early, at rp_train_end(); also valid with an error.
 * errors IO: call it again */
rp_err rp_train_keep_score(rp_train *train, bool *stops) RP_MUST_CHECK;
/* Reads the best evaluation so far from the folder of checkpoints, for the position. */
void rp_train_resume_best(rp_train *train);

/* ---- reports of the boards ------------------------------------------------------------------- */

/* Takes a board's part of a step. Then call rp_train_take_step() until it returns false.
 * errors PEER: unexpected board, step or number of samples */
rp_err rp_train_on_step_done(rp_train *train, uint32_t board,
                             const rp_message *message) RP_MUST_CHECK;
/* True: all parts of the position's step have arrived; then call rp_train_end_step(). */
bool rp_train_take_step(rp_train *train, rp_loss_sum *sum) RP_MUST_CHECK;
/* Counts the position's step, which was just completed, and notes its duration. */
rp_err rp_train_end_step(rp_train *train, const rp_loss_sum *sum) RP_MUST_CHECK;
/* Counts a step that boards did before this controller started. */
rp_err rp_train_count_step(rp_train *train, const rp_loss_sum *sum) RP_MUST_CHECK;
rp_err rp_train_on_evaluated(rp_train *train, uint32_t board,
                             const rp_message *message) RP_MUST_CHECK;
/* Takes a board's norms. With the last hold of a step, sends all boards the decision on it.
 * errors PEER; FAULT: boards that share a stage have different gradients */
rp_err rp_train_on_norms(rp_train *train, uint32_t board, const rp_message *message) RP_MUST_CHECK;
rp_err rp_train_on_skipped(rp_train *train, uint32_t board,
                           const rp_message *message) RP_MUST_CHECK;
rp_err rp_train_on_prediction(rp_train *train, uint32_t board,
                              const rp_message *message) RP_MUST_CHECK;
rp_err rp_train_on_waiting(rp_train *train, uint32_t board,
                           const rp_message *message) RP_MUST_CHECK;
/* A board has paused: takes its update counts, ledger and in-flight state. `applied`: expected
 * number of counts. errors PEER */
rp_err rp_train_on_finished(rp_train *train, uint32_t board, const rp_message *message,
                            uint32_t applied) RP_MUST_CHECK;
/* Mean loss of the steps since the last call, for a round of lanes; NAN: no steps. */
double rp_train_take_round_loss(rp_train *train);

/* ---- the record ------------------------------------------------------------------------------ */

/* The position's totals in the form of the record. */
rp_record_totals rp_train_totals(const rp_train *train);
/* Rewinds the record to the position. errors IO */
rp_err rp_train_rewind_record(const rp_train *train) RP_MUST_CHECK;
/* Copies the record's totals into the position, for a checkpoint. */
void rp_train_read_totals(rp_train *train);
/* Records an op of the plan, and the transfers completed by it. errors MEMORY; of the record */
rp_err rp_train_record_op(rp_train *train, const rp_sink_op *op) RP_MUST_CHECK;
const rp_checkpoint_best *rp_train_best(const rp_train *train);
/* The best evaluation, for the summary. */
rp_summary_best rp_train_tell_best(const rp_train *train);

/* ---- progress -------------------------------------------------------------------------------- */

/* Call it once a round during a segment or an evaluation. If a step takes several times as long as
 * usual, logs which board waits for which. errors IO */
rp_err rp_train_check_progress(rp_train *train) RP_MUST_CHECK;
/* Call it once a round during a segment or a pass. errors FAULT: *board answers but makes no
 * progress, and no other board can. Otherwise *board is unchanged */
rp_err rp_train_find_hang(rp_train *train, uint32_t *board) RP_MUST_CHECK;
/* Usual duration of a training step; 0: unknown. */
int64_t rp_train_usual_step_ns(const rp_train *train);

/* ---- numbers that are not finite ------------------------------------------------------------- */

/* The boards have sent their tensors. `tensor`: one with values that are not finite; NULL: none.
 * `kept_step`: of the newest checkpoint. `is_needed`: the run cannot go on without the new one.
 * errors FAULT: is_needed and a tensor is not finite; then *fault_class is FATAL. Of the record */
rp_err rp_train_note_saved(rp_train *train, const char *tensor, uint64_t kept_step, bool is_needed,
                           rp_FaultClass *fault_class) RP_MUST_CHECK;
/* At the end of the run. errors FAULT: the weights or their score are not finite; or the last
 * losses are not finite, and the run has no score or never had a finite loss; then *fault_class is
 * FATAL. Always OK if train.stop_after.non_finite is 0 */
rp_err rp_train_check_result(const rp_train *train, rp_FaultClass *fault_class) RP_MUST_CHECK;
/* At the end of an evaluation of weights. errors NUMERIC: the loss is not finite; *fault_class is
 * FATAL */
rp_err rp_train_check_score(const rp_position_score *score,
                            rp_FaultClass *fault_class) RP_MUST_CHECK;

#endif
