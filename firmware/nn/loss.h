/* A loss: value and gradient in one pass over the last layer's output. */
#ifndef RP_NN_LOSS_H
#define RP_NN_LOSS_H

#include "base/config.h"
#include "device/tensor.h"

typedef struct {
    rp_device *device;
    uint32_t n;              /* samples in this microbatch */
    uint32_t step_samples;   /* samples in the whole step, because the gradient is of their mean */
    const rp_tensor *y;      /* model output [n, outputs] */
    const rp_buffer *target; /* n int32 classes, or n * outputs f32 */
    float label_smoothing;   /* weight of the uniform distribution mixed into the target */
    rp_tensor *dy;           /* gradient, or NULL when evaluating */
    rp_buffer *result;       /* f32 pairs (loss, correct), one per sample of the step */
    uint32_t result_first;   /* index of this microbatch's first sample in `result` */
} rp_loss_call;

typedef struct {
    const char *name;
    const char *source;
    bool class_target; /* targets are int32 classes, else f32 rows */
    bool accuracy;     /* an output is right or wrong, so `correct` is meaningful */
    /* result: (loss of the sample, 1 if the arg-max is the class else 0). A step's loss is the mean
     * of the first values over its samples, summed on the host in double. mse: mean over outputs,
     * so the mean over samples is PyTorch's MSELoss; `correct` is 0. A class outside [0, outputs)
     * gives NaN loss and gradient, never an access out of bounds. */
    rp_err (*run)(const rp_loss_call *call);
} rp_loss_kind;

/* Calls kind->run after checking that y and dy are f32 and within their buffers.
 * errors  SHAPE; DEVICE */
rp_err rp_loss_run(const rp_loss_kind *kind, const rp_loss_call *call) RP_MUST_CHECK;

extern const rp_loss_kind *const rp_loss_kinds[];
const rp_loss_kind *rp_loss_find(const char *name); /* "cross-entropy", "mse" */

/* Parses `loss:` of a run file or a job: a word, or {kind, label_smoothing}; absent: cross-entropy.
 * errors  USAGE with file, line and key */
rp_err rp_loss_parse(rp_node *root, const rp_loss_kind **kind,
                     float *label_smoothing) RP_MUST_CHECK;

#endif
