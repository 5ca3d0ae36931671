/* A trained net, forward only: all layers in one stage on one device. */
#ifndef RP_PREDICT_NETWORK_H
#define RP_PREDICT_NETWORK_H

#include "base/config.h"
#include "device/device.h"
#include "nn/model.h"

typedef struct rp_network rp_network;

typedef struct {
    rp_node *model; /* a model file's tree; it is changed: nothing of it is trained any more */
    const rp_shape *sample;
    uint32_t classes;    /* 0: none */
    const char *weights; /* path of a safetensors file with the model's tensors, maybe more */
} rp_network_options;

/* Reads and checks the files. The network lives in `arena` and borrows the options' tree.
 * errors  USAGE, SHAPE naming the model's line; IO, FORMAT naming file and tensor: missing, of
 *         another shape, not finite, or not what was written (checksums) */
rp_err rp_network_read(rp_arena *arena, const rp_network_options *options,
                       rp_network **out) RP_MUST_CHECK;
/* Takes memory on the device, builds the kernels, moves the weights there. Once. */
rp_err rp_network_start(rp_network *network, rp_device *device) RP_MUST_CHECK;
void rp_network_close(rp_network **network); /* accepts NULL inside */

/* Floats of a sample's output. */
uint32_t rp_network_outputs(const rp_network *network);
/* The most samples of one run: by the size of the largest tensor. */
uint32_t rp_network_micro(const rp_network *network);

/* y = net(x) as in evaluation. Waits for the device.
 *
 * shapes  x [n, sample], normalised; y [n, outputs]; f32, on the host; 1 <= n <= micro
 * errors  DEVICE */
rp_err rp_network_run(rp_network *network, const float *x, uint32_t n, float *y) RP_MUST_CHECK;

#endif
