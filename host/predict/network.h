/* A trained net, forward only: all layers in one stage on one device. */
#ifndef RP_PREDICT_NETWORK_H
#define RP_PREDICT_NETWORK_H

#include "base/config.h"
#include "device/device.h"
#include "nn/model.h"

typedef struct rp_network rp_network;

typedef struct {
    rp_node *model;       /* a model file's tree, in which all layers become `train: false` */
    rp_model_data data;   /* of the set that the net was trained with */
    const uint32_t *time; /* [time_count]: shorter lengths of samples, see rp_model_add_times() */
    uint32_t time_count;
    const char *weights; /* path of a safetensors file with at least the model's tensors */
    /* Asked before each run, whether the user wants it to end; NULL: never. The argument is NULL.
     */
    bool (*is_stopped)(void *unused);
} rp_network_options;

/* Reads and checks the files. The network lives in `arena` and borrows the options' tree.
 * errors  USAGE, SHAPE naming the model's line; IO, FORMAT naming file and tensor: missing, wrong
 *         shape, not finite, or damaged (checksums) */
rp_err rp_network_read(rp_arena *arena, const rp_network_options *options,
                       rp_network **out) RP_MUST_CHECK;
/* Takes memory on the device, builds the kernels, and uploads the weights. Call it once. */
rp_err rp_network_start(rp_network *network, rp_device *device) RP_MUST_CHECK;
void rp_network_close(rp_network **network); /* accepts NULL inside */

/* Number of floats in a sample's output; in that of a sample of `time` tokens, 0: the longest. */
uint32_t rp_network_outputs(const rp_network *network);
uint32_t rp_network_outputs_at(const rp_network *network, uint32_t time);
/* Largest number of samples in one run, limited by the size of the largest tensor. */
uint32_t rp_network_micro(const rp_network *network);

/* y = net(x) as in evaluation. Waits for the device.
 *
 * shapes  x [n, sample], normalised f32 or int32 ids; y [n, outputs] f32; on the host;
 *         1 <= n <= micro
 * time    tokens of a sample: 0, or one of the options'
 * errors  DEVICE; INTERRUPTED: is_stopped() said so, and nothing is computed */
rp_err rp_network_run(rp_network *network, uint32_t time, const void *x, uint32_t n,
                      float *y) RP_MUST_CHECK;

#endif
