#include "data/bpe_added.h"

#include "data/unicode.h"

/* Tokens [low, high) of the sorted list, which begin with the same bytes. */
typedef struct {
    uint32_t low, high;
} range;

/* First token of the range whose byte at `depth` is at least `byte`. */
static uint32_t find_bound(const rp_bpe *bpe, range within, uint32_t depth, uint32_t byte) {
    while (within.low < within.high) {
        const uint32_t middle = within.low + (within.high - within.low) / 2;
        const rp_bpe_text *text = &bpe->text[bpe->added[bpe->sorted[middle]].id];
        if (text->bytes <= depth || (uint8_t)text->at[depth] < byte) {
            within.low = middle + 1;
        } else {
            within.high = middle;
        }
    }
    return within.low;
}

/* The longest token at the beginning of the text, or NULL. */
static const rp_bpe_added *match_token(const rp_bpe *bpe, bool normalised, const char *text,
                                       size_t bytes) {
    const rp_bpe_added *found = NULL;
    range left = {0, bpe->added_count};
    for (uint32_t depth = 0; depth < bytes; depth++) {
        const uint32_t byte = (uint8_t)text[depth];
        left.low = find_bound(bpe, left, depth, byte);
        left.high = find_bound(bpe, left, depth, byte + 1);
        if (left.low == left.high) {
            break;
        }
        const rp_bpe_added *first = &bpe->added[bpe->sorted[left.low]]; /* the shortest */
        if (bpe->text[first->id].bytes == depth + 1 && first->normalised == normalised) {
            found = first;
        }
    }
    return found;
}

static size_t skip_spaces_left(const char *text, size_t at) {
    while (at > 0) {
        uint32_t code;
        size_t first = at - 1;
        while (first > 0 && ((uint8_t)text[first] & 0xc0) == 0x80) {
            first--;
        }
        if (rp_unicode_read(text + first, text + at, &code) == 0 || !rp_unicode_is_white(code)) {
            break;
        }
        at = first;
    }
    return at;
}

static size_t skip_spaces_right(const char *text, size_t bytes, size_t at) {
    while (at < bytes) {
        uint32_t code;
        const uint32_t length = rp_unicode_read(text + at, text + bytes, &code);
        if (length == 0 || !rp_unicode_is_white(code)) {
            break;
        }
        at += length;
    }
    return at;
}

bool rp_bpe_find_added(const rp_bpe *bpe, bool normalised, const char *text, size_t bytes,
                       size_t from, rp_bpe_found *out) {
    for (size_t at = from; at < bytes && bpe->added_count > 0; at++) {
        const rp_bpe_added *token = bpe->starts_added[(uint8_t)text[at]]
                                        ? match_token(bpe, normalised, text + at, bytes - at)
                                        : NULL;
        if (token) {
            const size_t end = at + bpe->text[token->id].bytes;
            *out = (rp_bpe_found){.token = token,
                                  .first = at,
                                  .end = end,
                                  .begin = token->strip_left ? skip_spaces_left(text, at) : at,
                                  .after = token->strip_right ? skip_spaces_right(text, bytes, end)
                                                              : end};
            return true;
        }
    }
    return false;
}
