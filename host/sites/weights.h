/* Weights that leave a site: those of its run, in the form in which weights were given to it. */
#ifndef RP_SITES_WEIGHTS_H
#define RP_SITES_WEIGHTS_H

#include "base/arena.h"
#include "base/err.h"

/* Writes `to`, with the names, shapes and order of `given`: floats as F32 from `trained`, a weights
 * file or a checkpoint; other tensors, and floats that `trained` does not have, as they came.
 * *norm: the square root of the sum of the squared differences of all floats, in double.
 * errors  IO; FORMAT: a file is damaged, a tensor has another shape or a value that is not finite
 */
rp_err rp_site_write_weights(rp_arena *arena, const char *given, const char *trained,
                             const char *to, double *norm) RP_MUST_CHECK;

#endif
