/* Weights of a simulated run: a few values for each tensor of the model, under its name. A step of
 * a site changes every value in a way that depends on the site, the round, the step and what the
 * site has kept, so the bits of the centre tell which contributions it has, how often, in which
 * order, and from which state. */
#ifndef RP_SIMSITES_STANDIN_H
#define RP_SIMSITES_STANDIN_H

#include "nn/model.h"

enum { RP_STANDIN_VALUES_MAX = 4 }; /* of a tensor */

typedef struct {
    const char *name;  /* of the model's tensor */
    uint32_t first;    /* index of its first value */
    uint32_t count;    /* 1 to RP_STANDIN_VALUES_MAX */
    bool is_statistic; /* a running statistic */
} rp_standin_tensor;

/* Borrows from the model. */
typedef struct {
    rp_standin_tensor *tensor; /* [tensors] in the order of the model */
    uint32_t tensors;
    uint32_t values; /* of all tensors */
    uint64_t seed;   /* train.seed */
} rp_standin;

rp_err rp_standin_open(rp_arena *arena, const rp_model *model, uint64_t seed,
                       rp_standin *out) RP_MUST_CHECK;

/* The centre before the first round: [values]. */
void rp_standin_begin(const rp_standin *standin, float *out);
/* What a round trains from, and comes to: [values] each. */
typedef struct {
    float *values;
    float *momentum; /* of the optimiser, 0 for running statistics; NULL: it has none */
    float *drift;    /* is added in each step, and does not change; NULL: none */
} rp_standin_state;

/* Trains a round of a site in place. Pure. */
void rp_standin_train(const rp_standin *standin, const char *site, uint64_t round, uint64_t steps,
                      const rp_standin_state *state);
/* The sum of the learning rates of a round. */
double rp_standin_rates(uint64_t steps);

/* Weights as a file. errors  IO; reading: FORMAT: a tensor is missing or damaged */
rp_err rp_standin_write(const rp_standin *standin, const char *path, const float *values,
                        uint64_t round) RP_MUST_CHECK;
rp_err rp_standin_read(const rp_standin *standin, const char *path, float *out) RP_MUST_CHECK;
/* Reads a round's start (sites/start.h): momentum and drift are 0 where the file has none. */
rp_err rp_standin_read_start(const rp_standin *standin, const char *path,
                             const rp_standin_state *out) RP_MUST_CHECK;
/* Writes the checkpoint of a trained round: what start.safetensors has, under the same names. */
rp_err rp_standin_write_trained(const rp_standin *standin, const char *path,
                                const rp_standin_state *state) RP_MUST_CHECK;

#endif
