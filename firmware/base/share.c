#include "base/share.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void rp_share_announce(const char *variable, const char *name) {
    char program[PATH_MAX];
    char path[PATH_MAX];
    char real[PATH_MAX];
    if (getenv(variable)) {
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
