#include "cli/safe_output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/printable.h"

enum { PIECE_BYTES = 1024, HELD_MAX = 3, SAFE_BYTES = 6 * (PIECE_BYTES + HELD_MAX) + 1 };

/* Incomplete UTF-8 character at the end of the last write. */
static char held[HELD_MAX + 1];
static size_t held_count;

static bool write_all(const char *bytes, size_t count) {
    while (count > 0) {
        const ssize_t done = write(STDOUT_FILENO, bytes, count);
        if (done < 0 && errno != EINTR) {
            return false;
        }
        bytes += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* Escapes and writes a text, which may contain zero bytes. */
static bool write_safe(const char *text, size_t count) {
    char safe[SAFE_BYTES];
    for (size_t at = 0; at <= count;) {
        const size_t length = strlen(text + at);
        rp_printable(text + at, true, safe, sizeof safe);
        if (!write_all(safe, strlen(safe)) || (at + length < count && !write_all("\\u0000", 6))) {
            return false;
        }
        at += length + 1;
    }
    return true;
}

/* Number of bytes at the end that begin an incomplete UTF-8 character. */
static size_t count_cut(const char *text, size_t count) {
    for (size_t back = 1; back <= HELD_MAX && back <= count; back++) {
        const unsigned char byte = (unsigned char)text[count - back];
        if (byte >= 0xc0) {
            const size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
            return back < whole ? back : 0;
        }
        if (byte < 0x80) {
            return 0;
        }
    }
    return 0;
}

static ssize_t write_cookie(void *cookie, const char *bytes, size_t count) {
    char text[HELD_MAX + PIECE_BYTES + 1];
    (void)cookie;
    for (size_t at = 0; at < count;) {
        const size_t rest = count - at;
        const size_t part = rest < PIECE_BYTES ? rest : PIECE_BYTES;
        memcpy(text, held, held_count);
        memcpy(text + held_count, bytes + at, part);
        const size_t all = held_count + part;
        held_count = count_cut(text, all);
        memcpy(held, text + all - held_count, held_count);
        text[all - held_count] = '\0';
        if (!write_safe(text, all - held_count)) {
            return 0;
        }
        at += part;
    }
    return (ssize_t)count;
}

static int close_cookie(void *cookie) {
    (void)cookie;
    held[held_count] = '\0';
    return write_safe(held, held_count) ? 0 : -1;
}

void rp_cli_open_safe_output(void) {
    const cookie_io_functions_t functions = {.write = write_cookie, .close = close_cookie};
    FILE *safe = fopencookie(NULL, "w", functions);
    if (safe) {
        if (isatty(STDOUT_FILENO)) {
            (void)setvbuf(safe, NULL, _IOLBF, BUFSIZ);
        }
        stdout = safe;
    }
}
