#include "lab/job.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

enum { PATH_BYTES = 512, TAIL_BYTES = 8192 };

/* An orderly end writes a checkpoint; the second word is obeyed at once. */
static const int64_t orderly_ns = 120 * RP_NS_PER_S;
static const int64_t at_once_ns = 20 * RP_NS_PER_S;

static char *copy_word(const char *text) {
    return (char *)(uintptr_t)text; /* execv's type; it changes nothing */
}

/* In the child between fork and exec: only async-signal-safe calls. */
static void become_train(char *const *argv, int log_fd, pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* a terminal's Ctrl-C is the lab's to handle */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(3);
    }
    int nothing = open("/dev/null", O_RDWR);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 || dup2(log_fd, 2) < 0) {
        _exit(3);
    }
    execv("/proc/self/exe", argv);
    _exit(3);
}

static bool run_begun(const rp_lab_run *run) {
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/run.yaml", run->folder);
    return access(path, F_OK) == 0;
}

rp_err rp_lab_job_start(rp_lab_job *job, rp_lab_run *run, const char *keys, int64_t now_ns) {
    int log_fd = open(run->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log_fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", run->log, strerror(errno));
    }
    char *const argv[] = {copy_word("ringpipe"),
                          copy_word("train"),
                          copy_word(run->file),
                          copy_word(run_begun(run) ? "--resume" : "--out"),
                          copy_word(run->folder),
                          copy_word("--format"),
                          copy_word("json"), /* a run that diverges is a result, too */
                          copy_word("--set"),
                          copy_word("train.stop_after.non_finite=0"),
                          keys ? copy_word("--keys") : NULL,
                          copy_word(keys),
                          NULL};
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        become_train(argv, log_fd, parent);
    }
    (void)close(log_fd);
    if (pid < 0) {
        return rp_fail(RP_ERR_IO, "fork: %s", strerror(errno));
    }
    *job = (rp_lab_job){.run = run, .pid = pid, .start_ns = now_ns, .loss = (double)NAN};
    run->tried = run->running = true;
    rp_lab_job_read_progress(job);
    job->step_first = job->step;
    return RP_OK;
}

void rp_lab_job_interrupt(rp_lab_job *job, int64_t now_ns) {
    job->told++;
    job->told_ns = now_ns;
    if (job->told <= 2) {
        (void)kill(job->pid, SIGINT);
    } else {
        (void)kill(job->pid, SIGKILL);
    }
}

static void note_killed(const rp_lab_run *run, int number) {
    FILE *file = fopen(run->log, "ae");
    if (file) {
        (void)fprintf(file, "lab error: the run was killed by signal %d (%s)\n", number,
                      strsignal(number));
        (void)fclose(file);
    }
}

bool rp_lab_job_poll(rp_lab_job *job, int64_t now_ns, int *code) {
    int status;
    pid_t got = waitpid(job->pid, &status, WNOHANG);
    if (got == 0) {
        int64_t patience_ns = job->told == 1 ? orderly_ns : at_once_ns;
        if (job->told > 0 && now_ns - job->told_ns > patience_ns) {
            rp_lab_job_interrupt(job, now_ns);
        }
        return false;
    }
    *code = 3;
    if (got == job->pid && WIFEXITED(status)) {
        *code = WEXITSTATUS(status);
    } else if (got == job->pid && WIFSIGNALED(status)) {
        *code = 128 + WTERMSIG(status);
        note_killed(job->run, WTERMSIG(status));
    }
    job->run->running = false;
    job->run = NULL;
    return true;
}

/* The newest step of the last lines of the file. */
static void take_line(rp_lab_job *job, const char *line, size_t bytes) {
    json_t *object = json_loadb(line, bytes, 0, NULL);
    const json_t *step = json_object_get(object, "step");
    const json_t *loss = json_object_get(object, "loss");
    if (json_is_integer(step) && json_integer_value(step) >= 0) {
        job->step = (uint64_t)json_integer_value(step);
        if (!json_object_get(object, "event")) {
            job->loss = json_is_number(loss) ? json_number_value(loss) : (double)NAN;
        }
    }
    json_decref(object);
}

void rp_lab_job_read_progress(rp_lab_job *job) {
    char path[PATH_BYTES];
    char text[TAIL_BYTES];
    (void)snprintf(path, sizeof path, "%s/log.jsonl", job->run->folder);
    FILE *file = fopen(path, "re");
    if (!file) {
        return;
    }
    if (fseek(file, -(long)sizeof text, SEEK_END) != 0) {
        rewind(file);
    }
    size_t bytes = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        if (!end) {
            return; /* being written */
        }
        take_line(job, text + at, (size_t)(end - (text + at))); /* a torn first one is no JSON */
        at = (size_t)(end - text) + 1;
    }
}

void rp_lab_job_close(rp_lab_job *job, const rp_clock *clock) {
    int code;
    if (!job->run) {
        return;
    }
    rp_lab_job_interrupt(job, rp_clock_now_ns(clock));
    while (!rp_lab_job_poll(job, rp_clock_now_ns(clock), &code)) {
        (void)poll(NULL, 0, 20);
    }
}
