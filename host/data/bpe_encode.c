#include "data/bpe_encode.h"

#include <string.h>

#include "data/bpe_added.h"
#include "data/bpe_split.h"
#include "data/grown.h"

enum { KEPT_BYTES = 64 /* of a word */, KEPT_WORDS = 1 << 18, GONE = -1 };

/* A token of a word while the word is merged. */
typedef struct {
    uint32_t id;
    int64_t before, after; /* places in the word; GONE: none */
    bool gone;             /* it is a part of the token before it */
} symbol;

struct rp_bpe_encoder {
    const rp_bpe *bpe;
    rp_bpe_splitter *splitter;
    rp_arena arena;  /* of the words that are kept */
    rp_words words;  /* count: 128 * the first id in `kept` + the number of ids */
    rp_grown kept;   /* uint32_t: ids of these words */
    rp_grown ids;    /* uint32_t: the result */
    rp_grown symbol; /* of the word that is merged */
    rp_grown heap;   /* uint64_t: rank << 32 | place of possible merges, the smallest one first */
    rp_grown text;   /* char: a text after a blank */
    rp_grown name;   /* char: the name of a long word */
};

/* ---- a heap of numbers ----------------------------------------------------------------------- */

static rp_err push(rp_grown *heap, uint64_t value) {
    rp_err err;
    RP_TRY(rp_grown_reserve(heap, heap->count + 1));
    uint64_t *all = heap->at;
    size_t at = heap->count++;
    for (; at > 0 && all[(at - 1) / 2] > value; at = (at - 1) / 2) {
        all[at] = all[(at - 1) / 2];
    }
    all[at] = value;
fail:
    return err;
}

static uint64_t pop(rp_grown *heap) {
    uint64_t *all = heap->at;
    const uint64_t top = all[0];
    const uint64_t last = all[--heap->count];
    size_t at = 0;
    for (size_t child = 1; child < heap->count; child = 2 * at + 1) {
        child += child + 1 < heap->count && all[child + 1] < all[child];
        if (all[child] >= last) {
            break;
        }
        all[at] = all[child];
        at = child;
    }
    all[at] = last;
    return top;
}

/* ---- merges ---------------------------------------------------------------------------------- */

/* Notes the merge of the tokens at `left` and `right`, if there is one. */
static rp_err note_merge(rp_bpe_encoder *e, int64_t left, int64_t right) {
    const symbol *all = e->symbol.at;
    const int64_t *rank =
        left != GONE && right != GONE
            ? rp_pair_map_find(&e->bpe->ranks, rp_pair_key(all[left].id, all[right].id))
            : NULL;
    return rank ? push(&e->heap, (uint64_t)*rank << 32 | (uint64_t)left) : RP_OK;
}

/* Is the merge that was noted still one of these two tokens? */
static bool is_current(const rp_bpe *bpe, const symbol *left, const symbol *right,
                       uint32_t merged) {
    const int64_t *rank = rp_pair_map_find(&bpe->ranks, rp_pair_key(left->id, right->id));
    return rank && bpe->merge[*rank].merged == merged;
}

static rp_err merge_symbols(rp_bpe_encoder *e) {
    symbol *all = e->symbol.at;
    rp_err err = RP_OK;
    while (e->heap.count > 0) {
        const uint64_t top = pop(&e->heap);
        const uint32_t merged = e->bpe->merge[top >> 32].merged;
        const int64_t at = (int64_t)(top & UINT32_MAX);
        symbol *left = &all[at];
        if (left->gone || left->after == GONE ||
            !is_current(e->bpe, left, &all[left->after], merged)) {
            continue;
        }
        symbol *right = &all[left->after];
        right->gone = true;
        left->id = merged;
        left->after = right->after;
        if (left->after != GONE) {
            all[left->after].before = at;
        }
        RP_TRY(note_merge(e, left->before, at));
        RP_TRY(note_merge(e, at, left->after));
    }
fail:
    return err;
}

/* Appends the tokens of a word. */
static rp_err merge_word(rp_bpe_encoder *e, const char *word, size_t bytes) {
    rp_err err;
    RP_TRY(rp_grown_reserve(&e->symbol, bytes));
    RP_TRY(rp_grown_reserve(&e->ids, e->ids.count + bytes));
    symbol *all = e->symbol.at;
    const int64_t last = (int64_t)bytes - 1;
    for (int64_t i = 0; i <= last; i++) {
        all[i] = (symbol){.id = e->bpe->id_of_byte[(uint8_t)word[i]],
                          .before = i - 1,
                          .after = i < last ? i + 1 : GONE};
    }
    e->heap.count = 0;
    for (int64_t i = 0; i < last; i++) {
        RP_TRY(note_merge(e, i, i + 1));
    }
    RP_TRY(merge_symbols(e));
    for (int64_t i = 0; i != GONE; i = all[i].after) {
        ((uint32_t *)e->ids.at)[e->ids.count++] = all[i].id;
    }
fail:
    return err;
}

/* Appends the word's own token, if it has one. */
static rp_err find_whole(rp_bpe_encoder *e, const char *word, size_t bytes, bool *found) {
    const rp_words *names = &e->bpe->names;
    char name[KEPT_BYTES * RP_BPE_CHAR_BYTES];
    size_t used = 0;
    rp_err err = RP_OK;
    *found = false;
    if (bytes > KEPT_BYTES) {
        RP_TRY(rp_grown_reserve(&e->name, bytes * RP_BPE_CHAR_BYTES));
    }
    char *to = bytes > KEPT_BYTES ? e->name.at : name;
    for (size_t i = 0; i < bytes; i++) {
        used += rp_bpe_write_byte((uint8_t)word[i], to + used);
    }
    const uint32_t id = rp_words_find(names, to, used);
    if (id < names->count) {
        *found = true;
        RP_TRY(rp_grown_reserve(&e->ids, e->ids.count + 1));
        ((uint32_t *)e->ids.at)[e->ids.count++] = id;
    }
fail:
    return err;
}

/* ---- words ----------------------------------------------------------------------------------- */

static rp_err append_kept(rp_bpe_encoder *e, const rp_word *word) {
    const size_t count = word->count % 128;
    const uint32_t *kept = (const uint32_t *)e->kept.at + word->count / 128;
    rp_err err;
    RP_TRY(rp_grown_reserve(&e->ids, e->ids.count + count));
    memcpy((uint32_t *)e->ids.at + e->ids.count, kept, count * sizeof *kept);
    e->ids.count += count;
fail:
    return err;
}

/* Keeps the last ids of the result as those of the word. */
static rp_err keep_word(rp_bpe_encoder *e, const char *word, size_t bytes, size_t first) {
    const size_t count = e->ids.count - first;
    uint32_t index;
    char *copy;
    rp_err err;
    RP_TRY(rp_grown_reserve(&e->kept, e->kept.count + count));
    RP_TRY(rp_arena_text(&e->arena, word, bytes, &copy));
    RP_TRY(rp_words_add(&e->words, copy, bytes, &index));
    memcpy((uint32_t *)e->kept.at + e->kept.count, (uint32_t *)e->ids.at + first,
           count * sizeof(uint32_t));
    e->words.word[index].count = e->kept.count * 128 + count;
    e->kept.count += count;
fail:
    return err;
}

static rp_err encode_word(rp_bpe_encoder *e, const char *word, size_t bytes) {
    const size_t first = e->ids.count;
    const uint32_t index =
        bytes <= KEPT_BYTES ? rp_words_find(&e->words, word, bytes) : e->words.count;
    bool whole = false;
    rp_err err;
    if (index < e->words.count) {
        return append_kept(e, &e->words.word[index]);
    }
    RP_TRY(e->bpe->whole_words ? find_whole(e, word, bytes, &whole) : RP_OK);
    RP_TRY(whole ? RP_OK : merge_word(e, word, bytes));
    if (bytes <= KEPT_BYTES && e->words.count < KEPT_WORDS) {
        RP_TRY(keep_word(e, word, bytes, first));
    }
fail:
    return err;
}

/* A text without added tokens. */
static rp_err encode_words(rp_bpe_encoder *e, const char *text, size_t bytes) {
    size_t length;
    rp_err err = RP_OK;
    if (e->bpe->prefix_space && bytes > 0 && text[0] != ' ') {
        RP_TRY(rp_grown_reserve(&e->text, bytes + 1));
        ((char *)e->text.at)[0] = ' ';
        memcpy((char *)e->text.at + 1, text, bytes);
        text = e->text.at;
        bytes++;
    }
    for (size_t at = 0; at < bytes; at += length) {
        RP_TRY(rp_bpe_split(e->splitter, text, bytes, at, &length));
        RP_TRY(encode_word(e, text + at, length));
    }
fail:
    return err;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* A text, of which added tokens that are not normalised are separated first. */
static rp_err encode_part(rp_bpe_encoder *e, bool normalised, const char *text, size_t bytes) {
    size_t from = 0;
    size_t done = 0;
    rp_bpe_found found;
    rp_err err = RP_OK;
    while (rp_bpe_find_added(e->bpe, normalised, text, bytes, from, &found)) {
        if (found.begin > done) {
            RP_TRY(normalised ? encode_words(e, text + done, found.begin - done)
                              : encode_part(e, true, text + done, found.begin - done));
        }
        RP_TRY(rp_grown_reserve(&e->ids, e->ids.count + 1));
        ((uint32_t *)e->ids.at)[e->ids.count++] = found.token->id;
        from = found.end;
        done = found.after;
    }
    if (done < bytes) {
        RP_TRY(normalised ? encode_words(e, text + done, bytes - done)
                          : encode_part(e, true, text + done, bytes - done));
    }
fail:
    return err;
}

rp_err rp_bpe_encoder_open(const rp_bpe *bpe, rp_bpe_encoder **out) {
    rp_bpe_encoder *e = NULL;
    rp_err err;
    *out = NULL;
    RP_TRY(rp_block_new(sizeof *e, (void **)&e));
    *e = (rp_bpe_encoder){.bpe = bpe,
                          .kept = {.size = sizeof(uint32_t)},
                          .ids = {.size = sizeof(uint32_t)},
                          .symbol = {.size = sizeof(symbol)},
                          .heap = {.size = sizeof(uint64_t)},
                          .text = {.size = 1},
                          .name = {.size = 1}};
    rp_arena_init(&e->arena, "words", 0);
    rp_words_init(&e->words, &e->arena);
    RP_TRY(rp_bpe_splitter_open(bpe->pattern, "the tokeniser", &e->splitter));
    *out = e;
    return RP_OK;
fail:
    rp_bpe_encoder_close(&e);
    return err;
}

rp_err rp_bpe_encode(rp_bpe_encoder *encoder, const char *text, size_t bytes, const uint32_t **ids,
                     uint64_t *count) {
    encoder->ids.count = 0;
    const rp_err err = encode_part(encoder, false, text, bytes);
    *ids = encoder->ids.at;
    *count = encoder->ids.count;
    return err;
}

void rp_bpe_encoder_close(rp_bpe_encoder **encoder) {
    rp_bpe_encoder *e = *encoder;
    if (e) {
        rp_grown *const grown[] = {&e->kept, &e->ids, &e->symbol, &e->heap, &e->text, &e->name};
        for (size_t i = 0; i < sizeof grown / sizeof *grown; i++) {
            rp_grown_free(grown[i]);
        }
        rp_bpe_splitter_close(&e->splitter);
        rp_arena_finish(&e->arena);
        rp_block_free(e);
    }
    *encoder = NULL;
}
