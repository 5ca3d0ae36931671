/* Elastic averaging of checkpoint files, tensor by tensor. source Zhang, Choromanska, LeCun: Deep
 * learning with Elastic Averaging SGD (NeurIPS 2015):
 *
 *         x_i <- x_i - a_i (x_i - z);  z <- z + sum_i a_i (x_i - z), with the previous z on the
 * right
 *
 * Weights and running statistics are averaged; optimiser states stay each lane's own. Values are
 * summed as doubles in the order of the members, so the bits depend on nothing else. */
#ifndef RP_LANES_AVERAGE_H
#define RP_LANES_AVERAGE_H

#include <stdint.h>

#include "base/err.h"

enum { RP_AVERAGE_MEMBERS_MAX = 8, RP_AVERAGE_DIGEST = 17 };

typedef struct {
    const char *from; /* a checkpoint */
    const char *to;   /* its averaged copy; the metadata contain the round */
    double alpha;     /* above 0, at most 1 */
} rp_average_member;

typedef struct {
    const char *center; /* NULL: none yet; the first centre is the members' mean */
    const char *next;   /* file for the new centre */
    uint64_t round;
    rp_average_member member[RP_AVERAGE_MEMBERS_MAX];
    uint32_t count;
} rp_average;

/* `digest`: of the new centre, as text. *bad: the member whose file is invalid, or the count.
 * errors USAGE: no members, or the sum of their alphas exceeds 1; FORMAT: a tensor is missing, of
 * another shape, damaged or not finite; IO */
rp_err rp_average_make(const rp_average *average, char digest[RP_AVERAGE_DIGEST],
                       uint32_t *bad) RP_MUST_CHECK;

/* Writes the tensors of a centre as a weights file. errors FORMAT, IO */
rp_err rp_average_export(const char *center, const char *path) RP_MUST_CHECK;

#endif
