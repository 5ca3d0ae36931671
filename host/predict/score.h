/* Probabilities and the order of classes from a net's outputs: pure functions. */
#ifndef RP_PREDICT_SCORE_H
#define RP_PREDICT_SCORE_H

#include <stdbool.h>
#include <stdint.h>

/* p_i = exp(y_i - max y) / sum_j exp(y_j - max y), in double. y, p: [count]; p may be NULL. false:
 * an output is not finite, and p is not written.
 *
 * source  torch.softmax */
bool rp_score_softmax(const float *y, uint32_t count, double *p);

/* *out = log of the sum of exp(y_i), in double. y: [count]. false: an output is not finite.
 *
 * source  torch.logsumexp */
bool rp_score_log_sum(const float *y, uint32_t count, double *out);

/* index: [top] indices of the largest outputs in descending order; equal outputs keep their order,
 * as in the accuracy of an evaluation. 1 <= top <= count; all outputs are finite. */
void rp_score_top(const float *y, uint32_t count, uint32_t top, uint32_t *index);

#endif
