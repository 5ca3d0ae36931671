/* Averaging of replicas over flat parameter blocks, each one fused kernel.
 *
 * source  METHODS 7 to 9: EASGD (Zhang, Choromanska, LeCun 2015), EA-Pipe and AvgPipe as
 *         reconstructed there */
#ifndef RP_OPTIM_AVERAGE_H
#define RP_OPTIM_AVERAGE_H

#include "device/device.h"

/* e = alpha (x - centre); x -= e; centre += e. */
rp_err rp_average_elastic(rp_device *device, rp_buffer *x, rp_buffer *centre, uint32_t count,
                          float alpha) RP_MUST_CHECK;

/* The elastic average in halves, around a local step of x: out = alpha (x - centre), centre += out;
 * later x -= pull. */
rp_err rp_average_pull(rp_device *device, rp_buffer *out, const rp_buffer *x, rp_buffer *centre,
                       uint32_t count, float alpha) RP_MUST_CHECK;
rp_err rp_average_push(rp_device *device, rp_buffer *x, const rp_buffer *pull,
                       uint32_t count) RP_MUST_CHECK;

/* out = a + factor * b; they may be the same blocks. */
rp_err rp_average_add(rp_device *device, rp_buffer *out, const rp_buffer *a, const rp_buffer *b,
                      float factor, uint32_t count) RP_MUST_CHECK;

/* mean += share (x - mean). Starting with a copy of the first x, shares 1/2, 1/3, ... give the mean
 * of all. */
rp_err rp_average_towards(rp_device *device, rp_buffer *mean, const rp_buffer *x, uint32_t count,
                          float share) RP_MUST_CHECK;

/* For x after a local step and `before` it: x = (1 - alpha) x + alpha reference, with the old
 * reference; then reference += share (x_after - before). */
rp_err rp_average_reference(rp_device *device, rp_buffer *x, rp_buffer *reference,
                            const rp_buffer *before, uint32_t count, float alpha,
                            float share) RP_MUST_CHECK;

#endif
