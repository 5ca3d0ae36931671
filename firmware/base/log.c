#include "base/log.h"

#include "base/log_lines.h"
#include "base/printable.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = RP_LOG_LINE_BYTES };

/* Protects all variables below, because all threads of a process log. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char who_text[32];
static char plain_text[32]; /* the program's name; "": lines are printed complete */
static rp_log_level threshold = RP_LOG_INFO;
static int environment_read;
static rp_log_level chosen = RP_LOG_DEBUG; /* level from the command line */
static int is_chosen;
static rp_log_hook *hooks;
static _Thread_local int hushed;

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* Returns false if the environment names an unknown level. */
static int read_environment(void) {
    environment_read = 1;
    const char *wanted = getenv("RP_LOG");
    for (unsigned i = 0; wanted && i < 4; i++) {
        if (strcmp(wanted, level_names[i]) == 0) {
            threshold = (rp_log_level)i;
            return 1;
        }
    }
    return !wanted || !wanted[0];
}

void rp_log_setup(rp_log_level level, const char *who) {
    (void)pthread_mutex_lock(&lock);
    if (!is_chosen) {
        threshold = level;
        (void)read_environment();
    } else {
        threshold = chosen == RP_LOG_DEBUG || (int)level > (int)chosen ? chosen : level;
    }
    (void)snprintf(who_text, sizeof who_text, "%s", who);
    (void)pthread_mutex_unlock(&lock);
}

void rp_log_choose(rp_log_level level) {
    (void)pthread_mutex_lock(&lock);
    threshold = chosen = level;
    is_chosen = environment_read = 1;
    (void)pthread_mutex_unlock(&lock);
}

void rp_log_setup_plain(const char *program) {
    (void)pthread_mutex_lock(&lock);
    const int known = environment_read || read_environment();
    (void)snprintf(plain_text, sizeof plain_text, "%s", program);
    (void)pthread_mutex_unlock(&lock);
    if (!known) {
        rp_log_warn("RP_LOG is '%s', expected error, warn, info or debug", getenv("RP_LOG"));
    }
}

rp_log_level rp_log_level_now(void) {
    (void)pthread_mutex_lock(&lock);
    rp_log_level level = threshold;
    (void)pthread_mutex_unlock(&lock);
    return level;
}

void rp_log_hush_thread(void) {
    hushed = 1;
}

void rp_log_add_hook(rp_log_hook *hook) {
    (void)pthread_mutex_lock(&lock);
    hook->thread = pthread_self();
    hook->next = hooks;
    hooks = hook;
    (void)pthread_mutex_unlock(&lock);
}

void rp_log_remove_hook(rp_log_hook *hook) {
    (void)pthread_mutex_lock(&lock);
    rp_log_hook **at = &hooks;
    while (*at && *at != hook) {
        at = &(*at)->next;
    }
    if (*at) {
        *at = hook->next;
    }
    (void)pthread_mutex_unlock(&lock);
}

/* The caller holds the lock. */
static void call_hooks(void) {
    for (const rp_log_hook *hook = hooks; hook; hook = hook->next) {
        if (pthread_equal(hook->thread, pthread_self())) {
            hook->before_line(hook->context);
        }
    }
}

/* The room of a source file: "base" for firmware/base/err.c. */
static void room_of(const char *file, char *room, size_t room_bytes) {
    const char *slash = strrchr(file, '/');
    const char *start = slash;
    while (start && start > file && start[-1] != '/') {
        start--;
    }
    size_t length = slash && start ? (size_t)(slash - start) : 0;
    if (length >= room_bytes) {
        length = room_bytes - 1;
    }
    memcpy(room, start ? start : file, length);
    room[length] = '\0';
}

/* Whether standard error goes to systemd's journal, which JOURNAL_STREAM identifies. */
static int journal_reads(void) {
    const char *given = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat status;
    if (!given || fstat(STDERR_FILENO, &status) != 0) {
        return 0;
    }
    (void)snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return strcmp(given, own) == 0;
}

/* `text` is the part of `whole` after the clock and the room. */
static void print_line(rp_log_level level, const char *whole, const char *text, const char *file,
                       int line) {
    static const char *const words[] = {"", "warning: ", "note: ", ""};
    static const char *const priorities[] = {"<3>", "<4>", "<6>", "<7>"};
    const char *priority = journal_reads() ? priorities[level] : "";
    call_hooks();
    if (threshold == RP_LOG_DEBUG) {
        (void)fprintf(stderr, "%s%s (%s:%d)\n", priority, whole, file, line);
    } else if (plain_text[0]) {
        (void)fprintf(stderr, "%s%s: %s%s\n", priority, plain_text, words[level], text);
    } else {
        (void)fprintf(stderr, "%s%s\n", priority, whole);
    }
}

void rp_log_at(rp_log_level level, const char *file, int line, const char *format, ...) {
    (void)pthread_mutex_lock(&lock);
    if (!environment_read) {
        read_environment();
    }
    char room[24];
    room_of(file, room, sizeof room);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm tm;
    gmtime_r(&now.tv_sec, &tm);
    char text[LINE_BYTES];
    int used = snprintf(text, LINE_BYTES, "%02d:%02d:%02d.%03ld ", tm.tm_hour, tm.tm_min, tm.tm_sec,
                        now.tv_nsec / 1000000);
    const int clock = used;
    used += snprintf(text + used, (size_t)(LINE_BYTES - used), "%s%s%s %s: ", who_text,
                     who_text[0] ? " " : "", room, level_names[level]);
    /* made printable, because names may contain line breaks: one event stays one line */
    char message[LINE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (used > 0 && used < LINE_BYTES) {
        rp_printable(message, false, text + used, (size_t)(LINE_BYTES - used));
    }
    rp_log_lines_put((int)level, now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000, text,
                     (uint32_t)clock);
    if ((int)level <= (int)threshold && !hushed) {
        const int most = LINE_BYTES - 1;
        print_line(level, text, text + (used < 0 ? 0 : used < most ? used : most), file, line);
    }
    (void)pthread_mutex_unlock(&lock);
}
