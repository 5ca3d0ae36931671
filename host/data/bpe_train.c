#include "data/bpe_train.h"

#include <stdlib.h>
#include <string.h>

#include "base/replace.h"
#include "data/bpe_file.h"
#include "data/bpe_split.h"
#include "data/grown.h"
#include "data/text_file.h"
#include "data/vocab.h"

enum { LEAST = 2 /* times that a pair has to occur */ };

/* A word of the texts, as tokens. */
typedef struct {
    uint32_t *id;
    uint32_t count; /* of tokens */
    int64_t times;  /* in the texts */
} word;

/* A pair of tokens in a word. */
typedef struct {
    uint64_t pair;
    uint32_t word;
} place;

/* A pair with the words that had it when it was entered. Its count may have changed since then. */
typedef struct {
    uint64_t pair;
    int64_t count;
    const place *place;
    size_t places;
} candidate;

typedef struct {
    rp_arena arena;
    const rp_bpe_watch *watch;
    uint32_t most;  /* tokens */
    rp_words texts; /* the words of the texts; count: how often */
    word *words;    /* [texts.count] */
    rp_words names; /* tokens by name */
    rp_pair_map counts;
    rp_grown queue;  /* candidate: a heap, the most frequent one first, then the smaller pair */
    rp_grown places; /* place: pairs that a merge has made */
    rp_grown merges; /* rp_bpe_merge */
} trainer;

/* Called after each piece of work that is short. errors  INTERRUPTED: the training shall stop */
static rp_err ask_watch(const trainer *t, uint32_t tokens, uint32_t most) {
    return !t->watch->go_on || t->watch->go_on(t->watch->own, tokens, most)
               ? RP_OK
               : rp_fail(RP_ERR_INTERRUPTED, "interrupted; nothing is written");
}

/* ---- words of the texts ---------------------------------------------------------------------- */

static rp_err count_word(trainer *t, const char *text, size_t bytes) {
    uint32_t index = rp_words_find(&t->texts, text, bytes);
    char *copy;
    rp_err err = RP_OK;
    if (index == t->texts.count) {
        RP_TRY(rp_arena_text(&t->arena, text, bytes, &copy));
        RP_TRY(rp_words_add(&t->texts, copy, bytes, &index));
    }
    t->texts.word[index].count++;
fail:
    return err;
}

static rp_err count_line(trainer *t, rp_bpe_splitter *splitter, const char *line, size_t bytes) {
    size_t length;
    rp_err err = RP_OK;
    for (size_t at = 0; at < bytes; at += length) {
        RP_TRY(ask_watch(t, 0, t->most));
        RP_TRY(rp_bpe_split(splitter, line, bytes, at, &length));
        RP_TRY(count_word(t, line + at, length));
    }
fail:
    return err;
}

/* A line contains the sign that ends it. */
static rp_err count_words(trainer *t, rp_bpe_splitter *splitter, const char *path) {
    rp_text_file file;
    rp_arena scratch;
    rp_err err;
    rp_arena_init(&scratch, "text", 0);
    RP_TRY(rp_text_file_read(&scratch, path, &file));
    RP_TRY(rp_text_file_check(&file));
    for (size_t at = 0; at < file.bytes;) {
        const char *end = memchr(file.text + at, '\n', file.bytes - at);
        const size_t bytes = end ? (size_t)(end + 1 - (file.text + at)) : file.bytes - at;
        RP_TRY(count_line(t, splitter, file.text + at, bytes));
        at += bytes;
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}

/* ---- the first tokens ------------------------------------------------------------------------ */

static rp_err add_name(trainer *t, const char *name, size_t bytes, uint32_t *id) {
    char *copy;
    rp_err err;
    *id = rp_words_find(&t->names, name, bytes);
    if (*id < t->names.count) {
        return RP_OK;
    }
    RP_TRY(rp_arena_text(&t->arena, name, bytes, &copy));
    RP_TRY(rp_words_add(&t->names, copy, bytes, id));
fail:
    return err;
}

/* Adds the special tokens and the bytes, in the order of the characters that stand for them:
 * first those that are themselves. */
static rp_err add_bytes(trainer *t, uint32_t id_of_byte[256]) {
    char name[RP_BPE_CHAR_BYTES];
    uint32_t id;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < RP_TOKENS_SPECIAL; i++) {
        RP_TRY(add_name(t, rp_token_specials[i], strlen(rp_token_specials[i]), &id));
    }
    for (uint32_t moved = 0; moved < 2; moved++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            const uint32_t bytes = rp_bpe_write_byte((uint8_t)byte, name);
            if ((bytes == 2 && (uint8_t)name[0] >= 0xc4) == (moved == 1)) { /* from U+0100 */
                RP_TRY(add_name(t, name, bytes, &id_of_byte[byte]));
            }
        }
    }
fail:
    return err;
}

static rp_err make_words(trainer *t) {
    uint32_t id_of_byte[256];
    uint32_t *id;
    size_t bytes = 1;
    rp_err err;
    RP_TRY(add_bytes(t, id_of_byte));
    for (uint32_t i = 0; i < t->texts.count; i++) {
        bytes += t->texts.word[i].bytes;
    }
    RP_TRY(RP_ARENA_NEW(&t->arena, bytes, &id));
    RP_TRY(RP_ARENA_NEW(&t->arena, (size_t)t->texts.count + 1, &t->words));
    for (uint32_t i = 0; i < t->texts.count; i++) {
        const rp_word *text = &t->texts.word[i];
        RP_TRY(ask_watch(t, 0, t->most));
        t->words[i] =
            (word){.id = id, .count = (uint32_t)text->bytes, .times = (int64_t)text->count};
        for (size_t k = 0; k < text->bytes; k++) {
            *id++ = id_of_byte[(uint8_t)text->at[k]];
        }
    }
fail:
    return err;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static bool is_before(const candidate *a, const candidate *b) {
    return a->count != b->count ? a->count > b->count : a->pair < b->pair;
}

static rp_err push(rp_grown *queue, const candidate *value) {
    rp_err err;
    RP_TRY(rp_grown_reserve(queue, queue->count + 1));
    candidate *all = queue->at;
    size_t at = queue->count++;
    for (; at > 0 && is_before(value, &all[(at - 1) / 2]); at = (at - 1) / 2) {
        all[at] = all[(at - 1) / 2];
    }
    all[at] = *value;
fail:
    return err;
}

static candidate pop(rp_grown *queue) {
    candidate *all = queue->at;
    const candidate top = all[0];
    const candidate last = all[--queue->count];
    size_t at = 0;
    for (size_t child = 1; child < queue->count; child = 2 * at + 1) {
        child += child + 1 < queue->count && is_before(&all[child + 1], &all[child]);
        if (!is_before(&all[child], &last)) {
            break;
        }
        all[at] = all[child];
        at = child;
    }
    all[at] = last;
    return top;
}

static int compare_places(const void *left, const void *right) {
    const place *a = left;
    const place *b = right;
    return a->pair != b->pair ? (a->pair < b->pair ? -1 : 1)
                              : (a->word > b->word) - (a->word < b->word);
}

/* Enters the pairs of `places` as candidates, each with its different words, and empties it. */
static rp_err enter_places(trainer *t) {
    place *all = t->places.at;
    size_t count = 0;
    place *kept;
    rp_err err = RP_OK;
    if (t->places.count == 0) {
        return RP_OK;
    }
    qsort(all, t->places.count, sizeof *all, compare_places);
    for (size_t i = 0; i < t->places.count; i++) {
        if (i == 0 || compare_places(&all[i - 1], &all[i]) != 0) {
            all[count++] = all[i];
        }
    }
    t->places.count = 0;
    RP_TRY(RP_ARENA_NEW(&t->arena, count, &kept));
    memcpy(kept, all, count * sizeof *all);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && kept[next].pair == kept[i].pair;) {
            next++;
        }
        const candidate entry = {.pair = kept[i].pair,
                                 .count = *rp_pair_map_find(&t->counts, kept[i].pair),
                                 .place = kept + i,
                                 .places = next - i};
        RP_TRY(entry.count > 0 ? push(&t->queue, &entry) : RP_OK);
    }
fail:
    return err;
}

/* A word gains (times > 0) or loses a pair. */
static rp_err change_pair(trainer *t, uint32_t index, uint32_t left, uint32_t right,
                          int64_t times) {
    const uint64_t pair = rp_pair_key(left, right);
    int64_t *count;
    rp_err err;
    RP_TRY(rp_pair_map_add(&t->counts, pair, &count));
    *count += times;
    if (times > 0) {
        RP_TRY(rp_grown_reserve(&t->places, t->places.count + 1));
        ((place *)t->places.at)[t->places.count++] = (place){pair, index};
    }
fail:
    return err;
}

static rp_err count_pairs(trainer *t) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < t->texts.count; i++) {
        const word *w = &t->words[i];
        RP_TRY(ask_watch(t, 0, t->most));
        for (uint32_t k = 1; k < w->count; k++) {
            RP_TRY(change_pair(t, i, w->id[k - 1], w->id[k], w->times));
        }
    }
    RP_TRY(enter_places(t));
fail:
    return err;
}

/* ---- merges ---------------------------------------------------------------------------------- */

/* Replaces the pair in a word, from its beginning. */
static rp_err merge_word(trainer *t, uint32_t index, const rp_bpe_merge *merge) {
    word *w = &t->words[index];
    uint32_t kept = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->id[i] != merge->left || i + 1 == w->count || w->id[i + 1] != merge->right) {
            w->id[kept++] = w->id[i];
            continue;
        }
        if (kept > 0) {
            const uint32_t before = w->id[kept - 1];
            RP_TRY(change_pair(t, index, before, merge->left, -w->times));
            RP_TRY(change_pair(t, index, before, merge->merged, w->times));
        }
        if (i + 2 < w->count) {
            const uint32_t after = w->id[i + 2];
            RP_TRY(change_pair(t, index, merge->right, after, -w->times));
            RP_TRY(change_pair(t, index, merge->merged, after, w->times));
        }
        w->id[kept++] = merge->merged;
        i++;
    }
    w->count = kept;
fail:
    return err;
}

/* Two pairs may make the same token: "ab c" and "a bc". */
static rp_err merge_candidate(trainer *t, const candidate *top) {
    rp_bpe_merge merge = {.left = (uint32_t)(top->pair >> 32), .right = (uint32_t)top->pair};
    const rp_word *left = &t->names.word[merge.left];
    const rp_word *right = &t->names.word[merge.right];
    rp_grown name = {.size = 1};
    rp_err err;
    RP_TRY(rp_grown_reserve(&name, left->bytes + right->bytes));
    memcpy(name.at, left->at, left->bytes);
    memcpy((char *)name.at + left->bytes, right->at, right->bytes);
    RP_TRY(add_name(t, name.at, left->bytes + right->bytes, &merge.merged));
    RP_TRY(rp_grown_reserve(&t->merges, t->merges.count + 1));
    ((rp_bpe_merge *)t->merges.at)[t->merges.count++] = merge;
    for (size_t i = 0; i < top->places; i++) {
        RP_TRY(ask_watch(t, t->names.count, t->most));
        RP_TRY(merge_word(t, top->place[i].word, &merge));
    }
    RP_TRY(enter_places(t));
fail:
    rp_grown_free(&name);
    return err;
}

static rp_err merge_pairs(trainer *t) {
    rp_err err = RP_OK;
    while (t->names.count < t->most && t->queue.count > 0) {
        candidate top = pop(&t->queue);
        const int64_t count = *rp_pair_map_find(&t->counts, top.pair);
        if (top.count != count) {
            top.count = count;
            RP_TRY(push(&t->queue, &top));
            continue;
        }
        if (count < LEAST) {
            break;
        }
        RP_TRY(merge_candidate(t, &top));
        RP_TRY(ask_watch(t, t->names.count, t->most));
    }
fail:
    return err;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Keeps the last one of equal merges, as Hugging Face's trainer does. */
static rp_err drop_repeated(trainer *t) {
    rp_bpe_merge *all = t->merges.at;
    size_t kept = t->merges.count;
    rp_pair_map seen;
    int64_t *times;
    rp_err err = RP_OK;
    rp_pair_map_init(&seen, &t->arena);
    for (size_t i = t->merges.count; i-- > 0;) {
        RP_TRY(rp_pair_map_add(&seen, rp_pair_key(all[i].left, all[i].right), &times));
        if ((*times)++ == 0) {
            all[--kept] = all[i];
        }
    }
    memmove(all, all + kept, (t->merges.count - kept) * sizeof *all);
    t->merges.count -= kept;
fail:
    return err;
}

static rp_err make_bpe(trainer *t, rp_bpe *out) {
    rp_bpe_added *added;
    const char **name;
    rp_err err;
    RP_TRY(drop_repeated(t));
    RP_TRY(RP_ARENA_NEW(&t->arena, RP_TOKENS_SPECIAL, &added));
    RP_TRY(RP_ARENA_NEW(&t->arena, t->names.count, &name));
    for (uint32_t i = 0; i < RP_TOKENS_SPECIAL; i++) {
        added[i] = (rp_bpe_added){.id = i, .special = true};
    }
    for (uint32_t i = 0; i < t->names.count; i++) {
        name[i] = t->names.word[i].at;
    }
    *out = (rp_bpe){.count = t->names.count,
                    .learnt = t->names.count,
                    .name = name,
                    .merge = t->merges.at,
                    .merges = (uint32_t)t->merges.count,
                    .added = added,
                    .added_count = RP_TOKENS_SPECIAL,
                    .pattern = RP_BPE_PATTERN};
fail:
    return err;
}

static rp_err write_bpe(const trainer *t, const rp_bpe *bpe, const char *path) {
    json_t *root = rp_bpe_to_json(bpe);
    if (!root) {
        return rp_fail(RP_ERR_MEMORY, "no memory for a tokeniser of %u tokens", bpe->count);
    }
    const rp_err err = ask_watch(t, bpe->count, bpe->count);
    if (err != RP_OK) {
        json_decref(root);
        return err;
    }
    FILE *file = rp_replace_begin(path);
    bool good = file && json_dumpf(root, file, JSON_INDENT(1)) == 0;
    json_decref(root);
    good = good && putc('\n', file) != EOF;
    return rp_replace_end(file, path, good);
}

rp_err rp_bpe_train(const char *const *files, uint32_t count, uint32_t most, const char *path,
                    const rp_bpe_watch *watch, rp_bpe_learnt *out) {
    trainer t = {.watch = watch,
                 .most = most,
                 .queue = {.size = sizeof(candidate)},
                 .places = {.size = sizeof(place)},
                 .merges = {.size = sizeof(rp_bpe_merge)}};
    rp_bpe_splitter *splitter = NULL;
    rp_bpe bpe;
    rp_err err;
    RP_ASSERT(most >= RP_BPE_VOCAB_MIN && most <= RP_TOKENS_MAX);
    rp_arena_init(&t.arena, "bpe", 0);
    rp_words_init(&t.texts, &t.arena);
    rp_words_init(&t.names, &t.arena);
    rp_pair_map_init(&t.counts, &t.arena);
    RP_TRY(rp_bpe_splitter_open(RP_BPE_PATTERN, "GPT-2", &splitter));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(count_words(&t, splitter, files[i]));
    }
    RP_TRY(make_words(&t));
    RP_TRY(count_pairs(&t));
    RP_TRY(merge_pairs(&t));
    RP_TRY(make_bpe(&t, &bpe));
    RP_TRY(write_bpe(&t, &bpe, path));
    *out = (rp_bpe_learnt){.tokens = bpe.count, .merges = bpe.merges, .words = t.texts.count};
fail:
    rp_bpe_splitter_close(&splitter);
    rp_grown_free(&t.queue);
    rp_grown_free(&t.places);
    rp_grown_free(&t.merges);
    rp_arena_finish(&t.arena);
    return err;
}
