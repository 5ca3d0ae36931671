#include "base/printable.h"

#include <stdarg.h>
#include <string.h>

enum { PRINTED_BYTES = 8192 };

size_t rp_printable_bytes(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] < 0x80) {
        return at[0] >= 0x20 && at[0] != 0x7f ? 1 : 0;
    }
    const size_t length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool control = at[0] == 0xc2 && at[1] < 0xa0;
    const bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    const bool surrogate = at[0] == 0xed && at[1] >= 0xa0;
    const bool too_large = at[0] == 0xf4 && at[1] >= 0x90;
    return control || overlong || surrogate || too_large ? 0 : length;
}

size_t rp_printable_piece(const char *text, char out[RP_PRINTABLE_PIECE]) {
    const unsigned char *byte = (const unsigned char *)text;
    const size_t whole = rp_printable_bytes(text);
    const bool c1 = byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0;
    const bool control = byte[0] < 0x20 || byte[0] == 0x7f;
    if (whole > 0) {
        memcpy(out, text, whole);
        out[whole] = '\0';
        return whole;
    }
    (void)snprintf(out, RP_PRINTABLE_PIECE, c1 || control ? "\\u%04x" : "\\x%02x",
                   (unsigned)byte[c1 ? 1 : 0]);
    return c1 ? 2 : 1;
}

void rp_printable(const char *text, bool lines, char *out, size_t room) {
    size_t used = 0;
    while (*text) {
        char piece[RP_PRINTABLE_PIECE] = {*text};
        const bool stays = lines && (*text == '\n' || *text == '\t');
        const size_t taken = stays ? 1 : rp_printable_piece(text, piece);
        const size_t bytes = strlen(piece);
        if (used + bytes >= room) {
            break;
        }
        memcpy(out + used, piece, bytes);
        used += bytes;
        text += taken;
    }
    out[used] = '\0';
}

void rp_print(FILE *file, const char *format, ...) {
    char text[PRINTED_BYTES];
    char safe[PRINTED_BYTES];
    va_list args;
    if (!file) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rp_printable(text, true, safe, sizeof safe);
    (void)fputs(safe, file);
}
