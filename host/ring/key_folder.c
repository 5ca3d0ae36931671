#include "ring/key_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

enum { PATH_BYTES = 600 };

static const char prefix[] = "ringpipe-";
static const char lock_name[] = "controller.lock";

static int open_lock(const char *folder, int flags) {
    char path[PATH_BYTES];
    const int used = snprintf(path, sizeof path, "%s/%s", folder, lock_name);
    const int fd = used < PATH_BYTES ? open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

int rp_key_folder_lock(const char *folder) {
    return open_lock(folder, O_RDWR | O_CREAT | O_EXCL);
}

void rp_key_folder_unlock(const char *folder, int fd) {
    char path[PATH_BYTES];
    if (fd >= 0 && snprintf(path, sizeof path, "%s/%s", folder, lock_name) < PATH_BYTES) {
        (void)unlink(path);
        (void)close(fd);
    }
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *at) {
    (void)facts;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

/* The folder belongs to this account, has the form of ours, and no process has locked it. */
static bool is_stale(const char *path, int *lock) {
    struct stat facts;
    if (lstat(path, &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid()) {
        return false;
    }
    *lock = open_lock(path, O_RDWR);
    return *lock >= 0;
}

void rp_key_folder_remove_stale(const char *base) {
    DIR *dir = opendir(base);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[PATH_BYTES];
        int lock;
        const bool ours = strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 &&
                          strlen(entry->d_name) == sizeof prefix - 1 + 6;
        if (!ours || snprintf(path, sizeof path, "%s/%s", base, entry->d_name) >= PATH_BYTES) {
            continue;
        }
        if (is_stale(path, &lock)) {
            (void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
            (void)close(lock);
            rp_log_debug("controller: %s of a run that was killed is removed", path);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
}
