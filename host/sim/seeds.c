#include "sim/seeds.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { JOBS_MAX = 64, POLL_MS = 100 };

/* One result as a worker writes it to its pipe. Smaller than PIPE_BUF, so writes are atomic. */
typedef struct {
    uint64_t seed;
    rp_sim_result result;
} record;

typedef struct {
    pid_t pid;     /* 0: ended */
    int output;    /* read end of its pipe */
    uint64_t next; /* seed that it runs */
    int64_t since_ns, busy_ns; /* wall clock and processor time when it began this seed */
} worker;

typedef struct {
    const rp_seeds_options *options;
    rp_sim_tally *tally;
    uint32_t jobs;
    worker worker[JOBS_MAX];
} pool;

static volatile sig_atomic_t stopped;

static void on_signal(int number) {
    (void)number;
    stopped = 1;
}

/* The child process: runs seeds `first`, `first` + jobs, ... */
static _Noreturn void run_worker(const pool *p, uint64_t first, int output) {
    const rp_seeds_options *o = p->options;
    (void)signal(SIGINT, SIG_IGN); /* the parent handles it */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint64_t seed = first; seed <= o->last; seed += p->jobs) {
        record r = {.seed = seed};
        if (o->run(o->context, seed, &r.result) != RP_OK) {
            r.result.outcome = RP_SIM_WRONG;
        }
        if (write(output, &r, sizeof r) != (ssize_t)sizeof r) {
            _exit(1);
        }
        if (o->last - seed < p->jobs) {
            break;
        }
    }
    (void)fflush(NULL);
    _exit(0);
}

static int64_t now_ns(void) {
    const rp_clock clock = rp_clock_real();
    return rp_clock_now_ns(&clock);
}

/* Processor time of a child; 0 if unknown. */
static int64_t busy_ns(pid_t pid) {
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) {
        return 0;
    }
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool is_hung(const rp_seeds_options *options, const worker *w) {
    const double real_s = (double)(now_ns() - w->since_ns) * 1e-9;
    const double busy_s = (double)(busy_ns(w->pid) - w->busy_ns) * 1e-9;
    return real_s > options->limit_s ||
           (options->busy_limit_s > 0 && busy_s > options->busy_limit_s);
}

static rp_err start_worker(pool *p, worker *w, uint64_t first) {
    int ends[2];
    if (pipe(ends) != 0) {
        return rp_fail(RP_ERR_IO, "pipe: %s", strerror(errno));
    }
    (void)fflush(NULL); /* else the child would write the buffers again */
    const pid_t pid = fork();
    if (pid < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return rp_fail(RP_ERR_IO, "fork: %s", strerror(errno));
    }
    if (pid == 0) {
        (void)close(ends[0]);
        run_worker(p, first, ends[1]);
    }
    (void)close(ends[1]);
    *w = (worker){.pid = pid, .output = ends[0], .next = first, .since_ns = now_ns()};
    return RP_OK;
}

static void count_result(pool *p, uint64_t seed, const rp_sim_result *result) {
    rp_sim_tally *t = p->tally;
    t->runs++;
    t->finished += result->outcome == RP_SIM_FINISHED;
    t->stopped_resumable += result->outcome == RP_SIM_STOPPED_RESUMABLE;
    t->hung += result->outcome == RP_SIM_HUNG;
    t->wrong += result->outcome == RP_SIM_WRONG;
    t->faults_min = t->runs == 1 || result->faults < t->faults_min ? result->faults : t->faults_min;
    t->faults += result->faults;
    t->virtual_s += result->virtual_s;
    rp_sim_marks_add(&t->marks, &result->marks);
    const bool bad = result->outcome == RP_SIM_HUNG || result->outcome == RP_SIM_WRONG;
    if (bad && (!t->any_bad || seed < t->first_bad_seed)) {
        t->any_bad = true;
        t->first_bad_seed = seed;
    }
    if (p->options->on_result) {
        p->options->on_result(p->options->context, seed, result);
    }
}

static void end_worker(worker *w, bool kill_it) {
    if (kill_it) {
        (void)kill(w->pid, SIGKILL);
    }
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    (void)close(w->output);
    w->pid = 0;
}

/* Counts a seed that crashed or takes too long, and starts a new worker with the next seed. */
static rp_err replace_worker(pool *p, worker *w, rp_sim_outcome outcome) {
    const uint64_t seed = w->next;
    const rp_sim_result result = {.outcome = outcome};
    end_worker(w, true);
    count_result(p, seed, &result);
    return p->options->last - seed >= p->jobs ? start_worker(p, w, seed + p->jobs) : RP_OK;
}

static rp_err read_worker(pool *p, worker *w) {
    record r;
    const ssize_t n = read(w->output, &r, sizeof r);
    if (n < 0 && errno == EINTR) {
        return RP_OK;
    }
    if (n != (ssize_t)sizeof r) {
        return replace_worker(p, w, RP_SIM_WRONG); /* it ended before its last seed: a crash */
    }
    const bool last = p->options->last - r.seed < p->jobs;
    w->next = r.seed + (last ? 0 : p->jobs);
    w->since_ns = now_ns();
    w->busy_ns = busy_ns(w->pid);
    count_result(p, r.seed, &r.result);
    if (last) {
        end_worker(w, false);
    }
    return RP_OK;
}

static rp_err watch_workers(pool *p) {
    struct pollfd fd[JOBS_MAX];
    worker *of[JOBS_MAX];
    nfds_t count = 0;
    rp_err err = RP_OK;
    for (uint32_t j = 0; j < p->jobs; j++) {
        if (p->worker[j].pid) {
            of[count] = &p->worker[j];
            fd[count++] = (struct pollfd){.fd = p->worker[j].output, .events = POLLIN};
        }
    }
    if (poll(fd, count, POLL_MS) < 0 && errno != EINTR) {
        return rp_fail(RP_ERR_IO, "poll: %s", strerror(errno));
    }
    for (nfds_t i = 0; i < count; i++) {
        if (fd[i].revents) {
            RP_TRY(read_worker(p, of[i]));
        } else if (is_hung(p->options, of[i])) {
            RP_TRY(replace_worker(p, of[i], RP_SIM_HUNG));
        }
    }
fail:
    return err;
}

static bool any_works(const pool *p) {
    for (uint32_t j = 0; j < p->jobs; j++) {
        if (p->worker[j].pid) {
            return true;
        }
    }
    return false;
}

static uint32_t count_jobs(const rp_seeds_options *options) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t jobs = options->jobs ? options->jobs : cores > 0 ? (uint64_t)cores : 1;
    const uint64_t seeds = options->last - options->first + 1;
    jobs = seeds != 0 && seeds < jobs ? seeds : jobs;
    return jobs < JOBS_MAX ? (uint32_t)jobs : JOBS_MAX;
}

rp_err rp_seeds_run(const rp_seeds_options *options, rp_sim_tally *tally) {
    RP_ASSERT(options->first <= options->last && options->limit_s > 0);
    pool p = {.options = options, .tally = tally, .jobs = count_jobs(options)};
    const int64_t start_ns = now_ns();
    const struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before[2];
    rp_err err = RP_OK;
    *tally = (rp_sim_tally){0};
    stopped = 0;
    (void)sigaction(SIGINT, &action, &before[0]);
    (void)sigaction(SIGTERM, &action, &before[1]);
    for (uint32_t j = 0; j < p.jobs; j++) {
        RP_TRY(start_worker(&p, &p.worker[j], options->first + j));
    }
    while (any_works(&p)) {
        RP_TRY(watch_workers(&p));
        if (stopped) {
            err = rp_fail(RP_ERR_INTERRUPTED, "interrupted after %llu runs",
                          (unsigned long long)tally->runs);
            goto fail;
        }
    }
fail:
    for (uint32_t j = 0; j < p.jobs; j++) {
        if (p.worker[j].pid) {
            end_worker(&p.worker[j], true);
        }
    }
    (void)sigaction(SIGINT, &before[0], NULL);
    (void)sigaction(SIGTERM, &before[1], NULL);
    tally->seconds = (double)(now_ns() - start_ns) * 1e-9;
    return err;
}
