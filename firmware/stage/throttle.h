/* Emulation of a slower board: a minimum duration for each op. */
#ifndef RP_STAGE_THROTTLE_H
#define RP_STAGE_THROTTLE_H

#include "base/config.h"
#include "sched/sched.h"

/* The duration of an op is the sum of all parts below. A half of a split backward takes half of a
 * backward. Zeros: no minimum. */
typedef struct {
    double forward_ms,
        backward_ms; /* for a full microbatch; fewer samples take proportionally less */
    double forward_op_ms, backward_op_ms;         /* for each op, whatever its number of samples */
    double forward_sample_ms, backward_sample_ms; /* for each sample */
    double update_ms;
    double gflops; /* speed of the stage's layers, 10^9 operations a second; 0: unlimited */
} rp_throttle;

/* The properties of an op that a throttle needs. */
typedef struct {
    rp_op_kind kind;
    uint32_t samples, micro; /* of the op; of a full microbatch */
    double flops[2];         /* of one sample through the stage: forward, backward */
} rp_throttled_op;

bool rp_throttle_is_set(const rp_throttle *throttle);
/* The minimum duration of an op in seconds. Pure. */
double rp_throttle_s(const rp_throttle *throttle, const rp_throttled_op *op);

/* Finds `throttle:` of `parent`, or its former name `pace:`; *out is NULL if both are missing.
 * errors USAGE: it is not a map, or both names are there */
rp_err rp_throttle_find(rp_node *parent, rp_node **out) RP_MUST_CHECK;
/* Reads the keys of `map` that exist over *out; the map may have other keys. errors USAGE */
rp_err rp_throttle_read(rp_node *map, rp_throttle *out) RP_MUST_CHECK;
/* Finds and reads the section; unknown keys are errors, a missing section means zeros. errors
 * USAGE */
rp_err rp_throttle_parse(rp_node *parent, rp_throttle *out) RP_MUST_CHECK;
/* Writes one line that rp_throttle_parse() reads back with equal values. */
void rp_throttle_put(FILE *file, const rp_throttle *throttle);

#endif
