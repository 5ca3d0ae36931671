/* A board that is slower than this one, emulated: an op takes at least so long. */
#ifndef RP_STAGE_THROTTLE_H
#define RP_STAGE_THROTTLE_H

#include "base/config.h"
#include "sched/sched.h"

/* Per class of op an affine cost of its samples, the times of all its parts added up. Half of a
 * split backward takes half of a backward. Zeros: as fast as it goes. */
typedef struct {
    double forward_ms, backward_ms;               /* of a full microbatch, in proportion */
    double forward_op_ms, backward_op_ms;         /* of any, however few samples it has */
    double forward_sample_ms, backward_sample_ms; /* of each sample */
    double update_ms;
    double gflops; /* 10^9 operations of the stage's layers a second; 0: they take no time */
} rp_throttle;

/* An op as a throttle sees it. */
typedef struct {
    rp_op_kind kind;
    uint32_t samples, micro; /* micro: samples of a full microbatch */
    double flops[2];         /* of one sample through the stage, forward and backward */
} rp_throttled_op;

bool rp_throttle_is_set(const rp_throttle *throttle);
/* The least time of an op in seconds; 0 as it comes. Pure. */
double rp_throttle_s(const rp_throttle *throttle, const rp_throttled_op *op);

/* `throttle:` of `parent`, or `pace:`, its former name; *out is NULL when there is neither.
 * errors USAGE: it is no map, or both are there */
rp_err rp_throttle_find(rp_node *parent, rp_node **out) RP_MUST_CHECK;
/* The keys of a map that are there, over what *out has; the map may have others. errors USAGE */
rp_err rp_throttle_read(rp_node *map, rp_throttle *out) RP_MUST_CHECK;
/* Both, and no other keys; none = zeros. errors USAGE */
rp_err rp_throttle_parse(rp_node *parent, rp_throttle *out) RP_MUST_CHECK;
/* One line that rp_throttle_parse() reads back equal. */
void rp_throttle_put(FILE *file, const rp_throttle *throttle);

#endif
