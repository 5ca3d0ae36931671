/* Texts from files and their encoding. */
#ifndef RP_BASE_UTF8_H
#define RP_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Is the whole text UTF-8, as RFC 3629 has it? */
bool rp_utf8_is_valid(const char *text);

/* At most `most` bytes of `text` for a message: control characters and invalid bytes are shown as
 * rp_printable() does. `out` has `bytes`, at least 1. Returns out. */
const char *rp_utf8_show(const char *text, size_t most, char *out, size_t bytes);

#endif
