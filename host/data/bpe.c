#include "data/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "data/unicode.h"

enum { SHOWN_BYTES = 60, MOVED_FIRST = 256, MOVED = 68 };

/* Bytes that are not printable characters of Latin-1 become characters from U+0100, in order. */
static bool is_itself(uint32_t byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

uint32_t rp_bpe_write_byte(uint8_t byte, char out[RP_BPE_CHAR_BYTES]) {
    uint32_t code = byte;
    if (!is_itself(byte)) {
        code = MOVED_FIRST;
        for (uint32_t i = 0; i < byte; i++) {
            code += !is_itself(i);
        }
    }
    return rp_unicode_write(code, out);
}

/* The byte that a character stands for; 256: none. */
static uint32_t find_byte(uint32_t code) {
    if (code < 256) {
        return is_itself(code) ? code : 256;
    }
    uint32_t byte = 0;
    for (uint32_t left = code - MOVED_FIRST; byte < 256 && (left > 0 || is_itself(byte)); byte++) {
        left -= !is_itself(byte);
    }
    return code < MOVED_FIRST + MOVED ? byte : 256;
}

int64_t rp_bpe_read_name(const char *name, char *out) {
    const char *end = name + strlen(name);
    int64_t count = 0;
    while (name < end) {
        uint32_t code = 0;
        const uint32_t length = rp_unicode_read(name, end, &code);
        const uint32_t byte = length > 0 ? find_byte(code) : 256;
        if (byte == 256) {
            return -1;
        }
        out[count++] = (char)byte;
        name += length;
    }
    return count;
}

rp_err rp_bpe_index_names(rp_arena *arena, rp_bpe *bpe, const char *path) {
    char shown[SHOWN_BYTES];
    rp_err err = RP_OK;
    rp_words_init(&bpe->names, arena);
    for (uint32_t i = 0; i < bpe->learnt; i++) {
        uint32_t at;
        RP_TRY(rp_words_add(&bpe->names, bpe->name[i], strlen(bpe->name[i]), &at));
        if (at != i) {
            return rp_fail(RP_ERR_FORMAT, "%s: token %u, '%s': expected each token once", path, i,
                           rp_utf8_show(bpe->name[i], SHOWN_BYTES, shown, sizeof shown));
        }
    }
fail:
    return err;
}

static rp_err find_bytes(rp_bpe *bpe, const char *path) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        char text[RP_BPE_CHAR_BYTES];
        const uint32_t id =
            rp_words_find(&bpe->names, text, rp_bpe_write_byte((uint8_t)byte, text));
        if (id == bpe->names.count) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: `model.vocab`: byte 0x%02x has no token: expected a token for each "
                           "of the 256 bytes, as a byte-level tokeniser has",
                           path, byte);
        }
        bpe->id_of_byte[byte] = id;
    }
    return RP_OK;
}

/* The texts of all tokens, in one block of memory. An added token is its own text. */
static rp_err make_texts(rp_arena *arena, rp_bpe *bpe, const char *path) {
    char shown[SHOWN_BYTES];
    rp_bpe_text *text;
    size_t bytes = 1;
    char *at;
    rp_err err;
    for (uint32_t i = 0; i < bpe->count; i++) {
        bytes += strlen(bpe->name[i]);
    }
    RP_TRY(RP_ARENA_NEW(arena, bytes, &at));
    RP_TRY(RP_ARENA_NEW(arena, bpe->count, &text));
    for (uint32_t i = 0; i < bpe->added_count; i++) {
        const char *name = bpe->name[bpe->added[i].id];
        text[bpe->added[i].id] = (rp_bpe_text){.at = name, .bytes = (uint32_t)strlen(name)};
    }
    for (uint32_t i = 0; i < bpe->count; i++) {
        if (text[i].at) {
            continue;
        }
        const int64_t length = rp_bpe_read_name(bpe->name[i], at);
        if (length < 1) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: `model.vocab`: token %u, '%s': expected characters that stand for "
                           "bytes, as a byte-level tokeniser has",
                           path, i, rp_utf8_show(bpe->name[i], SHOWN_BYTES, shown, sizeof shown));
        }
        text[i] = (rp_bpe_text){.at = at, .bytes = (uint32_t)length};
        at += length;
    }
    bpe->text = text;
fail:
    return err;
}

static rp_err rank_merges(rp_arena *arena, rp_bpe *bpe, const char *path) {
    int64_t *rank;
    rp_err err = RP_OK;
    rp_pair_map_init(&bpe->ranks, arena);
    for (uint32_t i = 0; i < bpe->merges; i++) {
        const uint32_t before = bpe->ranks.count;
        RP_TRY(rp_pair_map_add(&bpe->ranks, rp_pair_key(bpe->merge[i].left, bpe->merge[i].right),
                               &rank));
        if (bpe->ranks.count == before) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: `model.merges`: entry %u is also entry %lld: expected each pair "
                           "once",
                           path, i, (long long)*rank);
        }
        *rank = i;
    }
fail:
    return err;
}

/* An added token with its text, to sort them. */
typedef struct {
    rp_bpe_text text;
    uint32_t index;
} entry;

static int compare_entries(const void *left, const void *right) {
    const rp_bpe_text *a = &((const entry *)left)->text;
    const rp_bpe_text *b = &((const entry *)right)->text;
    const int order = memcmp(a->at, b->at, a->bytes < b->bytes ? a->bytes : b->bytes);
    return order != 0 ? order : a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static rp_err sort_added(rp_arena *arena, rp_bpe *bpe, const char *path) {
    char shown[SHOWN_BYTES];
    uint32_t *index;
    entry *all;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)bpe->added_count + 1, &all));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)bpe->added_count + 1, &index));
    for (uint32_t i = 0; i < bpe->added_count; i++) {
        all[i] = (entry){.text = bpe->text[bpe->added[i].id], .index = i};
        bpe->starts_added[(uint8_t)all[i].text.at[0]] = true;
    }
    qsort(all, bpe->added_count, sizeof *all, compare_entries);
    for (uint32_t i = 0; i < bpe->added_count; i++) {
        const rp_bpe_text *text = &all[i].text;
        index[i] = all[i].index;
        if (i > 0 && compare_entries(&all[i - 1], &all[i]) == 0) {
            return rp_fail(RP_ERR_FORMAT, "%s: `added_tokens`: '%s': expected each token once",
                           path, rp_utf8_show(text->at, text->bytes, shown, sizeof shown));
        }
    }
    bpe->sorted = index;
fail:
    return err;
}

rp_err rp_bpe_finish(rp_arena *arena, rp_bpe *bpe, const char *path) {
    rp_err err;
    RP_TRY(find_bytes(bpe, path));
    RP_TRY(make_texts(arena, bpe, path));
    RP_TRY(rank_merges(arena, bpe, path));
    RP_TRY(sort_added(arena, bpe, path));
fail:
    return err;
}
