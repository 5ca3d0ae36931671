/* Folders on the way to a file. */
#ifndef RP_BASE_FOLDERS_H
#define RP_BASE_FOLDERS_H

#include "base/err.h"

enum { RP_FOLDERS_PATH_BYTES = 4096 };

/* Makes the folder and all above it that are missing, as `mkdir -p` does. `mode`: of those that are
 * made, less the umask; those that are there keep theirs.
 * errors  IO with the part that can not be made; USAGE: too long, or a part is no folder */
rp_err rp_folders_make(const char *path, unsigned mode) RP_MUST_CHECK;

#endif
