#include "transport/token_text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static rp_err check_file(const char *option, const char *path, int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return rp_fail(RP_ERR_IO, "%s: %s: %s", option, path, strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return rp_fail(RP_ERR_USAGE, "%s: %s: expected a regular file", option, path);
    }
    if (st.st_mode & 077) {
        return rp_fail(RP_ERR_REFUSED,
                       "%s: %s has mode %03o, so that others can use the token: `chmod 600 %s`",
                       option, path, (unsigned)st.st_mode & 0777, path);
    }
    if (st.st_size == 0 || st.st_size > RP_TOKEN_TEXT_MAX) {
        return rp_fail(RP_ERR_USAGE, "%s: %s has %lld bytes, expected one line of 1 to %d", option,
                       path, (long long)st.st_size, RP_TOKEN_TEXT_MAX);
    }
    return RP_OK;
}

/* Accepts one line, with or without its newline. */
static rp_err take_line(rp_arena *arena, const char *option, const char *path, const char *bytes,
                        size_t count, const char **out) {
    const size_t length = strcspn(bytes, "\r\n");
    const size_t end = length + strspn(bytes + length, "\r\n");
    char *line;
    if (length == 0 || end < count) {
        return rp_fail(RP_ERR_USAGE, "%s: %s: expected one line of printable text", option, path);
    }
    const rp_err err = rp_arena_text(arena, bytes, length, &line);
    *out = err == RP_OK ? line : NULL;
    return err;
}

static rp_err read_file(rp_arena *arena, const char *option, const char *path, const char **out) {
    char bytes[RP_TOKEN_TEXT_MAX + 1] = "";
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t got;
    rp_err err;
    if (fd < 0) {
        return rp_fail(errno == ENOENT ? RP_ERR_USAGE : RP_ERR_IO, "%s: %s: %s", option, path,
                       strerror(errno));
    }
    RP_TRY(check_file(option, path, fd));
    got = read(fd, bytes, RP_TOKEN_TEXT_MAX);
    err = got < 0 ? rp_fail(RP_ERR_IO, "%s: %s: %s", option, path, strerror(errno))
                  : take_line(arena, option, path, bytes, (size_t)got, out);
fail:
    explicit_bzero(bytes, sizeof bytes);
    (void)close(fd);
    return err;
}

rp_err rp_token_text(rp_arena *arena, const char *option, const char *text, const char **out) {
    char *copy;
    if (text[0] == '@') {
        return read_file(arena, option, text + 1, out);
    }
    const rp_err err = rp_arena_string(arena, text, &copy);
    *out = err == RP_OK ? copy : NULL;
    return err;
}

void rp_token_hide(char *argument) {
    if (argument[0] != '@') {
        memset(argument, 'x', strlen(argument));
    }
}
