#include "runs/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int rp_tail_open(const char *path) {
    struct stat facts;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))) {
        (void)close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* Returns the number of bytes read, which is less than `bytes` at the end of the file. */
static size_t read_from(int fd, char *to, size_t bytes, off_t at) {
    size_t done = 0;
    while (done < bytes) {
        const ssize_t more = pread(fd, to + done, bytes - done, at + (off_t)done);
        if (more <= 0 && !(more < 0 && errno == EINTR)) {
            break;
        }
        done += more > 0 ? (size_t)more : 0;
    }
    return done;
}

rp_err rp_tail_read(rp_arena *arena, const char *path, size_t most, char **text, uint64_t *end,
                    int64_t *changed_ns) {
    struct stat facts = {0};
    rp_err err = RP_OK;
    const int fd = rp_tail_open(path);
    const bool there = fd >= 0 && fstat(fd, &facts) == 0;
    const size_t size = there && facts.st_size > 0 ? (size_t)facts.st_size : 0;
    const size_t bytes = size < most ? size : most;
    RP_TRY(RP_ARENA_NEW(arena, bytes + 1, text));
    size_t used = there ? read_from(fd, *text, bytes, (off_t)(size - bytes)) : 0;
    while (used > 0 && (*text)[used - 1] != '\n') { /* an incomplete line */
        used--;
    }
    (*text)[used] = '\0';
    *end = size - bytes + used;
    *changed_ns = facts.st_mtim.tv_sec * INT64_C(1000000000) + facts.st_mtim.tv_nsec;
    if (bytes < size) { /* the first line is cut */
        char *begin = strchr(*text, '\n');
        *text = begin ? begin + 1 : *text + used;
    }
fail:
    if (fd >= 0) {
        (void)close(fd);
    }
    return err;
}
