/* Files out of a .tar.gz, by libarchive. Private to the room. */
#ifndef RP_DATA_UNPACK_H
#define RP_DATA_UNPACK_H

#include <stdint.h>

#include "base/err.h"

enum { RP_UNPACK_FILES_MAX = 8 };

typedef struct {
    const char *name;      /* of the file, without a folder */
    uint32_t record_bytes; /* its size is a multiple of this, and not 0 */
} rp_unpack_file;

/* Takes PREFIX/NAME of the archive to DIR/NAME, each whole or not at all; names end at the first
 * NULL. Nothing else of the archive is written, and no name of it is used as a path.
 * errors  IO; FORMAT: cut off or damaged, a file is missing or has another size */
rp_err rp_unpack(const char *archive, const char *prefix, const rp_unpack_file *files,
                 const char *dir) RP_MUST_CHECK;

#endif
