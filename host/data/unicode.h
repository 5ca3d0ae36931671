/* Characters of UTF-8 texts. Private to the room.
 *
 * source  RFC 3629; classes and lower case of Unicode 14.0 (unicode_tables.c) */
#ifndef RP_DATA_UNICODE_H
#define RP_DATA_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { RP_UNICODE_END = 0x110000, RP_UNICODE_BYTES_MAX = 4 };

/* Reads the character at `at`, before `end`. Returns its length in bytes; 0: not UTF-8. */
uint32_t rp_unicode_read(const char *at, const char *end, uint32_t *code);
/* Writes a character as 1 to 4 bytes. Returns their number. */
uint32_t rp_unicode_write(uint32_t code, char *out);

/* As Python's str.isspace(). */
bool rp_unicode_is_space(uint32_t code);
/* The property White_Space of Unicode: as Python's, without U+001C to U+001F. */
bool rp_unicode_is_white(uint32_t code);
/* A letter, number, mark or underscore: `\w` of a regular expression. */
bool rp_unicode_is_word(uint32_t code);
/* The lower case of one character, if that is one character; otherwise `code`. */
uint32_t rp_unicode_lower(uint32_t code);

/* Bytes of a valid UTF-8 text that are in normal form C (NFC), from its beginning; `bytes`: all
 * are. A mark after a character that is composed already ends it, even where nothing can be
 * composed. */
size_t rp_unicode_nfc_bytes(const char *text, size_t bytes);

/* Writes the text in lower case to `arena`; its length may differ. The text is valid UTF-8.
 * errors  MEMORY */
rp_err rp_unicode_lower_text(rp_arena *arena, const char *text, size_t bytes, const char **out,
                             size_t *out_bytes) RP_MUST_CHECK;

#endif
