#include "base/share.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

void rp_share_announce(const char *variable, const char *name) {
    char program[PATH_MAX];
    char path[PATH_MAX];
    char real[PATH_MAX];
    const char *given = getenv(variable);
    if (given) {
        if (access(given, R_OK | X_OK) != 0) {
            rp_log_warn("%s is '%s': %s", variable, given, strerror(errno));
        }
        return;
    }
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash) {
        return;
    }
    *slash = '\0';
    int wanted = snprintf(path, sizeof path, "%s/" RP_SHARE_FROM_BIN "/%s", program, name);
    if (wanted > 0 && (size_t)wanted < sizeof path && realpath(path, real)) {
        (void)setenv(variable, real, 1);
    }
}
