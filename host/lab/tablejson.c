#include "lab/tablejson.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/json_values.h"
#include "lab/columns.h"

enum { DIGITS = 10 };

static void append_value(json_t *array, json_t *value, bool *good) {
    *good = json_array_append_new(array, value) == 0 && *good;
}

/* ---- lines of tables ------------------------------------------------------------------------- */

static json_t *json_of_stats(const rp_stats *s, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "count", rp_json_of_whole(s->count), good);
    rp_json_put(object, "mean", rp_json_of_real(s->mean), good);
    rp_json_put(object, "deviation", rp_json_of_real(s->deviation), good);
    return object;
}

static json_t *json_of_paired(const rp_stats_paired *p, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "count", rp_json_of_whole(p->count), good);
    rp_json_put(object, "mean", rp_json_of_real(p->mean), good);
    rp_json_put(object, "deviation", rp_json_of_real(p->deviation), good);
    rp_json_put(object, "low", rp_json_of_real(p->low), good);
    rp_json_put(object, "high", rp_json_of_real(p->high), good);
    return object;
}

static json_t *json_of_value(const rp_lab_value *value, bool *good) {
    switch (value->kind) {
    case RP_LAB_TEXT:
        return json_string(value->text);
    case RP_LAB_WHOLE:
        return rp_json_of_whole(value->whole);
    case RP_LAB_TRUTH:
        return json_boolean(value->whole);
    case RP_LAB_REAL:
        return rp_json_of_real(value->stats.mean);
    case RP_LAB_STATS:
        return json_of_stats(&value->stats, good);
    case RP_LAB_PAIRED:
        return json_of_paired(&value->paired, good);
    case RP_LAB_NOTHING:
        break;
    }
    return json_null();
}

static json_t *json_of_line(const rp_lab_line *line, bool *good) {
    json_t *object = json_object();
    for (const rp_lab_column *c = rp_lab_columns[line->sheet->kind]; c->title || c->key; c++) {
        if (!c->key || !(c->always || !c->shown || c->shown(line->sheet))) {
            continue;
        }
        const rp_lab_value value = rp_lab_column_value(c, line);
        if (value.kind != RP_LAB_NOTHING || !c->optional) {
            rp_json_put(object, c->key, json_of_value(&value, good), good);
        }
    }
    return object;
}

static json_t *json_of_sheet(const rp_lab_sheet *sheet, bool *good) {
    json_t *array = json_array();
    for (rp_lab_line line = {.sheet = sheet}; rp_lab_sheet_next(&line);) {
        append_value(array, json_of_line(&line, good), good);
    }
    return array;
}

/* ---- the file -------------------------------------------------------------------------------- */

static json_t *json_of_predictions(const rp_lab_row *row, bool *good) {
    json_t *array = json_array();
    for (uint32_t s = 0; s < row->wanted; s++) {
        const rp_lab_result *result = row->result[s];
        for (uint32_t i = 0; result && i < result->prediction_count; i++) {
            const rp_lab_prediction *p = &result->prediction[i];
            json_t *object = json_object();
            rp_json_put(object, "seed_index", rp_json_of_whole(s), good);
            rp_json_put(object, "stage", rp_json_of_whole(p->stage), good);
            rp_json_put(object, "gap_max", rp_json_of_real(p->gap_max), good);
            rp_json_put(object, "ahead", rp_json_of_real(p->ahead_mean), good);
            rp_json_put(object, "error", rp_json_of_real(p->error_mean), good);
            rp_json_put(object, "stale_error", rp_json_of_real(p->stale_mean), good);
            rp_json_put(object, "ratio", rp_json_of_real(p->stale_mean / p->error_mean), good);
            append_value(array, object, good);
        }
    }
    return array;
}

static json_t *json_of_row(const rp_lab_line *line, bool *good) {
    const rp_lab_table *table = line->sheet->table;
    const rp_lab_sheet stages = rp_lab_sheet_of_row(table, RP_LAB_STAGES, line->row);
    const rp_lab_sheet wires = rp_lab_sheet_of_row(table, RP_LAB_WIRES, line->row);
    json_t *object = json_of_line(line, good);
    if (table->predicted) {
        rp_json_put(object, "prediction", json_of_predictions(line->row, good), good);
    }
    rp_json_put(object, "stage", json_of_sheet(&stages, good), good);
    rp_json_put(object, "wire", json_of_sheet(&wires, good), good);
    return object;
}

static json_t *json_of_tuning(const rp_lab_table *table, uint32_t index, bool *good) {
    const rp_lab_sheet sheet = rp_lab_sheet_of(table, RP_LAB_POINTS, index);
    const rp_lab_tuning *tuning = sheet.tuning;
    json_t *object = json_object();
    rp_json_put(object, "method", json_string(table->plan->lab->method[tuning->method].name), good);
    rp_json_put(object, "metric", json_string(tuning->accuracy ? "accuracy" : "loss"), good);
    rp_json_put(object, "split", json_string(tuning->validation ? "validation" : "test"), good);
    rp_json_put(object, "point", json_of_sheet(&sheet, good), good);
    return object;
}

static json_t *json_of_model(const rp_lab_table *table, uint32_t model, bool *good) {
    json_t *object = json_object();
    json_t *rows = json_array();
    json_t *tunings = json_array();
    const rp_lab_sheet sheet = rp_lab_sheet_of(table, RP_LAB_METHODS, model);
    for (rp_lab_line line = {.sheet = &sheet}; rp_lab_sheet_next(&line);) {
        append_value(rows, json_of_row(&line, good), good);
    }
    for (uint32_t i = 0; i < table->tuning_count; i++) {
        if (table->tuning[i].model == model) {
            append_value(tunings, json_of_tuning(table, i, good), good);
        }
    }
    rp_json_put(object, "model", json_string(table->plan->lab->model[model]), good);
    rp_json_put(object, "row", rows, good);
    rp_json_put(object, "sweep", tunings, good);
    return object;
}

static json_t *json_of_words(const char *const *word, uint32_t count, bool *good) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++) {
        append_value(array, json_string(word[i]), good);
    }
    return array;
}

static json_t *make_object(const rp_lab_table *table, const rp_lab_report_options *options,
                           bool *good) {
    const rp_labfile *lab = table->plan->lab;
    const rp_lab_sheet runs = rp_lab_sheet_of(table, RP_LAB_RUNS, 0);
    json_t *object = json_object();
    json_t *seeds = json_array();
    json_t *models = json_array();
    for (uint32_t i = 0; i < lab->seed_count; i++) {
        append_value(seeds, rp_json_of_whole(lab->seed[i]), good);
    }
    for (uint32_t i = 0; i < lab->model_count; i++) {
        append_value(models, json_of_model(table, i, good), good);
    }
    rp_json_put(object, "version", rp_json_of_whole(1), good);
    rp_json_put(object, "status", json_string(options->state), good);
    rp_json_put(object, "file", json_string(lab->path), good);
    rp_json_put(object, "folder", json_string(table->plan->folder), good);
    rp_json_put(object, "baseline",
                lab->baseline < lab->method_count ? json_string(lab->method[lab->baseline].name)
                                                  : json_null(),
                good);
    rp_json_put(object, "seeds", seeds, good);
    rp_json_put(object, "runs_wanted", rp_json_of_whole(options->counts.wanted), good);
    rp_json_put(object, "runs_finished", rp_json_of_whole(options->counts.finished), good);
    rp_json_put(object, "runs_failed", rp_json_of_whole(options->counts.failed), good);
    rp_json_put(object, "runs_diverged", rp_json_of_whole(options->counts.diverged), good);
    rp_json_put(object, "equal", json_of_words(table->equal, table->equal_count, good), good);
    rp_json_put(object, "differs", json_of_words(table->differs, table->differs_count, good), good);
    rp_json_put(object, "cut_differs", json_boolean(table->cut_differs), good);
    rp_json_put(object, "model", models, good);
    rp_json_put(object, "run", json_of_sheet(&runs, good), good);
    return object;
}

rp_err rp_lab_json(const rp_lab_table *table, const rp_lab_report_options *options, FILE *file,
                   size_t flags) {
    bool good = true;
    json_t *object = make_object(table, options, &good);
    if (!good) {
        json_decref(object);
        return rp_fail(RP_ERR_FORMAT, "cannot make table.json: is every name UTF-8?");
    }
    bool written = json_dumpf(object, file, flags | JSON_REAL_PRECISION(DIGITS)) == 0 &&
                   putc('\n', file) != EOF;
    json_decref(object);
    return written ? RP_OK
                   : rp_fail(RP_ERR_IO, "the table could not be written: %s", strerror(errno));
}
