/* Weights of a simulated run: a few values for each tensor of the model, under its name. A step of
 * a site changes every value in a way that depends on the site, the round and the step, so the bits
 * of the centre tell which contributions it has, how often, and in which order. */
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
/* Trains a round of a site in place: [values]. Pure. */
void rp_standin_train(const rp_standin *standin, const char *site, uint64_t round, uint64_t steps,
                      float *values);

/* Weights as a file. errors  IO; reading: FORMAT: a tensor is missing or damaged */
rp_err rp_standin_write(const rp_standin *standin, const char *path, const float *values,
                        uint64_t round) RP_MUST_CHECK;
rp_err rp_standin_read(const rp_standin *standin, const char *path, float *out) RP_MUST_CHECK;

#endif
