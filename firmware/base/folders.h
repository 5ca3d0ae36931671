/* Folders on the way to a file. */
#ifndef RP_BASE_FOLDERS_H
#define RP_BASE_FOLDERS_H

#include <dirent.h>

#include "base/err.h"

enum { RP_FOLDERS_PATH_BYTES = 4096 };

/* Makes the folder and all above it that are missing, as `mkdir -p` does. `mode`: of those that are
 * made, less the umask; those that are there keep theirs.
 * errors  IO with the part that can not be made; USAGE: too long, or a part is no folder */
rp_err rp_folders_make(const char *path, unsigned mode) RP_MUST_CHECK;

/* Makes one folder, in which files will be removed later. One that is there is taken; a symbolic
 * link in its place is not followed. errors  USAGE: a link or a file is there; IO */
rp_err rp_folders_make_own(const char *path, unsigned mode) RP_MUST_CHECK;

/* opendir() that does not follow a symbolic link in the place of the folder: errno is ELOOP. */
DIR *rp_folders_open(const char *path);

#endif
