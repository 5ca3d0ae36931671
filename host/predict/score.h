/* A net's outputs as probabilities and as an order of classes: pure functions. */
#ifndef RP_PREDICT_SCORE_H
#define RP_PREDICT_SCORE_H

#include <stdbool.h>
#include <stdint.h>

/* p_i = exp(y_i - max y) / sum_j exp(y_j - max y), in double. p may be NULL. false: an output is
 * not finite, p is not written.
 *
 * source  torch.softmax */
bool rp_score_softmax(const float *y, uint32_t count, double *p);

/* The indices of the `top` largest outputs, the largest first; of equal ones the first comes first,
 * as in an evaluation's accuracy. 1 <= top <= count; all outputs are finite. */
void rp_score_top(const float *y, uint32_t count, uint32_t top, uint32_t *index);

#endif
