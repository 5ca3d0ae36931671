#include "runs/now_place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder is this account's own, and no other account can write there. */
static bool is_own_folder(const char *path) {
    struct stat facts;
    return lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
           (facts.st_mode & 022) == 0;
}

/* A folder is named by device and inode, so a copy of a run has its own file. */
bool rp_now_runtime_place(const char *folder, bool make, char path[static RP_NOW_PATH_BYTES]) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct stat facts;
    if (!runtime || runtime[0] != '/' || !is_own_folder(runtime) || stat(folder, &facts) != 0) {
        return false;
    }
    if (snprintf(path, RP_NOW_PATH_BYTES, "%s/ringpipe", runtime) >= RP_NOW_PATH_BYTES ||
        (make && mkdir(path, 0700) != 0 && errno != EEXIST) || !is_own_folder(path)) {
        return false;
    }
    return snprintf(path, RP_NOW_PATH_BYTES, "%s/ringpipe/now-%jx-%jx.json", runtime,
                    (uintmax_t)facts.st_dev, (uintmax_t)facts.st_ino) < RP_NOW_PATH_BYTES;
}

bool rp_now_folder_place(const char *folder, char path[static RP_NOW_PATH_BYTES]) {
    return snprintf(path, RP_NOW_PATH_BYTES, "%s/now.json", folder) < RP_NOW_PATH_BYTES;
}
