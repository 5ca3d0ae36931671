/* A dense or conv2d layer also computes the relu that follows it, which saves a pass over the
 * output. The results are bit-identical, so a cut between the two, which prevents the fusion,
 * changes nothing. */
#ifndef RP_NN_FUSE_H
#define RP_NN_FUSE_H

#include "nn/cut.h"

/* Fuses every relu that is the only reader of a dense or conv2d layer in its own stage: it becomes
 * a layer that does nothing, and the layer before it is planned again. Returns their number.
 * errors  SHAPE (never: the same shapes were planned before) */
rp_err rp_model_fuse(rp_model *model, const rp_cut *cut, uint32_t *fused) RP_MUST_CHECK;

#endif
