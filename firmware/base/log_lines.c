#include "base/log_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A record's head: number, time and letter of the level, separated by blanks. The text follows. */
enum { NUMBER_DIGITS = 12, TIME_DIGITS = 13, HEAD_BYTES = NUMBER_DIGITS + TIME_DIGITS + 4 };
enum { SYNC_MS = 10000, LEVEL_ERROR = 0, LEVEL_INFO = 2 /* values of rp_log_level */ };
static const uint64_t NUMBER_MAX = UINT64_C(999999999999);
static const char letters[] = "ewid"; /* index: level */
static const char END_LETTER = 'x';   /* record that a process writes when it ends in order */

typedef struct {
    uint64_t number;
    int64_t time_ms;
    int level;
    uint32_t clock_bytes;
    char text[RP_LOG_LINE_BYTES];
} record;

/* Protects all variables below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static record ring[RP_LOG_LINES];
static uint64_t next_number = 1;
static uint64_t newest_error;
static int kept_fd = -1;
static int64_t synced_ms;

static int64_t wall_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static uint64_t first_number(void) {
    return next_number > RP_LOG_LINES ? next_number - RP_LOG_LINES : 1;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Escapes any bytes of the text, so that a record is one line of the file. */
static void write_record(const record *line, char letter) {
    char out[RP_LOG_KEPT_BYTES + 1];
    const char *text = line->text + line->clock_bytes;
    if (kept_fd < 0 || line->number > NUMBER_MAX) {
        return;
    }
    (void)snprintf(out, sizeof out, "%0*" PRIu64 " %0*" PRId64 " %c %.*s", NUMBER_DIGITS,
                   line->number, TIME_DIGITS, line->time_ms, letter,
                   RP_LOG_KEPT_BYTES - HEAD_BYTES - 2, text);
    const size_t used = strlen(out);
    for (size_t i = 0; i < used; i++) {
        out[i] = out[i] == '\n' || out[i] == '\r' ? ' ' : out[i];
    }
    memset(out + used, ' ', RP_LOG_KEPT_BYTES - used);
    out[RP_LOG_KEPT_BYTES - 1] = '\n';
    const off_t at = (off_t)(line->number % RP_LOG_KEPT_LINES) * RP_LOG_KEPT_BYTES;
    (void)!pwrite(kept_fd, out, RP_LOG_KEPT_BYTES, at);
}

static void keep_line(const record *line) {
    if (line->level > LEVEL_INFO) {
        return;
    }
    write_record(line, letters[line->level]);
    if (line->level == LEVEL_ERROR && kept_fd >= 0 &&
        (line->time_ms - synced_ms > SYNC_MS || line->time_ms < synced_ms)) {
        synced_ms = line->time_ms;
        (void)fdatasync(kept_fd);
    }
}

static bool read_digits(const char *at, uint32_t count, uint64_t *out) {
    *out = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (at[i] < '0' || at[i] > '9') {
            return false;
        }
        *out = *out * 10 + (uint64_t)(at[i] - '0');
    }
    return at[count] == ' ';
}

/* Parses the record at position `index`. *letter is its level, or END_LETTER. */
static bool read_record(const char bytes[RP_LOG_KEPT_BYTES], uint32_t index, record *out,
                        char *letter) {
    const char *at = bytes + NUMBER_DIGITS + 1 + TIME_DIGITS + 1;
    uint64_t time_ms;
    size_t length = RP_LOG_KEPT_BYTES - 1 - HEAD_BYTES;
    if (!read_digits(bytes, NUMBER_DIGITS, &out->number) || out->number == 0 ||
        out->number > NUMBER_MAX / 2 || out->number % RP_LOG_KEPT_LINES != index ||
        !read_digits(bytes + NUMBER_DIGITS + 1, TIME_DIGITS, &time_ms) || at[1] != ' ' ||
        bytes[RP_LOG_KEPT_BYTES - 1] != '\n') {
        return false;
    }
    *letter = at[0];
    const char *found = at[0] ? strchr(letters, at[0]) : NULL;
    if (!found && at[0] != END_LETTER) {
        return false;
    }
    out->level = found ? (int)(found - letters) : LEVEL_INFO;
    out->time_ms = (int64_t)time_ms;
    out->clock_bytes = 0;
    for (; length > 0 && at[2 + length - 1] == ' '; length--) {
    }
    memcpy(out->text, at + 2, length);
    out->text[length] = '\0';
    return strlen(out->text) == length;
}

static int by_number(const void *a, const void *b) {
    const record *one = a;
    const record *other = b;
    return one->number < other->number ? -1 : one->number > other->number;
}

/* Reads the records of earlier processes, oldest first. *ended: the last of them ended in order. */
static uint32_t read_records(int fd, record out[RP_LOG_KEPT_LINES], bool *ended) {
    char bytes[RP_LOG_KEPT_BYTES];
    uint64_t last = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < RP_LOG_KEPT_LINES; i++) {
        char letter = 0;
        if (pread(fd, bytes, sizeof bytes, (off_t)i * RP_LOG_KEPT_BYTES) != (ssize_t)sizeof bytes ||
            !read_record(bytes, i, &out[count], &letter)) {
            continue;
        }
        if (out[count].number > last) {
            last = out[count].number;
            *ended = letter == END_LETTER;
        }
        count++;
    }
    qsort(out, count, sizeof *out, by_number);
    return count;
}

/* Lines that this process logged before the file was opened are newer than the file's lines: they
 * get numbers after them and are written, too. */
static void take_records(const record *old, uint32_t count, const record *own, uint32_t own_count) {
    const uint64_t last = count ? old[count - 1].number : 0;
    memset(ring, 0, sizeof ring);
    newest_error = 0;
    for (uint32_t i = 0; i < count; i++) {
        ring[old[i].number % RP_LOG_LINES] = old[i];
        newest_error = old[i].level == LEVEL_ERROR ? old[i].number : newest_error;
    }
    next_number = last + 1;
    for (uint32_t i = 0; i < own_count; i++) {
        record *line = &ring[next_number % RP_LOG_LINES];
        *line = own[i];
        line->number = next_number++;
        newest_error = line->level == LEVEL_ERROR ? line->number : newest_error;
        keep_line(line);
    }
}

static void put_line(int level, int64_t time_ms, const char *text, uint32_t clock_bytes) {
    record *line = &ring[next_number % RP_LOG_LINES];
    *line = (record){
        .number = next_number++, .time_ms = time_ms, .level = level, .clock_bytes = clock_bytes};
    (void)snprintf(line->text, sizeof line->text, "%s", text);
    newest_error = level == LEVEL_ERROR ? line->number : newest_error;
    keep_line(line);
}

int rp_log_keep(const char *path) {
    static record old[RP_LOG_KEPT_LINES];
    static record own[RP_LOG_LINES];
    bool ended = true;
    uint32_t own_count = 0;
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    /* Reserves the whole file now, so that a full disk cannot lose the last lines. */
    const int code =
        fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)RP_LOG_KEPT_LINES * RP_LOG_KEPT_BYTES);
    if (code != 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return code;
    }
    (void)pthread_mutex_lock(&lock);
    for (uint64_t n = first_number(); n < next_number; n++) {
        own[own_count++] = ring[n % RP_LOG_LINES];
    }
    kept_fd = fd;
    const uint32_t count = read_records(fd, old, &ended);
    take_records(old, count, own, own_count);
    if (!ended) {
        put_line(LEVEL_ERROR, wall_ms(),
                 "the previous process ended without a last line: it was killed, has crashed, or "
                 "the power failed",
                 0);
    }
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

void rp_log_keep_end(void) {
    (void)pthread_mutex_lock(&lock);
    if (kept_fd >= 0) {
        put_line(LEVEL_INFO, wall_ms(), "the process ends", 0);
        write_record(&ring[(next_number - 1) % RP_LOG_LINES], END_LETTER);
        (void)fdatasync(kept_fd);
        (void)close(kept_fd);
        kept_fd = -1;
    }
    (void)pthread_mutex_unlock(&lock);
}

/* ---- the lines ------------------------------------------------------------------------------- */

void rp_log_lines_put(int level, int64_t time_ms, const char *text, uint32_t clock_bytes) {
    (void)pthread_mutex_lock(&lock);
    put_line(level, time_ms, text, clock_bytes);
    (void)pthread_mutex_unlock(&lock);
}

bool rp_log_line_from(uint64_t number, int level, rp_log_line *out) {
    bool found = false;
    (void)pthread_mutex_lock(&lock);
    uint64_t at = number > first_number() ? number : first_number();
    for (; at < next_number && !found; at++) {
        const record *line = &ring[at % RP_LOG_LINES];
        if (line->number == at && line->level <= level) {
            *out = (rp_log_line){.number = at, .time_ms = line->time_ms, .level = line->level};
            (void)snprintf(out->text, sizeof out->text, "%s", line->text + line->clock_bytes);
            found = true;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

uint64_t rp_log_lines_begin(uint32_t count, int level) {
    (void)pthread_mutex_lock(&lock);
    const uint64_t first = first_number();
    uint64_t at = next_number;
    while (at > first && count > 0) {
        const record *line = &ring[--at % RP_LOG_LINES];
        count -= line->number == at && line->level <= level;
    }
    (void)pthread_mutex_unlock(&lock);
    return at;
}

uint64_t rp_log_lines_end(void) {
    (void)pthread_mutex_lock(&lock);
    const uint64_t end = next_number;
    (void)pthread_mutex_unlock(&lock);
    return end;
}

uint64_t rp_log_newest_error(void) {
    (void)pthread_mutex_lock(&lock);
    const uint64_t number = newest_error >= first_number() ? newest_error : 0;
    (void)pthread_mutex_unlock(&lock);
    return number;
}

void rp_log_dump(void) {
    for (uint64_t n = first_number(); n < next_number; n++) {
        const record *line = &ring[n % RP_LOG_LINES];
        if (line->number == n) {
            (void)!write(STDERR_FILENO, line->text, strnlen(line->text, RP_LOG_LINE_BYTES));
            (void)!write(STDERR_FILENO, "\n", 1);
        }
    }
}
