/* Text encoding of file contents. */
#ifndef RP_BASE_UTF8_H
#define RP_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the whole text is valid UTF-8 by RFC 3629. */
bool rp_utf8_is_valid(const char *text);

/* Writes at most `most` bytes of `text` for a message; control characters and invalid bytes are
 * escaped as by rp_printable(). `out` has `bytes`, at least 1. Returns out. */
const char *rp_utf8_show(const char *text, size_t most, char *out, size_t bytes);

#endif
