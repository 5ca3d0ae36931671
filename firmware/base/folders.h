/* Creating and opening folders. */
#ifndef RP_BASE_FOLDERS_H
#define RP_BASE_FOLDERS_H

#include <dirent.h>

#include "base/err.h"

enum { RP_FOLDERS_PATH_BYTES = 4096 };

/* Creates a folder and its missing parents, like `mkdir -p`. Created folders get `mode` less the
 * umask; existing folders keep theirs.
 * errors  IO with the part that cannot be created; USAGE: too long, or a part is not a folder */
rp_err rp_folders_make(const char *path, unsigned mode) RP_MUST_CHECK;

/* Creates one folder from which the program will later remove files. An existing folder is
 * accepted; a symbolic link is not followed. errors USAGE: a link or a file has this name; IO */
rp_err rp_folders_make_own(const char *path, unsigned mode) RP_MUST_CHECK;

/* Like opendir(), but fails with ELOOP if `path` is a symbolic link. */
DIR *rp_folders_open(const char *path);

#endif
