/* A text that grows in an arena. */
#ifndef RP_VIEW_TEXT_H
#define RP_VIEW_TEXT_H

#include "base/arena.h"
#include "base/attributes.h"

typedef struct {
    rp_arena *arena;
    char *data; /* zero-terminated; NULL: empty */
    size_t used, room;
    rp_err err; /* first error; later calls do nothing */
} rp_view_text;

void rp_view_add(rp_view_text *text, const char *format, ...) RP_PRINTF(2, 3);
void rp_view_add_bytes(rp_view_text *text, const char *bytes, size_t count);
/* A string of JSON, which is also a label's value of Prometheus, with its quotes. Control
 * characters and bytes that are not UTF-8 become question marks. */
void rp_view_add_string(rp_view_text *out, const char *text);

#endif
