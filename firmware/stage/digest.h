/* Digests in place of numbers: 128 bits of everything that went into a value. What is defined here
 * is the arithmetic of the digest executor and of its reference: what a layer, a loss, an optimiser
 * or an average makes of its operands. The caller chooses the operands.
 *
 * By layer and by sample, so that neither the cut nor the sizes of microbatches matter, but for
 * layers with batch statistics, whose output depends on the other samples of the microbatch, as it
 * does in reality. Sums are taken modulo 2^128: their order does not matter.
 *
 * source  XXH3-128 (github.com/Cyan4973/xxHash) */
#ifndef RP_STAGE_DIGEST_H
#define RP_STAGE_DIGEST_H

#include "stage/executor.h"

enum { RP_DIGEST_BYTES = 16 };

typedef struct {
    uint64_t low, high;
} rp_digest;

rp_digest rp_digest_of_bytes(const void *bytes, size_t count);
rp_digest rp_digest_add(rp_digest a, rp_digest b);
bool rp_digest_equal(rp_digest a, rp_digest b);

/* A parameter's digest is kept in its first 16 bytes; of a smaller one, in what it has. Read as
 * floats they are finite, as a checkpoint's must be. */
rp_digest rp_digest_fit(rp_digest digest, const rp_model_param *param);
/* Start value from seed and name. */
rp_digest rp_digest_init(const rp_model_param *param, uint64_t seed);

/* A finite number in (0, 1] that stands for a loss or a sum of squares; never NaN. */
float rp_digest_number(rp_digest digest);

/* Sample `number` of the run (counted over steps) as the data set brings it. */
rp_digest rp_digest_input(uint64_t number, rp_digest bytes);

/* ---- layers: `layer` is the index in the model ----------------------------------------------- */

typedef struct {
    uint32_t layer;
    rp_digest weights;    /* rp_digest_weights() of its trained parameters */
    rp_digest statistics; /* of the microbatch, or the running ones; zero without any */
    uint32_t input_count;
    bool draws; /* by the sample's number: dropout in training */
    uint64_t seed;
} rp_digest_layer;

/* Does the layer's output depend on a random stream of its own? */
bool rp_digest_layer_draws(const rp_layer *layer);
/* Of all parameters of a layer but running statistics, in order. */
rp_digest rp_digest_weights(const rp_digest *param, uint32_t count);
/* What sample x adds to the statistics of a microbatch, and those of n samples. */
rp_digest rp_digest_statistic(uint32_t layer, rp_digest x);
rp_digest rp_digest_statistics(uint32_t layer, rp_digest sum, uint32_t n);
/* A running statistic behind a microbatch with such statistics; renewal: rp_layer_call's. */
rp_digest rp_digest_running(rp_digest running, rp_digest statistics, uint32_t renewal);

/* x: digests of the inputs; number: of the sample in the run. */
rp_digest rp_digest_forward(const rp_digest_layer *layer, const rp_digest *x, uint64_t number);
/* What the layer adds to the gradient of its input `index`. */
rp_digest rp_digest_backward(const rp_digest_layer *layer, uint32_t index, const rp_digest *x,
                             rp_digest dy, uint64_t number);
/* What the sample adds to the gradient of parameter `param` of the model. */
rp_digest rp_digest_gradient(const rp_digest_layer *layer, uint32_t param, const rp_digest *x,
                             rp_digest dy, uint64_t number);
/* Gradient y of the loss; its number is the sample's loss, a bit of it whether it is correct. */
rp_digest rp_digest_loss(rp_digest y, rp_digest target, uint32_t step_samples);
bool rp_digest_correct(rp_digest loss);

/* A step's gradient with a microbatch's: the sum, or (strict) folded in their order. */
rp_digest rp_digest_accumulate(rp_digest gradient, rp_digest microbatch, bool strict);

/* ---- parameters ------------------------------------------------------------------------------ */

typedef struct {
    const rp_model_param *param;
    rp_digest weight, gradient;
    uint32_t state_count;
    rp_digest state[RP_OPTIM_STATES_MAX];
    float rate, grad_scale;
    uint64_t applied; /* steps before this one */
} rp_digest_optimise;

/* weight and states behind an optimiser's step, in place. */
void rp_digest_update(rp_digest_optimise *by);
/* The weight moved `ahead` updates and `share` of that; without a step before, the weight. */
rp_digest rp_digest_predict(const rp_digest_optimise *by, float ahead, float share);

/* A term of an average over a parameter's copies, in place; see rp_average_term. */
void rp_digest_average(rp_average_term term, const rp_model_param *param, rp_digest *x,
                       rp_digest *centre, rp_digest *scratch, float alpha, float share);
/* Stands for the sum of squares number `which` of a probe. */
float rp_digest_probe(uint32_t which, const rp_model_param *param, rp_digest seen, rp_digest then,
                      rp_digest newest);

/* ---- passes: all layers of a stage over some samples ------------------------------------------
 */

/* Rows have `stride` samples. What a pass does not need may be NULL. */
typedef struct {
    const rp_job *job;
    const rp_layout *layout;
    uint32_t stride;
    uint32_t n;      /* samples of this pass */
    uint64_t number; /* of the first in the run */
    bool training, strict, accumulate;
    uint32_t renewal;
    const rp_digest *weights; /* by trained parameter */
    rp_digest *running;       /* by parameter of the stage: statistics, frozen ones */
    rp_digest *value, *grad;  /* a row a tensor of the layout */
    rp_digest *statistics;    /* of the microbatch, by layer */
    rp_digest *gradient;      /* of the step, by trained parameter */
} rp_digest_pass;

/* The rows of the inputs are there; fills the others, and statistics. */
void rp_digest_run_forward(const rp_digest_pass *pass);
/* The rows of the gradients that come from outside are there, all others are zero. `dx`: fills
 * them; `dw`: adds to the parameters' gradients, from rows that are filled. */
void rp_digest_run_backward(const rp_digest_pass *pass, bool dx, bool dw);
/* Once a step: deferred batch statistics. */
void rp_digest_run_commit(const rp_digest_pass *pass);

#endif
