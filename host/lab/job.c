#include "lab/job.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

enum { PATH_BYTES = 512, TAIL_BYTES = 8192 };

static bool run_begun(const rp_lab_run *run) {
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/run.yaml", run->folder);
    return access(path, F_OK) == 0;
}

rp_err rp_lab_job_start(rp_lab_job *job, rp_lab_run *run, const char *keys, int64_t now_ns) {
    const int log_fd = open(run->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log_fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", run->log, strerror(errno));
    }
    const char *const word[] = {"ringpipe",
                                "train",
                                run->file,
                                run_begun(run) ? "--resume" : "--out",
                                run->folder,
                                "--format",
                                "json", /* a diverged run is a result */
                                "--set",
                                "train.stop_after.non_finite=0",
                                keys ? "--keys" : NULL,
                                keys,
                                NULL};
    rp_child child = {0};
    const rp_err err = rp_child_start(&child, NULL, word, (const int[3]){-1, -1, log_fd}, -1);
    (void)close(log_fd);
    if (err != RP_OK) {
        return err;
    }
    *job = (rp_lab_job){.run = run, .child = child, .start_ns = now_ns, .loss = (double)NAN};
    run->tried = run->running = true;
    rp_lab_job_read_progress(job);
    job->step_first = job->step;
    return RP_OK;
}

void rp_lab_job_interrupt(rp_lab_job *job, int64_t now_ns) {
    rp_child_tell(&job->child, now_ns);
}

static void note_killed(const rp_lab_run *run, int number) {
    FILE *file = fopen(run->log, "ae");
    if (file) {
        (void)fprintf(file, "lab error: the run was killed by signal %d (%s)\n", number,
                      strsignal(number));
        (void)fclose(file);
    }
}

bool rp_lab_job_poll(rp_lab_job *job, int64_t now_ns) {
    int code;
    if (!rp_child_reap(&job->child, &code)) {
        rp_child_press(&job->child, now_ns);
        return false;
    }
    if (job->child.killed_by) {
        note_killed(job->run, job->child.killed_by);
    }
    job->run->running = false;
    job->run = NULL;
    return true;
}

/* Takes step and loss from one line. */
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
            return; /* the line is not complete yet */
        }
        take_line(job, text + at, (size_t)(end - (text + at))); /* ignores a partial first line */
        at = (size_t)(end - text) + 1;
    }
}

void rp_lab_job_close(rp_lab_job *job, const rp_clock *clock) {
    if (!job->run) {
        return;
    }
    rp_lab_job_interrupt(job, rp_clock_now_ns(clock));
    while (!rp_lab_job_poll(job, rp_clock_now_ns(clock))) {
        (void)poll(NULL, 0, 20);
    }
}
