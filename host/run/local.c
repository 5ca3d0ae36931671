#include "run/local.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

enum { START_TIMEOUT_MS = 300000, LOG_TAIL_LINES = 8, PATH_BYTES = 512 };

/* ringpipe-agent lies beside ringpipe. */
static rp_err agent_program(char *out, size_t bytes) {
    ssize_t length = readlink("/proc/self/exe", out, bytes - 1);
    if (length <= 0) {
        return rp_fail(RP_ERR_IO, "/proc/self/exe: %s", strerror(errno));
    }
    out[length] = '\0';
    char *slash = strrchr(out, '/');
    static const char name[] = "/ringpipe-agent";
    if (!slash || (size_t)(slash - out) + sizeof name > bytes) {
        return rp_fail(RP_ERR_IO, "%s: too long", out);
    }
    memcpy(slash, name, sizeof name);
    if (access(out, X_OK) != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: %s (it belongs beside ringpipe)", out, strerror(errno));
    }
    return RP_OK;
}

static rp_err make_folder(rp_local *local) {
    const char *base = getenv("TMPDIR");
    (void)snprintf(local->folder, sizeof local->folder, "%s/ringpipe-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(local->folder)) {
        rp_err err = rp_fail(RP_ERR_IO, "%s: %s", local->folder, strerror(errno));
        local->folder[0] = '\0';
        return err;
    }
    return RP_OK;
}

static void remove_keys(const rp_local *local, uint32_t index) {
    static const char *const files[] = {"public.key", "secret.key", "trusted", ""};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/%u/%s", local->folder, index, files[i]);
        (void)remove(path);
    }
}

/* The cores shared out, at least one each. */
static uint32_t fair_threads(const rp_local_options *options) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t share = cores > 0 ? (uint32_t)cores / options->count : 1;
    return options->threads ? options->threads : share ? share : 1;
}

/* In the child between fork and exec: only async-signal-safe calls. */
static void become_agent(const char *program, char *const *argv, int output, int log_fd,
                         pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* a terminal's Ctrl-C is the controller's to handle */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(3);
    }
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(log_fd, 2) < 0) {
        _exit(3);
    }
    execv(program, argv);
    _exit(3);
}

static rp_err spawn(rp_local *local, uint32_t index, const char *program,
                    const rp_local_options *options) {
    rp_local_agent *agent = &local->agent[index];
    char keys[PATH_BYTES];
    char threads[16];
    char name[16];
    (void)snprintf(keys, sizeof keys, "%s/%u", local->folder, index);
    (void)snprintf(threads, sizeof threads, "%u", fair_threads(options));
    (void)snprintf(name, sizeof name, "%u", index);
    rp_keypair pair;
    rp_err err;
    RP_TRY(rp_keys_new(keys));
    RP_TRY(rp_keys_trust(keys, "host", options->host_public));
    RP_TRY(rp_keys_read(keys, &pair));
    memcpy(agent->public_text, pair.public_text, sizeof agent->public_text);
    int pipe_fd[2];
    if (pipe2(pipe_fd, O_CLOEXEC) != 0) {
        return rp_fail(RP_ERR_IO, "pipe: %s", strerror(errno));
    }
    int log_fd = open(agent->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_fd < 0) {
        (void)close(pipe_fd[0]);
        (void)close(pipe_fd[1]);
        return rp_fail(RP_ERR_IO, "%s: %s", agent->log_path, strerror(errno));
    }
    char *const argv[] = {(char *)(uintptr_t) "ringpipe-agent",
                          (char *)(uintptr_t) "--listen",
                          (char *)(uintptr_t) "tcp://127.0.0.1:0",
                          (char *)(uintptr_t) "--board",
                          (char *)(uintptr_t)options->board,
                          (char *)(uintptr_t) "--keys",
                          keys,
                          (char *)(uintptr_t) "--threads",
                          threads,
                          (char *)(uintptr_t) "--name",
                          name,
                          (char *)(uintptr_t) "--once",
                          NULL};
    pid_t parent = getpid();
    agent->pid = fork();
    if (agent->pid == 0) {
        become_agent(program, argv, pipe_fd[1], log_fd, parent);
    }
    err = agent->pid < 0 ? rp_fail(RP_ERR_IO, "fork: %s", strerror(errno)) : RP_OK;
    agent->pid = agent->pid < 0 ? 0 : agent->pid;
    (void)close(log_fd);
    (void)close(pipe_fd[1]);
    agent->output = pipe_fd[0];
fail:
    return err;
}

static void print_tail(const rp_local_agent *agent) {
    FILE *file = fopen(agent->log_path, "r");
    if (!file) {
        return;
    }
    char lines[LOG_TAIL_LINES][256];
    uint32_t count = 0;
    while (fgets(lines[count % LOG_TAIL_LINES], sizeof lines[0], file)) {
        count++;
    }
    (void)fclose(file);
    for (uint32_t i = count > LOG_TAIL_LINES ? count - LOG_TAIL_LINES : 0; i < count; i++) {
        (void)fprintf(stderr, "  agent: %s", lines[i % LOG_TAIL_LINES]);
    }
}

static rp_err error_of_exit(int status) {
    if (!WIFEXITED(status)) {
        return RP_ERR_FAULT;
    }
    switch (WEXITSTATUS(status)) {
    case 2:
        return RP_ERR_USAGE;
    case 4:
        return RP_ERR_DEVICE;
    case 5:
        return RP_ERR_REFUSED;
    default:
        return RP_ERR_FAULT;
    }
}

static rp_err ended(rp_local *local, uint32_t index, int status) {
    rp_local_agent *agent = &local->agent[index];
    pid_t pid = agent->pid;
    agent->pid = 0;
    print_tail(agent);
    if (WIFSIGNALED(status)) {
        return rp_fail(RP_ERR_FAULT, "agent %u (process %d) was killed by signal %d (%s)", index,
                       (int)pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return rp_fail(error_of_exit(status), "agent %u (process %d) ended with exit code %d", index,
                   (int)pid, WEXITSTATUS(status));
}

rp_err rp_local_reap(rp_local *local, uint32_t *index) {
    for (uint32_t i = 0; i < local->count; i++) {
        int status;
        if (local->agent[i].pid && waitpid(local->agent[i].pid, &status, WNOHANG) > 0) {
            *index = i;
            return ended(local, i, status);
        }
    }
    *index = local->count;
    return RP_OK;
}

static rp_err read_signals(const rp_local_options *options) {
    struct signalfd_siginfo info;
    while (read(options->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) { /* an agent's end shows at its pipe */
            return rp_fail(RP_ERR_INTERRUPTED, "interrupted while the agents start");
        }
    }
    return RP_OK;
}

/* Reads "listening ENDPOINT\n"; the end of the pipe means that the agent has gone. */
static rp_err read_endpoint(rp_local *local, uint32_t index, const rp_local_options *options) {
    rp_local_agent *agent = &local->agent[index];
    static const char word[] = "listening ";
    char line[160];
    size_t used = 0;
    for (;;) {
        struct pollfd item[2] = {{.fd = agent->output, .events = POLLIN},
                                 {.fd = options->signal_fd, .events = POLLIN}};
        int ready = poll(item, 2, START_TIMEOUT_MS);
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready > 0 && item[1].revents) {
            rp_err err = read_signals(options);
            if (err != RP_OK) {
                return err;
            }
        }
        if (ready > 0 && !item[0].revents) {
            continue;
        }
        if (ready <= 0) {
            return rp_fail(RP_ERR_TIMEOUT, "agent %u did not come up within %d s", index,
                           START_TIMEOUT_MS / 1000);
        }
        ssize_t got = read(agent->output, line + used, sizeof line - 1 - used);
        if (got <= 0) {
            int status = 0;
            (void)waitpid(agent->pid, &status, 0);
            return ended(local, index, status);
        }
        used += (size_t)got;
        line[used] = '\0';
        char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) : 0;
        if (length >= sizeof word && length - (sizeof word - 1) < sizeof agent->endpoint &&
            strncmp(line, word, sizeof word - 1) == 0) {
            memcpy(agent->endpoint, line + sizeof word - 1, length - (sizeof word - 1));
            return RP_OK;
        }
        if (end || used == sizeof line - 1) {
            return rp_fail(RP_ERR_PEER, "agent %u said '%s'", index, line);
        }
    }
}

rp_err rp_local_open(rp_arena *arena, const rp_local_options *options, rp_local **out) {
    rp_local *local = NULL;
    char program[PATH_BYTES];
    rp_err err;
    RP_TRY(agent_program(program, sizeof program));
    RP_TRY(RP_ARENA_NEW(arena, 1, &local));
    RP_TRY(RP_ARENA_NEW(arena, options->count, &local->agent));
    RP_TRY(make_folder(local));
    for (uint32_t i = 0; i < options->count; i++) {
        local->agent[i].output = -1;
    }
    local->count = options->count;
    struct stat status;
    local->program_bytes = stat(program, &status) == 0 ? (uint64_t)status.st_size : 0;
    for (uint32_t i = 0; i < options->count; i++) {
        RP_TRY(rp_arena_printf(arena, &local->agent[i].log_path, "%s/agent-%u.log",
                               options->log_folder ? options->log_folder : local->folder, i));
        RP_TRY(spawn(local, i, program, options));
    }
    for (uint32_t i = 0; i < options->count; i++) {
        RP_TRY(read_endpoint(local, i, options));
        remove_keys(local, i); /* it has read them */
    }
    *out = local;
    return RP_OK;
fail:
    rp_local_close(&local);
    return err;
}

/* Agents that were told BYE end by themselves; the others are killed after a moment. */
static void end_agent(rp_local_agent *agent) {
    for (int wait_ms = 0; agent->pid && wait_ms < 1000; wait_ms += 10) {
        int status;
        if (waitpid(agent->pid, &status, WNOHANG) != 0) {
            agent->pid = 0;
            return;
        }
        if (wait_ms == 300) {
            (void)kill(agent->pid, SIGTERM);
        }
        (void)poll(NULL, 0, 10);
    }
    if (agent->pid) {
        (void)kill(agent->pid, SIGKILL);
        (void)waitpid(agent->pid, NULL, 0);
        agent->pid = 0;
    }
}

void rp_local_close(rp_local **local_pointer) {
    rp_local *local = *local_pointer;
    if (!local) {
        return;
    }
    for (uint32_t i = 0; i < local->count; i++) {
        if (local->agent[i].output >= 0) {
            (void)close(local->agent[i].output);
        }
        end_agent(&local->agent[i]);
        if (!local->folder[0]) {
            continue;
        }
        remove_keys(local, i);
        size_t folder = strlen(local->folder);
        if (local->agent[i].log_path &&
            strncmp(local->agent[i].log_path, local->folder, folder) == 0) {
            (void)remove(local->agent[i].log_path);
        }
    }
    if (local->folder[0]) {
        (void)remove(local->folder);
    }
    *local_pointer = NULL;
}
