#include "lab/result.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

enum { LINE_BYTES = 1024, EVALS_MAX = 100000 };

static const double none = (double)NAN;

/* ---- JSON ------------------------------------------------------------------------------------ */

static double read_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : none;
}

static rp_err take_text(rp_arena *arena, const json_t *text, const char **out) {
    const char *value = json_string_value(text);
    char *copy;
    rp_err err = rp_arena_string(arena, value ? value : "", &copy);
    *out = err == RP_OK ? copy : "";
    return err;
}

/* Reads a whole number from 0 to max; false: it is missing or invalid. */
static bool index_of(const json_t *object, const char *key, uint64_t max, uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    json_int_t whole = json_integer_value(value);
    *out = whole > 0 ? (uint64_t)whole : 0;
    return json_is_integer(value) && whole >= 0 && *out <= max;
}

/* ---- summary.json ---------------------------------------------------------------------------- */

enum { PATH_BYTES = 128, DEPTH_MAX = 4 };

/* Makes room for one more item. The capacity is a power of two, so it is full at these counts. */
static rp_err make_room(rp_arena *arena, uint32_t count, size_t size, void *items) {
    void *more;
    void *now;
    if (count & (count - 1)) {
        return RP_OK;
    }
    rp_err err = rp_arena_alloc(arena, count ? 2 * (size_t)count : 1, size, &more);
    if (err == RP_OK) {
        memcpy(&now, items, sizeof now);
        if (count > 0) {
            memcpy(more, now, count * size);
        }
        memcpy(items, &more, sizeof more);
    }
    return err;
}

/* Collects all numbers in `value`, whose path is `path`. */
static rp_err take_numbers(rp_arena *arena, const json_t *value, const char *path, uint32_t depth,
                           rp_lab_result *out) {
    char inner[PATH_BYTES];
    const char *key;
    json_t *item;
    size_t i;
    rp_err err = RP_OK;
    if (json_is_number(value)) {
        char *copy;
        RP_TRY(rp_arena_string(arena, path, &copy));
        RP_TRY(make_room(arena, out->number_count, sizeof *out->number, &out->number));
        out->number[out->number_count++] = (rp_lab_number){copy, json_number_value(value)};
    }
    if (depth == DEPTH_MAX) {
        return RP_OK;
    }
    json_object_foreach((json_t *)value, key, item) {
        (void)snprintf(inner, sizeof inner, "%s%s%s", path, path[0] ? "." : "", key);
        RP_TRY(take_numbers(arena, item, inner, depth + 1, out));
    }
    json_array_foreach(value, i, item) {
        (void)snprintf(inner, sizeof inner, "%s.%zu", path, i);
        RP_TRY(take_numbers(arena, item, inner, depth + 1, out));
    }
fail:
    return err;
}

double rp_lab_result_number(const rp_lab_result *result, const char *path) {
    for (uint32_t i = 0; i < result->number_count; i++) {
        if (strcmp(result->number[i].path, path) == 0) {
            return result->number[i].value;
        }
    }
    return none;
}

static rp_err read_stage(rp_arena *arena, const json_t *object, rp_lab_stage *out) {
    const json_t *layers = json_object_get(object, "layers");
    rp_err err;
    *out = (rp_lab_stage){
        .busy_s = read_number(object, "busy_s"),
        .idle_s = read_number(object, "idle_s"),
        .weight_bytes = read_number(object, "weight_bytes"),
        .device_bytes_max = read_number(object, "device_bytes_max"),
        .weight_versions_max = read_number(object, "weight_versions_max"),
        .in_flight_max = read_number(object, "in_flight_max"),
        .gap_max = read_number(object, "gap_max"),
    };
    RP_TRY(take_text(arena, json_object_get(object, "board"), &out->board));
    RP_TRY(take_text(arena, json_array_get(layers, 0), &out->first_layer));
    RP_TRY(take_text(arena, json_array_get(layers, json_array_size(layers) - 1), &out->last_layer));
fail:
    return err;
}

static rp_err read_stages(rp_arena *arena, const json_t *root, rp_lab_result *out) {
    const json_t *stages = json_object_get(root, "stage");
    size_t count = json_array_size(stages);
    rp_err err;
    count = count < RP_LAB_STAGES_MAX ? count : RP_LAB_STAGES_MAX;
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &out->stage));
    for (size_t i = 0; i < count; i++) {
        RP_TRY(read_stage(arena, json_array_get(stages, i), &out->stage[i]));
    }
    out->stage_count = (uint32_t)count;
fail:
    return err;
}

static const char *const wire_keys[RP_LAB_WIRE_NUMBERS] = {
    [RP_LAB_WIRE_BYTES] = "bytes",
    [RP_LAB_WIRE_BUSY] = "utilisation",
    [RP_LAB_WIRE_RATE] = "rate_mbit",
    [RP_LAB_WIRE_DELAY] = "delay_p50_ms",
    [RP_LAB_WIRE_DELAY_MOST] = "delay_p95_ms",
    [RP_LAB_WIRE_RESENT] = "resent",
    [RP_LAB_WIRE_RESETS] = "resets",
};

/* A board's number, or "host". */
static rp_err read_end(rp_arena *arena, const json_t *object, const char *key, const char **out) {
    uint64_t board;
    char *text;
    if (!index_of(object, key, UINT32_MAX, &board)) {
        return take_text(arena, json_object_get(object, key), out);
    }
    const rp_err err = rp_arena_printf(arena, &text, "%u", (uint32_t)board);
    *out = err == RP_OK ? text : "";
    return err;
}

static rp_err read_wires(rp_arena *arena, const json_t *root, rp_lab_result *out) {
    const json_t *wires = json_object_get(root, "wire");
    size_t count = json_array_size(wires);
    rp_err err;
    count = count < RP_LAB_WIRES_MAX ? count : RP_LAB_WIRES_MAX;
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &out->wire));
    for (; out->wire_count < count; out->wire_count++) {
        const json_t *object = json_array_get(wires, out->wire_count);
        rp_lab_wire *wire = &out->wire[out->wire_count];
        RP_TRY(take_text(arena, json_object_get(object, "kind"), &wire->kind));
        RP_TRY(read_end(arena, object, "from", &wire->from));
        RP_TRY(read_end(arena, object, "to", &wire->to));
        RP_TRY(take_text(arena, json_object_get(object, "codec"), &wire->codec));
        for (uint32_t i = 0; i < RP_LAB_WIRE_NUMBERS; i++) {
            wire->number[i] = read_number(object, wire_keys[i]);
        }
    }
fail:
    return err;
}

/* Numbers of summary.json that have a field in rp_lab_result. */
static const struct {
    const char *path;
    size_t at;
} fields[] = {
    {"steps", offsetof(rp_lab_result, steps)},
    {"epochs", offsetof(rp_lab_result, epochs)},
    {"seconds", offsetof(rp_lab_result, seconds)},
    {"samples", offsetof(rp_lab_result, samples)},
    {"samples_per_s", offsetof(rp_lab_result, samples_per_s)},
    {"train.loss", offsetof(rp_lab_result, train_loss)},
    {"eval.loss", offsetof(rp_lab_result, eval_loss)},
    {"eval.accuracy", offsetof(rp_lab_result, accuracy)},
    {"eval.samples", offsetof(rp_lab_result, eval_samples)},
    {"validation.loss", offsetof(rp_lab_result, validation_loss)},
    {"validation.accuracy", offsetof(rp_lab_result, validation_accuracy)},
};

static void fill_fields(rp_lab_result *out) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const double value = rp_lab_result_number(out, fields[i].path);
        memcpy((char *)out + fields[i].at, &value, sizeof value);
    }
}

static rp_err take_summary(rp_arena *arena, const json_t *root, rp_lab_result *out) {
    const json_t *eval = json_object_get(root, "eval");
    const json_t *validation = json_object_get(root, "validation");
    const char *status = json_string_value(json_object_get(root, "status"));
    rp_err err;
    out->status = !status                              ? RP_LAB_FAILED
                  : strcmp(status, "finished") == 0    ? RP_LAB_FINISHED
                  : strcmp(status, "interrupted") == 0 ? RP_LAB_INTERRUPTED
                                                       : RP_LAB_FAILED;
    RP_TRY(take_text(arena, json_object_get(root, "note"), &out->note));
    RP_TRY(take_numbers(arena, root, "", 0, out));
    fill_fields(out);
    out->validated = json_is_object(validation);
    out->classes = json_object_get(eval, "accuracy") || json_object_get(validation, "accuracy");
    bool finite = isfinite(out->train_loss) && (!eval || isfinite(out->eval_loss)) &&
                  (!validation || isfinite(out->validation_loss)) &&
                  (!eval || !out->classes || isfinite(out->accuracy));
    out->diverged = out->status == RP_LAB_FINISHED && !finite;
    RP_TRY(read_stages(arena, root, out));
    RP_TRY(read_wires(arena, root, out));
fail:
    return err;
}

static rp_err read_summary(rp_arena *arena, const char *folder, rp_lab_result *out) {
    char *path;
    rp_err err = rp_arena_printf(arena, &path, "%s/summary.json", folder);
    struct stat status;
    if (err != RP_OK || stat(path, &status) != 0) {
        return err;
    }
    json_error_t problem;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
    if (!json_is_object(root)) {
        char *note;
        json_decref(root);
        out->status = RP_LAB_FAILED;
        err = rp_arena_printf(arena, &note, "summary.json cannot be read: %s", problem.text);
        out->note = err == RP_OK ? note : "";
        return err;
    }
    out->ended_s = (int64_t)status.st_mtim.tv_sec;
    err = take_summary(arena, root, out);
    json_decref(root);
    return err;
}

double rp_lab_result_seconds_to(const rp_lab_result *result, double accuracy) {
    for (uint32_t i = 0; i < result->eval_count; i++) {
        if (result->eval[i].accuracy >= accuracy) {
            return result->eval[i].time_s - result->first_step_s;
        }
    }
    return none;
}

/* ---- log.jsonl ------------------------------------------------------------------------------- */

typedef struct {
    rp_arena *arena;
    rp_lab_result *out;
    uint64_t steps, width; /* width: steps of a bin */
    uint64_t epoch_steps;  /* 0: unknown yet */
    bool former;           /* the log counts steps from 0, as older versions did */
    double loss[RP_LAB_BINS];
    uint32_t loss_count[RP_LAB_BINS];
    rp_lab_prediction *stage[RP_LAB_STAGES_MAX];
    uint32_t (*stage_count)[RP_LAB_BINS]; /* lines by stage and bin */
} log_reader;

static rp_err take_eval(log_reader *r, const json_t *line, uint64_t step) {
    rp_lab_result *out = r->out;
    if (out->eval_count == EVALS_MAX) {
        return RP_OK;
    }
    rp_err err = make_room(r->arena, out->eval_count, sizeof *out->eval, &out->eval);
    if (err == RP_OK) {
        out->eval[out->eval_count++] = (rp_lab_eval){.epoch = none,
                                                     .step = (double)step,
                                                     .time_s = read_number(line, "time_s"),
                                                     .loss = read_number(line, "loss"),
                                                     .accuracy = read_number(line, "accuracy")};
    }
    return err;
}

static rp_err take_prediction(log_reader *r, const json_t *line, uint32_t bin) {
    uint64_t stage;
    rp_lab_prediction *p;
    if (!index_of(line, "stage", RP_LAB_STAGES_MAX - 1, &stage)) {
        return RP_OK;
    }
    if (!r->stage[stage]) {
        rp_err err = RP_ARENA_NEW(r->arena, 1, &r->stage[stage]);
        if (err != RP_OK) {
            return err;
        }
        r->stage[stage]->stage = (uint32_t)stage;
        r->stage[stage]->gap_max = none;
    }
    p = r->stage[stage];
    double gap = read_number(line, "gap");
    double error = read_number(line, "error");
    double stale = read_number(line, "stale_error");
    p->gap_max = gap > p->gap_max || !isfinite(p->gap_max) ? gap : p->gap_max;
    p->lines++;
    p->ahead_mean += read_number(line, "ahead"); /* a sum until the end of the file */
    p->error_mean += error;
    p->stale_mean += stale;
    p->error[bin] += error;
    p->stale[bin] += stale;
    r->stage_count[stage][bin]++;
    return RP_OK;
}

/* Reads one line: a step or an event. */
static rp_err take_line(log_reader *r, const json_t *line) {
    const char *event = json_string_value(json_object_get(line, "event"));
    uint64_t step;
    uint64_t epoch;
    if (!index_of(line, "step", UINT64_C(1) << 48, &step)) {
        return RP_OK;
    }
    r->former = r->former || (!event && step == 0);
    step += r->former;
    uint64_t at = (step - (step > 0)) / r->width;
    uint32_t bin = at < RP_LAB_BINS ? (uint32_t)at : RP_LAB_BINS - 1;
    if (!event) {
        double loss = read_number(line, "loss");
        double time_s = read_number(line, "time_s");
        if (isfinite(time_s) && !(time_s >= r->out->first_step_s)) {
            r->out->first_step_s = time_s;
        }
        if (r->epoch_steps == 0 && index_of(line, "epoch", UINT32_MAX, &epoch) && epoch > 0) {
            r->epoch_steps = (step - 1) / epoch;
        }
        r->loss[bin] += loss; /* a NaN makes the mean of this bin NaN */
        r->loss_count[bin]++;
        return RP_OK;
    }
    if (strcmp(event, "eval") == 0) {
        const char *split = json_string_value(json_object_get(line, "split"));
        const bool validation = split && strcmp(split, "validation") == 0;
        return validation == r->out->validated ? take_eval(r, line, step) : RP_OK;
    }
    if (strcmp(event, "prediction") == 0) {
        return take_prediction(r, line, bin);
    }
    if (strcmp(event, "skipped") == 0) {
        r->out->skipped++;
    }
    return RP_OK;
}

static rp_err finish_bins(log_reader *r) {
    rp_lab_result *out = r->out;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(r->arena, RP_LAB_BINS, &out->bin_loss));
    out->bin_steps = (double)r->width;
    for (uint32_t i = 0; i < RP_LAB_BINS; i++) {
        out->bin_loss[i] = r->loss_count[i] ? r->loss[i] / r->loss_count[i] : none;
        out->bin_count = r->loss_count[i] ? i + 1 : out->bin_count;
    }
    if (r->epoch_steps == 0 && out->epochs == 1) {
        r->epoch_steps = r->steps; /* the run has only one epoch */
    }
    for (uint32_t i = 0; i < out->eval_count && r->epoch_steps; i++) {
        out->eval[i].epoch = out->eval[i].step / (double)r->epoch_steps;
    }
fail:
    return err;
}

static rp_err finish_predictions(log_reader *r) {
    rp_lab_result *out = r->out;
    rp_err err;
    uint32_t count = 0;
    for (uint32_t k = 0; k < RP_LAB_STAGES_MAX; k++) {
        count += r->stage[k] != NULL;
    }
    RP_TRY(RP_ARENA_NEW(r->arena, (size_t)count + 1, &out->prediction));
    for (uint32_t k = 0; k < RP_LAB_STAGES_MAX; k++) {
        rp_lab_prediction *p = r->stage[k];
        if (!p) {
            continue;
        }
        p->ahead_mean /= (double)p->lines;
        p->error_mean /= (double)p->lines;
        p->stale_mean /= (double)p->lines;
        for (uint32_t i = 0; i < RP_LAB_BINS; i++) {
            p->error[i] = r->stage_count[k][i] ? p->error[i] / r->stage_count[k][i] : none;
            p->stale[i] = r->stage_count[k][i] ? p->stale[i] / r->stage_count[k][i] : none;
        }
        out->prediction[out->prediction_count++] = *p;
    }
fail:
    return err;
}

/* Whether only white space follows; skips it. */
static bool at_end(FILE *file) {
    int c;
    do {
        c = getc(file);
    } while (c == '\n' || c == '\r' || c == ' ');
    return c == EOF || ungetc(c, file) == EOF;
}

/* The width of bins depends on the run: its steps make at most RP_LAB_BINS bins. */
static rp_err read_lines(rp_arena *arena, FILE *file, rp_lab_result *out) {
    log_reader *r;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &r));
    *r = (log_reader){.arena = arena, .out = out, .width = 1};
    RP_TRY(RP_ARENA_NEW(arena, RP_LAB_STAGES_MAX, &r->stage_count));
    if (out->steps > 0 && out->steps < 1e15) {
        r->steps = (uint64_t)out->steps;
        r->width = (r->steps + RP_LAB_BINS - 1) / RP_LAB_BINS;
    }
    for (uint64_t count = 1; !at_end(file); count++) {
        json_error_t problem;
        json_t *line = json_loadf(file, JSON_DISABLE_EOF_CHECK, &problem);
        if (!line) {
            char *note;
            RP_TRY(rp_arena_printf(arena, &note, "line %llu of log.jsonl is no JSON: %s",
                                   (unsigned long long)count, problem.text));
            out->status = RP_LAB_FAILED;
            out->note = note;
            break;
        }
        err = take_line(r, line);
        json_decref(line);
        RP_TRY(err);
    }
    RP_TRY(finish_bins(r));
    RP_TRY(finish_predictions(r));
fail:
    return err;
}

static rp_err read_log(rp_arena *arena, const char *folder, rp_lab_result *out) {
    char *path;
    rp_err err = rp_arena_printf(arena, &path, "%s/log.jsonl", folder);
    FILE *file = err == RP_OK ? fopen(path, "re") : NULL;
    if (err != RP_OK) {
        return err;
    }
    if (!file) {
        out->status = RP_LAB_FAILED;
        out->note = "log.jsonl cannot be read";
        return RP_OK;
    }
    err = read_lines(arena, file, out);
    (void)fclose(file);
    return err;
}

/* ---- standard error -------------------------------------------------------------------------- */

/* Text of an error message: `ringpipe: text`, or from older versions `12:00:00.000 room error:
 * text`. NULL: the line is no error. */
static const char *error_in(const char *line) {
    static const char name[] = "ringpipe: ";
    static const char *const levels[] = {"warning: ", "note: "};
    const char *former = strstr(line, " error: ");
    if (strncmp(line, name, strlen(name)) != 0) {
        return former ? former + strlen(" error: ") : NULL;
    }
    line += strlen(name);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (strncmp(line, levels[i], strlen(levels[i])) == 0) {
            return NULL;
        }
    }
    return line;
}

/* Notes the last error message of the run. */
static rp_err read_said(rp_arena *arena, const char *path, rp_lab_result *out) {
    FILE *file = fopen(path, "re");
    char line[LINE_BYTES];
    char last[LINE_BYTES] = "";
    if (!file) {
        return RP_OK;
    }
    while (fgets(line, sizeof line, file)) {
        const char *found = error_in(line);
        if (found) {
            (void)snprintf(last, sizeof last, "%s", found);
            last[strcspn(last, "\r\n")] = '\0';
        }
    }
    (void)fclose(file);
    if (!last[0]) {
        return RP_OK;
    }
    char *note;
    rp_err err = rp_arena_string(arena, last, &note);
    if (err == RP_OK) {
        out->note = note;
        out->status = strncmp(note, "interrupted", strlen("interrupted")) == 0 ? RP_LAB_INTERRUPTED
                                                                               : RP_LAB_FAILED;
    }
    return err;
}

rp_err rp_lab_result_read(rp_arena *arena, const char *folder, const char *log,
                          rp_lab_result *out) {
    *out = (rp_lab_result){.status = RP_LAB_OPEN, .note = "", .first_step_s = none};
    fill_fields(out);
    rp_err err;
    RP_TRY(read_summary(arena, folder, out));
    if (out->status == RP_LAB_FINISHED) {
        RP_TRY(read_log(arena, folder, out));
    } else {
        RP_TRY(read_said(arena, log, out));
    }
fail:
    return err;
}

const rp_lab_prediction *rp_lab_result_prediction(const rp_lab_result *result, uint32_t stage) {
    for (uint32_t i = 0; result && i < result->prediction_count; i++) {
        if (result->prediction[i].stage == stage) {
            return &result->prediction[i];
        }
    }
    return NULL;
}

double rp_lab_result_gain(const rp_lab_result *result) {
    double error = 0;
    double stale = 0;
    for (uint32_t i = 0; i < result->prediction_count; i++) {
        const rp_lab_prediction *p = &result->prediction[i];
        if (!(p->stale_mean <= 0)) { /* NaN is included */
            error += p->error_mean;
            stale += p->stale_mean;
        }
    }
    return error > 0 ? stale / error : none;
}
