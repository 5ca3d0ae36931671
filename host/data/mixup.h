/* Mixup of two samples: share * x + (1 - share) * other; targets likewise.
 *
 * source  Zhang et al. 2018; share and partner are drawn for each sample, not for a batch */
#ifndef RP_DATA_MIXUP_H
#define RP_DATA_MIXUP_H

#include "base/rng.h"

/* Draws from Beta(alpha, alpha), alpha > 0. Returns 0 to 1.
 * source  Joehnk 1964 for alpha <= 1, else two gammas of Marsaglia and Tsang 2000; as numpy */
double rp_mixup_share(rp_rng *rng, double alpha);

void rp_mixup_blend(float *x, const float *other, size_t count, double share);

#endif
