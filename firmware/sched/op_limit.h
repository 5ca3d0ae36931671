/* How long a device may take for one op before it counts as hanging, judged by its own longest op.
 * The agent and the controller use the same limits, so that both come to the same verdict. Pure. */
#ifndef RP_SCHED_OP_LIMIT_H
#define RP_SCHED_OP_LIMIT_H

#include <stdint.h>

/* `longest_ns`: the longest op so far; 0: none has ended. */
int64_t rp_op_limit_ns(int64_t longest_ns);
/* The longest op after one more has ended. A single op raises it eightfold at most, so that one
 * stall does not excuse a stall of 200 times its length. */
int64_t rp_op_longest_ns(int64_t longest_ns, int64_t took_ns);

#endif
