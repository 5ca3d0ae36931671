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
    const char *optimizer; /* kind */
    double lr, momentum;
    char out[RP_SITES_DIGEST]; /* of the round's weights */
} rp_round_answer;

/* The sum of the weights of the steps' gradients in the result, as FedNova needs it: the number of
 * steps K, or with momentum r (K - r (1 - r^K) / (1 - r)) / (1 - r), or with an anchor, whose mu
 * times the rate is `pull`, (1 - (1 - pull)^K) / pull. NAN with both.
 * source  Wang et al. 2020 (2007.07481), section 4 */
double rp_round_norm_a(uint64_t steps, double momentum, double pull);

/* errors  IO, MEMORY */
rp_err rp_round_write_answer(const char *folder, const rp_round_answer *answer) RP_MUST_CHECK;
/* Reads the answer of a finished round; *out NULL: the round is not finished. The caller releases
 * it. errors  USAGE: the file is damaged */
rp_err rp_round_read_answer(const char *folder, json_t **out) RP_MUST_CHECK;

#endif
