#include "record/sink_metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json_values.h"
#include "base/replace.h"

enum { DIGITS = 10, LINE_BYTES = 8192 };

typedef struct {
    const char *path;
    int fd;
    bool regular;
    rp_targets targets;
} log_file;

static rp_err fail_io(const char *path) {
    return rp_fail(RP_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
}

/* Appends a line. If the disk is full a partial line is removed, so that later lines stay valid. */
static bool append_whole(const log_file *file, const char *line, size_t bytes) {
    struct stat facts;
    const bool known = file->regular && fstat(file->fd, &facts) == 0;
    size_t done = 0;
    while (done < bytes) {
        const ssize_t wrote = write(file->fd, line + done, bytes - done);
        if (wrote > 0) {
            done += (size_t)wrote;
        } else if (wrote == 0 || errno != EINTR) {
            const int code = wrote == 0 ? ENOSPC : errno;
            if (known && done > 0) {
                (void)!ftruncate(file->fd, facts.st_size);
            }
            errno = code;
            return false;
        }
    }
    return true;
}

/* Writes an object and takes its reference; NULL: memory is short, or a text is not UTF-8. */
static rp_err write_line(const log_file *file, json_t *object) {
    char line[LINE_BYTES];
    const size_t bytes =
        object ? json_dumpb(object, line, sizeof line, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS))
               : 0;
    json_decref(object);
    if (bytes == 0 || bytes >= sizeof line) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: a line cannot be made; expected UTF-8 of less than %zu bytes",
                       file->path, sizeof line);
    }
    line[bytes] = '\n';
    return append_whole(file, line, bytes + 1) ? RP_OK : rp_replace_unwritten(file->path);
}

static bool is_one_of(const char *name, const char *const *names) {
    while (*names && strcmp(name, *names) != 0) {
        names++;
    }
    return *names != NULL;
}

/* Converts a line of an older version, which counted steps from 0. */
static void renumber(json_t *line) {
    static const char *const from_0[] = {"eval",    "prediction", "skipped",    "trust",
                                         "advance", "fault",      "not_finite", NULL};
    static const char *const from_0_or_1[] = {"advance", "fault", "not_finite", NULL};
    const char *event = json_string_value(json_object_get(line, "event"));
    json_t *step = json_object_get(line, "step");
    const json_int_t value = json_integer_value(step);
    if (!event || (is_one_of(event, from_0) && (value > 0 || !is_one_of(event, from_0_or_1)))) {
        (void)json_integer_set(step, value + 1);
    }
}

/* Is a line kept when the run continues at `step_first`? Events that happened are kept even if
 * their steps are trained again; lines that every start writes are not. */
static bool is_kept(const json_t *line, uint64_t step_first) {
    const char *event = json_string_value(json_object_get(line, "event"));
    const json_int_t step = json_integer_value(json_object_get(line, "step"));
    if (event && rp_words_stay(event)) {
        return true;
    }
    return step_first > 0 && (uint64_t)step < step_first + !(event && strcmp(event, "hint") == 0);
}

/* Copies the kept lines; stops at a line that a crash has truncated. */
static bool copy_lines(FILE *from, FILE *to, uint64_t step_first) {
    bool former = false;
    for (;;) {
        json_error_t problem;
        json_t *line = json_loadf(from, JSON_DISABLE_EOF_CHECK, &problem);
        if (!line) {
            return true;
        }
        const json_t *step = json_object_get(line, "step");
        if (!json_is_integer(step) || json_integer_value(step) < 0) {
            json_decref(line);
            continue;
        }
        former = former || (!json_object_get(line, "event") && json_integer_value(step) == 0);
        if (former) {
            renumber(line);
        }
        if (!is_kept(line, step_first)) {
            json_decref(line);
            continue;
        }
        const int bad = json_dumpf(line, to, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
        json_decref(line);
        if (bad || putc('\n', to) == EOF) {
            return false;
        }
    }
}

static bool is_regular(const char *path) {
    struct stat facts;
    return lstat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* Writes the kept lines to a new file, which replaces the old one. */
static rp_err drop_later_records(const char *path, uint64_t step_first) {
    FILE *from = is_regular(path) ? fopen(path, "re") : NULL;
    if (!from) {
        return is_regular(path)
                   ? rp_fail(RP_ERR_IO, "%s: cannot be read: %s", path, strerror(errno))
                   : RP_OK;
    }
    FILE *to = rp_replace_begin(path);
    const rp_err err = rp_replace_end(to, path, to && copy_lines(from, to, step_first));
    (void)fclose(from);
    return err;
}

static rp_err rewind_sink(void *sink, uint64_t step) {
    log_file *file = sink;
    rp_err err;
    RP_TRY(drop_later_records(file->path, step));
    const int after = rp_replace_open(file->path, O_WRONLY | O_APPEND);
    if (after < 0) {
        return fail_io(file->path);
    }
    (void)close(file->fd); /* the replaced file */
    file->fd = after;
fail:
    return err;
}

rp_err rp_metrics_open(rp_arena *arena, const char *path, uint64_t step_first, rp_targets targets,
                       void **sink) {
    rp_err err = RP_OK;
    log_file *file;
    char *copy;
    RP_TRY(RP_ARENA_NEW(arena, 1, &file));
    RP_TRY(rp_arena_string(arena, path, &copy));
    file->path = copy;
    file->targets = targets;
    RP_TRY(drop_later_records(path, step_first));
    file->fd = rp_replace_open(path, O_WRONLY | O_APPEND);
    file->regular = is_regular(path);
    if (file->fd < 0) {
        err = fail_io(path);
        goto fail;
    }
    *sink = file;
fail:
    return err;
}

static rp_err open_sink(rp_arena *arena, const rp_sink_run *run, void **sink) {
    char *path;
    rp_err err = RP_OK;
    if (!run->folder) {
        return RP_OK;
    }
    RP_TRY(rp_arena_printf(arena, &path, "%s/log.jsonl", run->folder));
    RP_TRY(rp_metrics_open(arena, path, run->step_first, run->targets, sink));
fail:
    return err;
}

/* Numbers that are not finite are written as null. */
static rp_err on_step(void *sink, const rp_sink_step *step) {
    const log_file *file = sink;
    bool good = true;
    json_t *line =
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "step", (json_int_t)step->step + 1, "epoch",
                  (json_int_t)step->epoch, "loss", rp_json_of_real(step->loss), "lr",
                  rp_json_of_real(step->lr), "samples_per_s", rp_json_of_real(step->samples_per_s),
                  "time_s", rp_json_of_real(step->time_s));
    if (line && rp_targets_are_tokens(file->targets)) {
        rp_json_put(line, "tokens_per_s", rp_json_of_real(step->tokens_per_s), &good);
        rp_targets_put_loss(line, file->targets, step->loss, step->bits, &good);
    }
    return write_line(sink, line);
}

static rp_err on_eval(void *sink, const rp_sink_eval *eval) {
    const log_file *file = sink;
    bool good = true;
    json_t *line = json_pack("{s:s, s:I, s:o}", "event", "eval", "step", (json_int_t)eval->step,
                             "loss", rp_json_of_real(eval->loss));
    if (line && eval->accuracy >= 0) {
        (void)json_object_set_new(line, "accuracy", rp_json_of_real(eval->accuracy));
    }
    if (line && file->targets == RP_TARGETS_PIXELS && isfinite(eval->mean_iou)) {
        (void)json_object_set_new(line, "mean_iou", rp_json_of_real(eval->mean_iou));
    }
    if (line) {
        rp_targets_put_loss(line, file->targets, eval->loss, eval->bits, &good);
        (void)json_object_set_new(line, "samples", json_integer((json_int_t)eval->samples));
        (void)json_object_set_new(line, "time_s", rp_json_of_real(eval->time_s));
        (void)json_object_set_new(line, "split", json_string(eval->split));
    }
    return write_line(sink, line);
}

static rp_err on_event(void *sink, const rp_sink_event *said) {
    const rp_run_event *event = said->event;
    json_t *line = json_pack("{s:s, s:I, s:o, s:s}", "event", rp_event_rows[event->kind].event,
                             "step", (json_int_t)event->step, "time_s",
                             rp_json_of_real(said->time_s), "text", said->text);
    if (line) {
        rp_words_put_facts(event, line);
    }
    return write_line(sink, line);
}

static rp_err on_prediction(void *sink, const rp_sink_prediction *line) {
    return write_line(sink,
                      json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "event", "prediction",
                                "step", (json_int_t)line->step + 1, "stage",
                                (json_int_t)line->stage, "gap", (json_int_t)line->gap, "ahead",
                                (json_int_t)line->ahead, "error", rp_json_of_real(line->error),
                                "stale_error", rp_json_of_real(line->stale_error), "time_s",
                                rp_json_of_real(line->time_s)));
}

static rp_err on_codec(void *sink, const rp_sink_codec *line) {
    return write_line(sink, json_pack("{s:s, s:I, s:I, s:s, s:s, s:o, s:o}", "event", "codec",
                                      "step", (json_int_t)line->step, "stage",
                                      (json_int_t)line->stage, "carries", line->carries, "codec",
                                      line->codec, "l2_error", rp_json_of_real(line->l2_error),
                                      "time_s", rp_json_of_real(line->time_s)));
}

static rp_err close_sink(void *sink, const rp_summary *summary) {
    log_file *file = sink;
    (void)summary;
    return close(file->fd) == 0 ? RP_OK : fail_io(file->path);
}

const rp_sink_kind rp_sink_metrics = {.name = "metrics",
                                      .spared = true,
                                      .open = open_sink,
                                      .on_step = on_step,
                                      .on_eval = on_eval,
                                      .on_event = on_event,
                                      .on_prediction = on_prediction,
                                      .on_codec = on_codec,
                                      .rewind = rewind_sink,
                                      .close = close_sink};
