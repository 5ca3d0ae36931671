#include "lab/tablejson.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "lab/cells.h"

enum { DIGITS = 10 };

/* JSON has no NaN. */
static json_t *real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *whole(uint64_t value) {
    return json_integer((json_int_t)value);
}

/* Sets key after key; `*good` turns false when one can not be set (a text that is not UTF-8). */
static void put(json_t *object, const char *key, json_t *value, bool *good) {
    *good = json_object_set_new(object, key, value) == 0 && *good;
}

static void append(json_t *array, json_t *value, bool *good) {
    *good = json_array_append_new(array, value) == 0 && *good;
}

static json_t *stats(const rp_stats *s, bool *good) {
    json_t *object = json_object();
    put(object, "count", whole(s->count), good);
    put(object, "mean", real(s->mean), good);
    put(object, "deviation", real(s->deviation), good);
    return object;
}

static json_t *paired(const rp_stats_paired *p, bool *good) {
    json_t *object = json_object();
    put(object, "count", whole(p->count), good);
    put(object, "mean", real(p->mean), good);
    put(object, "deviation", real(p->deviation), good);
    put(object, "low", real(p->low), good);
    put(object, "high", real(p->high), good);
    return object;
}

static json_t *stages(const rp_lab_row *row, bool *good) {
    json_t *array = json_array();
    for (uint32_t k = 0; k < row->stage_count; k++) {
        const rp_lab_stage *stage = &row->stage[k];
        json_t *object = json_object();
        put(object, "first_layer", json_string(stage->first_layer), good);
        put(object, "last_layer", json_string(stage->last_layer), good);
        put(object, "device_bytes_max", real(stage->device_bytes_max), good);
        put(object, "weight_bytes", real(stage->weight_bytes), good);
        put(object, "weight_versions_max", real(stage->weight_versions_max), good);
        put(object, "in_flight_max", real(stage->in_flight_max), good);
        put(object, "gap_max", real(stage->gap_max), good);
        append(array, object, good);
    }
    return array;
}

static json_t *predictions(const rp_lab_row *row, bool *good) {
    json_t *array = json_array();
    for (uint32_t s = 0; s < row->wanted; s++) {
        const rp_lab_result *result = row->result[s];
        for (uint32_t i = 0; result && i < result->prediction_count; i++) {
            const rp_lab_prediction *p = &result->prediction[i];
            json_t *object = json_object();
            put(object, "seed_index", whole(s), good);
            put(object, "stage", whole(p->stage), good);
            put(object, "gap_max", real(p->gap_max), good);
            put(object, "ahead", real(p->ahead_mean), good);
            put(object, "error", real(p->error_mean), good);
            put(object, "stale_error", real(p->stale_mean), good);
            put(object, "ratio", real(p->stale_mean / p->error_mean), good);
            append(array, object, good);
        }
    }
    return array;
}

static json_t *row_of(const rp_lab_table *table, const rp_lab_row *row, bool *good) {
    const rp_labfile *lab = table->plan->lab;
    json_t *object = json_object();
    put(object, "method", json_string(lab->method[row->method].name), good);
    put(object, "label", json_string(row->label), good);
    put(object, "baseline", json_boolean(row->baseline), good);
    put(object, "seeds", whole(row->wanted), good);
    put(object, "finished", whole(row->finished), good);
    put(object, "failed", whole(row->failed), good);
    put(object, "diverged", whole(row->diverged), good);
    if (table->classes) {
        put(object, "accuracy", row->diverged ? json_null() : stats(&row->accuracy, good), good);
        put(object, "accuracy_difference",
            row->diverged ? json_null() : paired(&row->accuracy_over, good), good);
    }
    put(object, "loss", row->diverged ? json_null() : stats(&row->loss, good), good);
    put(object, "loss_difference", row->diverged ? json_null() : paired(&row->loss_over, good),
        good);
    put(object, "verdict", json_string(rp_lab_say_verdict(table, row)), good);
    put(object, "train_loss", row->diverged ? json_null() : stats(&row->train_loss, good), good);
    put(object, "samples_per_s", stats(&row->samples_per_s, good), good);
    put(object, "speed", real(row->speed), good);
    for (const rp_lab_column *c = rp_lab_columns; c->title; c++) {
        if (c->key) {
            const rp_stats numbers = rp_lab_column_stats(c, row);
            put(object, c->key, stats(&numbers, good), good);
        }
    }
    put(object, "device_bytes", real(row->device_bytes), good);
    put(object, "weight_versions_max", real(row->versions_max), good);
    put(object, "gap_max", real(row->gap_max), good);
    if (table->predicted) {
        put(object, "stale_over_predicted", stats(&row->gain, good), good);
        put(object, "prediction", predictions(row, good), good);
    }
    put(object, "stage", stages(row, good), good);
    return object;
}

static json_t *tuning_of(const rp_lab_table *table, const rp_lab_tuning *tuning, bool *good) {
    json_t *object = json_object();
    json_t *trials = json_array();
    for (uint32_t i = 0; i < tuning->trial_count; i++) {
        const rp_lab_trial *trial = &tuning->trial[i];
        json_t *one = json_object();
        put(one, "label", json_string(trial->label), good);
        put(one, "score", trial->diverged ? json_null() : stats(&trial->score, good), good);
        put(one, "finished", whole(trial->finished), good);
        put(one, "diverged", whole(trial->diverged), good);
        put(one, "chosen", json_boolean(trial->chosen), good);
        put(one, "at_edge", json_boolean(trial->at_edge), good);
        append(trials, one, good);
    }
    put(object, "method", json_string(table->plan->lab->method[tuning->method].name), good);
    put(object, "metric", json_string(tuning->accuracy ? "accuracy" : "loss"), good);
    put(object, "point", trials, good);
    return object;
}

static json_t *model_of(const rp_lab_table *table, uint32_t model, bool *good) {
    json_t *object = json_object();
    json_t *rows = json_array();
    json_t *tunings = json_array();
    for (uint32_t i = 0; i < table->line_count; i++) {
        append(rows, row_of(table, &table->row[model * table->line_count + i], good), good);
    }
    for (uint32_t i = 0; i < table->tuning_count; i++) {
        if (table->tuning[i].model == model) {
            append(tunings, tuning_of(table, &table->tuning[i], good), good);
        }
    }
    put(object, "model", json_string(table->plan->lab->model[model]), good);
    put(object, "row", rows, good);
    put(object, "sweep", tunings, good);
    return object;
}

static json_t *runs_of(const rp_lab_plan *plan, bool *good) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const rp_lab_run *run = &plan->run[i];
        const rp_lab_result *result = &run->result;
        if (!run->wanted) {
            continue;
        }
        json_t *object = json_object();
        put(object, "run", json_string(run->name), good);
        put(object, "model", json_string(plan->lab->model[run->model]), good);
        put(object, "method", json_string(plan->lab->method[run->method].name), good);
        put(object, "label", json_string(run->label), good);
        put(object, "seed", whole(plan->lab->seed[run->seed]), good);
        put(object, "status", json_string(rp_lab_say_status(result)), good);
        if (result->status != RP_LAB_FINISHED && result->note[0]) {
            put(object, "note", json_string(result->note), good);
        }
        put(object, "accuracy", result->diverged ? json_null() : real(result->accuracy), good);
        put(object, "loss", real(result->eval_loss), good);
        put(object, "train_loss", real(result->train_loss), good);
        put(object, "steps", real(result->steps), good);
        put(object, "seconds", real(result->seconds), good);
        put(object, "samples_per_s", real(result->samples_per_s), good);
        put(object, "skipped_steps", real(result->skipped), good);
        append(array, object, good);
    }
    return array;
}

static json_t *words_of(const char *const *word, uint32_t count, bool *good) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++) {
        append(array, json_string(word[i]), good);
    }
    return array;
}

static json_t *make_object(const rp_lab_table *table, const rp_lab_report_options *options,
                           bool *good) {
    const rp_labfile *lab = table->plan->lab;
    json_t *object = json_object();
    json_t *seeds = json_array();
    json_t *models = json_array();
    for (uint32_t i = 0; i < lab->seed_count; i++) {
        append(seeds, whole(lab->seed[i]), good);
    }
    for (uint32_t i = 0; i < lab->model_count; i++) {
        append(models, model_of(table, i, good), good);
    }
    put(object, "version", whole(1), good);
    put(object, "status", json_string(options->state), good);
    put(object, "file", json_string(lab->path), good);
    put(object, "folder", json_string(table->plan->folder), good);
    put(object, "baseline",
        lab->baseline < lab->method_count ? json_string(lab->method[lab->baseline].name)
                                          : json_null(),
        good);
    put(object, "seeds", seeds, good);
    put(object, "runs_wanted", whole(options->counts.wanted), good);
    put(object, "runs_finished", whole(options->counts.finished), good);
    put(object, "runs_failed", whole(options->counts.failed), good);
    put(object, "runs_diverged", whole(options->counts.diverged), good);
    put(object, "equal", words_of(table->equal, table->equal_count, good), good);
    put(object, "differs", words_of(table->differs, table->differs_count, good), good);
    put(object, "cut_differs", json_boolean(table->cut_differs), good);
    put(object, "model", models, good);
    put(object, "run", runs_of(table->plan, good), good);
    return object;
}

rp_err rp_lab_json(const rp_lab_table *table, const rp_lab_report_options *options, FILE *file,
                   size_t flags) {
    bool good = true;
    json_t *object = make_object(table, options, &good);
    if (!good) {
        json_decref(object);
        return rp_fail(RP_ERR_FORMAT, "table.json can not be made: is every name UTF-8?");
    }
    bool written = json_dumpf(object, file, flags | JSON_REAL_PRECISION(DIGITS)) == 0 &&
                   putc('\n', file) != EOF;
    json_decref(object);
    return written ? RP_OK
                   : rp_fail(RP_ERR_IO, "table.json: can not be written: %s", strerror(errno));
}
