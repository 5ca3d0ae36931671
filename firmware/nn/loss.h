/* A loss: value and gradient in one pass over the last layer's output. */
#ifndef RP_NN_LOSS_H
#define RP_NN_LOSS_H

#include "base/config.h"
#include "device/tensor.h"

enum { RP_LOSS_RESULT = 3 }; /* floats of a sample in rp_loss_call.result */
/* Most classes of pixels: rp_loss_call.overlap has two counts for each class and sample of a step.
 */
enum { RP_LOSS_PIXEL_CLASSES_MAX = 4096 };

/* Keys of `loss:` other than `kind`. */
typedef struct {
    float label_smoothing; /* weight of the uniform distribution mixed into the target */
    bool ignores;          /* targets that are `ignore` do not count */
    int32_t ignore;
    bool classes_first; /* the outputs of a sample are [classes, rows], else [rows, classes] */
} rp_loss_options;

typedef struct {
    rp_device *device;
    uint32_t n;            /* samples in this microbatch */
    uint32_t step_samples; /* samples in the whole step, because the gradient is of their mean */
    /* targets of a sample, if they are classes: the tokens of a sequence, the pixels of an image,
     * or 1 */
    uint32_t rows;
    /* model output [n, outputs]; with classes [n, rows, classes], or, with options.classes_first,
     * [n, classes, rows] */
    const rp_tensor *y;
    /* n rows of outputs f32, or of `rows` int32 classes. With options.ignores one more int32
     * follows these classes: how many targets of the whole step count. If none does, the gradient
     * is 0. */
    const rp_buffer *target;
    rp_loss_options options;
    rp_tensor *dy; /* gradient, or NULL when evaluating */
    /* Three floats for each sample of the step: the sum of the losses of its targets that count,
     * the number of these that are right, and their number. */
    rp_buffer *result;
    uint32_t result_first; /* index of this microbatch's first sample in `result` */
    rp_buffer *row_result; /* the same of each target of this microbatch; NULL if rows is 1 */
    /* With options.classes_first, 2 * classes counts (u32) for each sample of the step: the pixels
     * of each class that have it as target and as answer, then those that have it as one of the
     * two. NULL: they are not counted. */
    rp_buffer *overlap;
} rp_loss_call;

typedef struct {
    const char *name;
    const char *source;
    bool class_target; /* targets are int32 classes, else f32 rows */
    bool accuracy;     /* an output is right or wrong, so `correct` is meaningful */
    /* A step's loss is the sum of the first values of `result` by that of the third, both summed on
     * the host in double: PyTorch's mean over all targets that count. A target is right if the
     * arg-max is its class. mse: mean over outputs, so the mean over samples is PyTorch's MSELoss;
     * none is right. A class outside [0, classes) that is not ignored gives NaN loss and gradient,
     * never an access out of bounds. */
    rp_err (*run)(const rp_loss_call *call);
} rp_loss_kind;

/* Calls kind->run after checking that y and dy are f32 and within their buffers.
 * errors  SHAPE; DEVICE */
rp_err rp_loss_run(const rp_loss_kind *kind, const rp_loss_call *call) RP_MUST_CHECK;

/* The mean over the classes of intersection / union, from sums of `overlap`: [classes] each.
 * Classes that no pixel has as target or answer are left out; NAN: all are. */
double rp_loss_mean_iou(const double *both, const double *either, uint32_t classes);

extern const rp_loss_kind *const rp_loss_kinds[];
const rp_loss_kind *rp_loss_find(const char *name); /* "cross-entropy", "mse" */

/* Parses `loss:` of a run file or a job: a word, or {kind, label_smoothing, ignore, classes_at};
 * absent: cross-entropy. errors  USAGE with file, line and key */
rp_err rp_loss_parse(rp_node *root, const rp_loss_kind **kind,
                     rp_loss_options *options) RP_MUST_CHECK;

/* Checks that the model's output of a sample, of shape `out`, has classes for each of `rows` class
 * targets: [.., classes], of which the first dimensions have `rows` elements, or [classes, ..], as
 * `options` says. rows 1: all outputs are classes.
 * errors  SHAPE; LIMIT: more than RP_LOSS_PIXEL_CLASSES_MAX classes of pixels */
rp_err rp_loss_check_layout(const rp_shape *out, uint32_t rows,
                            const rp_loss_options *options) RP_MUST_CHECK;

#endif
