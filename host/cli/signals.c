#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

rp_err rp_cli_open_signals(int *fd) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return rp_fail(RP_ERR_IO, "sigprocmask: %s", strerror(errno));
    }
    *fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return *fd < 0 ? rp_fail(RP_ERR_IO, "signalfd: %s", strerror(errno)) : RP_OK;
}

void rp_cli_read_signals(int fd, rp_cli_signals *out) {
    struct signalfd_siginfo info;
    *out = (rp_cli_signals){0};
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
        out->child_ended |= info.ssi_signo == SIGCHLD;
        out->asked |= info.ssi_signo == SIGUSR1;
        out->interrupts += info.ssi_signo != SIGCHLD && info.ssi_signo != SIGUSR1;
    }
}
