/* start.safetensors of a round's folder: the weights and states that its run begins from. It is
 * made once, so a round that was killed goes on from it, whatever has happened to other files
 * since. */
#ifndef RP_SITES_START_H
#define RP_SITES_START_H

#include "sites/rules.h"

typedef struct {
    const rp_round_rules *rules;
    const char *given;    /* weights of the round */
    const char *state;    /* from rp_site_find_state(); NULL: the site has none */
    uint64_t round, from; /* from: round of the state */
    const char *site, *optimizer;
} rp_site_start_order;

/* Where the start came from. */
typedef struct {
    uint64_t from;         /* round whose state was used, or RP_SITE_NO_ROUND */
    uint64_t updates;      /* of the optimiser's state; 0: fresh */
    uint32_t kept;         /* tensors that the site keeps */
    uint32_t own;          /* those among them with the site's own values */
    uint32_t errors;       /* tensors with an error from the state */
    bool optimizer, drift; /* from the state; false: fresh */
} rp_site_start;

/* Writes the file: floats of `given` as F32, the site's own values of tensors that it keeps, states
 * of the optimiser, errors of coded differences, and the drift d + (x - y) / rates. x: given
 * weights; y, d: of the round before; rates: sum of its learning rates. A drift starts as zeros
 * unless the state is that of the round before. errors  IO; FORMAT: a file is damaged, or a value
 * not finite; USAGE: a pattern matches nothing, the state belongs to another site or optimiser
 * source  SCAFFOLD without extra bytes: with all sites, equal numbers of steps and equal weights,
 *         c_i+ - c+ = c_i - c + (x+ - y_i) / (K eta) by option II of Karimireddy et al. 2019 */
rp_err rp_site_make_start(rp_arena *arena, const rp_site_start_order *order,
                          const char *path) RP_MUST_CHECK;
/* Reads what the file was made from. errors  IO, FORMAT */
rp_err rp_site_read_start(rp_arena *arena, const char *path, rp_site_start *out) RP_MUST_CHECK;

/* d + (x - y) / rates in double; d if rates is 0. */
float rp_site_next_drift(float d, float x, float y, double rates);

#endif
