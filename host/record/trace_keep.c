#include "record/trace_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/replace.h"

enum { LINE_BYTES = 512 }; /* limit of a line that sink_trace.c writes */

static const char name_begins[] = "{\"ph\":\"M\"";

static bool is_whole(const char *line) {
    return line[strlen(line) - 1] == '\n';
}

/* Writes the mark; omits it if the first kept line has no time or step. */
static bool write_mark(FILE *to, const char *first_kept) {
    const char *time = strstr(first_kept, "\"ts\":");
    const char *step = strstr(first_kept, "\"step\":");
    if (!time || !step) {
        return true;
    }
    return fprintf(to,
                   "{\"ph\":\"i\",\"name\":\"earlier events are left out\",\"pid\":0,\"tid\":0,"
                   "\"ts\":%.*s,\"step\":%.*s,\"s\":\"g\"},\n",
                   (int)strspn(time + 5, "0123456789."), time + 5,
                   (int)strspn(step + 7, "0123456789"), step + 7) > 0;
}

/* Copies all names, and all lines after `cut`. */
static bool copy_lines(FILE *from, FILE *to, uint64_t cut) {
    char line[LINE_BYTES];
    uint64_t at = 0;
    bool marked = false;
    bool good = fputs("[\n", to) >= 0;
    while (good && fgets(line, sizeof line, from)) {
        const uint64_t begin = at;
        at += strlen(line);
        const bool name = strncmp(line, name_begins, sizeof name_begins - 1) == 0;
        if (line[0] != '{' || !is_whole(line) || (!name && begin < cut)) {
            continue;
        }
        if (!name && !marked) {
            good = write_mark(to, line);
            marked = true;
        }
        good = good && fputs(line, to) >= 0;
    }
    return good && !ferror(from);
}

static FILE *open_old(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file && fd >= 0) {
        (void)close(fd);
    }
    return file;
}

/* Start of the last `keep` bytes; -1: errno is set. */
static int64_t find_cut(FILE *from, uint64_t keep) {
    const off_t size = fseeko(from, 0, SEEK_END) == 0 ? ftello(from) : -1;
    if (size < 0 || fseeko(from, 0, SEEK_SET) != 0) {
        return -1;
    }
    return (uint64_t)size > keep ? (int64_t)((uint64_t)size - keep) : 0;
}

rp_err rp_trace_keep_newest(const char *path, uint64_t keep, int *fd, uint64_t *bytes) {
    char temporary[RP_REPLACE_PATH_BYTES];
    FILE *from = NULL;
    FILE *to = NULL;
    int64_t cut = -1;
    off_t end = -1;
    bool good = snprintf(temporary, sizeof temporary, "%s.tmp", path) < (int)sizeof temporary;
    from = good ? open_old(path) : NULL;
    cut = from ? find_cut(from, keep) : -1;
    to = cut >= 0 ? rp_replace_begin(path) : NULL;
    good = to && copy_lines(from, to, (uint64_t)cut) && fflush(to) == 0 && fsync(fileno(to)) == 0;
    end = good ? ftello(to) : -1;
    *fd = end >= 0 ? fcntl(fileno(to), F_DUPFD_CLOEXEC, 3) : -1;
    good = *fd >= 0 && rename(temporary, path) == 0;
    const int code = errno;
    if (from) {
        (void)fclose(from);
    }
    if (to) {
        (void)fclose(to);
        (void)(good ? 0 : unlink(temporary));
    }
    if (!good && *fd >= 0) {
        (void)close(*fd);
    }
    *fd = good ? *fd : -1;
    *bytes = good ? (uint64_t)end : 0;
    errno = code;
    return good ? RP_OK : rp_replace_unwritten(path);
}
