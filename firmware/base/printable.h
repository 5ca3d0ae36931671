/* Texts of other programs and people on a terminal and in a log. */
#ifndef RP_BASE_PRINTABLE_H
#define RP_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/attributes.h"

/* The bytes of the printable UTF-8 character at `text`, which ends with 0. 0: `text` is at its end,
 * or the character is a control character, or the bytes are not UTF-8. */
size_t rp_printable_bytes(const char *text);

enum { RP_PRINTABLE_PIECE = 8 }; /* \uXXXX, \xXX or a character of UTF-8, and the NUL */

/* The first character of `text`, or what is shown instead of it; returns the bytes of `text` that
 * it stands for. `text` is not empty. */
size_t rp_printable_piece(const char *text, char out[RP_PRINTABLE_PIECE]);

/* Text from files, peers and other programs made safe for a terminal: a control character is shown
 * as \u00HH, which is the same in JSON, and a byte that is not UTF-8 as \xHH. A line feed and a tab
 * stay where `lines`. `out` is cut at `room` bytes, never within a character. */
void rp_printable(const char *text, bool lines, char *out, size_t room);
/* Prints what the format gives, made safe, with its lines. `file` NULL: nothing is printed. */
void rp_print(FILE *file, const char *format, ...) RP_PRINTF(2, 3);

#endif
