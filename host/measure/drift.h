/* Predicted against measured: how long ops, steps and parcels of the plan in force take.
 *
 * Functions that take a plan are given the one of the last rp_drift_begin_plan(). */
#ifndef RP_MEASURE_DRIFT_H
#define RP_MEASURE_DRIFT_H

#include "planning/predict.h"
#include "record/sink.h"

typedef struct rp_measure rp_measure; /* measure.h */

/* The boards get another plan: nothing is known of it yet, and nothing was lost (losses.h). */
void rp_drift_begin_plan(rp_measure *measure);
/* Predicts the plan by the profile, and forgets what was measured. *out: the prediction, borrowed
 * until the next one; NULL: the profile or the plan allows none. errors  MEMORY */
rp_err rp_drift_open(rp_measure *measure, const rp_plan *plan,
                     const rp_prediction **out) RP_MUST_CHECK;
/* NULL: not known. */
const rp_prediction *rp_drift_prediction(const rp_measure *measure);

/* Boards get their stages: the time until the next segment is that of the set-up. */
void rp_drift_note_assign(rp_measure *measure);
void rp_drift_begin_segment(rp_measure *measure);
/* Seconds that it took last to set the boards up; 0: not yet. */
double rp_drift_setup_s(const rp_measure *measure);
/* An op of the board `op->stage`, of its stage `op->part`. */
void rp_drift_note_op(rp_measure *measure, const rp_plan *plan, const rp_sink_op *op);
/* A step is done. The first one of a segment fills the pipes, so its time does not count. */
void rp_drift_note_step(rp_measure *measure);
/* The plan changes because of drift. */
void rp_drift_count_change(rp_measure *measure);
/* For the summary; `out->op` is in `arena`. `plan` NULL: none is in force. errors  MEMORY */
rp_err rp_drift_tell(const rp_measure *measure, const rp_plan *plan, rp_arena *arena,
                     rp_summary_prediction *out) RP_MUST_CHECK;

/* The functions below need a prediction. Measured by predicted, over the passes of all stages of a
 * board; 1: fewer than eight ops are known. */
double rp_drift_board_factor(const rp_measure *measure, const rp_plan *plan, uint32_t board);
/* Measured by predicted, over the parcels of the last segment from board to board. 1 also means
 * that the wire hardly counts in a step, or takes turns on an emulated medium. */
double rp_drift_wire_factor(const rp_measure *measure, const rp_plan *plan, uint32_t from,
                            uint32_t to);
/* From here on what was measured counts as predicted; places the profile. Otherwise as
 * rp_drift_open(). */
rp_err rp_drift_take_factors(rp_measure *measure, const rp_plan *plan,
                             const rp_prediction **out) RP_MUST_CHECK;

#endif
