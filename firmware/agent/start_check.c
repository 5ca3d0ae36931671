#include "agent/start_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

enum { SAID_BYTES = 400 };
/* Slow boards read the program from a card; less than the unit's WatchdogSec. */
static const int64_t WITHIN_NS = 20 * RP_NS_PER_S;

extern char **environ;

typedef struct {
    char path[RP_AB_PATH_BYTES];
    int out; /* its output; -1: closed */
    pid_t pid;
    char said[SAID_BYTES]; /* the end of its output */
    size_t used;
} trial_start;

static int spawn_agent(trial_start *start) {
    char version[] = "--version";
    char *const argv[] = {start->path, version, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    int code = posix_spawn_file_actions_init(&actions);
    if (code == 0) {
        code = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        code = code ? code : posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        code = code ? code : posix_spawn(&start->pid, start->path, &actions, NULL, argv, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)close(ends[1]);
    if (code != 0) {
        (void)close(ends[0]);
        return code;
    }
    start->out = ends[0];
    return 0;
}

/* Keeps the last bytes. */
static void keep_output(trial_start *start, const char *bytes, size_t count) {
    const size_t room = sizeof start->said - 1;
    if (count > room) {
        bytes += count - room;
        count = room;
    }
    if (start->used + count > room) {
        const size_t gone = start->used + count - room;
        memmove(start->said, start->said + gone, start->used - gone);
        start->used -= gone;
    }
    memcpy(start->said + start->used, bytes, count);
    start->used += count;
    start->said[start->used] = '\0';
}

/* Reads its output. Returns false if it did not end in time. */
static bool read_output(trial_start *start, const rp_clock *clock) {
    const int64_t until_ns = rp_clock_now_ns(clock) + WITHIN_NS;
    char bytes[256];
    for (;;) {
        const int64_t left_ns = until_ns - rp_clock_now_ns(clock);
        struct pollfd out = {.fd = start->out, .events = POLLIN};
        if (left_ns <= 0) {
            return false;
        }
        const int ready = poll(&out, 1, (int)(left_ns / RP_NS_PER_MS) + 1);
        const ssize_t got = ready > 0 ? read(start->out, bytes, sizeof bytes) : -1;
        if (got == 0) {
            return true;
        }
        if (got > 0) {
            keep_output(start, bytes, (size_t)got);
        } else if (ready > 0 && errno != EINTR) {
            return true;
        }
    }
}

/* The last line of the output, without its newline. */
static const char *last_line(char *text) {
    for (size_t n = strlen(text); n > 0 && text[n - 1] == '\n';) {
        text[--n] = '\0';
    }
    const char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

/* The problem in plain words; NULL: it starts. */
static const char *judge_start(trial_start *start, bool in_time) {
    int status = 0;
    if (!in_time) {
        (void)kill(start->pid, SIGKILL);
    }
    while (waitpid(start->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!in_time) {
        return "it did not print its version within 20 s";
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return NULL;
    }
    const char *line = last_line(start->said);
    return line[0] ? line : "with --version it ended with an error, without a message";
}

rp_err rp_agent_check_start(const char *slots, const rp_ab *ab, const rp_clock *clock) {
    trial_start start = {.out = -1};
    const char *why = NULL;
    if (snprintf(start.path, sizeof start.path, "%s/%s/bin/ringpipe-agent", slots,
                 rp_ab_slot_name(ab->trial)) >= (int)sizeof start.path) {
        return rp_fail(RP_ERR_IO, "%s: the path is too long", slots);
    }
    const int code = spawn_agent(&start);
    if (code == 0) {
        why = judge_start(&start, read_output(&start, clock));
        (void)close(start.out);
    } else {
        why = strerror(code);
    }
    if (!why) {
        return RP_OK;
    }
    if (rp_ab_revert(slots) != RP_OK) { /* otherwise its starts are used up */
        rp_log_warn("slots: %s", rp_err_message());
    }
    return rp_fail(RP_ERR_REFUSED,
                   "the agent of release %" PRIu64 " does not start on this board: %s",
                   ab->trial_version, why);
}
