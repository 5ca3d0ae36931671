#include "run/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

rp_err rp_listing_read(rp_arena *arena, const char *folder, const char *ending,
                       const char *const **out, uint32_t *count) {
    const size_t end = strlen(ending);
    const struct dirent *entry;
    const char **names;
    rp_err err;
    *count = 0;
    RP_TRY(RP_ARENA_NEW(arena, RP_LISTING_MAX, &names));
    DIR *dir = opendir(folder);
    if (!dir) {
        return rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(errno));
    }
    while (err == RP_OK && *count < RP_LISTING_MAX && (entry = readdir(dir))) {
        const size_t length = strlen(entry->d_name);
        const size_t bare = length > end ? length - end : 0;
        char *name;
        if (bare > 0 && strcmp(entry->d_name + bare, ending) == 0) {
            err = rp_arena_text(arena, entry->d_name, bare, &name);
            names[*count] = err == RP_OK ? name : NULL;
            *count += err == RP_OK;
        }
    }
    (void)closedir(dir);
    RP_TRY(err);
    qsort(names, *count, sizeof *names, by_name);
    *out = names;
fail:
    return err;
}
