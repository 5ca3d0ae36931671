#include "base/cache_home.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

enum { PATH_BYTES = 1024 };

/* Whether files can be created in a folder, or below the deepest existing part of its path. */
static bool is_writable(const char *folder) {
    char path[PATH_BYTES];
    struct stat facts;
    const int used = snprintf(path, sizeof path, "%s", folder);
    if (used < 1 || used >= (int)sizeof path) {
        return false;
    }
    while (stat(path, &facts) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path) {
            (void)snprintf(path, sizeof path, "%s", slash ? "/" : ".");
            break;
        }
        *slash = '\0';
    }
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode) && access(path, W_OK | X_OK) == 0;
}

/* PoCL appends "pocl/kcache" itself. */
static bool is_usable(const char *home) {
    const char *driver = getenv("POCL_CACHE_DIR");
    char own[PATH_BYTES];
    char pocl[PATH_BYTES];
    const int used = snprintf(own, sizeof own, "%s/ringpipe", home);
    return used < (int)sizeof own && is_writable(own) &&
           (driver || (snprintf(pocl, sizeof pocl, "%s/pocl/kcache", home) < (int)sizeof pocl &&
                       is_writable(pocl)));
}

static void name_usual(char home[PATH_BYTES]) {
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *account = getenv("HOME");
    home[0] = '\0';
    if (cache && cache[0]) {
        (void)snprintf(home, PATH_BYTES, "%s", cache);
    } else if (account && account[0]) {
        (void)snprintf(home, PATH_BYTES, "%s/.cache", account);
    }
}

/* Fails unless the folder belongs to this user: a folder in /tmp may be another user's. */
static bool make_temporary(char home[PATH_BYTES]) {
    const char *base = getenv("TMPDIR");
    struct stat facts;
    (void)snprintf(home, PATH_BYTES, "%s/ringpipe-cache-%u", base && base[0] ? base : "/tmp",
                   (unsigned)geteuid());
    (void)mkdir(home, 0700);
    return lstat(home, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
           (facts.st_mode & 022) == 0 && is_usable(home);
}

const char *rp_cache_home(void) {
    static char home[PATH_BYTES];
    char usual[PATH_BYTES];
    name_usual(usual);
    if (usual[0] && is_usable(usual)) {
        (void)snprintf(home, sizeof home, "%s", usual);
    } else if (make_temporary(home)) {
        rp_log_warn("%s is not writable: compiled kernels are kept in %s; XDG_CACHE_HOME names "
                    "another folder",
                    usual[0] ? usual : "~/.cache", home);
        (void)setenv("XDG_CACHE_HOME", home, 1);
    } else {
        home[0] = '\0';
    }
    return home;
}

const char *rp_cache_home_obstacle(void) {
    static char obstacle[PATH_BYTES];
    const char *driver = getenv("POCL_CACHE_DIR");
    char usual[PATH_BYTES];
    name_usual(usual);
    (void)snprintf(obstacle, sizeof obstacle, "%s", driver ? driver : usual);
    return obstacle[0] && !(driver ? is_writable(driver) : is_usable(usual)) ? obstacle : NULL;
}
