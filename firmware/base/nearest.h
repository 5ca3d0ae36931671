/* Which of the known words somebody may have meant. */
#ifndef RP_BASE_NEAREST_H
#define RP_BASE_NEAREST_H

#include <stdint.h>

/* Of `word`; the best candidate so far. Starts as {.word = ...}; words are borrowed. */
typedef struct {
    const char *word;
    const char *best; /* NULL: no candidate was near enough */
    uint32_t distance;
} rp_nearest;

/* Letters that are added, left out, replaced, or swapped with their neighbour.
 * source  optimal string alignment, Damerau 1964. Words of more than 63 bytes are far from all. */
uint32_t rp_word_distance(const char *a, const char *b);

/* Near enough is a candidate that begins with the word (2 letters or more), or differs in at most
 * one letter of three. Of equals the first is kept. */
void rp_nearest_offer(rp_nearest *nearest, const char *candidate);

#endif
