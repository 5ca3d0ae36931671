/* What the targets of a run are, and the losses of tokens in the units that people compare. */
#ifndef RP_RECORD_TARGETS_H
#define RP_RECORD_TARGETS_H

#include <jansson.h>
#include <stdbool.h>

typedef enum {
    RP_TARGETS_SINGLE,     /* a sample has one target */
    RP_TARGETS_TOKENS,     /* tokens of a text */
    RP_TARGETS_CHARACTERS, /* tokens that are characters or bytes, so that bits have a meaning */
    RP_TARGETS_PIXELS      /* a class for each pixel of an image */
} rp_targets;

/* Are the targets tokens of a text? */
static inline bool rp_targets_are_tokens(rp_targets targets) {
    return targets == RP_TARGETS_TOKENS || targets == RP_TARGETS_CHARACTERS;
}

/* "tokens", "pixels"; NULL: a sample has one target. */
const char *rp_targets_word(rp_targets targets);

/* exp(loss): the number of equally likely tokens among which the model would be as uncertain. */
double rp_perplexity(double loss);
/* Bits per character or byte. */
double rp_bits(double loss);

/* Adds the keys `perplexity` and `bits` as far as they fit the targets. *good becomes false if
 * memory is short. */
void rp_targets_put_loss(json_t *object, rp_targets targets, double loss, bool *good);

#endif
