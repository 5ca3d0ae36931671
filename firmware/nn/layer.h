/* A layer: one table of functions and one word in firmware/nn/CMakeLists.txt.
 *
 * A layer owns no memory, never waits, and enqueues its work on the device's only queue. The stage
 * passes every tensor; see rp_layer_call. Letters: N samples, C channels in, K channels out, H W
 * image, R S kernel, P Q output image. */
#ifndef RP_NN_LAYER_H
#define RP_NN_LAYER_H

#include "base/arena.h"
#include "base/config.h"
#include "base/dtype.h"
#include "base/rng.h"
#include "base/shape.h"
#include "device/gemm.h"
#include "device/tensor.h"

enum {
    RP_LAYER_INPUTS_MAX = 8,
    RP_LAYER_PARAMS_MAX = 8,
    RP_LAYER_SAVED_MAX = 2,
    RP_LAYER_NAME_MAX = 129
};

/* Properties of the data set that a model file may refer to. */
typedef struct {
    rp_shape sample;  /* of one sample; dims 0: the data follow the model */
    rp_dtype type;    /* of its elements: f32, or i32 for token ids */
    uint32_t classes; /* meaning of `out: classes`; 0: there are none */
    uint32_t tokens;  /* meaning of `count: tokens`: ids are below it; 0: not known */
} rp_model_data;

typedef struct rp_layer_kind rp_layer_kind;

#define RP_LAYER_DATA UINT32_MAX /* as an input: the model's input, not another layer */

typedef struct {
    const rp_layer_kind *kind;
    const char *name;
    uint32_t line; /* in the model file */
    /* `train: false`: its parameters do not change, and it computes as in evaluation. */
    bool frozen;
    uint32_t input_count;
    uint32_t input[RP_LAYER_INPUTS_MAX]; /* indices of earlier layers, or RP_LAYER_DATA */
    bool reads_ids;                      /* its first input is token ids */
    void *spec;                          /* kind->spec_bytes, filled by kind->parse */
    /* `names`: names of its parameters, by suffix; NULL: the file gives none */
    rp_node *names;
} rp_layer;

typedef enum {
    RP_PARAM_TRAINED, /* has a gradient and optimiser state; exported */
    RP_PARAM_STATE,   /* running statistics: exported, not updated by the optimiser, not stashed */
    RP_PARAM_FROZEN,  /* of a frozen layer, including statistics: exported, never changed */
    RP_PARAM_SCRATCH  /* zero at every step boundary: neither exported nor checkpointed */
} rp_param_role;

typedef enum {
    RP_INIT_ZERO,
    RP_INIT_ONE,
    RP_INIT_UNIFORM,
    RP_INIT_NORMAL,
    RP_INIT_CONSTANT
} rp_init_rule;

typedef struct {
    const char *suffix; /* "weight": the parameter's name is <layer>.<suffix> */
    rp_shape shape;     /* as in PyTorch */
    rp_param_role role;
    rp_init_rule init;
    /* UNIFORM in [-bound, bound), PyTorch's default rules; NORMAL with mean 0 and this standard
     * deviation; CONSTANT: the value */
    float init_bound;
} rp_param;

/* The properties of a layer for given sample shapes. Pure. */
typedef struct {
    rp_shape out; /* of one sample, without N */
    uint32_t param_count;
    rp_param param[RP_LAYER_PARAMS_MAX];
    uint32_t zero_row; /* 1 + the row of param[0] whose initial values are 0; 0: no such row */
    /* Bytes kept from forward to backward, in addition to x and y: fixed + n * sample. */
    uint32_t saved_count;
    struct {
        size_t fixed_bytes, sample_bytes;
    } saved[RP_LAYER_SAVED_MAX];
    bool needs_x; /* backward reads x */
    bool needs_y; /* backward reads y */
    /* Forward may write y over x[0], and backward dx over dy: elementwise, and not needs_x. */
    bool in_place;
    bool same; /* y is x: nothing is computed, and they share memory regardless of their readers */
    /* Backward needs all samples of the forward in one call, because its sums run over all of them;
     * otherwise any part of them may have a separate backward. */
    bool whole;
    /* In training it reads a random stream of its own, at the sample's number. */
    bool draws;
    /* Number of values of a sample that share a mean and a variance, over all samples of a
     * microbatch if `whole`; 0: there is no normalisation by statistics of the sample or the
     * microbatch. */
    uint32_t sharing;
    /* Bit i: input i is token ids (i32), which have no gradient. An id outside of [0, id_count) is
     * an error of the data; the kernel then writes NaN, and reads nothing outside. id_count 0: any
     * id is valid. */
    uint32_t ids;
    uint32_t id_count;
    /* y is token ids too, copied from input 0: those from `ids_first` on, without a gap. */
    bool gives_ids;
    uint32_t ids_first;
    double flops_forward, flops_backward; /* for one sample */
} rp_layer_plan;

/* Arguments of one call. Tensors that a call does not use are NULL. All shapes begin with N; `n`
 * may be smaller than the microbatch for which memory was planned. x, y, dy and dx are views that
 * may begin anywhere in their buffers, at any element; nothing outside of their n samples is
 * accessed. Parameters begin at element 0 of their buffers. */
typedef struct {
    rp_device *device;
    const rp_layer *layer;
    const rp_layer_plan *plan;
    uint32_t n;
    rp_shape in[RP_LAYER_INPUTS_MAX]; /* sample shapes of the inputs */
    /* Sample shapes of the inputs in the longest steps. A random layer numbers the words of its
     * stream by them, so that a shorter step has the same masks. NULL: as `in`. */
    const rp_shape *longest_in;
    bool training; /* batch statistics, dropout */
    /* Recomputation of running statistics as the plain mean of forwards: 1 in the first forward, 2
     * in the next, and so on; 0: they are updated with the layer's momentum. */
    uint32_t renewal;
    bool want_dx, want_dw; /* backward: zero-bubble schedules request them separately */
    /* If set, dw is added to dparam, otherwise it is stored. dx of input i is added if dx_add[i]
     * (the tensor has another reader), otherwise stored. */
    bool accumulate;
    bool dx_add[RP_LAYER_INPUTS_MAX];

    const rp_tensor *x[RP_LAYER_INPUTS_MAX];
    rp_tensor *y;
    const rp_tensor *dy;
    rp_tensor *dx[RP_LAYER_INPUTS_MAX]; /* NULL: not needed */
    rp_tensor *param[RP_LAYER_PARAMS_MAX];
    rp_tensor *dparam[RP_LAYER_PARAMS_MAX]; /* NULL for STATE and SCRATCH */
    /* After the fixed bytes follow the samples of the forward; those of this call begin at sample
     * `saved_first`. NULL in a forward without a backward. */
    rp_buffer *saved[RP_LAYER_SAVED_MAX];
    uint32_t saved_first;
    rp_buffer *workspace; /* at least kind->workspace_bytes() */

    uint64_t seed; /* of the run; a random layer uses its own stream: "dropout/<layer>" */
    /* number of the first sample in the run, counted over steps, so that the mask of a sample does
     * not depend on cut, microbatch or recompute */
    uint64_t sample_first;
} rp_layer_call;

struct rp_layer_kind {
    const char *name;
    const char *keys; /* its own keys in a model file: "kernel, stride"; NULL: none */
    const char *source;
    size_t spec_bytes;
    uint32_t inputs_min, inputs_max;
    /* Parses the kind's own keys of `keys` (name, kind, from have been read) into layer->spec. */
    rp_err (*parse)(rp_layer *layer, rp_node *keys, const rp_model_data *data);
    /* in[i] = sample shape of input i. A frozen layer needs nothing for gradients of parameters.
     * Callers use rp_layer_make_plan(). errors SHAPE, with the layer's name and the numbers */
    rp_err (*plan)(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out);
    /* Scratch bytes for a forward or backward of n samples; NULL = none. Pure. */
    size_t (*workspace_bytes)(const rp_layer *layer, const rp_layer_plan *plan, const rp_shape *in,
                              uint32_t n, rp_gemm_choice choice);
    rp_err (*forward)(const rp_layer_call *call);
    rp_err (*backward)(const rp_layer_call *call);
    /* Once per optimiser step, before the update (deferred batch statistics); NULL = nothing. */
    rp_err (*commit)(const rp_layer_call *call);
    /* Makes the layer apply max(., 0) to its output; plan() must be called again (it may now need
     * y). NULL if the kind cannot; false if this layer cannot. */
    bool (*fuse_relu)(rp_layer *layer);
    /* Constants of a kind that shares functions with others, e.g. rp_activation, or NULL. */
    const void *facts;
};

extern const rp_layer_kind *const rp_layer_kinds[]; /* NULL-terminated, generated */

const rp_layer_kind *rp_layer_find(const char *name); /* NULL when unknown */

/* kind->plan, with the roles of a frozen layer's parameters. errors SHAPE */
rp_err rp_layer_make_plan(const rp_layer *layer, const rp_shape *in,
                          rp_layer_plan *out) RP_MUST_CHECK;
/* Whether it has a trained parameter. */
bool rp_layer_trains(const rp_layer_plan *plan);

/* Sample shape of input i in the longest steps. */
static inline const rp_shape *rp_layer_longest_in(const rp_layer_call *call, uint32_t input) {
    return call->longest_in ? &call->longest_in[input] : &call->in[input];
}

/* Whether input i is token ids. */
static inline bool rp_layer_takes_ids(const rp_layer_plan *plan, uint32_t input) {
    return plan->ids >> input & 1;
}

/* Runs one call of the layer after checking that every tensor has its type (f32; i32 for token ids)
 * and is within its buffer.
 * errors  SHAPE naming layer and tensor; DEVICE */
rp_err rp_layer_forward(const rp_layer_call *call) RP_MUST_CHECK;
rp_err rp_layer_backward(const rp_layer_call *call) RP_MUST_CHECK;

#endif
