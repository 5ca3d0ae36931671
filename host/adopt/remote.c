#include "adopt/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shell.h"

enum { NAP_MS = 50, KILL_NAPS = 40 };

void rp_remote_words(const rp_remote *remote, const char *word[RP_REMOTE_WORDS]) {
    uint32_t n = 0;
    word[n++] = "ssh";
    word[n++] = "-o";
    word[n++] = "ConnectTimeout=15";
    if (remote->terminal && isatty(STDIN_FILENO)) {
        word[n++] = "-t";
    }
    word[n++] = "--";
    word[n++] = remote->to;
    word[n++] = remote->command;
    word[n] = NULL;
}

rp_err rp_remote_text(rp_arena *arena, const rp_remote *remote, const char **out) {
    const char *word[RP_REMOTE_WORDS];
    const char *quoted;
    char *text;
    rp_err err;
    RP_TRY(rp_arena_string(arena, "", &text));
    rp_remote_words(remote, word);
    for (uint32_t i = 0; word[i]; i++) {
        RP_TRY(rp_shell_word(arena, word[i], &quoted));
        RP_TRY(rp_arena_printf(arena, &text, "%s%s%s", text, i ? " " : "", quoted));
    }
    *out = text;
fail:
    return err;
}

/* In the child process. */
static void become_ssh(const rp_remote *remote, const int pipe_fd[2]) {
    const char *word[RP_REMOTE_WORDS];
    char copy[RP_REMOTE_WORDS][2048];
    char *argv[RP_REMOTE_WORDS] = {NULL};
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none,
                      NULL); /* Ctrl-C ends it, even if the parent blocks signals */
    rp_remote_words(remote, word);
    for (uint32_t i = 0; word[i]; i++) {
        argv[i] = copy[i];
        if (snprintf(copy[i], sizeof copy[i], "%s", word[i]) >= (int)sizeof copy[i]) {
            _exit(126);
        }
    }
    if (!remote->terminal || remote->input) {
        const int in = open(remote->input ? remote->input : "/dev/null", O_RDONLY);
        if (in < 0 || dup2(in, STDIN_FILENO) < 0) {
            _exit(126);
        }
    }
    if (remote->out && dup2(pipe_fd[1], STDOUT_FILENO) < 0) {
        _exit(126);
    }
    (void)execvp(argv[0], argv);
    _exit(127);
}

static int64_t now_ms(void) {
    const rp_clock clock = rp_clock_real();
    return rp_clock_now_ns(&clock) / RP_NS_PER_MS;
}

/* Reads its output to the end or until the deadline; output beyond the buffer is dropped. */
static void read_output(const rp_remote *remote, int fd, int64_t until_ms) {
    size_t used = 0;
    char more[512];
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        const int64_t left_ms = until_ms - now_ms();
        if (left_ms <= 0) {
            break;
        }
        if (poll(&wait, 1, left_ms < NAP_MS ? (int)left_ms : NAP_MS) <= 0) {
            continue;
        }
        const ssize_t got = read(fd, more, sizeof more);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            break;
        }
        for (ssize_t i = 0; i < got && used < remote->out_bytes - 1; i++) {
            remote->out[used++] = more[i];
        }
    }
    remote->out[used] = '\0';
}

/* False: it was still running at the deadline, and is killed. */
static bool await_end(pid_t child, int64_t until_ms, int *status) {
    const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
    for (;;) {
        const pid_t ended = waitpid(child, status, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR)) {
            return ended == child;
        }
        if (now_ms() >= until_ms) {
            break;
        }
        (void)nanosleep(&nap, NULL);
    }
    (void)kill(child, SIGTERM);
    for (int i = 0; i < KILL_NAPS; i++) {
        if (waitpid(child, status, WNOHANG) == child) {
            return false;
        }
        (void)nanosleep(&nap, NULL);
    }
    (void)kill(child, SIGKILL);
    (void)waitpid(child, status, 0);
    return false;
}

rp_err rp_remote_run(const rp_remote *remote, int *code) {
    const int64_t until_ms = now_ms() + remote->wait_s * INT64_C(1000);
    int fds[2] = {-1, -1};
    int status = 0;
    (void)fflush(NULL); /* so that nothing is printed twice */
    if (remote->out && pipe2(fds, O_CLOEXEC) != 0) {
        return rp_fail(RP_ERR_IO, "pipe: %s", strerror(errno));
    }
    const pid_t child = fork();
    if (child == 0) {
        become_ssh(remote, fds);
    }
    if (remote->out) {
        (void)close(fds[1]);
        remote->out[0] = '\0';
        if (child > 0) {
            read_output(remote, fds[0], until_ms);
        }
        (void)close(fds[0]);
    }
    if (child < 0) {
        return rp_fail(RP_ERR_IO, "fork: %s", strerror(errno));
    }
    if (!await_end(child, until_ms, &status)) {
        return rp_fail(RP_ERR_TIMEOUT, "ssh to %s did not finish within %d s", remote->to,
                       remote->wait_s);
    }
    *code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return *code == 127 ? rp_fail(RP_ERR_IO,
                                  "ssh cannot be started, or does not know the command: on Debian "
                                  "`apt-get install openssh-client` brings it")
                        : RP_OK;
}
