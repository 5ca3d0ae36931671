/* Quoting untrusted texts, from other programs and people, in YAML and JSON. */
#ifndef RP_BASE_QUOTE_H
#define RP_BASE_QUOTE_H

#include <stdio.h>

#include "base/arena.h"
#include "base/printable.h"

/* Whether `text` is not empty and consists only of A-Z a-z 0-9 . _ -: a name that needs no quotes
 * in a file or a shell. */
bool rp_is_plain_name(const char *text);

/* Writes the text in double quotes. YAML and JSON both read it back as the same text; bytes that
 * are not UTF-8 become U+FFFD. */
void rp_quote_put(FILE *file, const char *text);
/* Like rp_quote_put(), into `out` of `room` bytes, at least 3. A text that does not fit is cut,
 * never within a character or an escape. Returns out. */
const char *rp_quote_fit(const char *text, char *out, size_t room);
/* Like rp_quote_put(), into the arena. errors MEMORY */
rp_err rp_quote(rp_arena *arena, const char *text, const char **out) RP_MUST_CHECK;

#endif
