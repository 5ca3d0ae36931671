/* Weights that leave a site: those of its run, in the form in which weights were given to it. */
#ifndef RP_SITES_WEIGHTS_H
#define RP_SITES_WEIGHTS_H

#include "sites/rules.h"

typedef struct {
    double norm; /* root of the sum of the squared differences, before clipping */
    bool clipped;
} rp_site_difference;

/* Writes `to`, with the names, shapes and order of `given`: floats as F32 from `trained`, a weights
 * file or a checkpoint; other tensors, floats that `trained` does not have, and tensors that the
 * rules keep, as they came. If the difference is longer than rules->clip, all of it is scaled to
 * that length. Differences are computed in double.
 * errors  IO; FORMAT: a file is damaged, a tensor has another shape or a value that is not finite
 */
rp_err rp_site_write_weights(rp_arena *arena, const char *given, const char *trained,
                             const char *to, const rp_round_rules *rules,
                             rp_site_difference *out) RP_MUST_CHECK;

#endif
