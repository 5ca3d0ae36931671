/* Beam search for one sentence: which tokens follow one another, given what a net says of each.
 *
 * source  Wu et al. 2016, section 7: the sum of the logarithms of probabilities, divided for a
 *         complete sentence by the length penalty ((5 + length) / 6)^0.6, without their coverage
 *         penalty. `length` counts the token that ends the sentence. */
#ifndef RP_PREDICT_BEAM_H
#define RP_PREDICT_BEAM_H

#include "base/arena.h"

enum { RP_BEAM_MAX = 64 };

typedef struct rp_beam rp_beam;

/* width: hypotheses that are kept, 1 to RP_BEAM_MAX; 1: always the likeliest token.
 * time: tokens of a sentence at most. outputs: of the net for a token. tokens: ids below it can be
 * chosen, if they are at least RP_TOKEN_END, which ends a sentence; tokens <= outputs.
 * errors  MEMORY; SHAPE: no token can be chosen */
rp_err rp_beam_open(rp_arena *arena, uint32_t width, uint32_t time, uint32_t tokens,
                    uint32_t outputs, rp_beam **out) RP_MUST_CHECK;

void rp_beam_begin(rp_beam *beam); /* with one empty hypothesis */
/* Number of hypotheses that are not complete; 0: the search is over. */
uint32_t rp_beam_live(const rp_beam *beam);
/* Tokens of such a hypothesis so far, borrowed until the next call of another function. */
const int32_t *rp_beam_target(const rp_beam *beam, uint32_t index, uint32_t *length);
/* Adds a token to each hypothesis. y: [live][outputs], what the net says of the next token.
 * errors  NUMERIC: an output is not finite */
rp_err rp_beam_advance(rp_beam *beam, const float *y) RP_MUST_CHECK;
/* The best sentence, without the token that ends it, borrowed as above. */
const int32_t *rp_beam_best(rp_beam *beam, uint32_t *length);

#endif
