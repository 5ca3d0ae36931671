#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 16 };

bool rp_input_is_standard(const char *path) {
    return strcmp(path, "-") == 0;
}

const char *rp_input_path(const char *path) {
    return rp_input_is_standard(path) ? "/dev/stdin" : path;
}

const char *rp_input_name(const char *path) {
    return rp_input_is_standard(path) ? "standard input" : path;
}

static const char *judge_mode(mode_t mode) {
    return S_ISREG(mode)    ? NULL
           : S_ISDIR(mode)  ? "expected a regular file, and it is a directory"
           : S_ISFIFO(mode) ? "expected a regular file, and it is a pipe"
                            : "expected a regular file, and it is a device or a socket";
}

int rp_input_open(const char *path, const char **why) {
    struct stat facts;
    /* O_NONBLOCK lets open() return even if a pipe has no writer. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &facts) != 0) {
        *why = strerror(errno);
    } else {
        *why = judge_mode(facts.st_mode);
    }
    if (fd >= 0 && *why) {
        (void)close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

FILE *rp_input_fopen(const char *path, const char **why) {
    const int fd = rp_input_open(path, why);
    FILE *file = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (fd >= 0 && !file) {
        *why = strerror(errno);
        (void)close(fd);
    }
    return file;
}

rp_err rp_input_read(int fd, const char *name, uint64_t first, void *to, size_t count) {
    uint8_t *at = to;
    while (count > 0) {
        const ssize_t got = pread(fd, at, count, (off_t)first);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return rp_fail(RP_ERR_IO, "%s: cannot be read: %s", name,
                           got < 0 ? strerror(errno) : "it became shorter");
        }
        at += got;
        first += (uint64_t)got;
        count -= (size_t)got;
    }
    return RP_OK;
}

static rp_err copy_input(FILE *to) {
    char piece[PIECE_BYTES];
    uint64_t total = 0;
    for (;;) {
        const ssize_t got = read(STDIN_FILENO, piece, sizeof piece);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return rp_fail(RP_ERR_IO, "standard input: cannot be read: %s", strerror(errno));
        }
        total += (uint64_t)got;
        if (total > RP_INPUT_BYTES_MAX) {
            return rp_fail(RP_ERR_LIMIT, "standard input: more than %llu bytes",
                           (unsigned long long)RP_INPUT_BYTES_MAX);
        }
        if (fwrite(piece, 1, (size_t)got, to) != (size_t)got || (got == 0 && fflush(to) != 0)) {
            return rp_fail(RP_ERR_IO, "standard input: no room for a copy: %s", strerror(errno));
        }
        if (got == 0) {
            return RP_OK;
        }
    }
}

rp_err rp_input_keep(void) {
    struct stat facts;
    if (fstat(STDIN_FILENO, &facts) == 0 && S_ISREG(facts.st_mode)) {
        return RP_OK;
    }
    FILE *copy = tmpfile();
    if (!copy) {
        return rp_fail(RP_ERR_IO, "standard input: no room for a copy: %s", strerror(errno));
    }
    rp_err err = copy_input(copy);
    if (err == RP_OK && dup2(fileno(copy), STDIN_FILENO) < 0) {
        err = rp_fail(RP_ERR_IO, "standard input: %s", strerror(errno));
    }
    (void)fclose(copy);
    return err;
}
