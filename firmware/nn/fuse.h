/* A dense or conv2d layer does the relu behind it, which saves a pass over the output. The numbers
 * are the same bits, so a cut between the two, where it can not be done, changes nothing. */
#ifndef RP_NN_FUSE_H
#define RP_NN_FUSE_H

#include "nn/cut.h"

/* Every relu that is the only reader of a dense or conv2d layer of its own stage becomes a layer
 * that does nothing; the layer before is planned again. Gives how many.
 * errors SHAPE (never: the same shapes were planned before) */
rp_err rp_model_fuse(rp_model *model, const rp_cut *cut, uint32_t *fused) RP_MUST_CHECK;

#endif
