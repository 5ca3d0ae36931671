/* The cut for boards that differ: stage k is on board k of a given order. */
#ifndef RP_PLANNING_BALANCE_H
#define RP_PLANNING_BALANCE_H

#include "nn/cut.h"

/* Seconds of the layers [first, end) as stage `stage`, >= 0; infinite: not allowed. */
typedef double (*rp_balance_cost)(const void *context, uint32_t stage, uint32_t first,
                                  uint32_t end);

/* The cut with the shortest slowest stage; of equal ones the earliest first boundary, then the
 * earliest second, and so on. Every stage has a layer.
 * errors  USAGE: fewer layers than stages, or no cut is allowed; MEMORY
 * source  the linear partition problem with a cost function for each part, by dynamic programming
 *         over suffixes: O(stages layers^2) costs, exact */
rp_err rp_balance(rp_arena *arena, rp_balance_cost cost, const void *context, uint32_t layers,
                  uint32_t stages, rp_cut *out) RP_MUST_CHECK;

#endif
