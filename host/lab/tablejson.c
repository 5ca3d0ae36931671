#include "lab/tablejson.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "lab/cells.h"

enum { DIGITS = 10 };

/* JSON has no NaN. */
static json_t *json_of_real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_of_whole(uint64_t value) {
    return json_integer((json_int_t)value);
}

/* Sets key after key; `*good` turns false when one can not be set (a text that is not UTF-8). */
static void put_value(json_t *object, const char *key, json_t *value, bool *good) {
    *good = json_object_set_new(object, key, value) == 0 && *good;
}

static void append_value(json_t *array, json_t *value, bool *good) {
    *good = json_array_append_new(array, value) == 0 && *good;
}

static json_t *json_of_stats(const rp_stats *s, bool *good) {
    json_t *object = json_object();
    put_value(object, "count", json_of_whole(s->count), good);
    put_value(object, "mean", json_of_real(s->mean), good);
    put_value(object, "deviation", json_of_real(s->deviation), good);
    return object;
}

static json_t *json_of_paired(const rp_stats_paired *p, bool *good) {
    json_t *object = json_object();
    put_value(object, "count", json_of_whole(p->count), good);
    put_value(object, "mean", json_of_real(p->mean), good);
    put_value(object, "deviation", json_of_real(p->deviation), good);
    put_value(object, "low", json_of_real(p->low), good);
    put_value(object, "high", json_of_real(p->high), good);
    return object;
}

static json_t *json_of_stages(const rp_lab_row *row, bool *good) {
    json_t *array = json_array();
    for (uint32_t k = 0; k < row->stage_count; k++) {
        const rp_lab_stage *stage = &row->stage[k];
        json_t *object = json_object();
        put_value(object, "first_layer", json_string(stage->first_layer), good);
        put_value(object, "last_layer", json_string(stage->last_layer), good);
        put_value(object, "device_bytes_max", json_of_real(stage->device_bytes_max), good);
        put_value(object, "weight_bytes", json_of_real(stage->weight_bytes), good);
        put_value(object, "weight_versions_max", json_of_real(stage->weight_versions_max), good);
        put_value(object, "in_flight_max", json_of_real(stage->in_flight_max), good);
        put_value(object, "gap_max", json_of_real(stage->gap_max), good);
        append_value(array, object, good);
    }
    return array;
}

static json_t *json_of_wires(const rp_lab_row *row, bool *good) {
    json_t *array = json_array();
    for (uint32_t w = 0; w < row->wire_count; w++) {
        const rp_lab_wire *wire = &row->wire[w];
        json_t *object = json_object();
        put_value(object, "kind", json_string(wire->kind), good);
        put_value(object, "from", json_string(wire->from), good);
        put_value(object, "to", json_string(wire->to), good);
        put_value(object, "codec", json_string(wire->codec), good);
        for (uint32_t i = 0; i < RP_LAB_WIRE_NUMBERS; i++) {
            put_value(object, rp_lab_wire_keys[i], json_of_real(wire->number[i]), good);
        }
        append_value(array, object, good);
    }
    return array;
}

static json_t *json_of_predictions(const rp_lab_row *row, bool *good) {
    json_t *array = json_array();
    for (uint32_t s = 0; s < row->wanted; s++) {
        const rp_lab_result *result = row->result[s];
        for (uint32_t i = 0; result && i < result->prediction_count; i++) {
            const rp_lab_prediction *p = &result->prediction[i];
            json_t *object = json_object();
            put_value(object, "seed_index", json_of_whole(s), good);
            put_value(object, "stage", json_of_whole(p->stage), good);
            put_value(object, "gap_max", json_of_real(p->gap_max), good);
            put_value(object, "ahead", json_of_real(p->ahead_mean), good);
            put_value(object, "error", json_of_real(p->error_mean), good);
            put_value(object, "stale_error", json_of_real(p->stale_mean), good);
            put_value(object, "ratio", json_of_real(p->stale_mean / p->error_mean), good);
            append_value(array, object, good);
        }
    }
    return array;
}

static json_t *row_of(const rp_lab_table *table, const rp_lab_row *row, bool *good) {
    const rp_labfile *lab = table->plan->lab;
    json_t *object = json_object();
    put_value(object, "method", json_string(lab->method[row->method].name), good);
    put_value(object, "label", json_string(row->label), good);
    put_value(object, "baseline", json_boolean(row->baseline), good);
    put_value(object, "seeds", json_of_whole(row->wanted), good);
    put_value(object, "finished", json_of_whole(row->finished), good);
    put_value(object, "failed", json_of_whole(row->failed), good);
    put_value(object, "diverged", json_of_whole(row->diverged), good);
    if (table->classes) {
        put_value(object, "accuracy",
                  row->diverged ? json_null() : json_of_stats(&row->accuracy, good), good);
        put_value(object, "accuracy_difference",
                  row->diverged ? json_null() : json_of_paired(&row->accuracy_over, good), good);
    }
    put_value(object, "loss", row->diverged ? json_null() : json_of_stats(&row->loss, good), good);
    put_value(object, "loss_difference",
              row->diverged ? json_null() : json_of_paired(&row->loss_over, good), good);
    put_value(object, "verdict", json_string(rp_lab_write_verdict(table, row)), good);
    put_value(object, "train_loss",
              row->diverged ? json_null() : json_of_stats(&row->train_loss, good), good);
    put_value(object, "seconds_to_goal", json_of_stats(&row->seconds_to_goal, good), good);
    put_value(object, "samples_per_s", json_of_stats(&row->samples_per_s, good), good);
    put_value(object, "speed", json_of_real(row->speed), good);
    for (const rp_lab_column *c = rp_lab_columns; c->title; c++) {
        if (c->key) {
            const rp_stats numbers = rp_lab_column_stats(c, row);
            put_value(object, c->key, json_of_stats(&numbers, good), good);
        }
    }
    put_value(object, "device_bytes", json_of_real(row->device_bytes), good);
    put_value(object, "weight_versions_max", json_of_real(row->versions_max), good);
    put_value(object, "gap_max", json_of_real(row->gap_max), good);
    if (table->predicted) {
        put_value(object, "stale_over_predicted", json_of_stats(&row->gain, good), good);
        put_value(object, "prediction", json_of_predictions(row, good), good);
    }
    put_value(object, "stage", json_of_stages(row, good), good);
    put_value(object, "wire", json_of_wires(row, good), good);
    return object;
}

static json_t *tuning_of(const rp_lab_table *table, const rp_lab_tuning *tuning, bool *good) {
    json_t *object = json_object();
    json_t *trials = json_array();
    for (uint32_t i = 0; i < tuning->trial_count; i++) {
        const rp_lab_trial *trial = &tuning->trial[i];
        json_t *one = json_object();
        put_value(one, "label", json_string(trial->label), good);
        put_value(one, "score", trial->diverged ? json_null() : json_of_stats(&trial->score, good),
                  good);
        put_value(one, "finished", json_of_whole(trial->finished), good);
        put_value(one, "diverged", json_of_whole(trial->diverged), good);
        put_value(one, "chosen", json_boolean(trial->chosen), good);
        put_value(one, "at_edge", json_boolean(trial->at_edge), good);
        append_value(trials, one, good);
    }
    put_value(object, "method", json_string(table->plan->lab->method[tuning->method].name), good);
    put_value(object, "metric", json_string(tuning->accuracy ? "accuracy" : "loss"), good);
    put_value(object, "split", json_string(tuning->validation ? "validation" : "test"), good);
    put_value(object, "point", trials, good);
    return object;
}

static json_t *model_of(const rp_lab_table *table, uint32_t model, bool *good) {
    json_t *object = json_object();
    json_t *rows = json_array();
    json_t *tunings = json_array();
    for (uint32_t i = 0; i < table->line_count; i++) {
        append_value(rows, row_of(table, &table->row[model * table->line_count + i], good), good);
    }
    for (uint32_t i = 0; i < table->tuning_count; i++) {
        if (table->tuning[i].model == model) {
            append_value(tunings, tuning_of(table, &table->tuning[i], good), good);
        }
    }
    put_value(object, "model", json_string(table->plan->lab->model[model]), good);
    put_value(object, "row", rows, good);
    put_value(object, "sweep", tunings, good);
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
        put_value(object, "run", json_string(run->name), good);
        put_value(object, "model", json_string(plan->lab->model[run->model]), good);
        put_value(object, "method", json_string(plan->lab->method[run->method].name), good);
        put_value(object, "label", json_string(run->label), good);
        put_value(object, "seed", json_of_whole(plan->lab->seed[run->seed]), good);
        put_value(object, "status", json_string(rp_lab_write_status(result)), good);
        if (result->status != RP_LAB_FINISHED && result->note[0]) {
            put_value(object, "note", json_string(result->note), good);
        }
        put_value(object, "accuracy",
                  result->diverged ? json_null() : json_of_real(result->accuracy), good);
        put_value(object, "loss", json_of_real(result->eval_loss), good);
        put_value(object, "train_loss", json_of_real(result->train_loss), good);
        put_value(object, "steps", json_of_real(result->steps), good);
        put_value(object, "seconds", json_of_real(result->seconds), good);
        put_value(object, "samples_per_s", json_of_real(result->samples_per_s), good);
        put_value(object, "skipped_steps", json_of_real(result->skipped), good);
        append_value(array, object, good);
    }
    return array;
}

static json_t *words_of(const char *const *word, uint32_t count, bool *good) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++) {
        append_value(array, json_string(word[i]), good);
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
        append_value(seeds, json_of_whole(lab->seed[i]), good);
    }
    for (uint32_t i = 0; i < lab->model_count; i++) {
        append_value(models, model_of(table, i, good), good);
    }
    put_value(object, "version", json_of_whole(1), good);
    put_value(object, "status", json_string(options->state), good);
    put_value(object, "file", json_string(lab->path), good);
    put_value(object, "folder", json_string(table->plan->folder), good);
    put_value(object, "baseline",
              lab->baseline < lab->method_count ? json_string(lab->method[lab->baseline].name)
                                                : json_null(),
              good);
    put_value(object, "seeds", seeds, good);
    put_value(object, "runs_wanted", json_of_whole(options->counts.wanted), good);
    put_value(object, "runs_finished", json_of_whole(options->counts.finished), good);
    put_value(object, "runs_failed", json_of_whole(options->counts.failed), good);
    put_value(object, "runs_diverged", json_of_whole(options->counts.diverged), good);
    put_value(object, "equal", words_of(table->equal, table->equal_count, good), good);
    put_value(object, "differs", words_of(table->differs, table->differs_count, good), good);
    put_value(object, "cut_differs", json_boolean(table->cut_differs), good);
    put_value(object, "model", models, good);
    put_value(object, "run", runs_of(table->plan, good), good);
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
                   : rp_fail(RP_ERR_IO, "the table could not be written: %s", strerror(errno));
}
