/* How long a device may take for one op before it counts as hanging, based on its own longest op.
 * The agent and the controller use the same limits, so that both reach the same verdict. Pure. */
#ifndef RP_SCHED_OP_LIMIT_H
#define RP_SCHED_OP_LIMIT_H

#include <stdint.h>

/* `longest_ns`: the longest op so far; 0: no op has ended yet. */
int64_t rp_op_limit_ns(int64_t longest_ns);
/* The new longest op after one more has ended. A single op can raise it at most eightfold, so that
 * one stall does not excuse a later stall of 200 times the usual length. */
int64_t rp_op_longest_ns(int64_t longest_ns, int64_t took_ns);

#endif
