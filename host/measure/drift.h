/* Compares the measured times of ops, steps and parcels with the prediction for the plan in force.
 *
 * Functions with a plan take the one of the last rp_drift_begin_plan(). */
#ifndef RP_MEASURE_DRIFT_H
#define RP_MEASURE_DRIFT_H

#include "planning/predict.h"
#include "record/sink.h"

typedef struct rp_measure rp_measure; /* measure.h */

/* The boards get another plan: nothing is predicted or measured yet, nor were losses (losses.h). */
void rp_drift_begin_plan(rp_measure *measure);
/* Predicts the plan by the profile, and forgets measured times. *out: the prediction, borrowed
 * until the next one; NULL: the profile or the plan does not allow one. errors MEMORY */
rp_err rp_drift_open(rp_measure *measure, const rp_plan *plan,
                     const rp_prediction **out) RP_MUST_CHECK;
/* NULL: no prediction. */
const rp_prediction *rp_drift_prediction(const rp_measure *measure);

/* Boards get their stages: the set-up lasts from now until the next segment. */
void rp_drift_note_assign(rp_measure *measure);
void rp_drift_begin_segment(rp_measure *measure);
/* Duration of the last set-up in seconds; 0: none yet. */
double rp_drift_setup_s(const rp_measure *measure);
/* Counts an op of board `op->stage`, on its stage `op->part`. */
void rp_drift_note_op(rp_measure *measure, const rp_plan *plan, const rp_sink_op *op);
/* A step is done. The first one of a segment fills the pipes, so its time does not count. */
void rp_drift_note_step(rp_measure *measure);
/* The plan changes because of drift. */
void rp_drift_count_change(rp_measure *measure);
/* Facts for the summary; `out->op` is in `arena`. `plan` NULL: none is in force. errors MEMORY */
rp_err rp_drift_tell(const rp_measure *measure, const rp_plan *plan, rp_arena *arena,
                     rp_summary_prediction *out) RP_MUST_CHECK;

/* The functions below need a prediction. Returns measured time divided by predicted time, over all
 * passes of a board; 1 with fewer than eight ops. */
double rp_drift_board_factor(const rp_measure *measure, const rp_plan *plan, uint32_t board);
/* Measured by predicted time of the last segment's parcels from board to board. Also 1 if the wire
 * hardly counts in a step, or takes turns on an emulated medium. */
double rp_drift_wire_factor(const rp_measure *measure, const rp_plan *plan, uint32_t from,
                            uint32_t to);
/* Makes the measured times the new prediction; also places the profile. Otherwise as
 * rp_drift_open(). */
rp_err rp_drift_take_factors(rp_measure *measure, const rp_plan *plan,
                             const rp_prediction **out) RP_MUST_CHECK;

#endif
