/* What codecs lose: sums of squares of some of the samples that boards send, as they report them at
 * the end of a segment. A loss is a relative L2 error: 0.01 is 1 % of what was sent.
 *
 * Functions that take a plan are given the one of the last rp_losses_open(). */
#ifndef RP_MEASURE_LOSSES_H
#define RP_MEASURE_LOSSES_H

#include "plan/plan.h"
#include "wire/frame.h"

typedef struct rp_measure rp_measure; /* measure.h */

/* Nothing has been lost yet of the plan that the boards get. errors  MEMORY */
rp_err rp_losses_open(rp_measure *measure, const rp_plan *plan) RP_MUST_CHECK;
/* What a board says that its codecs have lost; sums that are not finite or negative do not count.
 * errors  PEER: of a stage that it does not hold */
rp_err rp_losses_take(rp_measure *measure, const rp_plan *plan, uint32_t board,
                      const rp_Finished *report) RP_MUST_CHECK;
/* Loss of what went from board to board since rp_losses_open(); NAN: nothing was encoded. */
double rp_losses_of_wire(const rp_measure *measure, const rp_plan *plan, uint32_t from,
                         uint32_t to);
/* Loss of the activations or gradients that all boards of a stage have sent in the segment that has
 * ended; NAN: nothing was encoded. */
double rp_losses_of_stage(const rp_measure *measure, const rp_plan *plan, uint32_t stage,
                          bool gradients);
/* The next segment begins. */
void rp_losses_end_segment(rp_measure *measure);

#endif
