/* One segment of a run: what goes to the boards between two pauses, and what they report.
 *
 * A segment trains up to a pause or drains the pipes. A pass, without training, evaluates a split
 * or renews batch statistics. The caller begins one, steps it once a round, hands over what the
 * boards send, and acts on what these functions return. Nothing here waits, and nothing here
 * decides what comes next. */
#ifndef RP_TRAIN_TRAIN_H
#define RP_TRAIN_TRAIN_H

#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "folder/folder.h"
#include "ring/ring.h"

typedef struct rp_train rp_train;

/* Borrowed as long as the room lives. */
typedef struct {
    const rp_runfile *run;
    rp_ring *ring;
    rp_position *position;   /* of the run; written here while a segment is under way */
    const rp_folder *folder; /* its record may be NULL: then nothing is recorded */
    rp_feeder_mode feeder;
} rp_train_needs;

/* Stays in `arena`; the run file may be read, and the ring and the record may be opened, later.
 * errors  MEMORY */
rp_err rp_train_open(rp_arena *arena, const rp_train_needs *needs, rp_train **out) RP_MUST_CHECK;
/* Accepts NULL. Frees what does not lie in the arena. The feed links have to be closed before:
 * parcels in them borrow batches. */
void rp_train_close(rp_train *train);
void rp_train_close_feeds(rp_train *train);
/* The boards run by this plan from here on; it is borrowed until the next one. errors MEMORY */
rp_err rp_train_open_plan(rp_train *train, const rp_plan *plan) RP_MUST_CHECK;
/* Opens the estimator of gains (horizon: measured), in `arena`, once in a run. errors MEMORY */
rp_err rp_train_open_gains(rp_train *train, rp_arena *arena) RP_MUST_CHECK;
/* Opens the feed of training, from the position's step and fill_step on. errors of the feeder */
rp_err rp_train_open_feed(rp_train *train) RP_MUST_CHECK;
/* The run goes back: forgets the segment, and what the boards have said in it. */
void rp_train_go_back(rp_train *train);

/* ---- segments -------------------------------------------------------------------------------- */

/* Trains from the position to a pause before step `end`, or just after an earlier step that is to
 * be verified. errors of the ring */
rp_err rp_train_begin(rp_train *train, uint64_t end) RP_MUST_CHECK;
/* Trains until the pipes are empty, without new inputs. */
rp_err rp_train_begin_drain(rp_train *train) RP_MUST_CHECK;
/* Feeds the boards. `stop`: the segment is to end before the first step of which nothing was sent.
 * *paused: all boards have paused; call rp_train_end_segment() next. *fault_class is set where this
 * room knows the class of its error: FATAL. errors FAULT: losses or gradients are not finite; of
 * the ring */
rp_err rp_train_step(rp_train *train, bool stop, bool *paused,
                     rp_FaultClass *fault_class) RP_MUST_CHECK;
/* Notes the segment's time, and compares the ledgers of the boards with the plan.
 * errors  PEER: a board has other samples than the plan */
rp_err rp_train_end_segment(rp_train *train) RP_MUST_CHECK;
/* The segment was cut off; does nothing where none is under way. */
void rp_train_abandon(rp_train *train);
/* Time at which the segment or the pass began; 0: none is under way. */
int64_t rp_train_segment_start_ns(const rp_train *train);
/* Seconds since then. */
double rp_train_segment_s(const rp_train *train);
/* The step after which the run is over: of the run file, or of an early stop. */
uint64_t rp_train_end(const rp_train *train);
/* The step at which the run ends for lack of gain; 0: it goes on. */
uint64_t rp_train_stop_step(const rp_train *train);
/* The step at which the pipes would be empty if no input went in from here on. */
uint64_t rp_train_drained_at(const rp_train *train);
/* The feed of training is open: the boards have been loaded. */
bool rp_train_has_feed(const rp_train *train);
/* Readable when a batch of the segment or the pass can be sent; -1: there is nothing to wait
 * for. */
int rp_train_eventfd(const rp_train *train);
/* Squared norms, losses and ledgers so far, for the summary; `known` where all boards have them. */
rp_summary_ledger rp_train_tell_ledger(const rp_train *train);
/* Gains of predictions; they change while the boards report. NULL: this run measures none. */
rp_gain_estimator *rp_train_gains(rp_train *train);
/* Tells the boards of a resumed run again which gains are in effect, and which are to come. */
rp_err rp_train_repeat_gains(rp_train *train) RP_MUST_CHECK;

/* ---- passes ---------------------------------------------------------------------------------- */

/* An evaluation of *split is due at the position's step. */
bool rp_train_is_evaluation_due(const rp_train *train, rp_split *split);
/* Scores a split. `trains`: in a training run, whose validation part is recorded as such. */
rp_err rp_train_begin_evaluation(rp_train *train, rp_split split, bool trains) RP_MUST_CHECK;
/* Renews batch statistics with some training data. */
rp_err rp_train_begin_statistics(rp_train *train) RP_MUST_CHECK;
/* *over: the boards have ended the pass, and the position has its score. May be called again then,
 * without effect. errors of the ring, of the record */
rp_err rp_train_step_pass(rp_train *train, bool *over) RP_MUST_CHECK;
/* Writes the score of the pass next to the checkpoint of its step, and counts it for the best one.
 * *stops: the run ends early, at rp_train_end(); it is also set before an error.
 * errors IO: call it again */
rp_err rp_train_keep_score(rp_train *train, bool *stops) RP_MUST_CHECK;
/* Reads the best evaluation of before from the folder of checkpoints, for the position. */
void rp_train_resume_best(rp_train *train);

/* ---- reports of the boards ------------------------------------------------------------------- */

/* A board's part of a step. Then call rp_train_take_step() until it is false.
 * errors  PEER: another board, another step, or other samples than the plan says */
rp_err rp_train_on_step_done(rp_train *train, uint32_t board,
                             const rp_message *message) RP_MUST_CHECK;
/* True: all parts of the position's step have come; then call rp_train_end_step(). */
bool rp_train_take_step(rp_train *train, double *loss_sum) RP_MUST_CHECK;
/* The position's step was done just now: counts it, and notes its time. */
rp_err rp_train_end_step(rp_train *train, double loss_sum) RP_MUST_CHECK;
/* Counts a step that the boards did before this host was there. */
rp_err rp_train_count_step(rp_train *train, double loss_sum) RP_MUST_CHECK;
rp_err rp_train_on_evaluated(rp_train *train, uint32_t board,
                             const rp_message *message) RP_MUST_CHECK;
/* With the norms of the last hold of a step the boards get the decision on it.
 * errors  PEER; FAULT: boards that share a stage have different gradients */
rp_err rp_train_on_norms(rp_train *train, uint32_t board, const rp_message *message) RP_MUST_CHECK;
rp_err rp_train_on_skipped(rp_train *train, uint32_t board,
                           const rp_message *message) RP_MUST_CHECK;
rp_err rp_train_on_prediction(rp_train *train, uint32_t board,
                              const rp_message *message) RP_MUST_CHECK;
rp_err rp_train_on_waiting(rp_train *train, uint32_t board,
                           const rp_message *message) RP_MUST_CHECK;
/* A board has paused: what it has applied, its ledger and what is in flight. `applied`: how many
 * counts of updates it has to report. errors  PEER */
rp_err rp_train_on_finished(rp_train *train, uint32_t board, const rp_message *message,
                            uint32_t applied) RP_MUST_CHECK;
/* Mean loss of the steps since the last call, for a round of lanes; NAN: there were none. */
double rp_train_take_round_loss(rp_train *train);

/* ---- the record ------------------------------------------------------------------------------ */

/* What the position has counted, as the record has it. */
rp_record_totals rp_train_totals(const rp_train *train);
/* The record goes back to the position. errors IO */
rp_err rp_train_rewind_record(const rp_train *train) RP_MUST_CHECK;
/* Copies what the record has counted into the position, for a checkpoint. */
void rp_train_read_totals(rp_train *train);
/* Records an op of the plan, and the parcels whose other end is known. errors MEMORY; of the
 * record */
rp_err rp_train_record_op(rp_train *train, const rp_sink_op *op) RP_MUST_CHECK;
const rp_checkpoint_best *rp_train_best(const rp_train *train);
/* .. for the summary. */
rp_summary_best rp_train_tell_best(const rp_train *train);

/* ---- progress -------------------------------------------------------------------------------- */

/* Once a round while a segment or an evaluation is under way: says which board waits for which
 * where a step takes several times as long as usual. errors IO */
rp_err rp_train_check_progress(rp_train *train) RP_MUST_CHECK;
/* Once a round while a segment or a pass is under way. errors  FAULT: *board answers but makes no
 * progress, and no other board can go on. Else *board is not changed */
rp_err rp_train_find_hang(rp_train *train, uint32_t *board) RP_MUST_CHECK;
/* Time that a step of training takes; 0: not known yet. */
int64_t rp_train_usual_step_ns(const rp_train *train);

/* ---- numbers that are not finite ------------------------------------------------------------- */

/* The boards have saved. `tensor`: its values are not finite; NULL: all are. `kept_step`: of the
 * newest checkpoint. `is_needed`: the run can not go on without the new one.
 * errors  FAULT: is_needed; then *fault_class is FATAL. Of the record */
rp_err rp_train_note_saved(rp_train *train, const char *tensor, uint64_t kept_step, bool is_needed,
                           rp_FaultClass *fault_class) RP_MUST_CHECK;
/* At the end of the run. errors  FAULT: its weights or their score are not finite, or the last
 * losses are not and the run has no score or never had a finite loss; then *fault_class is FATAL.
 * Never where train.stop_after.non_finite is 0 */
rp_err rp_train_check_result(const rp_train *train, rp_FaultClass *fault_class) RP_MUST_CHECK;
/* At the end of an evaluation of weights. errors  NUMERIC: its loss is not finite; *fault_class is
 * FATAL */
rp_err rp_train_check_score(const rp_position_score *score,
                            rp_FaultClass *fault_class) RP_MUST_CHECK;

#endif
