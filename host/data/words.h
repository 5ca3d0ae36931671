/* A set of words with a number for each, in the order in which they were added. Private to the
 * room. */
#ifndef RP_DATA_WORDS_H
#define RP_DATA_WORDS_H

#include "base/arena.h"

enum { RP_WORDS_MAX = 1 << 27 };

typedef struct {
    const char *at; /* borrowed, not zero-terminated */
    size_t bytes;
    uint64_t count; /* for the caller; 0 at first */
} rp_word;

typedef struct {
    rp_arena *arena;
    rp_word *word; /* [count] */
    uint32_t count, room;
    uint32_t *slot; /* [slots]: 1 + index of a word, by hash; 0: free */
    uint32_t slots;
} rp_words;

void rp_words_init(rp_words *words, rp_arena *arena);
/* Index of a word; `count` if the set lacks it. */
uint32_t rp_words_find(const rp_words *words, const char *at, size_t bytes);
/* Adds a word unless the set has it. *index: its index. errors  MEMORY; LIMIT */
rp_err rp_words_add(rp_words *words, const char *at, size_t bytes, uint32_t *index) RP_MUST_CHECK;

#endif
