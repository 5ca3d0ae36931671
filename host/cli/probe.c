#include "cli/probe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* Format on the pipe: names of steps, each zero-terminated; then an empty text and the result. */
struct rp_probe {
    FILE *pipe;
};

enum { EXIT_NS = RP_NS_PER_S }; /* timeout for the exit of a child that has closed its pipe */

void rp_probe_say(const rp_probe *probe, const char *what) {
    (void)fputs(what, probe->pipe);
    (void)fputc('\0', probe->pipe);
    (void)fflush(probe->pipe);
}

static _Noreturn void run_child(int fd, rp_err (*work)(const rp_probe *, const void *, FILE *),
                                const void *context) {
    const rp_probe probe = {.pipe = fdopen(fd, "w")};
    char *text = NULL;
    size_t bytes = 0;
    FILE *result = probe.pipe ? open_memstream(&text, &bytes) : NULL;
    if (!result) {
        _exit(rp_err_exit_code(rp_fail(RP_ERR_IO, "pipe: %s", strerror(errno))));
    }
    const rp_err err = work(&probe, context, result);
    if (fclose(result) == 0 && err == RP_OK) {
        (void)fputc('\0', probe.pipe);
        (void)fputs(text, probe.pipe);
    }
    (void)fflush(probe.pipe);
    _exit(rp_err_exit_code(err)); /* without exit handlers of drivers, which may crash */
}

/* Reads until the child closes the pipe. false: timeout. */
static bool read_pipe(int fd, int64_t end_ns, char *text, size_t *used) {
    const rp_clock clock = rp_clock_real();
    for (;;) {
        const int64_t left_ns = end_ns - rp_clock_now_ns(&clock);
        struct pollfd item = {.fd = fd, .events = POLLIN};
        if (left_ns <= 0) {
            return false;
        }
        if (poll(&item, 1, (int)(left_ns / RP_NS_PER_MS) + 1) <= 0) {
            continue;
        }
        char piece[4096];
        const ssize_t got = read(fd, piece, sizeof piece);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return true;
        }
        for (ssize_t i = 0; i < got && *used < RP_PROBE_BYTES_MAX; i++) {
            text[(*used)++] = piece[i];
        }
    }
}

/* Returns the child's status; kills a child that does not end. */
static int wait_for(pid_t child, int64_t end_ns) {
    const rp_clock clock = rp_clock_real();
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (rp_clock_now_ns(&clock) >= end_ns) {
            (void)kill(child, SIGKILL);
            (void)waitpid(child, &status, 0);
            break;
        }
        (void)poll(NULL, 0, 5);
    }
    return status;
}

static rp_err err_of_code(int code) {
    rp_err err = RP_OK;
    while (err < RP_ERR_COUNT && rp_err_exit_code(err) != code) {
        err++;
    }
    return err;
}

/* A driver may end the process itself, with a code that run_child() never uses. */
static rp_err judge_code(int code, const char *doing) {
    const rp_err err = err_of_code(code);
    return err < RP_ERR_COUNT
               ? err
               : rp_fail(RP_ERR_DEVICE,
                         "the OpenCL driver ended its process with exit code %d while %s", code,
                         doing);
}

/* *doing: the last step. Returns the result, or NULL if there is no result. */
static const char *split_pipe(char *text, size_t used, const char **doing) {
    *doing = "starting";
    for (size_t at = 0; at < used; at += strlen(text + at) + 1) {
        if (!text[at]) {
            return text + at + 1;
        }
        *doing = text + at;
    }
    return NULL;
}

static rp_err judge_status(int status, bool in_time, double seconds, const char *doing,
                           const char *result) {
    if (!in_time) {
        return rp_fail(RP_ERR_DEVICE, "no answer from the OpenCL driver within %.0f s while %s",
                       seconds, doing);
    }
    if (WIFSIGNALED(status)) {
        return rp_fail(RP_ERR_DEVICE,
                       "the OpenCL driver crashed with signal %d (%s) while %s; to use one driver "
                       "of /etc/OpenCL/vendors only, set OCL_ICD_VENDORS=FILE.icd",
                       WTERMSIG(status), strsignal(WTERMSIG(status)), doing);
    }
    if (WEXITSTATUS(status) != 0) {
        return judge_code(WEXITSTATUS(status), doing);
    }
    return result ? RP_OK
                  : rp_fail(RP_ERR_DEVICE, "the OpenCL driver ended its process while %s", doing);
}

rp_err rp_probe_run(rp_arena *arena, double seconds,
                    rp_err (*work)(const rp_probe *probe, const void *context, FILE *result),
                    const void *context, char **out) {
    const rp_clock clock = rp_clock_real();
    const int64_t end_ns = rp_clock_now_ns(&clock) + (int64_t)(seconds * 1e9);
    int fd[2];
    char *text;
    size_t used = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)RP_PROBE_BYTES_MAX + 2, &text));
    (void)fflush(NULL); /* else the child would print buffered text again */
    if (pipe(fd) != 0) {
        return rp_fail(RP_ERR_IO, "pipe: %s", strerror(errno));
    }
    const pid_t child = fork();
    if (child == 0) {
        (void)close(fd[0]);
        run_child(fd[1], work, context);
    }
    (void)close(fd[1]);
    const bool in_time = child > 0 && read_pipe(fd[0], end_ns, text, &used);
    (void)close(fd[0]);
    if (child < 0) {
        return rp_fail(RP_ERR_IO, "fork: %s", strerror(errno));
    }
    const int status = wait_for(child, in_time ? rp_clock_now_ns(&clock) + EXIT_NS : 0);
    const char *doing;
    const char *result = split_pipe(text, used, &doing);
    RP_TRY(judge_status(status, in_time, seconds, doing, result));
    *out = text + (result - text);
fail:
    return err;
}
