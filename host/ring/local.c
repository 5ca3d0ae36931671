#include "ring/local.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/log.h"
#include "base/replace.h"
#include "ring/available.h"
#include "ring/key_folder.h"

enum { LOG_TAIL_LINES = 8 };

/* Time after which agents that have not ended are terminated, and later killed. */
static const int64_t TELL_NS = 300 * RP_NS_PER_MS;
static const int64_t KILL_NS = RP_NS_PER_S;

/* ringpipe-agent is in the folder of this program. */
static void name_program(char *out, size_t bytes) {
    static const char name[] = "ringpipe-agent";
    const ssize_t length = readlink("/proc/self/exe", out, bytes - 1);
    out[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(out, '/');
    const size_t folder = slash ? (size_t)(slash + 1 - out) : 0;
    (void)snprintf(out + folder, bytes - folder, "%s", name);
}

static rp_err check_program(const rp_local *local) {
    return access(local->program, X_OK) == 0
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%s: %s (expected in the folder of ringpipe)",
                         local->program, strerror(errno));
}

static rp_err make_folder(rp_local *local) {
    const char *base = getenv("TMPDIR");
    base = base && base[0] ? base : "/tmp";
    rp_key_folder_remove_stale(base);
    (void)snprintf(local->folder, sizeof local->folder, "%s/ringpipe-XXXXXX", base);
    if (!mkdtemp(local->folder)) {
        rp_err err = rp_fail(RP_ERR_IO, "%s: %s; TMPDIR names the folder for temporary files",
                             local->folder, strerror(errno));
        local->folder[0] = '\0';
        return err;
    }
    local->folder_lock = rp_key_folder_lock(local->folder);
    return RP_OK;
}

static void remove_keys(const rp_local *local, uint32_t index) {
    static const char *const files[] = {"public.key", "secret.key", "trusted", ""};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[RP_LOCAL_PATH];
        (void)snprintf(path, sizeof path, "%s/%u/%s", local->folder, index, files[i]);
        (void)remove(path);
    }
}

/* Number of cores that this process may use. */
static uint32_t count_cores(void) {
    cpu_set_t usable;
    const bool known = sched_getaffinity(0, sizeof usable, &usable) == 0;
    const long cores = known ? CPU_COUNT(&usable) : sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (uint32_t)cores : 1;
}

/* The cores divided among the boards, at least one each. */
static uint32_t threads_of(const rp_spawn_order *order, uint32_t index) {
    const uint32_t share = count_cores() / order->count;
    const uint32_t given = order->board_threads ? order->board_threads[index] : order->threads;
    return given ? given : share ? share : 1;
}

static rp_err spawn_agent(rp_local *local, uint32_t index, const rp_spawn_order *order) {
    rp_local_agent *agent = &local->agent[index];
    RP_ASSERT(index < local->count && agent->pid == 0);
    char keys[RP_LOCAL_PATH];
    char threads[16];
    char name[16];
    char media[16];
    (void)snprintf(media, sizeof media, "%d", order->media);
    (void)snprintf(keys, sizeof keys, "%s/%u", local->folder, index);
    (void)snprintf(threads, sizeof threads, "%u", threads_of(order, index));
    (void)snprintf(name, sizeof name, "%u", index);
    rp_keypair pair;
    rp_err err;
    RP_TRY(rp_keys_new(keys));
    RP_TRY(rp_trusted_add(keys, "host", order->host_public));
    RP_TRY(rp_keys_read(keys, &pair));
    memcpy(agent->public_text, pair.public_text, sizeof agent->public_text);
    int pipe_fd[2];
    if (pipe2(pipe_fd, O_CLOEXEC) != 0) {
        return rp_fail(RP_ERR_IO, "pipe: %s", strerror(errno));
    }
    int log_fd = rp_replace_open(agent->log_path, O_WRONLY | O_APPEND);
    if (log_fd < 0) {
        (void)close(pipe_fd[0]);
        (void)close(pipe_fd[1]);
        return rp_fail(RP_ERR_IO, "%s: %s", agent->log_path, strerror(errno));
    }
    const char *const word[] = {"ringpipe-agent",
                                "--listen",
                                "tcp://127.0.0.1:0",
                                "--board",
                                order->board,
                                "--keys",
                                keys,
                                "--threads",
                                threads,
                                "--name",
                                name,
                                "--once",
                                order->media >= 0 ? "--media" : NULL,
                                media,
                                NULL};
    const int fd[3] = {-1, pipe_fd[1], log_fd};
    rp_child child = {0};
    err = rp_child_start(&child, local->program, word, fd, order->media);
    agent->pid = child.pid;
    (void)close(log_fd);
    (void)close(pipe_fd[1]);
    agent->output = pipe_fd[0];
    (void)fcntl(agent->output, F_SETFL, O_NONBLOCK); /* only this end: the agent's end may block */
fail:
    return err;
}

static void print_tail(const rp_local *local, const rp_local_agent *agent) {
    FILE *file = local->terminal ? fopen(agent->log_path, "r") : NULL;
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
        (void)fprintf(local->terminal, "  agent: %s", lines[i % LOG_TAIL_LINES]);
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

static rp_err agent_ended(rp_local *local, uint32_t index, int status) {
    rp_local_agent *agent = &local->agent[index];
    pid_t pid = agent->pid;
    agent->pid = 0;
    print_tail(local, agent);
    if (WIFSIGNALED(status)) {
        return rp_fail(RP_ERR_FAULT, "agent %u (process %d) was killed by signal %d (%s)", index,
                       (int)pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return rp_fail(error_of_exit(status), "agent %u (process %d) ended with exit code %d", index,
                   (int)pid, WEXITSTATUS(status));
}

static rp_err reap_agents(void *self, uint32_t *board) {
    rp_local *local = self;
    for (uint32_t i = 0; i < local->count; i++) {
        int status;
        if (local->agent[i].pid && waitpid(local->agent[i].pid, &status, WNOHANG) > 0) {
            *board = i;
            return agent_ended(local, i, status);
        }
    }
    *board = local->count;
    return RP_OK;
}

/* ---- coming up ------------------------------------------------------------------------------- */

/* "listening ENDPOINT\n" */
static rp_err read_line(rp_local_agent *agent, uint32_t index) {
    static const char word[] = "listening ";
    const char *end = strchr(agent->line, '\n');
    const size_t length = end ? (size_t)(end - agent->line) : 0;
    if (length >= sizeof word && length - (sizeof word - 1) < sizeof agent->endpoint &&
        strncmp(agent->line, word, sizeof word - 1) == 0) {
        memcpy(agent->endpoint, agent->line + sizeof word - 1, length - (sizeof word - 1));
        agent->listens = true;
    } else if (end || agent->line_used == sizeof agent->line - 1) {
        return rp_fail(RP_ERR_PEER, "agent %u printed '%s', expected `listening ENDPOINT`", index,
                       agent->line);
    }
    return RP_OK;
}

/* Reads an agent's pipe; the end of the pipe means that the agent has ended. */
static rp_err read_output(rp_local *local, uint32_t index) {
    rp_local_agent *agent = &local->agent[index];
    const size_t room = sizeof agent->line - 1 - agent->line_used;
    const ssize_t got = read(agent->output, agent->line + agent->line_used, room);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return RP_OK;
    }
    if (got <= 0) {
        int status = 0;
        (void)waitpid(agent->pid, &status, 0); /* its pipe is closed, so it is ending */
        return agent_ended(local, index, status);
    }
    agent->line_used += (size_t)got;
    RP_ASSERT(agent->line_used < sizeof agent->line);
    agent->line[agent->line_used] = '\0';
    return read_line(agent, index);
}

/* The first agent that does not listen yet, or the count. */
static uint32_t find_silent(const rp_local *local) {
    uint32_t i = 0;
    while (i < local->count && local->agent[i].listens) {
        i++;
    }
    return i;
}

static rp_err step_local(void *self, bool *up) {
    rp_local *local = self;
    rp_err err = RP_OK;
    for (uint32_t i = 0; err == RP_OK && i < local->count; i++) {
        if (!local->agent[i].listens) {
            err = read_output(local, i);
            if (local->agent[i].listens) {
                remove_keys(local, i); /* the agent has read them */
            }
        }
    }
    *up = find_silent(local) == local->count;
    return err;
}

static int local_fd(void *self) {
    const rp_local *local = self;
    const uint32_t silent = find_silent(local);
    return silent < local->count ? local->agent[silent].output : -1;
}

static void agent_address(void *self, uint32_t board, const char **endpoint,
                          const char **public_text) {
    const rp_local *local = self;
    RP_ASSERT(board < local->count && local->agent[board].listens);
    *endpoint = local->agent[board].endpoint;
    *public_text = local->agent[board].public_text;
}

static void finish_agents(void *self);

static rp_err start_agents(void *self, const rp_spawn_order *order) {
    rp_local *local = self;
    rp_err err;
    RP_TRY(check_program(local));
    RP_TRY(make_folder(local));
    RP_ASSERT(order->count > 0 && order->count <= RP_LOCAL_AGENTS_MAX);
    local->count = order->count;
    for (uint32_t i = 0; i < order->count; i++) {
        (void)snprintf(local->agent[i].log_path, sizeof local->agent[i].log_path, "%s/agent-%u.log",
                       order->log_folder ? order->log_folder : local->folder, i);
        RP_TRY(spawn_agent(local, i, order));
    }
    return RP_OK;
fail:
    finish_agents(local);
    return err;
}

/* ---- coming up again ------------------------------------------------------------------------- */

static bool has_gone(rp_local_agent *agent) {
    int status;
    if (agent->pid && waitpid(agent->pid, &status, WNOHANG) != 0) {
        agent->pid = 0;
    }
    return agent->pid == 0;
}

/* A restarted agent has new keys and another port. */
static rp_err restart_agents(void *self, const rp_spawn_order *order) {
    rp_local *local = self;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < local->count; i++) {
        rp_local_agent *agent = &local->agent[i];
        if (agent->pid && order->hung && order->hung[i]) {
            (void)kill(agent->pid, SIGKILL);
            (void)waitpid(agent->pid, NULL, 0);
            agent->pid = 0;
        }
        if (!has_gone(agent)) {
            continue;
        }
        if (agent->output >= 0) {
            (void)close(agent->output);
            agent->output = -1;
        }
        agent->listens = false;
        agent->line_used = 0;
        remove_keys(local, i); /* it may have ended before reading them */
        RP_TRY(spawn_agent(local, i, order));
    }
fail:
    return err;
}

/* ---- going ----------------------------------------------------------------------------------- */

static void signal_agents(const rp_local *local, int number) {
    for (uint32_t i = 0; i < local->count; i++) {
        if (local->agent[i].pid) {
            (void)kill(local->agent[i].pid, number);
        }
    }
}

static bool end_agents(void *self, int64_t now_ns) {
    rp_local *local = self;
    bool gone = true;
    for (uint32_t i = 0; i < local->count; i++) {
        gone = has_gone(&local->agent[i]) && gone;
    }
    local->end_ns = local->end_ns ? local->end_ns : now_ns;
    if (!gone && !local->told && now_ns - local->end_ns >= TELL_NS) {
        local->told = true;
        signal_agents(local, SIGTERM);
    }
    return gone || now_ns - local->end_ns >= KILL_NS;
}

static void finish_agent(rp_local *local, uint32_t i) {
    rp_local_agent *agent = &local->agent[i];
    const size_t folder = strlen(local->folder);
    if (agent->pid) {
        (void)kill(agent->pid, SIGKILL);
        (void)waitpid(agent->pid, NULL, 0);
        agent->pid = 0;
    }
    if (agent->output >= 0) {
        (void)close(agent->output);
        agent->output = -1;
    }
    if (folder > 0) {
        remove_keys(local, i);
        if (strncmp(agent->log_path, local->folder, folder) == 0) {
            (void)remove(agent->log_path);
        }
    }
}

static void finish_agents(void *self) {
    rp_local *local = self;
    for (uint32_t i = 0; i < local->count; i++) {
        finish_agent(local, i);
    }
    if (local->folder[0]) {
        rp_key_folder_unlock(local->folder, local->folder_lock);
        (void)remove(local->folder);
        local->folder[0] = '\0';
    }
    local->count = 0;
}

static const rp_spawner_kind rp_local_kind = {.name = "local",
                                              .start = start_agents,
                                              .restart = restart_agents,
                                              .step = step_local,
                                              .address = agent_address,
                                              .fd = local_fd,
                                              .reap = reap_agents,
                                              .end = end_agents,
                                              .close = finish_agents};

rp_spawner rp_local_spawner(rp_local *local, const char *program, FILE *terminal) {
    rp_spawner spawner = {.kind = &rp_local_kind,
                          .self = local,
                          .memory_bytes = rp_available_memory(""),
                          .cores = count_cores()};
    struct stat status;
    *local = (rp_local){.terminal = terminal};
    for (uint32_t i = 0; i < RP_LOCAL_AGENTS_MAX; i++) {
        local->agent[i].output = -1;
    }
    if (program) {
        (void)snprintf(local->program, sizeof local->program, "%s", program);
    } else {
        name_program(local->program, sizeof local->program);
    }
    if (stat(local->program, &status) == 0) {
        spawner.program_bytes = (uint64_t)status.st_size;
    }
    return spawner;
}
