/* What the targets of a run are, and the losses of tokens in the units that people compare. */
#ifndef RP_RECORD_TARGETS_H
#define RP_RECORD_TARGETS_H

#include <jansson.h>
#include <stdbool.h>

typedef enum {
    RP_TARGETS_SINGLE, /* a sample has one target */
    RP_TARGETS_TOKENS, /* tokens of a sequence */
    RP_TARGETS_TEXT,   /* tokens of a text, whose losses are also given in bits (rp_data_bits()) */
    RP_TARGETS_PIXELS  /* a class for each pixel of an image */
} rp_targets;

/* Are the targets tokens? */
static inline bool rp_targets_are_tokens(rp_targets targets) {
    return targets == RP_TARGETS_TOKENS || targets == RP_TARGETS_TEXT;
}

/* "tokens", "pixels"; NULL: a sample has one target. */
const char *rp_targets_word(rp_targets targets);

/* exp(loss): the number of equally likely tokens among which the model would be as uncertain. */
double rp_perplexity(double loss);

/* Adds the keys `perplexity` and `bits` as far as they fit the targets. *good becomes false if
 * memory is short. */
void rp_targets_put_loss(json_t *object, rp_targets targets, double loss, double bits, bool *good);

#endif
