#include "lab/lab.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <jansson.h>

#include "base/folders.h"
#include "base/json_print.h"
#include "lab/job.h"
#include "lab/report.h"
#include "lab/show.h"

enum { TICK_MS = 200, LOOK_TICKS = 5 };

typedef struct {
    rp_arena arena;
    rp_labfile file;
    rp_lab_plan plan;
    rp_clock clock;
    char *folder;
    int lock_fd, signal_fd;
    uint32_t interrupts;
    rp_lab_job job[RP_LAB_JOBS_MAX];
    uint32_t jobs;
    rp_lab_show show;
    bool quiet;
} lab;

/* ---- folder ---------------------------------------------------------------------------------- */

static rp_err name_folder(lab *l, const rp_lab_options *options) {
    const char *slash = strrchr(options->path, '/');
    const char *name = slash ? slash + 1 : options->path;
    const char *dot = strrchr(name, '.');
    if (options->out) {
        size_t bytes = strlen(options->out);
        while (bytes > 1 && options->out[bytes - 1] == '/') {
            bytes--;
        }
        return rp_arena_text(&l->arena, options->out, bytes, &l->folder);
    }
    return rp_arena_printf(&l->arena, &l->folder, "runs/%.*s",
                           dot > name ? (int)(dot - name) : (int)strlen(name), name);
}

/* Refuses a folder that no comparison has made but that has files a comparison would overwrite. */
static rp_err check_foreign(lab *l) {
    static const char *const names[] = {"report.html", "table.md", "table.json", "curves"};
    char *path;
    rp_err err = RP_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        RP_TRY(rp_arena_printf(&l->arena, &path, "%s/%s", l->folder, names[i]));
        if (access(path, F_OK) == 0) {
            return rp_fail(RP_ERR_USAGE,
                           "--out %s: %s exists, and the comparison would overwrite it: "
                           "choose a new folder",
                           l->folder, names[i]);
        }
    }
fail:
    return err;
}

/* Two processes in one folder would overwrite each other's files. */
static rp_err lock_folder(lab *l) {
    char *path;
    rp_err err;
    RP_TRY(rp_folders_make(l->folder, 0777));
    RP_TRY(rp_arena_printf(&l->arena, &path, "%s/.lock", l->folder));
    RP_TRY(access(path, F_OK) == 0 ? RP_OK : check_foreign(l));
    l->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (l->lock_fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (flock(l->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: another `ringpipe lab` is running in this folder",
                       l->folder);
    }
fail:
    return err;
}

/* ---- reports --------------------------------------------------------------------------------- */

static rp_lab_report_options state_of(const lab *l, bool running) {
    rp_lab_counts counts = rp_lab_plan_count(&l->plan);
    return (rp_lab_report_options){.state = running             ? "running"
                                            : counts.complete   ? "finished"
                                            : l->interrupts > 0 ? "interrupted"
                                            : counts.failed > 0 ? "failed"
                                                                : "unfinished",
                                   .counts = counts};
}

static rp_err write_report(lab *l, bool running) {
    rp_arena arena;
    rp_arena_init(&arena, "report", 0);
    rp_lab_table table;
    rp_err err;
    rp_lab_report_options options = state_of(l, running);
    RP_TRY(rp_lab_table_make(&arena, &l->plan, &table));
    RP_TRY(rp_lab_report_write(&table, &options));
fail:
    rp_arena_finish(&arena);
    return err;
}

static rp_err print_table(lab *l, bool json) {
    rp_arena arena;
    rp_arena_init(&arena, "report", 0);
    rp_lab_table table;
    rp_err err;
    rp_lab_report_options options = state_of(l, false);
    RP_TRY(rp_lab_table_make(&arena, &l->plan, &table));
    if (json) {
        RP_TRY(rp_lab_report_print_json(&table, &options, stdout));
    } else {
        rp_lab_report_print(&table, stdout);
        (void)printf("\n%u of %u runs finished; everything is in %s: open %s/report.html\n",
                     options.counts.finished, options.counts.wanted, l->folder, l->folder);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

/* --dry-run: prints the runs that would be made. */
static rp_err print_plan(const lab *l, bool json) {
    rp_lab_counts counts = rp_lab_plan_count(&l->plan);
    if (json) {
        json_t *object = json_pack("{s:i, s:s, s:i, s:i, s:I}", "version", 1, "status", "checked",
                                   "runs", (int)counts.wanted, "finished", (int)counts.finished,
                                   "steps_left", (json_int_t)counts.steps_left);
        return rp_json_print(object, 0, stdout);
    }
    for (uint32_t i = 0; i < l->plan.run_count; i++) {
        static const char *const words[] = {"to do", "goes on", "goes on", "finished"};
        const rp_lab_run *run = &l->plan.run[i];
        if (run->wanted) {
            (void)printf("%-8s  %s\n", words[run->result.status], run->name);
        }
    }
    (void)printf("checked: %u runs, %u finished, %llu steps to do%s; the folder is %s\n",
                 counts.wanted, counts.finished, (unsigned long long)counts.steps_left,
                 l->file.tune ? ", then those that tuning chooses" : "", l->folder);
    return RP_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static rp_lab_job *free_job(lab *l) {
    for (uint32_t i = 0; i < l->jobs; i++) {
        if (!l->job[i].run) {
            return &l->job[i];
        }
    }
    return NULL;
}

static bool jobs_busy(const lab *l) {
    for (uint32_t i = 0; i < l->jobs; i++) {
        if (l->job[i].run) {
            return true;
        }
    }
    return false;
}

static rp_err start_jobs(lab *l) {
    rp_lab_job *job;
    rp_lab_run *run;
    rp_err err = RP_OK;
    while (l->interrupts == 0 && (job = free_job(l)) && (run = rp_lab_plan_next(&l->plan))) {
        RP_TRY(rp_lab_plan_write(&l->plan, run));
        RP_TRY(rp_lab_job_start(job, run, l->plan.keys, rp_clock_now_ns(&l->clock)));
        rp_lab_show_begin(&l->show, job);
    }
fail:
    return err;
}

static void read_signals(lab *l) {
    struct signalfd_siginfo info;
    while (read(l->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            continue; /* take_ended() polls all jobs */
        }
        l->interrupts++;
        for (uint32_t i = 0; i < l->jobs; i++) {
            if (l->job[i].run) {
                rp_lab_job_interrupt(&l->job[i], rp_clock_now_ns(&l->clock));
            }
        }
    }
}

/* Reads results from the runs' files, so that a later report has the same. */
static rp_err take_ended(lab *l) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < l->jobs; i++) {
        rp_lab_run *run = l->job[i].run;
        if (!run || !rp_lab_job_poll(&l->job[i], rp_clock_now_ns(&l->clock))) {
            continue;
        }
        RP_TRY(rp_lab_plan_refresh(&l->plan, run));
        rp_lab_show_end(&l->show, run);
        err = write_report(l, l->interrupts == 0);
        RP_TRY(err == RP_ERR_IO ? RP_OK
                                : err); /* the disk may be full; the next report is complete */
    }
fail:
    return err;
}

static rp_err run_all(lab *l) {
    rp_err err = RP_OK;
    for (uint32_t tick = 0;; tick++) {
        RP_TRY(start_jobs(l));
        if (!jobs_busy(l)) {
            break;
        }
        struct pollfd item = {.fd = l->signal_fd, .events = POLLIN};
        (void)poll(&item, 1, TICK_MS);
        read_signals(l);
        RP_TRY(take_ended(l));
        for (uint32_t i = 0; i < l->jobs && tick % LOOK_TICKS == 0; i++) {
            if (l->job[i].run) {
                rp_lab_job_read_progress(&l->job[i]);
            }
        }
        rp_lab_show_update(&l->show, l->job, l->jobs);
    }
fail:
    return err;
}

/* After the start, a usage error is a fault, for instance of a full disk. */
static rp_err as_fault(rp_err err) {
    return rp_err_exit_code(err) == 2 ? RP_ERR_FAULT : err;
}

static rp_err make_runs(lab *l) {
    rp_err err;
    rp_lab_show_open(&l->show, &l->plan, &l->clock, l->quiet);
    err = as_fault(run_all(l));
    for (uint32_t i = 0; i < l->jobs; i++) {
        rp_lab_job_close(&l->job[i], &l->clock);
    }
    rp_lab_show_close(&l->show);
    return err;
}

static rp_err judge_runs(const lab *l) {
    rp_lab_counts counts = rp_lab_plan_count(&l->plan);
    if (l->interrupts > 0 && !counts.complete) {
        return rp_fail(RP_ERR_INTERRUPTED,
                       "interrupted with %u of %u runs finished; the same command goes on",
                       counts.finished, counts.wanted);
    }
    if (!counts.complete) {
        return rp_fail(RP_ERR_FAULT,
                       "%u of %u runs are not finished; %s/report.html says why, the same command "
                       "tries them again",
                       counts.wanted - counts.finished, counts.wanted, l->folder);
    }
    return RP_OK;
}

rp_err rp_lab(const rp_lab_options *options) {
    lab l = {.lock_fd = -1,
             .signal_fd = options->signal_fd,
             .jobs = options->jobs,
             .quiet = options->quiet};
    rp_arena_init(&l.arena, "lab", 0);
    l.clock = rp_clock_real();
    rp_err err;
    if (options->jobs < 1 || options->jobs > RP_LAB_JOBS_MAX) {
        return rp_fail(RP_ERR_USAGE, "--jobs: expected 1 to %d", RP_LAB_JOBS_MAX);
    }
    RP_TRY(rp_labfile_read(&l.arena, options->path, &l.file));
    RP_TRY(name_folder(&l, options));
    RP_TRY(rp_lab_plan_make(&l.arena, &l.file, l.folder, &l.plan));
    l.plan.keys = options->keys;
    RP_TRY(rp_lab_plan_check(&l.plan));
    if (l.plan.on_roster && options->jobs > 1) {
        err = rp_fail(RP_ERR_USAGE,
                      "--jobs %u: the boards of a roster take one run at a time, expected 1",
                      options->jobs);
        goto fail;
    }
    if (options->dry_run) {
        err = print_plan(&l, options->json);
        goto fail;
    }
    RP_TRY(lock_folder(&l));
    RP_TRY(make_runs(&l));
    RP_TRY(write_report(&l, false));
    RP_TRY(print_table(&l, options->json));
    err = judge_runs(&l);
fail:
    if (l.lock_fd >= 0) {
        (void)close(l.lock_fd);
    }
    rp_arena_finish(&l.arena);
    return err;
}
