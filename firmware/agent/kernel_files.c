#include "agent/kernel_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES_MAX = 64 };

bool rp_kernel_read(const char *path, char *out, size_t bytes) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const ssize_t got = fd >= 0 ? read(fd, out, bytes - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (got <= 0) {
        return false;
    }
    out[got] = '\0';
    const size_t used = strlen(out);
    if (used > 0 && out[used - 1] == '\n') {
        out[used - 1] = '\0';
    }
    return true;
}

static bool read_in(const char *folder, const char *name, char *out, size_t bytes) {
    char path[RP_KERNEL_PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && n < (int)sizeof path && rp_kernel_read(path, out, bytes);
}

bool rp_kernel_number(const char *folder, const char *name, int base, double *out) {
    char text[64];
    char *end;
    if (!read_in(folder, name, text, sizeof text)) {
        return false;
    }
    const long long number = strtoll(text, &end, base);
    *out = (double)number;
    return end != text && *end == '\0';
}

bool rp_kernel_is(const char *folder, const char *name, const char *wanted) {
    char text[64];
    return read_in(folder, name, text, sizeof text) && strcmp(text, wanted) == 0;
}

void rp_kernel_each(const char *root, const char *path, const char *prefix, void *context,
                    void (*visit)(const char *folder, const char *name, void *context)) {
    char folder[RP_KERNEL_PATH_BYTES];
    char whole[RP_KERNEL_PATH_BYTES];
    const int n = snprintf(folder, sizeof folder, "%s/%s", root, path);
    DIR *dir = n > 0 && n < (int)sizeof folder ? opendir(folder) : NULL;
    uint32_t count = 0;
    for (struct dirent *entry; dir && count < ENTRIES_MAX && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0) {
            continue;
        }
        const int used = snprintf(whole, sizeof whole, "%s/%s", folder, entry->d_name);
        if (used > 0 && used < (int)sizeof whole) {
            visit(whole, entry->d_name, context);
            count++;
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
}
