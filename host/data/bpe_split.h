/* Splits a text into the words of a byte-level BPE by a pattern. Private to the room.
 *
 * Patterns have Oniguruma's syntax, as in tokenizer.json, and are matched by PCRE2. Only what both
 * libraries understand alike is accepted: letters, classes, \p{..} \s \S \d \r \n \t \f \x{..},
 * groups without numbers, lookahead, lookbehind, and the usual repetitions. Characters newer
 * than the Unicode of the PCRE2 library belong to no class. */
#ifndef RP_DATA_BPE_SPLIT_H
#define RP_DATA_BPE_SPLIT_H

#include <stddef.h>

#include "base/err.h"

enum { RP_BPE_PATTERN_BYTES_MAX = 4000 };

typedef struct rp_bpe_splitter rp_bpe_splitter;

/* errors  FORMAT: the pattern is not accepted; `where` is what the message begins with. MEMORY */
rp_err rp_bpe_splitter_open(const char *pattern, const char *where,
                            rp_bpe_splitter **out) RP_MUST_CHECK;
/* Length of the word that begins at `at` of a text in UTF-8; at < bytes. A word is a match of the
 * pattern, or all between two matches. errors  LIMIT: the pattern takes too many steps */
rp_err rp_bpe_split(rp_bpe_splitter *splitter, const char *text, size_t bytes, size_t at,
                    size_t *length) RP_MUST_CHECK;
void rp_bpe_splitter_close(rp_bpe_splitter **splitter);

#endif
