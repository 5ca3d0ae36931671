/* Digests instead of numbers: 128 bits of everything that was used to compute a value. This file
 * defines the arithmetic of the digest executor and of its reference: the results of layers,
 * losses, optimisers and averages for given operands. The caller chooses the operands.
 *
 * Values are digested by layer and by sample, so neither the cut nor the sizes of microbatches
 * matter. The exception are layers with batch statistics, where all samples of a microbatch matter,
 * as with real numbers. Sums are taken modulo 2^128, so their order does not matter.
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

/* Changes a digest to one that a parameter can store in its first 16 bytes (or in all of a smaller
 * parameter), with bytes that are finite floats, as a checkpoint requires. */
rp_digest rp_digest_fit(rp_digest digest, const rp_model_param *param);
/* Initial value, from seed and name. */
rp_digest rp_digest_init(const rp_model_param *param, uint64_t seed);

/* A number in (0, 1] that represents a loss or a sum of squares; never NaN. */
float rp_digest_number(rp_digest digest);

/* Sample `number` of the run (counted over all steps) with the bytes that the data set supplies. */
rp_digest rp_digest_input(uint64_t number, rp_digest bytes);

/* ---- layers: `layer` is the index in the model ----------------------------------------------- */

typedef struct {
    uint32_t layer;
    rp_digest weights;    /* rp_digest_weights() of its trained parameters */
    rp_digest statistics; /* of the microbatch, or running; zero if the layer has none */
    uint32_t input_count;
    bool draws; /* depends on the sample's number: dropout in training */
    uint64_t seed;
} rp_digest_layer;

/* All parameters of a layer in order, without running statistics. */
rp_digest rp_digest_weights(const rp_digest *param, uint32_t count);
/* The contribution of sample x to the statistics of a microbatch; the statistics of n samples from
 * the sum of contributions. */
rp_digest rp_digest_statistic(uint32_t layer, rp_digest x);
rp_digest rp_digest_statistics(uint32_t layer, rp_digest sum, uint32_t n);
/* A running statistic after a microbatch with these statistics; renewal: as in rp_layer_call. */
rp_digest rp_digest_running(rp_digest running, rp_digest statistics, uint32_t renewal);

/* x: digests of the inputs; number: the sample's number in the run. */
rp_digest rp_digest_forward(const rp_digest_layer *layer, const rp_digest *x, uint64_t number);
/* Contribution of the layer to the gradient of its input `index`. */
rp_digest rp_digest_backward(const rp_digest_layer *layer, uint32_t index, const rp_digest *x,
                             rp_digest dy, uint64_t number);
/* Contribution of the sample to the gradient of parameter `param` of the model. */
rp_digest rp_digest_gradient(const rp_digest_layer *layer, uint32_t param, const rp_digest *x,
                             rp_digest dy, uint64_t number);
/* Gradient of the loss at output y. rp_digest_number() of it is the sample's loss, and one bit says
 * whether the sample counts as correct. */
rp_digest rp_digest_loss(rp_digest y, rp_digest target, uint32_t step_samples);
bool rp_digest_correct(rp_digest loss);

/* A step's gradient after one more microbatch: the sum, or if strict a hash of both, which depends
 * on the order. */
rp_digest rp_digest_accumulate(rp_digest gradient, rp_digest microbatch, bool strict);
/* The gradient of a tied tensor after one more use; it depends on the order. */
rp_digest rp_digest_tie(rp_digest sum, rp_digest use);

/* ---- parameters ------------------------------------------------------------------------------ */

typedef struct {
    const rp_model_param *param;
    rp_digest weight, gradient;
    uint32_t state_count; /* of the optimiser's kind; those of an anchor do not change */
    rp_digest state[RP_OPTIM_STATES_MAX];
    float rate, grad_scale;
    uint64_t applied; /* optimiser steps before this one */
} rp_digest_optimise;

/* Weight and states after an optimiser step, in place. */
void rp_digest_update(rp_digest_optimise *by);
/* The gradient with the anchor's term (rp_optim_anchor); start, drift: zero if not in use. */
rp_digest rp_digest_anchor(const rp_model_param *param, rp_digest gradient, rp_digest weight,
                           rp_digest start, rp_digest drift, float mu);
/* The weight after `ahead` predicted updates with prediction gain `share`; the unchanged weight
 * before the first step. */
rp_digest rp_digest_predict(const rp_digest_optimise *by, float ahead, float share);

/* A term of an average over a parameter's copies, in place; see rp_average_term. centre, scratch:
 * may be NULL if the term does not use them. */
void rp_digest_average(rp_average_term term, const rp_model_param *param, rp_digest *x,
                       rp_digest *centre, rp_digest *scratch, float alpha, float share);
/* Sum of squares number `which` of a prediction-error sample. */
float rp_digest_probe(uint32_t which, const rp_model_param *param, rp_digest seen, rp_digest then,
                      rp_digest newest);

/* ---- passes: all layers of a stage over some samples ----------------------------------------- */

/* A row has a digest for each of `stride` samples. Fields that a pass does not use may be NULL. */
typedef struct {
    const rp_job *job;
    const rp_layout *layout;
    uint32_t stride;
    uint32_t n;      /* samples of this pass */
    uint64_t number; /* of the first sample, in the run */
    bool training, strict, accumulate;
    uint32_t renewal;
    const rp_digest *weights; /* by trained parameter */
    rp_digest *running;       /* by parameter of the stage: statistics and frozen parameters */
    rp_digest *value, *grad;  /* one row for each tensor of the layout */
    rp_digest *statistics;    /* of the microbatch, by layer */
    rp_digest *gradient;      /* of the step, by trained parameter */
} rp_digest_pass;

/* Computes all rows and statistics from the rows of the inputs. */
void rp_digest_run_forward(const rp_digest_pass *pass);
/* The caller fills the rows of gradients from outside, and zeroes all other rows. dx: computes
 * these rows; dw: adds the parameters' gradients, which needs all rows. */
void rp_digest_run_backward(const rp_digest_pass *pass, bool dx, bool dw);
/* Once a step: applies deferred batch statistics. */
void rp_digest_run_commit(const rp_digest_pass *pass);

#endif
