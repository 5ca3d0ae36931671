/* Suggests a known word for a mistyped one. */
#ifndef RP_BASE_NEAREST_H
#define RP_BASE_NEAREST_H

#include <stdint.h>

/* Search state: the mistyped word and its best candidate so far. Initialise with {.word = ...};
 * words are borrowed. */
typedef struct {
    const char *word;
    const char *best; /* NULL: no candidate was near enough */
    uint32_t distance;
} rp_nearest;

/* Number of letters that are inserted, deleted, replaced, or swapped with their neighbour. A word
 * of more than 63 bytes is far from every other word.
 * source  optimal string alignment, Damerau 1964 */
uint32_t rp_word_distance(const char *a, const char *b);

/* Considers one candidate. It is near enough if it begins with the word (2 letters or more) or
 * differs in at most one letter of three. Of equally near candidates the first is kept. */
void rp_nearest_offer(rp_nearest *nearest, const char *candidate);

#endif
