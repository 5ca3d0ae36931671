#include "data/notes.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"

rp_err rp_notes_add(rp_arena *arena, rp_notes *notes, const char *format, ...) {
    char text[RP_NOTE_BYTES];
    char shown[RP_NOTE_BYTES]; /* as UTF-8, which a path in a note may not be */
    char *copy;
    va_list arguments;
    if (notes->count == RP_NOTES_MAX) {
        return RP_OK;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const rp_err err =
        rp_arena_string(arena, rp_utf8_show(text, sizeof text, shown, sizeof shown), &copy);
    if (err == RP_OK) {
        notes->text[notes->count++] = copy;
    }
    return err;
}
