/* Whole text files in memory. Private to the room. */
#ifndef RP_DATA_TEXT_FILE_H
#define RP_DATA_TEXT_FILE_H

#include <stdbool.h>

#include "base/arena.h"

#define RP_TEXT_FILE_BYTES_MAX (UINT64_C(2) << 30)

typedef struct {
    const char *path; /* borrowed */
    const char *text; /* [bytes], then a zero; without a byte order mark */
    size_t bytes;
    size_t skipped; /* bytes of the file before `text`: a byte order mark, or 0 */
} rp_text_file;

/* Reads a file and skips a byte order mark (U+FEFF in UTF-8) at its beginning. errors  IO; FORMAT:
 * the file is empty; LIMIT: more than 2 GiB; MEMORY */
rp_err rp_text_file_read(rp_arena *arena, const char *path, rp_text_file *out) RP_MUST_CHECK;
/* errors  FORMAT naming line and byte: not UTF-8, or a zero byte */
rp_err rp_text_file_check(const rp_text_file *file) RP_MUST_CHECK;
/* For a text in valid UTF-8. errors  FORMAT naming line and byte: not in normal form C */
rp_err rp_text_file_check_nfc(const rp_text_file *file) RP_MUST_CHECK;
/* Line, from 1, of the byte at `at`. */
uint32_t rp_text_file_line(const rp_text_file *file, size_t at);

#endif
