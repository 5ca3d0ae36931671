#include "base/quote.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum { ESCAPED_BYTES = 8 }; /* \uXXXX, or a character of UTF-8, and the NUL */

bool rp_is_plain_name(const char *text) {
    while (isalnum((unsigned char)*text) || (*text && strchr("._-", *text))) {
        text++;
    }
    return *text == '\0';
}

/* YAML folds a line at U+2028 and U+2029, and does not allow U+FEFF, U+FFFE and U+FFFF. */
static bool needs_escape(uint32_t code) {
    return code == 0x2028 || code == 0x2029 || code == 0xfeff || code >= 0xfffe;
}

/* Writes the character at `at` as it appears in quotes. Returns the bytes consumed. */
static size_t escape_character(const char *at, char out[ESCAPED_BYTES]) {
    const unsigned char *byte = (const unsigned char *)at;
    const size_t bytes = rp_printable_bytes(at);
    uint32_t code = 0;
    if (bytes == 0) {
        code = byte[0] < 0x80 ? byte[0] : 0xfffd;
    } else if (bytes == 3) {
        code = (byte[0] & 0x0fU) << 12 | (byte[1] & 0x3fU) << 6 | (byte[2] & 0x3fU);
        code = needs_escape(code) ? code : 0;
    }
    if (code > 0) {
        (void)snprintf(out, ESCAPED_BYTES, "\\u%04x", (unsigned)(code & 0xffff));
    } else {
        const bool marks = at[0] == '"' || at[0] == '\\';
        (void)snprintf(out, ESCAPED_BYTES, "%s%.*s", marks ? "\\" : "", (int)bytes, at);
    }
    return bytes > 0 ? bytes : 1;
}

void rp_quote_put(FILE *file, const char *text) {
    char piece[ESCAPED_BYTES];
    (void)fputc('"', file);
    while (*text) {
        text += escape_character(text, piece);
        (void)fputs(piece, file);
    }
    (void)fputc('"', file);
}

const char *rp_quote_fit(const char *text, char *out, size_t room) {
    char piece[ESCAPED_BYTES];
    size_t used = 1;
    out[0] = '"';
    while (*text) {
        text += escape_character(text, piece);
        if (used + strlen(piece) + 2 > room) {
            break;
        }
        memcpy(out + used, piece, strlen(piece));
        used += strlen(piece);
    }
    memcpy(out + used, "\"", 2);
    return out;
}

rp_err rp_quote(rp_arena *arena, const char *text, const char **out) {
    const size_t room = strlen(text) * (ESCAPED_BYTES - 1) + 3;
    char *quoted;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, room, &quoted));
    *out = rp_quote_fit(text, quoted, room);
fail:
    return err;
}
