/* Unpacks files of a .tar.gz with libarchive. Private to the room. */
#ifndef RP_DATA_UNPACK_H
#define RP_DATA_UNPACK_H

#include <stdint.h>

#include "base/err.h"

enum { RP_UNPACK_FILES_MAX = 8 };

typedef struct {
    const char *name;      /* without a folder */
    uint32_t record_bytes; /* the file's size is a multiple of this, above 0 */
} rp_unpack_file;

/* Unpacks PREFIX/NAME of the archive to DIR/NAME for each file; `files` ends with a NULL name. Each
 * file appears complete or not at all. Names in the archive are only compared, never used as paths.
 * errors  IO; FORMAT: truncated or damaged, or a file is missing or has a wrong size */
rp_err rp_unpack(const char *archive, const char *prefix, const rp_unpack_file *files,
                 const char *dir) RP_MUST_CHECK;

#endif
