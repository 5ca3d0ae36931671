#include "lab/show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/printable.h"
#include "lab/columns.h"

enum { LINE_BYTES = 512, BAR = 12 };

static const int64_t live_every_ns = RP_NS_PER_S / 4;
static const int64_t plain_every_ns = 30 * RP_NS_PER_S;

/* ---- time ------------------------------------------------------------------------------------ */

typedef struct {
    double seconds, steps;
} rate;

static void add_rate(rate *to, double seconds, double steps) {
    if (seconds > 0 && steps > 0) {
        to->seconds += seconds;
        to->steps += steps;
    }
}

/* Estimated seconds per step of a run, from the most similar runs: same method and model, same
 * model, or any; NaN when nothing is known. */
static double step_s(const rp_lab_plan *plan, const rp_lab_run *like, const rp_lab_job *job,
                     uint32_t jobs, int64_t now_ns) {
    rate same = {0};
    rate model = {0};
    rate any = {0};
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const rp_lab_run *run = &plan->run[i];
        double seconds = run->result.seconds;
        double steps = run->result.steps;
        for (uint32_t j = 0; j < jobs; j++) {
            if (job[j].run == run) {
                seconds = (double)(now_ns - job[j].start_ns) * 1e-9;
                steps = (double)(job[j].step - job[j].step_first);
            }
        }
        if (run->result.status != RP_LAB_FINISHED && !run->running) {
            continue;
        }
        add_rate(&any, seconds, steps);
        if (run->model == like->model) {
            add_rate(&model, seconds, steps);
            add_rate(run->method == like->method ? &same : &(rate){0}, seconds, steps);
        }
    }
    const rate *best = same.steps > 0 ? &same : model.steps > 0 ? &model : &any;
    return best->steps > 0 ? best->seconds / best->steps : (double)NAN;
}

/* Estimated seconds until all wanted runs are finished; NaN when nothing is known. */
static double time_left(const rp_lab_plan *plan, const rp_lab_job *job, uint32_t jobs,
                        int64_t now_ns) {
    double seconds = 0;
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const rp_lab_run *run = &plan->run[i];
        bool over = run->result.status == RP_LAB_FINISHED || (run->tried && !run->running);
        if (!run->wanted || over) {
            continue;
        }
        uint64_t done = 0;
        for (uint32_t j = 0; j < jobs; j++) {
            done = job[j].run == run ? job[j].step : done;
        }
        double left = run->steps > done ? (double)(run->steps - done) : 0;
        seconds += left * step_s(plan, run, job, jobs, now_ns);
    }
    return seconds / jobs;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void clear_lines(rp_lab_show *show) {
    if (show->drawn) {
        (void)fputs("\r\033[K", stderr);
        show->drawn = false;
    }
}

static void before_log_line(void *context) {
    clear_lines(context);
}

static uint32_t over_of(const rp_lab_plan *plan) {
    uint32_t over = 0;
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const rp_lab_run *run = &plan->run[i];
        bool ended = run->result.status == RP_LAB_FINISHED ||
                     (run->tried && run->result.status != RP_LAB_INTERRUPTED);
        over += run->wanted && !run->running && ended;
    }
    return over;
}

static void add_left(char *line, double seconds) {
    char text[RP_LAB_CELL_BYTES];
    size_t used = strlen(line);
    if (isfinite(seconds) && seconds > 0) {
        rp_lab_write_duration(seconds < 10 ? 10 : seconds, text); /* an estimate has no tenths */
        (void)snprintf(line + used, LINE_BYTES - used, ", %.40s left", text);
    }
}

static void add_job(char *line, const rp_lab_plan *plan, const rp_lab_job *job) {
    const rp_lab_run *run = job->run;
    size_t used = strlen(line);
    (void)snprintf(line + used, LINE_BYTES - used, " | %s, %s, seed %llu: step %llu/%llu",
                   run->label, plan->lab->folder[run->model],
                   (unsigned long long)plan->lab->seed[run->seed], (unsigned long long)job->step,
                   (unsigned long long)run->steps);
    used = strlen(line);
    if (isfinite(job->loss)) {
        (void)snprintf(line + used, LINE_BYTES - used, ", loss %.4g", job->loss);
    } else if (job->step > 0) {
        (void)snprintf(line + used, LINE_BYTES - used, ", loss not finite");
    }
}

static void make_line(const rp_lab_show *show, const rp_lab_job *job, uint32_t jobs, char *line) {
    const rp_lab_plan *plan = show->plan;
    rp_lab_counts counts = rp_lab_plan_count(plan);
    uint32_t over = over_of(plan);
    uint64_t done = 0;
    uint64_t all = 0;
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const rp_lab_run *run = &plan->run[i];
        bool finished = run->result.status == RP_LAB_FINISHED;
        all += run->wanted ? run->steps : 0;
        done += run->wanted && finished ? run->steps : 0;
    }
    for (uint32_t j = 0; j < jobs; j++) {
        done += job[j].run ? job[j].step : 0;
    }
    double share = all ? (double)done / (double)all : 0;
    int full = share < 1 ? (int)(share * BAR) : BAR;
    (void)snprintf(line, LINE_BYTES, "%u/%u [%.*s%*s] %.0f %%", over, counts.wanted, full,
                   "############", BAR - full, "", 100 * share);
    add_left(line, time_left(plan, job, jobs, rp_clock_now_ns(show->clock)));
    for (uint32_t j = 0; j < jobs; j++) {
        if (job[j].run) {
            add_job(line, plan, &job[j]);
        }
    }
}

/* Cuts the line one column before the edge, at which some terminals wrap. */
static void cut_line(char *line) {
    struct winsize size;
    size_t columns = 80;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) {
        columns = size.ws_col;
    }
    if (strlen(line) >= columns) {
        line[columns - 1] = '\0'; /* a partial character is not shown */
    }
}

void rp_lab_show_open(rp_lab_show *show, const rp_lab_plan *plan, const rp_clock *clock,
                      bool quiet) {
    const char *terminal = getenv("TERM");
    bool dumb = !terminal || strcmp(terminal, "dumb") == 0;
    *show = (rp_lab_show){.plan = plan,
                          .clock = clock,
                          .quiet = quiet,
                          .live = isatty(STDERR_FILENO) && !dumb && !quiet,
                          .drawn_ns = rp_clock_now_ns(clock)};
    if (show->live) {
        show->hook = (rp_log_hook){.before_line = before_log_line, .context = show};
        rp_log_add_hook(&show->hook);
    }
}

void rp_lab_show_begin(rp_lab_show *show, const rp_lab_job *job) {
    const rp_labfile *lab = show->plan->lab;
    const rp_lab_run *run = job->run;
    if (!show->live && !show->quiet) {
        rp_print(stderr, "%s, %s, seed %llu: %s\n", run->label, lab->folder[run->model],
                 (unsigned long long)lab->seed[run->seed], job->step_first ? "goes on" : "begins");
    }
}

/* Writes the score on the test part; on the validation part if tuning uses it or there is no test
 * score. */
static void write_score(const rp_lab_result *result, bool tunes) {
    const bool tested = isfinite(result->eval_loss) && !(tunes && result->validated);
    const char *part = tested ? "test" : "validation";
    const double accuracy = tested ? result->accuracy : result->validation_accuracy;
    const double loss = tested ? result->eval_loss : result->validation_loss;
    if (result->diverged || !isfinite(loss)) {
        return;
    }
    if (result->classes) {
        (void)fprintf(stderr, ", %s accuracy %.2f %%", part, 100 * accuracy);
    } else {
        (void)fprintf(stderr, ", %s loss %.4g", part, loss);
    }
}

void rp_lab_show_end(rp_lab_show *show, const rp_lab_run *run) {
    const rp_labfile *lab = show->plan->lab;
    const rp_lab_result *result = &run->result;
    rp_lab_counts counts = rp_lab_plan_count(show->plan);
    char text[RP_LAB_CELL_BYTES];
    if (show->quiet) {
        return;
    }
    clear_lines(show);
    rp_print(stderr, "%u/%u  %s, %s, seed %llu: %s", over_of(show->plan), counts.wanted, run->label,
             lab->folder[run->model], (unsigned long long)lab->seed[run->seed],
             rp_lab_status_word(result));
    if (result->status == RP_LAB_FINISHED) {
        rp_lab_write_duration(result->seconds, text);
        (void)fprintf(stderr, " in %s", text);
        write_score(result, lab->tunes[run->seed]);
    } else if (result->note[0] && result->status == RP_LAB_FAILED) {
        rp_print(stderr, ": %s", result->note);
    }
    (void)fputc('\n', stderr);
}

void rp_lab_show_update(rp_lab_show *show, const rp_lab_job *job, uint32_t jobs) {
    char line[LINE_BYTES];
    int64_t now_ns = rp_clock_now_ns(show->clock);
    int64_t every_ns = show->live ? live_every_ns : plain_every_ns;
    if (show->quiet || now_ns - show->drawn_ns < every_ns) {
        return;
    }
    make_line(show, job, jobs, line);
    if (show->live) {
        cut_line(line);
        (void)fprintf(stderr, "\r%s\033[K", line);
        show->drawn = true;
    } else {
        (void)fprintf(stderr, "%s\n", line);
    }
    (void)fflush(stderr);
    show->drawn_ns = now_ns;
}

void rp_lab_show_close(rp_lab_show *show) {
    clear_lines(show);
    rp_log_remove_hook(&show->hook);
}
