/* cut N before|torn DIR PROGRAM [ARGUMENT...]: runs a program that loses its power at the N-th
 * system call that changes anything below DIR: in front of it, or, where it writes, when half has
 * been written. Exit code 99: it was cut; else the program's own. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* glibc's header lacks it beside sys/ptrace.h. */
#include <linux/ptrace.h>

enum { CUT = 99, BROKEN = 98 };

static const char *dir;

static bool is_below(const char *path) {
    return path[0] != '/' || strncmp(path, dir, strlen(dir)) == 0;
}

static bool path_is_below(pid_t pid, uint64_t at) {
    char path[PATH_MAX] = "";
    const struct iovec to = {path, 256}; /* an address near the end of memory gives less */
    const struct iovec from = {(void *)(uintptr_t)at, 256};
    const ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);
    path[got > 0 ? got - 1 : 0] = '\0';
    return path[0] && is_below(path);
}

static bool fd_is_below(pid_t pid, uint64_t fd) {
    char link[64];
    char path[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, (int)fd);
    const ssize_t got = readlink(link, path, sizeof path - 1);
    path[got > 0 ? got : 0] = '\0';
    return path[0] == '/' && is_below(path);
}

static bool changes(pid_t pid, const struct __ptrace_syscall_info *call) {
    const uint64_t *arg = (const uint64_t *)call->entry.args;
    switch (call->entry.nr) {
    case SYS_openat:
        return (arg[2] & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) && path_is_below(pid, arg[1]);
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_ftruncate:
    case SYS_fchmod:
        return fd_is_below(pid, arg[0]);
    case SYS_unlinkat:
    case SYS_mkdirat:
        return path_is_below(pid, arg[1]);
    case SYS_renameat2:
    case SYS_linkat:
        return path_is_below(pid, arg[3]);
#ifdef SYS_open /* older calls, which newer architectures have not */
    case SYS_open:
        return (arg[1] & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) && path_is_below(pid, arg[0]);
    case SYS_rename:
    case SYS_link:
        return path_is_below(pid, arg[1]);
    case SYS_renameat:
        return path_is_below(pid, arg[3]);
    case SYS_unlink:
    case SYS_mkdir:
    case SYS_chmod:
        return path_is_below(pid, arg[0]);
#endif
    default:
        return false;
    }
}

/* In the program's place. */
static void write_half(pid_t pid, const struct __ptrace_syscall_info *call) {
    const uint64_t *arg = (const uint64_t *)call->entry.args;
    const size_t bytes = arg[2] / 2;
    char *half = malloc(bytes + 1);
    char link[64];
    const struct iovec to = {half, bytes};
    const struct iovec from = {(void *)(uintptr_t)arg[1], bytes};
    if (!half || call->entry.nr != SYS_write) {
        free(half);
        return;
    }
    (void)snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, (int)arg[0]);
    const int fd = open(link, O_WRONLY | O_APPEND | O_CLOEXEC);
    const ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);
    if (fd < 0 || got < 0 || write(fd, half, (size_t)got) != got) {
        exit(BROKEN);
    }
    (void)close(fd);
    free(half);
}

static int end_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Until the first process has ended; its threads and children run along. */
static int follow(pid_t first, unsigned long until, bool torn) {
    unsigned long count = 0;
    for (;;) {
        int status;
        const pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0) {
            return BROKEN;
        }
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (pid == first) {
                return end_of(status);
            }
            continue;
        }
        int deliver = 0;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            struct __ptrace_syscall_info call;
            const long got = ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof call, &call);
            if (got > 0 && call.op == PTRACE_SYSCALL_INFO_ENTRY && changes(pid, &call) &&
                ++count == until) {
                if (torn) {
                    write_half(pid, &call);
                }
                (void)kill(first, SIGKILL);
                while (waitpid(-1, &status, __WALL) > 0) { /* the first one's end comes last */
                }
                return CUT;
            }
        } else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
            deliver = WSTOPSIG(status);
        }
        (void)ptrace(PTRACE_SYSCALL, pid, NULL, deliver); /* it may have ended */
    }
}

int main(int argc, char **argv) {
    int status;
    if (argc < 5) {
        (void)fprintf(stderr, "usage: cut N before|torn DIR PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    dir = argv[3];
    const pid_t pid = fork();
    if (pid == 0) {
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)execvp(argv[4], argv + 4);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
        return BROKEN;
    }
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, pid, NULL, options) != 0 ||
        ptrace(PTRACE_SYSCALL, pid, NULL, 0) != 0) {
        return BROKEN;
    }
    return follow(pid, strtoul(argv[1], NULL, 10), strcmp(argv[2], "torn") == 0);
}
