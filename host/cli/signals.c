#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"

static int watched_fd = -1; /* for rp_cli_is_stopped() */

/* Was the signal ignored at the start, as SIGHUP is by `nohup`? It would be queued if it were
 * blocked. This is not used for SIGINT: a shell without job control ignores it for background
 * processes, but `kill -INT` shall still end them. */
static bool is_ignored(int signal_number) {
    struct sigaction now;
    return sigaction(signal_number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

rp_err rp_cli_open_signals(int *fd) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (!is_ignored(SIGHUP)) {
        sigaddset(&set, SIGHUP);
    }
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return rp_fail(RP_ERR_IO, "sigprocmask: %s", strerror(errno));
    }
    *fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return *fd < 0 ? rp_fail(RP_ERR_IO, "signalfd: %s", strerror(errno)) : RP_OK;
}

void rp_cli_let_signals_end(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Is it a new request? `timeout` signals both its program and the process group, so that one
 * request arrives as two signals within a short time. */
static bool is_new_request(void) {
    static const int64_t apart_ns = RP_NS_PER_S / 5;
    static int64_t last_ns;
    const rp_clock clock = rp_clock_real();
    const int64_t now_ns = rp_clock_now_ns(&clock);
    const bool another = last_ns == 0 || now_ns - last_ns > apart_ns;
    last_ns = now_ns;
    return another;
}

void rp_cli_read_signals(int fd, rp_cli_signals *out) {
    struct signalfd_siginfo info;
    *out = (rp_cli_signals){0};
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
        out->child_ended |= info.ssi_signo == SIGCHLD;
        out->asked |= info.ssi_signo == SIGUSR1;
        if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGUSR1) {
            out->interrupts += is_new_request();
        }
    }
}

rp_err rp_cli_watch_signals(void) {
    return rp_cli_open_signals(&watched_fd);
}

bool rp_cli_is_stopped(void *unused) {
    static bool stopped;
    rp_cli_signals came;
    (void)unused;
    rp_cli_read_signals(watched_fd, &came);
    stopped = stopped || came.interrupts > 0 || came.asked;
    return stopped;
}
