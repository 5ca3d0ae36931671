#include "runs/follow.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs/tail.h"

enum { LINE_BYTES = 4096 };

void rp_follow_close(rp_follow *follow) {
    if (follow->file) {
        (void)fclose(follow->file);
        follow->file = NULL;
    }
}

static bool open_file(rp_follow *follow) {
    const int fd = rp_tail_open(follow->path);
    follow->file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!follow->file && fd >= 0) {
        (void)close(fd);
    }
    follow->torn = false;
    return follow->file != NULL;
}

/* Has the file been replaced or truncated? */
static bool is_replaced(const rp_follow *follow) {
    struct stat now;
    struct stat own;
    return stat(follow->path, &now) == 0 && fstat(fileno(follow->file), &own) == 0 &&
           (now.st_ino != own.st_ino || now.st_dev != own.st_dev ||
            own.st_size < ftello(follow->file));
}

/* false: there is no complete line yet; a partial line is read again later. */
static bool read_line(rp_follow *follow, char line[LINE_BYTES], size_t *length) {
    for (;;) {
        const off_t at = ftello(follow->file);
        clearerr(follow->file);
        if (!fgets(line, LINE_BYTES, follow->file)) {
            return false;
        }
        *length = strlen(line);
        const bool whole = *length > 0 && line[*length - 1] == '\n';
        if (!whole && *length < LINE_BYTES - 1) {
            (void)fseeko(follow->file, at, SEEK_SET);
            return false;
        }
        const bool behind = follow->torn;
        follow->torn = !whole;
        if (whole && !behind) {
            return true;
        }
    }
}

bool rp_follow_next(rp_follow *follow, rp_story *out) {
    char line[LINE_BYTES];
    size_t length;
    if (!follow->file && !open_file(follow)) {
        return false;
    }
    for (;;) {
        if (!read_line(follow, line, &length)) {
            if (!is_replaced(follow)) {
                return false;
            }
            rp_follow_close(follow);
            follow->again = true;
            if (!open_file(follow)) {
                return false;
            }
            continue;
        }
        rp_story_read(line, length, out);
        if (out->kind == RP_STORY_NOTHING || (follow->again && out->time_s <= follow->last_s)) {
            continue;
        }
        follow->again = false;
        follow->last_s = out->time_s;
        return true;
    }
}
