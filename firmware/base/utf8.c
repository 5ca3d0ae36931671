#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/quote.h"

enum { PIECE_BYTES = 5 }; /* \xHH, or a character of UTF-8, and the NUL */

bool rp_utf8_is_valid(const char *text) {
    json_t *string = json_string(text); /* NULL for what is not UTF-8 */
    const bool valid = string != NULL;
    json_decref(string);
    return valid;
}

const char *rp_utf8_show(const char *text, size_t most, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < most && text[i] && used + PIECE_BYTES <= bytes;) {
        const size_t whole = rp_printable_bytes(text + i);
        char piece[PIECE_BYTES];
        if (whole > 0) {
            (void)snprintf(piece, sizeof piece, "%.*s", (int)whole, text + i);
        } else {
            (void)snprintf(piece, sizeof piece, "\\x%02x", (unsigned char)text[i]);
        }
        memcpy(out + used, piece, strlen(piece) + 1);
        used += strlen(piece);
        i += whole > 0 ? whole : 1;
    }
    return out;
}
