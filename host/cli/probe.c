#include "cli/probe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* On the pipe: what is being done, each text with a 0 behind it; then an empty text, the result. */
struct rp_probe {
    FILE *pipe;
};

enum { EXIT_NS = RP_NS_PER_S }; /* for a child that has closed its pipe */

void rp_probe_say(const rp_probe *probe, const char *what) {
    (void)fputs(what, probe->pipe);
    (void)fputc('\0', probe->pipe);
    (void)fflush(probe->pipe);
}

static _Noreturn void be_child(int fd, rp_err (*work)(const rp_probe *, const void *, FILE *),
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
    _exit(rp_err_exit_code(err)); /* no driver's own way of ending is gone through */
}

/* Until the other end is closed. false: time is up. */
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

/* Its status; a child that does not end is ended. */
static int wait_for(pid_t child, int64_t end_ns) {
    const rp_clock clock = rp_clock_real();
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (rp_clock_now_ns(&clock) >= end_ns) {
            (void)kill(child, SIGKILL);
            (void)waitpid(child, &status, 0); /* a killed one ends */
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

/* A driver may end its process itself, with a code that be_child() does not have. */
static rp_err judge_code(int code, const char *doing) {
    const rp_err err = err_of_code(code);
    return err < RP_ERR_COUNT
               ? err
               : rp_fail(RP_ERR_DEVICE,
                         "the OpenCL driver has ended its process with exit code %d while %s", code,
                         doing);
}

/* The last text that was said, and the result behind the empty one; NULL: there is none. */
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

static rp_err judge(int status, bool in_time, double seconds, const char *doing,
                    const char *result) {
    if (!in_time) {
        return rp_fail(RP_ERR_DEVICE, "no answer from the OpenCL driver within %.0f s while %s",
                       seconds, doing);
    }
    if (WIFSIGNALED(status)) {
        return rp_fail(RP_ERR_DEVICE,
                       "the OpenCL driver has ended its process by signal %d (%s) while %s; "
                       "OCL_ICD_VENDORS=FILE.icd takes one driver of /etc/OpenCL/vendors",
                       WTERMSIG(status), strsignal(WTERMSIG(status)), doing);
    }
    if (WEXITSTATUS(status) != 0) {
        return judge_code(WEXITSTATUS(status), doing);
    }
    return result
               ? RP_OK
               : rp_fail(RP_ERR_DEVICE, "the OpenCL driver has ended its process while %s", doing);
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
    (void)fflush(NULL); /* nothing is printed twice */
    if (pipe(fd) != 0) {
        return rp_fail(RP_ERR_IO, "pipe: %s", strerror(errno));
    }
    const pid_t child = fork();
    if (child == 0) {
        (void)close(fd[0]);
        be_child(fd[1], work, context);
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
    RP_TRY(judge(status, in_time, seconds, doing, result));
    *out = text + (result - text);
fail:
    return err;
}
