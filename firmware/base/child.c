#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* An orderly end writes a checkpoint; the second word is obeyed at once. */
static const int64_t orderly_ns = 120 * RP_NS_PER_S;
static const int64_t at_once_ns = 20 * RP_NS_PER_S;

/* In the child between fork and exec: only async-signal-safe calls. */
static void become_program(const char *program, const char *const *word, const int fd[3], int kept,
                           pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool good = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && nothing >= 0;
    for (int i = 0; i < 3; i++) {
        good = good && dup2(fd[i] >= 0 ? fd[i] : nothing, i) >= 0;
    }
    if (kept >= 0) { /* of the child alone */
        good = good && fcntl(kept, F_SETFD, 0) == 0;
    }
    if (good) {
        execv(program, (char *const *)(uintptr_t)word); /* its type; it changes nothing */
    }
    _exit(3);
}

rp_err rp_child_start(rp_child *child, const char *program, const char *const *word,
                      const int fd[3], int kept) {
    const pid_t parent = getpid();
    RP_ASSERT(child->pid == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        become_program(program ? program : "/proc/self/exe", word, fd, kept, parent);
    }
    if (pid < 0) {
        return rp_fail(RP_ERR_IO, "fork: %s", strerror(errno));
    }
    *child = (rp_child){.pid = pid};
    return RP_OK;
}

void rp_child_tell(rp_child *child, int64_t now_ns) {
    if (child->pid > 0) {
        child->told++;
        child->told_ns = now_ns;
        (void)kill(child->pid, child->told <= 2 ? SIGINT : SIGKILL);
    }
}

void rp_child_press(rp_child *child, int64_t now_ns) {
    const int64_t patience_ns = child->told == 1 ? orderly_ns : at_once_ns;
    if (child->told > 0 && now_ns - child->told_ns > patience_ns) {
        rp_child_tell(child, now_ns);
    }
}

bool rp_child_reap(rp_child *child, int *code) {
    int status = 0;
    const pid_t ended = child->pid > 0 ? waitpid(child->pid, &status, WNOHANG) : 0;
    if (ended == 0 || (ended < 0 && errno == EINTR)) {
        return false;
    }
    child->pid = 0;
    child->killed_by = ended > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    *code = child->killed_by ? 128 + child->killed_by : ended > 0 ? WEXITSTATUS(status) : 3;
    return true;
}

void rp_child_kill(rp_child *child) {
    if (child->pid > 0) {
        (void)kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        child->pid = 0;
    }
}
