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
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return rp_fail(RP_ERR_IO, "sigprocmask: %s", strerror(errno));
    }
    *fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return *fd < 0 ? rp_fail(RP_ERR_IO, "signalfd: %s", strerror(errno)) : RP_OK;
}

void rp_cli_read_signals(int fd, uint32_t *interrupts, bool *child_ended) {
    struct signalfd_siginfo info;
    *interrupts = 0;
    *child_ended = false;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
        *child_ended |= info.ssi_signo == SIGCHLD;
        *interrupts += info.ssi_signo != SIGCHLD;
    }
}
