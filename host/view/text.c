#include "view/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

enum { FIRST_BYTES = 4096, LIMIT_BYTES = 64 * 1048576, PIECE_BYTES = 2048 };

static bool make_room(rp_view_text *text, size_t count) {
    size_t room = text->room ? text->room : FIRST_BYTES;
    char *data;
    while (room <= text->used + count) {
        room *= 2;
    }
    if (text->err != RP_OK || room == text->room) {
        return text->err == RP_OK;
    }
    text->err =
        room > LIMIT_BYTES
            ? rp_fail(RP_ERR_LIMIT, "a text of the view is larger than %d bytes", LIMIT_BYTES)
            : RP_ARENA_NEW(text->arena, room, &data);
    if (text->err != RP_OK) {
        return false;
    }
    if (text->used > 0) {
        memcpy(data, text->data, text->used);
    }
    text->data = data;
    text->room = room;
    return true;
}

void rp_view_add_bytes(rp_view_text *text, const char *bytes, size_t count) {
    if (count < LIMIT_BYTES && make_room(text, count)) {
        memcpy(text->data + text->used, bytes, count);
        text->used += count;
        text->data[text->used] = '\0';
    }
}

void rp_view_add(rp_view_text *text, const char *format, ...) {
    char piece[PIECE_BYTES];
    va_list args;
    va_start(args, format);
    const int count = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (count > 0) {
        rp_view_add_bytes(text, piece, count < PIECE_BYTES ? (size_t)count : PIECE_BYTES - 1);
    }
}

void rp_view_add_string(rp_view_text *out, const char *text) {
    rp_view_add_bytes(out, "\"", 1);
    while (*text) {
        const size_t bytes = rp_printable_bytes(text);
        if (bytes == 0) {
            rp_view_add_bytes(out, "?", 1); /* a control character, or not UTF-8 */
            text++;
            continue;
        }
        if (*text == '"' || *text == '\\') {
            rp_view_add_bytes(out, "\\", 1);
        }
        rp_view_add_bytes(out, text, bytes);
        text += bytes;
    }
    rp_view_add_bytes(out, "\"", 1);
}
