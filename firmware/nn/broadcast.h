/* Products with a broadcast factor, shared by mul and scale; private to the room. */
#ifndef RP_NN_BROADCAST_H
#define RP_NN_BROADCAST_H

#include "nn/layer_common.h"

/* A sample of the whole operand is [p, q, wide]. The factor has the same axes, and one element
 * where an axis is not kept. */
typedef struct {
    uint32_t n; /* samples of the whole operand */
    uint32_t p, q, wide;
    bool keep_p, keep_q, keep_wide;
    bool shared; /* the factor has no samples, because it is a parameter */
} rp_broadcast;

/* Elements of a sample of the factor. */
uint32_t rp_broadcast_count(const rp_broadcast *form);

/* y (+)= a b, where b is the factor; y may be a. Also da (+)= dy b. */
rp_err rp_broadcast_multiply(const rp_layer_call *call, const rp_broadcast *form,
                             const rp_tensor *y, const rp_tensor *a, const rp_tensor *b,
                             bool add) RP_MUST_CHECK;

/* out (+)= the sum of dy a over the axes that are not kept and over each `images` samples, in an
 * order that depends only on the shapes. out has rp_broadcast_count() elements for each group of
 * samples and begins at element `out_first`. */
rp_err rp_broadcast_sum(const rp_layer_call *call, const rp_broadcast *form, rp_buffer *out,
                        uint64_t out_first, const rp_tensor *dy, const rp_tensor *a,
                        uint32_t images, bool add) RP_MUST_CHECK;

#endif
