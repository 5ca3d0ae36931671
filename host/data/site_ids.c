#include "data/site_ids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/partition.h"
#include "data/split_file.h"

enum { LINE_BYTES = RP_SITE_NAME_MAX + 2 }; /* with "\r" and the end */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static rp_err fail_line(const char *path, uint32_t line, const char *expected) {
    return rp_fail(RP_ERR_USAGE, "%s:%u: expected %s", path, line, expected);
}

/* Reads a line without its end, "\n" or "\r\n"; the last one may have none. Returns false at the
 * end of the file. *whole false: the line is longer than any name, or contains a byte 0. */
static bool read_line(FILE *file, char text[LINE_BYTES], bool *whole) {
    size_t length = 0;
    int byte;
    *whole = true;
    while ((byte = getc(file)) != EOF && byte != '\n') {
        *whole = *whole && byte != 0 && length < LINE_BYTES - 1;
        if (*whole) {
            text[length++] = (char)byte;
        }
    }
    const bool found = byte == '\n' || length > 0 || !*whole;
    length -= byte == '\n' && length > 0 && text[length - 1] == '\r';
    text[length] = '\0';
    return found;
}

/* Reads the name in each line; empty lines at the end are ignored. */
static rp_err read_lines(rp_arena *arena, FILE *file, const char *path, uint32_t samples,
                         const char **line) {
    char text[LINE_BYTES];
    uint32_t count = 0;
    uint32_t number = 0;
    bool whole;
    rp_err err = RP_OK;
    while (read_line(file, text, &whole)) {
        char *name;
        number++;
        if (whole && !text[0] && count == samples) {
            continue;
        }
        if (!whole || !rp_site_name_is_valid(text)) {
            return fail_line(path, number,
                             "the name of a site: 1 to 64 letters, digits, '.', '_', '-'");
        }
        if (count == samples) {
            return fail_line(path, number, "the end of the file: each training sample has a line");
        }
        RP_TRY(rp_arena_string(arena, text, &name));
        line[count++] = name;
    }
    if (ferror(file)) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (count < samples) {
        err = rp_fail(RP_ERR_USAGE, "%s: expected a line for each of %u training samples, found %u",
                      path, samples, count);
    }
fail:
    return err;
}

/* Lists different names, ascending. */
static rp_err list_names(rp_arena *arena, const char *path, const char *const *line,
                         uint32_t samples, rp_site_ids *out) {
    const char **sorted;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, samples + 1, &sorted));
    memcpy(sorted, line, samples * sizeof *sorted);
    qsort(sorted, samples, sizeof *sorted, compare_names);
    for (uint32_t i = 0; i < samples; i++) {
        if (i == 0 || strcmp(sorted[i], sorted[out->sites - 1]) != 0) {
            sorted[out->sites++] = sorted[i];
        }
    }
    out->name = sorted;
    if (out->sites > RP_SITES_MAX) {
        err = rp_fail(RP_ERR_USAGE, "%s: names %u sites, expected at most %d", path, out->sites,
                      RP_SITES_MAX);
    }
fail:
    return err;
}

rp_err rp_site_ids_read(rp_arena *arena, const char *path, uint32_t samples, rp_site_ids *out) {
    const char **line;
    rp_err err;
    *out = (rp_site_ids){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    RP_TRY(RP_ARENA_NEW(arena, samples + 1, &line));
    RP_TRY(RP_ARENA_NEW(arena, samples + 1, &out->site));
    RP_TRY(read_lines(arena, file, path, samples, line));
    RP_TRY(list_names(arena, path, line, samples, out));
    for (uint32_t i = 0; i < samples; i++) {
        const char **at =
            bsearch(&line[i], out->name, out->sites, sizeof *out->name, compare_names);
        RP_ASSERT(at);
        out->site[i] = (uint32_t)(at - out->name);
    }
fail:
    (void)fclose(file);
    return err;
}
