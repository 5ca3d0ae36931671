/* round.json: what a site's round came to. It is written last, so where it is, the round is done.
 */
#ifndef RP_SITES_ANSWER_H
#define RP_SITES_ANSWER_H

#include <jansson.h>
#include <stdbool.h>

#include "sites/asked.h"
#include "sites/start.h"
#include "sites/steps.h"
#include "sites/weights.h"

typedef struct {
    const rp_round_asked *asked;
    bool partial; /* ended by --within before all steps */
    uint64_t samples, held;
    rp_site_losses loss;
    const json_t *before; /* evaluation of the start on the validation part; NULL: none */
    const json_t *after;  /* the run's evaluation; NULL: none */
    rp_site_difference difference;
    const rp_site_start *start;
    double start_s, train_s;
    uint64_t ring_bytes;   /* on the links of the ring */
    double joules;         /* that the boards drew; NAN: unknown */
    const char *optimizer; /* kind */
    double lr, momentum;
    double norm_a;             /* from rp_round_norm_a(); NAN: unknown */
    char out[RP_SITES_DIGEST]; /* of the round's weights, or of its update */
} rp_round_answer;

/* What the steps of a round did with their gradients. */
typedef struct {
    const double *rate; /* [count]: learning rate of each step */
    uint64_t count;
    double lr;                  /* the rate that counts as 1, `optimizer.lr` */
    double momentum, dampening; /* of an optimiser that began the round with an empty buffer */
    bool nesterov;
    double anchor; /* mu; 0: none */
} rp_round_steps;

/* The sum of the weights of the steps' gradients in the result, in units of `lr`, as FedNova needs
 * it. With rate_k the rate of step k, a = 0 and u = 0 at the start, each step does
 *
 *   plain          a += rate_k / lr
 *   momentum r     u = r u + 1,  a += rate_k / lr * u  (nesterov: 1 + r u instead of u)
 *   anchor mu      a = (1 - rate_k mu) a + rate_k / lr
 *
 * With a constant rate these are the number of steps K, (K - r (1 - r^K) / (1 - r)) / (1 - r), and
 * (1 - (1 - lr mu)^K) / (lr mu). Dampening d: u = r u + 1 - d from the second step on. NAN with
 * both momentum and an anchor, and where `lr` is 0. Skipped steps have no weight, so the caller
 * may not use the value if a step was skipped.
 * source  Wang et al. 2020 (2007.07481), section 4 */
double rp_round_norm_a(const rp_round_steps *steps);

/* errors  IO, MEMORY */
rp_err rp_round_write_answer(const char *folder, const rp_round_answer *answer) RP_MUST_CHECK;
/* Reads the answer of a finished round; *out NULL: the round is not finished. The caller releases
 * it. errors  USAGE: the file is damaged */
rp_err rp_round_read_answer(const char *folder, json_t **out) RP_MUST_CHECK;

#endif
