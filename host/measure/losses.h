/* Losses of codecs: sums of squares over some of the samples that boards send, reported at the end
 * of a segment. A loss is a relative L2 error: 0.01 is 1 % of what was sent.
 *
 * Functions with a plan take the one of the last rp_losses_open(). */
#ifndef RP_MEASURE_LOSSES_H
#define RP_MEASURE_LOSSES_H

#include "plan/plan.h"
#include "wire/frame.h"

typedef struct rp_measure rp_measure; /* measure.h */

/* Starts counting losses for the boards' next plan. errors MEMORY */
rp_err rp_losses_open(rp_measure *measure, const rp_plan *plan) RP_MUST_CHECK;
/* Takes a board's report on its codecs; ignores sums that are negative or not finite.
 * errors PEER: of a stage that it does not hold */
rp_err rp_losses_take(rp_measure *measure, const rp_plan *plan, uint32_t board,
                      const rp_Finished *report) RP_MUST_CHECK;
/* Loss from board to board since rp_losses_open(); NAN: nothing was encoded. */
double rp_losses_of_wire(const rp_measure *measure, const rp_plan *plan, uint32_t from,
                         uint32_t to);
/* Loss of the activations or gradients of a stage in the last segment, over all its boards; NAN:
 * nothing was encoded. */
double rp_losses_of_stage(const rp_measure *measure, const rp_plan *plan, uint32_t stage,
                          bool gradients);
/* The next segment begins. */
void rp_losses_end_segment(rp_measure *measure);

#endif
