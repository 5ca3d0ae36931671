/* A file that is replaced whole or not at all, also when the power goes: written beside it, synced,
 * renamed, and the folder synced. Symbolic links in the place of a file are not followed. */
#ifndef RP_BASE_REPLACE_H
#define RP_BASE_REPLACE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

enum { RP_REPLACE_PATH_BYTES = 4096 };

/* `path`.tmp, empty, to write to; NULL: errno says why. */
FILE *rp_replace_begin(const char *path);
/* Takes the file, which may be NULL; `good`: all of it was written. Otherwise nothing is left of
 * it, and errno says why. errors IO with errno's text */
rp_err rp_replace_end(FILE *file, const char *path, bool good) RP_MUST_CHECK;

/* IO with errno's text as the message, which is not logged: for who says it only once. */
rp_err rp_replace_unwritten(const char *path) RP_MUST_CHECK;

/* The folder that `path` lies in, so that a rename there stays. errors IO */
rp_err rp_replace_sync_folder(const char *path) RP_MUST_CHECK;

/* open() of a file of ours, made when it is not there: never through a symbolic link. -1: errno */
int rp_replace_open(const char *path, int flags);

#endif
