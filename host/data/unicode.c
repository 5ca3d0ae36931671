#include "data/unicode.h"

#include "data/unicode_own.h"

uint32_t rp_unicode_read(const char *at, const char *end, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = (uint8_t)*at;
    const uint32_t length = first < 0x80   ? 1
                            : first < 0xc0 ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf8 ? 4
                                           : 0;
    if (length == 0 || (size_t)(end - at) < length) {
        return 0;
    }
    uint32_t value = length == 1 ? first : first & (0x7fu >> length);
    for (uint32_t i = 1; i < length; i++) {
        const uint8_t next = (uint8_t)at[i];
        if ((next & 0xc0) != 0x80) {
            return 0;
        }
        value = value << 6 | (next & 0x3fu);
    }
    const bool surrogate = value >= 0xd800 && value < 0xe000;
    if (value < least[length] || value >= RP_UNICODE_END || surrogate) {
        return 0;
    }
    *code = value;
    return length;
}

uint32_t rp_unicode_write(uint32_t code, char *out) {
    const uint32_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (uint32_t i = length; i > 1; i--) {
        out[i - 1] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(length == 1 ? code : code | (0xf00u >> length & 0xffu));
    return length;
}

bool rp_unicode_is_space(uint32_t code) {
    return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
           code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool rp_unicode_is_white(uint32_t code) {
    return rp_unicode_is_space(code) && (code < 0x1c || code > 0x1f);
}

bool rp_unicode_is_word(uint32_t code) {
    uint32_t low = 0;
    uint32_t high = RP_UNICODE_WORDS;
    if (code < 0x80) {
        return (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') ||
               (code >= 'A' && code <= 'Z') || code == '_';
    }
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (rp_unicode_words[middle].last < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < RP_UNICODE_WORDS && rp_unicode_words[low].first <= code;
}

uint32_t rp_unicode_lower(uint32_t code) {
    uint32_t low = 0;
    uint32_t high = RP_UNICODE_LOWERS;
    if (code < 0x80) {
        return code >= 'A' && code <= 'Z' ? code + 'a' - 'A' : code;
    }
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (rp_unicode_lowers[middle].last < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const rp_unicode_case *found = &rp_unicode_lowers[low];
    return low < RP_UNICODE_LOWERS && found->first <= code &&
                   (code - found->first) % found->step == 0
               ? (uint32_t)((int32_t)code + found->more)
               : code;
}

/* Calls for each character; `out` NULL: only counts bytes. */
static size_t put_lower(const char *text, size_t bytes, char *out) {
    const char *end = text + bytes;
    char piece[RP_UNICODE_BYTES_MAX];
    size_t used = 0;
    uint32_t code = 0;
    for (const char *at = text; at < end;) {
        const uint32_t length = rp_unicode_read(at, end, &code);
        RP_ASSERT(length > 0);
        used += rp_unicode_write(rp_unicode_lower(code), out ? out + used : piece);
        at += length;
    }
    return used;
}

rp_err rp_unicode_lower_text(rp_arena *arena, const char *text, size_t bytes, const char **out,
                             size_t *out_bytes) {
    char *lower;
    rp_err err;
    *out_bytes = put_lower(text, bytes, NULL);
    RP_TRY(RP_ARENA_NEW(arena, *out_bytes + 1, &lower));
    (void)put_lower(text, bytes, lower);
    *out = lower;
fail:
    return err;
}
