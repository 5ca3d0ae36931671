#include "record/sink_metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "record/sink.h"

enum { DIGITS = 10 };

struct rp_metrics {
    const char *path;
    FILE *file;
};

static rp_err fail_io(const char *path) {
    return rp_fail(RP_ERR_IO, "%s: can not be written: %s", path, strerror(errno));
}

/* Takes the reference; NULL means that memory is short or a text is not UTF-8. */
static rp_err write_line(const char *path, FILE *file, json_t *object) {
    if (!object) {
        return rp_fail(RP_ERR_FORMAT, "%s: a line can not be made: is its text UTF-8?", path);
    }
    const int bad = json_dumpf(object, file, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
    json_decref(object);
    if (bad || putc('\n', file) == EOF || fflush(file) != 0) {
        return fail_io(path);
    }
    return RP_OK;
}

/* JSON has no NaN. */
static json_t *json_of_real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

/* Copies the lines of steps before `step_end`; stops at one that a crash has torn. */
static rp_err copy_lines(FILE *from, const char *path, FILE *to, uint64_t step_end) {
    for (;;) {
        json_error_t problem;
        json_t *line = json_loadf(from, JSON_DISABLE_EOF_CHECK, &problem);
        if (!line) {
            return RP_OK;
        }
        const json_t *step = json_object_get(line, "step");
        if (!json_is_integer(step) || (uint64_t)json_integer_value(step) >= step_end) {
            json_decref(line);
            continue;
        }
        rp_err err = write_line(path, to, line);
        if (err != RP_OK) {
            return err;
        }
    }
}

/* The kept lines go to a new file that then takes the old one's place. */
static rp_err drop_later_records(rp_arena *arena, const char *path, uint64_t step_end) {
    rp_err err = RP_OK;
    char *temporary;
    FILE *from = fopen(path, "re");
    FILE *to = NULL;
    if (!from) {
        return errno == ENOENT
                   ? RP_OK
                   : rp_fail(RP_ERR_IO, "%s: can not be read: %s", path, strerror(errno));
    }
    RP_TRY(rp_arena_printf(arena, &temporary, "%s.tmp", path));
    to = fopen(temporary, "we");
    if (!to) {
        err = fail_io(temporary);
        goto fail;
    }
    RP_TRY(copy_lines(from, temporary, to, step_end));
    const bool good = fsync(fileno(to)) == 0;
    if (!good || rename(temporary, path) != 0) {
        err = fail_io(path);
    }
fail:
    (void)fclose(from);
    if (to) {
        (void)fclose(to);
    }
    return err;
}

rp_err rp_metrics_open(rp_arena *arena, const char *path, uint64_t step_first, rp_metrics **out) {
    rp_err err = RP_OK;
    rp_metrics *metrics;
    char *copy;
    RP_TRY(RP_ARENA_NEW(arena, 1, &metrics));
    RP_TRY(rp_arena_string(arena, path, &copy));
    metrics->path = copy;
    if (step_first > 0) {
        RP_TRY(drop_later_records(arena, path, step_first));
    }
    metrics->file = fopen(path, step_first > 0 ? "ae" : "we");
    if (!metrics->file) {
        err = fail_io(path);
        goto fail;
    }
    *out = metrics;
fail:
    return err;
}

rp_err rp_metrics_write_step(rp_metrics *metrics, const rp_metrics_step *step) {
    return write_line(metrics->path, metrics->file,
                      json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "step", (json_int_t)step->step,
                                "epoch", (json_int_t)step->epoch, "loss", json_of_real(step->loss),
                                "lr", json_of_real(step->lr), "samples_per_s",
                                json_of_real(step->samples_per_s), "time_s",
                                json_of_real(step->time_s)));
}

rp_err rp_metrics_write_eval(rp_metrics *metrics, const char *split, uint64_t step, double loss,
                             double accuracy, uint64_t samples, double time_s) {
    json_t *line = json_pack("{s:s, s:I, s:o}", "event", "eval", "step", (json_int_t)step, "loss",
                             json_of_real(loss));
    if (line && accuracy >= 0) {
        (void)json_object_set_new(line, "accuracy", json_of_real(accuracy));
    }
    if (line) {
        (void)json_object_set_new(line, "samples", json_integer((json_int_t)samples));
        (void)json_object_set_new(line, "time_s", json_of_real(time_s));
        (void)json_object_set_new(line, "split", json_string(split));
    }
    return write_line(metrics->path, metrics->file, line);
}

rp_err rp_metrics_write_event(rp_metrics *metrics, const char *name, uint64_t step, double time_s,
                              const char *text) {
    return write_line(metrics->path, metrics->file,
                      json_pack("{s:s, s:I, s:o, s:s}", "event", name, "step", (json_int_t)step,
                                "time_s", json_of_real(time_s), "text", text));
}

rp_err rp_metrics_write_prediction(rp_metrics *metrics, uint64_t step, uint32_t stage, uint64_t gap,
                                   uint64_t ahead, double error, double stale_error,
                                   double time_s) {
    return write_line(metrics->path, metrics->file,
                      json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "event", "prediction",
                                "step", (json_int_t)step, "stage", (json_int_t)stage, "gap",
                                (json_int_t)gap, "ahead", (json_int_t)ahead, "error",
                                json_of_real(error), "stale_error", json_of_real(stale_error),
                                "time_s", json_of_real(time_s)));
}

rp_err rp_metrics_close(rp_metrics **taken) {
    rp_metrics *metrics = *taken;
    *taken = NULL;
    if (metrics && fclose(metrics->file) != 0) {
        return fail_io(metrics->path);
    }
    return RP_OK;
}

/* ---- the sink -------------------------------------------------------------------------------- */

static rp_err open_sink(rp_arena *arena, const rp_sink_run *run, void **sink) {
    rp_metrics *metrics = NULL;
    char *path;
    rp_err err = RP_OK;
    if (!run->folder) {
        return RP_OK;
    }
    RP_TRY(rp_arena_printf(arena, &path, "%s/log.jsonl", run->folder));
    RP_TRY(rp_metrics_open(arena, path, run->step_first, &metrics));
    *sink = metrics;
fail:
    return err;
}

static rp_err on_step(void *sink, const rp_sink_step *step) {
    return rp_metrics_write_step(sink,
                                 &(rp_metrics_step){step->step, step->epoch, step->loss, step->lr,
                                                    step->samples_per_s, step->time_s});
}

/* With the last step trained: a run that resumes behind it keeps the line. */
static rp_err on_eval(void *sink, const rp_sink_eval *eval) {
    const uint64_t last = eval->step > 0 ? eval->step - 1 : 0;
    return rp_metrics_write_eval(sink, eval->split, last, eval->loss, eval->accuracy, eval->samples,
                                 eval->time_s);
}

static rp_err on_event(void *sink, const rp_sink_event *event) {
    return rp_metrics_write_event(sink, event->name, event->step, event->time_s, event->text);
}

static rp_err on_prediction(void *sink, const rp_sink_prediction *line) {
    return rp_metrics_write_prediction(sink, line->step, line->stage, line->gap, line->ahead,
                                       line->error, line->stale_error, line->time_s);
}

static rp_err close_sink(void *sink, const rp_summary *summary) {
    rp_metrics *metrics = sink;
    (void)summary;
    return rp_metrics_close(&metrics);
}

const rp_sink_kind rp_sink_metrics = {.name = "metrics",
                                      .open = open_sink,
                                      .on_step = on_step,
                                      .on_eval = on_eval,
                                      .on_event = on_event,
                                      .on_prediction = on_prediction,
                                      .close = close_sink};
