#include "ring/available.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 1024, LINE_BYTES = 512 };

/* Reads the number in the first line that begins with `key` ("": the first line). */
static bool read_number(const char *path, const char *key, uint64_t *out) {
    char line[LINE_BYTES];
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file && !found && fgets(line, sizeof line, file)) {
        const size_t length = strlen(key);
        found = strncmp(line, key, length) == 0 && sscanf(line + length, "%" SCNu64, out) == 1;
    }
    if (file) {
        (void)fclose(file);
    }
    return found;
}

/* Available memory and swap of /proc/meminfo, in bytes. */
static uint64_t machine_bytes(const char *root) {
    char path[PATH_BYTES];
    uint64_t available;
    uint64_t swap = 0;
    (void)snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!read_number(path, "MemAvailable:", &available)) {
        return 0;
    }
    (void)!read_number(path, "SwapFree:", &swap);
    return (available + swap) << 10;
}

/* Memory left in a control group: its limit minus the memory in use, not counting caches that can
 * be dropped; UINT64_MAX: no limit. */
static uint64_t group_bytes(const char *root, const char *group) {
    char path[PATH_BYTES];
    uint64_t limit;
    uint64_t used = 0;
    uint64_t cached = 0;
    (void)snprintf(path, sizeof path, "%s/sys/fs/cgroup%.400s/memory.max", root, group);
    if (!read_number(path, "", &limit)) {
        return UINT64_MAX; /* "max", or no file */
    }
    (void)snprintf(path, sizeof path, "%s/sys/fs/cgroup%.400s/memory.current", root, group);
    (void)!read_number(path, "", &used);
    (void)snprintf(path, sizeof path, "%s/sys/fs/cgroup%.400s/memory.stat", root, group);
    (void)!read_number(path, "inactive_file", &cached);
    used -= cached < used ? cached : used;
    return limit > used ? limit - used : 0;
}

/* Finds the path of this process's group; false: no control groups of version 2. */
static bool find_group(const char *root, char out[LINE_BYTES]) {
    char path[PATH_BYTES];
    bool found = false;
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && !found && fgets(out, LINE_BYTES, file)) {
        found = strncmp(out, "0::/", 4) == 0;
    }
    if (file) {
        (void)fclose(file);
    }
    if (found) {
        out[strcspn(out, "\n")] = '\0';
        memmove(out, out + 3, strlen(out + 3) + 1);
    }
    return found;
}

uint64_t rp_available_memory(const char *root) {
    uint64_t least = machine_bytes(root);
    char group[LINE_BYTES];
    bool more = least > 0 && find_group(root, group);
    while (more) { /* the group and its parents */
        const uint64_t own = group_bytes(root, group);
        char *slash = strrchr(group, '/');
        least = own < least ? own : least;
        more = slash != NULL;
        if (slash) {
            *slash = '\0';
        }
    }
    return least;
}
