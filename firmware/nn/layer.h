/* A layer: one table of functions and one word in firmware/nn/CMakeLists.txt.
 *
 * A layer owns no memory, never waits, and enqueues its work on the device's one queue. The stage
 * hands in every tensor; see rp_layer_call. Letters: N samples, C channels in, K channels out, H W
 * image, R S kernel, P Q output image. */
#ifndef RP_NN_LAYER_H
#define RP_NN_LAYER_H

#include "base/arena.h"
#include "base/config.h"
#include "base/rng.h"
#include "base/shape.h"
#include "device/gemm.h"
#include "device/tensor.h"

enum {
    RP_LAYER_INPUTS_MAX = 8,
    RP_LAYER_PARAMS_MAX = 8,
    RP_LAYER_SAVED_MAX = 2,
    RP_LAYER_NAME_MAX = 64
};

typedef struct rp_layer_kind rp_layer_kind;

#define RP_LAYER_DATA UINT32_MAX /* as an input: the model's input, not another layer */

typedef struct {
    const rp_layer_kind *kind;
    const char *name;
    uint32_t line; /* in the model file */
    /* `train: false`: its parameters stay as they are, and it computes as in evaluation. */
    bool frozen;
    uint32_t input_count;
    uint32_t input[RP_LAYER_INPUTS_MAX]; /* indices of earlier layers, or RP_LAYER_DATA */
    void *spec;                          /* kind->spec_bytes, filled by kind->parse */
} rp_layer;

typedef enum {
    RP_PARAM_TRAINED, /* has a gradient and optimiser state; exported */
    RP_PARAM_STATE,   /* running statistics: exported, never stepped, never stashed */
    RP_PARAM_FROZEN,  /* of a frozen layer, statistics too: exported, nothing ever changes it */
    RP_PARAM_SCRATCH  /* zero at every step boundary: neither exported nor checkpointed */
} rp_param_role;

typedef enum { RP_INIT_ZERO, RP_INIT_ONE, RP_INIT_UNIFORM } rp_init_rule;

typedef struct {
    const char *suffix; /* "weight": the parameter's name is <layer>.<suffix> */
    rp_shape shape;     /* as in PyTorch */
    rp_param_role role;
    rp_init_rule init;
    float init_bound; /* UNIFORM in [-bound, bound), PyTorch's default rules */
} rp_param;

/* What a layer is for given sample shapes. Pure. */
typedef struct {
    rp_shape out; /* one sample, without N */
    uint32_t param_count;
    rp_param param[RP_LAYER_PARAMS_MAX];
    /* Bytes kept from forward to backward beside x and y, for n samples: fixed + n * sample. */
    uint32_t saved_count;
    struct {
        size_t fixed_bytes, sample_bytes;
    } saved[RP_LAYER_SAVED_MAX];
    bool needs_x; /* backward reads x */
    bool needs_y; /* backward reads y */
    /* Forward may write y over x[0], and backward dx over dy: elementwise, and not needs_x. */
    bool in_place;
    bool same; /* y is x: nothing is computed, and they share storage whoever reads it */
    /* Backward needs all samples of the forward in one call (its sums run over all of them);
     * without it any part of them may have a backward of its own. */
    bool whole;
    /* Values of a sample that share a mean and a variance, over all samples of a microbatch where
     * it is `whole`; 0: nothing is normalised by statistics of the sample or the microbatch. */
    uint32_t sharing;
    double flops_forward, flops_backward; /* one sample */
} rp_layer_plan;

/* Everything one call gets. Tensors that a call does not use are NULL. All shapes have N in front;
 * `n` may be smaller than the microbatch the memory was planned for. x, y, dy and dx are views:
 * they may begin anywhere in their buffers, at any alignment of an element; nothing outside of
 * their n samples is touched. Parameters begin at element 0 of theirs. */
typedef struct {
    rp_device *device;
    const rp_layer *layer;
    const rp_layer_plan *plan;
    uint32_t n;
    rp_shape in[RP_LAYER_INPUTS_MAX]; /* sample shapes of the inputs */
    bool training;                    /* batch statistics, dropout */
    /* Running statistics are computed anew, as the plain mean of forwards: 1 in the
     * first of them, 2 in the next; 0: they are updated with the layer's momentum. */
    uint32_t renewal;
    bool want_dx, want_dw; /* backward: zero-bubble schedules ask for them one by one */
    /* dw is added to dparam when set, written when not. dx of input i is added when dx_add[i]
     * (the tensor has another reader), written when not. */
    bool accumulate;
    bool dx_add[RP_LAYER_INPUTS_MAX];

    const rp_tensor *x[RP_LAYER_INPUTS_MAX];
    rp_tensor *y;
    const rp_tensor *dy;
    rp_tensor *dx[RP_LAYER_INPUTS_MAX]; /* NULL: nobody wants it */
    rp_tensor *param[RP_LAYER_PARAMS_MAX];
    rp_tensor *dparam[RP_LAYER_PARAMS_MAX]; /* NULL for STATE and SCRATCH */
    /* Behind the fixed bytes lie the samples of the forward, of which this call's begin with sample
     * `saved_first`. NULL in a forward that no backward follows. */
    rp_buffer *saved[RP_LAYER_SAVED_MAX];
    uint32_t saved_first;
    rp_buffer *workspace; /* at least kind->workspace_bytes() */

    uint64_t seed;         /* of the run; a random layer names its own stream: "dropout/<layer>" */
    uint64_t sample_first; /* number of the first sample in the run, counts over steps: the mask of
                              a sample does not depend on cut, microbatch or recompute */
} rp_layer_call;

struct rp_layer_kind {
    const char *name;
    const char *keys; /* its own keys in a model file: "kernel, stride"; NULL: none */
    const char *source;
    size_t spec_bytes;
    uint32_t inputs_min, inputs_max;
    /* Reads the kind's own keys of `keys` (name, kind, from are read already) into layer->spec.
     * `classes`: what `out: classes` stands for. */
    rp_err (*parse)(rp_layer *layer, rp_node *keys, uint32_t classes);
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
     * y). NULL when the kind can not. */
    void (*fuse_relu)(rp_layer *layer);
    /* What differs between kinds that share their functions, e.g. rp_activation; NULL = nothing. */
    const void *facts;
};

extern const rp_layer_kind *const rp_layer_kinds[]; /* NULL-terminated, generated */

const rp_layer_kind *rp_layer_find(const char *name); /* NULL when unknown */

/* kind->plan, with the roles of a frozen layer's parameters. errors SHAPE */
rp_err rp_layer_make_plan(const rp_layer *layer, const rp_shape *in,
                          rp_layer_plan *out) RP_MUST_CHECK;
/* Has it a parameter that is trained? */
bool rp_layer_trains(const rp_layer_plan *plan);

/* One call of the layer, checked: every tensor is f32 and lies in its buffer.
 * errors  SHAPE naming layer and tensor; DEVICE */
rp_err rp_layer_forward(const rp_layer_call *call) RP_MUST_CHECK;
rp_err rp_layer_backward(const rp_layer_call *call) RP_MUST_CHECK;

#endif
