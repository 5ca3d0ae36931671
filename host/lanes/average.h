/* Elastic averaging of checkpoints, tensor by tensor, in files.
 *
 * source  Zhang, Choromanska, LeCun: Deep learning with Elastic Averaging SGD (NeurIPS 2015):
 *         x_i <- x_i - a_i (x_i - z);  z <- z + sum_i a_i (x_i - z), by the z of before
 * Weights and running statistics are averaged; what optimisers hold stays each lane's own. Values
 * are summed as doubles in the order of the members, so the bits do not depend on anything else. */
#ifndef RP_LANES_AVERAGE_H
#define RP_LANES_AVERAGE_H

#include <stdint.h>

#include "base/err.h"

enum { RP_AVERAGE_MEMBERS_MAX = 8, RP_AVERAGE_DIGEST = 17 };

typedef struct {
    const char *from; /* a checkpoint */
    const char *to;   /* the same, drawn to the centre; its metadata say of which round it is */
    double alpha;     /* above 0, at most 1 */
} rp_average_member;

typedef struct {
    const char *center; /* NULL: there is none yet, and it begins as the members' mean */
    const char *next;   /* the new one */
    uint64_t round;
    rp_average_member member[RP_AVERAGE_MEMBERS_MAX];
    uint32_t count;
} rp_average;

/* `digest`: of the new centre, as text. *bad: the member whose file is at fault, or the count.
 * errors  USAGE: no members, or their alphas are more than 1 together; FORMAT: a tensor is missing,
 *         of another shape, damaged or not finite; IO */
rp_err rp_average_make(const rp_average *average, char digest[RP_AVERAGE_DIGEST],
                       uint32_t *bad) RP_MUST_CHECK;

/* The tensors of a centre as a weights file. errors FORMAT, IO */
rp_err rp_average_export(const char *center, const char *path) RP_MUST_CHECK;

#endif
