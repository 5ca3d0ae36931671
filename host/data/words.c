#include "data/words.h"

#include <string.h>

enum { WORDS_FIRST = 1024 };

/* FNV-1a of 64 bits. */
static uint64_t hash_word(const char *at, size_t bytes) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ (uint8_t)at[i]) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 32;
}

/* The slot of the word, or the free slot where it belongs. At most half of the slots are taken. */
static uint32_t find_slot(const rp_words *words, const char *at, size_t bytes) {
    uint32_t slot = (uint32_t)hash_word(at, bytes) & (words->slots - 1);
    for (; words->slot[slot] > 0; slot = (slot + 1) & (words->slots - 1)) {
        const rp_word *word = &words->word[words->slot[slot] - 1];
        if (word->bytes == bytes && memcmp(word->at, at, bytes) == 0) {
            break;
        }
    }
    return slot;
}

void rp_words_init(rp_words *words, rp_arena *arena) {
    *words = (rp_words){.arena = arena};
}

uint32_t rp_words_find(const rp_words *words, const char *at, size_t bytes) {
    const uint32_t found = words->slots > 0 ? words->slot[find_slot(words, at, bytes)] : 0;
    return found > 0 ? found - 1 : words->count;
}

static rp_err grow_words(rp_words *words) {
    const uint32_t room = words->room > 0 ? 2 * words->room : WORDS_FIRST;
    rp_word *word;
    rp_err err;
    if (room > RP_WORDS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "the text has more than %d different words", RP_WORDS_MAX);
    }
    RP_TRY(RP_ARENA_NEW(words->arena, room, &word));
    if (words->count > 0) {
        memcpy(word, words->word, words->count * sizeof *word);
    }
    RP_TRY(RP_ARENA_NEW(words->arena, (size_t)2 * room, &words->slot));
    words->word = word;
    words->room = room;
    words->slots = 2 * room;
    for (uint32_t i = 0; i < words->count; i++) {
        words->slot[find_slot(words, word[i].at, word[i].bytes)] = i + 1;
    }
fail:
    return err;
}

rp_err rp_words_add(rp_words *words, const char *at, size_t bytes, uint32_t *index) {
    rp_err err;
    *index = rp_words_find(words, at, bytes);
    if (*index < words->count) {
        return RP_OK;
    }
    if (words->count == words->room) {
        RP_TRY(grow_words(words));
    }
    words->word[words->count] = (rp_word){.at = at, .bytes = bytes};
    words->slot[find_slot(words, at, bytes)] = ++words->count;
    return RP_OK;
fail:
    return err;
}
