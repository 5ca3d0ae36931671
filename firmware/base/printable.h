/* Untrusted texts, from other programs and people, on a terminal and in a log. */
#ifndef RP_BASE_PRINTABLE_H
#define RP_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/attributes.h"

/* Length of the printable UTF-8 character at `text`, a 0-terminated text. Returns 0 at the end of
 * the text, for a control character, and for bytes that are not UTF-8. */
size_t rp_printable_bytes(const char *text);

enum { RP_PRINTABLE_PIECE = 8 }; /* \uXXXX, \xXX or a UTF-8 character, and the NUL */

/* Writes the first character of `text`, or its escape, to `out`. Returns how many bytes of `text`
 * it represents. `text` must not be empty. */
size_t rp_printable_piece(const char *text, char out[RP_PRINTABLE_PIECE]);

/* Makes text from files, peers and other programs safe for a terminal. A control character becomes
 * \u00HH, as in JSON; a byte that is not UTF-8 becomes \xHH. Line feeds and tabs are kept if
 * `lines` is set. `out` is cut at `room` bytes, never within a character. */
void rp_printable(const char *text, bool lines, char *out, size_t room);
/* printf() made safe, with line breaks kept. Prints nothing if `file` is NULL. */
void rp_print(FILE *file, const char *format, ...) RP_PRINTF(2, 3);

#endif
