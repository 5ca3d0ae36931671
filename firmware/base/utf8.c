#include "base/utf8.h"

#include <string.h>

#include <jansson.h>

#include "base/printable.h"

bool rp_utf8_is_valid(const char *text) {
    json_t *string = json_string(text); /* json_string() returns NULL if the text is not UTF-8 */
    const bool valid = string != NULL;
    json_decref(string);
    return valid;
}

const char *rp_utf8_show(const char *text, size_t most, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < most && text[i];) {
        char piece[RP_PRINTABLE_PIECE];
        i += rp_printable_piece(text + i, piece);
        if (used + strlen(piece) >= bytes) {
            break;
        }
        memcpy(out + used, piece, strlen(piece) + 1);
        used += strlen(piece);
    }
    return out;
}
