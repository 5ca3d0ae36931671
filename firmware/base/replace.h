/* Files that are replaced as a whole or not at all, even if the power fails: the new content is
 * written to a temporary file in the same folder, synced, renamed, and the folder is synced. A
 * symbolic link is never followed. */
#ifndef RP_BASE_REPLACE_H
#define RP_BASE_REPLACE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

enum { RP_REPLACE_PATH_BYTES = 4096 };

/* Opens `path`.tmp, emptied, for writing. Returns NULL with errno set on failure. */
FILE *rp_replace_begin(const char *path);
/* Closes `file`, which may be NULL, and renames it to `path` if `good` (all of it was written).
 * Otherwise removes it. errors IO with errno's text */
rp_err rp_replace_end(FILE *file, const char *path, bool good) RP_MUST_CHECK;

/* Closes `file`, which may be NULL, and removes it, because of an error that is reported elsewhere.
 * errno stays. */
void rp_replace_abandon(FILE *file, const char *path);

/* Returns IO with errno's text as the message, not logged, for callers that report it once. */
rp_err rp_replace_unwritten(const char *path) RP_MUST_CHECK;

/* Syncs the folder that contains `path`, so that a rename in it survives a power failure.
 * errors  IO */
rp_err rp_replace_sync_folder(const char *path) RP_MUST_CHECK;

/* open() with O_CREAT for one of our files; never follows a symbolic link. Returns -1 with errno
 * set on failure. */
int rp_replace_open(const char *path, int flags);

#endif
