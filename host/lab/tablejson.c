#include "lab/tablejson.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/json_values.h"
#include "lab/cells.h"

enum { DIGITS = 10 };

static void append_value(json_t *array, json_t *value, bool *good) {
    *good = json_array_append_new(array, value) == 0 && *good;
}

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

static json_t *json_of_stages(const rp_lab_row *row, bool *good) {
    json_t *array = json_array();
    for (uint32_t k = 0; k < row->stage_count; k++) {
        const rp_lab_stage *stage = &row->stage[k];
        json_t *object = json_object();
        rp_json_put(object, "first_layer", json_string(stage->first_layer), good);
        rp_json_put(object, "last_layer", json_string(stage->last_layer), good);
        rp_json_put(object, "device_bytes_max", rp_json_of_real(stage->device_bytes_max), good);
        rp_json_put(object, "weight_bytes", rp_json_of_real(stage->weight_bytes), good);
        rp_json_put(object, "weight_versions_max", rp_json_of_real(stage->weight_versions_max),
                    good);
        rp_json_put(object, "in_flight_max", rp_json_of_real(stage->in_flight_max), good);
        rp_json_put(object, "gap_max", rp_json_of_real(stage->gap_max), good);
        append_value(array, object, good);
    }
    return array;
}

static json_t *json_of_wires(const rp_lab_row *row, bool *good) {
    json_t *array = json_array();
    for (uint32_t w = 0; w < row->wire_count; w++) {
        const rp_lab_wire *wire = &row->wire[w];
        json_t *object = json_object();
        rp_json_put(object, "kind", json_string(wire->kind), good);
        rp_json_put(object, "from", json_string(wire->from), good);
        rp_json_put(object, "to", json_string(wire->to), good);
        rp_json_put(object, "codec", json_string(wire->codec), good);
        for (uint32_t i = 0; i < RP_LAB_WIRE_NUMBERS; i++) {
            rp_json_put(object, rp_lab_wire_keys[i], rp_json_of_real(wire->number[i]), good);
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

static json_t *row_of(const rp_lab_table *table, const rp_lab_row *row, bool *good) {
    const rp_labfile *lab = table->plan->lab;
    json_t *object = json_object();
    rp_json_put(object, "method", json_string(lab->method[row->method].name), good);
    rp_json_put(object, "label", json_string(row->label), good);
    rp_json_put(object, "baseline", json_boolean(row->baseline), good);
    rp_json_put(object, "seeds", rp_json_of_whole(row->wanted), good);
    rp_json_put(object, "finished", rp_json_of_whole(row->finished), good);
    rp_json_put(object, "failed", rp_json_of_whole(row->failed), good);
    rp_json_put(object, "diverged", rp_json_of_whole(row->diverged), good);
    if (table->classes) {
        rp_json_put(object, "accuracy",
                    row->diverged ? json_null() : json_of_stats(&row->accuracy, good), good);
        rp_json_put(object, "accuracy_difference",
                    row->diverged ? json_null() : json_of_paired(&row->accuracy_over, good), good);
    }
    rp_json_put(object, "loss", row->diverged ? json_null() : json_of_stats(&row->loss, good),
                good);
    rp_json_put(object, "loss_difference",
                row->diverged ? json_null() : json_of_paired(&row->loss_over, good), good);
    rp_json_put(object, "verdict", json_string(rp_lab_write_verdict(table, row)), good);
    rp_json_put(object, "train_loss",
                row->diverged ? json_null() : json_of_stats(&row->train_loss, good), good);
    rp_json_put(object, "seconds_to_goal", json_of_stats(&row->seconds_to_goal, good), good);
    rp_json_put(object, "samples_per_s", json_of_stats(&row->samples_per_s, good), good);
    rp_json_put(object, "speed", rp_json_of_real(row->speed), good);
    for (const rp_lab_column *c = rp_lab_columns; c->title; c++) {
        if (c->key) {
            const rp_stats numbers = rp_lab_column_stats(c, row);
            rp_json_put(object, c->key, json_of_stats(&numbers, good), good);
        }
    }
    rp_json_put(object, "device_bytes", rp_json_of_real(row->device_bytes), good);
    rp_json_put(object, "weight_versions_max", rp_json_of_real(row->versions_max), good);
    rp_json_put(object, "gap_max", rp_json_of_real(row->gap_max), good);
    if (table->predicted) {
        rp_json_put(object, "stale_over_predicted", json_of_stats(&row->gain, good), good);
        rp_json_put(object, "prediction", json_of_predictions(row, good), good);
    }
    rp_json_put(object, "stage", json_of_stages(row, good), good);
    rp_json_put(object, "wire", json_of_wires(row, good), good);
    return object;
}

static json_t *tuning_of(const rp_lab_table *table, const rp_lab_tuning *tuning, bool *good) {
    json_t *object = json_object();
    json_t *trials = json_array();
    for (uint32_t i = 0; i < tuning->trial_count; i++) {
        const rp_lab_trial *trial = &tuning->trial[i];
        json_t *one = json_object();
        rp_json_put(one, "label", json_string(trial->label), good);
        rp_json_put(one, "score",
                    trial->diverged ? json_null() : json_of_stats(&trial->score, good), good);
        rp_json_put(one, "finished", rp_json_of_whole(trial->finished), good);
        rp_json_put(one, "diverged", rp_json_of_whole(trial->diverged), good);
        rp_json_put(one, "chosen", json_boolean(trial->chosen), good);
        rp_json_put(one, "at_edge", json_boolean(trial->at_edge), good);
        append_value(trials, one, good);
    }
    rp_json_put(object, "method", json_string(table->plan->lab->method[tuning->method].name), good);
    rp_json_put(object, "metric", json_string(tuning->accuracy ? "accuracy" : "loss"), good);
    rp_json_put(object, "split", json_string(tuning->validation ? "validation" : "test"), good);
    rp_json_put(object, "point", trials, good);
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
    rp_json_put(object, "model", json_string(table->plan->lab->model[model]), good);
    rp_json_put(object, "row", rows, good);
    rp_json_put(object, "sweep", tunings, good);
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
        rp_json_put(object, "run", json_string(run->name), good);
        rp_json_put(object, "model", json_string(plan->lab->model[run->model]), good);
        rp_json_put(object, "method", json_string(plan->lab->method[run->method].name), good);
        rp_json_put(object, "label", json_string(run->label), good);
        rp_json_put(object, "seed", rp_json_of_whole(plan->lab->seed[run->seed]), good);
        rp_json_put(object, "status", json_string(rp_lab_write_status(result)), good);
        if (result->status != RP_LAB_FINISHED && result->note[0]) {
            rp_json_put(object, "note", json_string(result->note), good);
        }
        rp_json_put(object, "accuracy",
                    result->diverged ? json_null() : rp_json_of_real(result->accuracy), good);
        rp_json_put(object, "loss", rp_json_of_real(result->eval_loss), good);
        rp_json_put(object, "train_loss", rp_json_of_real(result->train_loss), good);
        rp_json_put(object, "steps", rp_json_of_real(result->steps), good);
        rp_json_put(object, "seconds", rp_json_of_real(result->seconds), good);
        rp_json_put(object, "samples_per_s", rp_json_of_real(result->samples_per_s), good);
        rp_json_put(object, "skipped_steps", rp_json_of_real(result->skipped), good);
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
        append_value(seeds, rp_json_of_whole(lab->seed[i]), good);
    }
    for (uint32_t i = 0; i < lab->model_count; i++) {
        append_value(models, model_of(table, i, good), good);
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
    rp_json_put(object, "equal", words_of(table->equal, table->equal_count, good), good);
    rp_json_put(object, "differs", words_of(table->differs, table->differs_count, good), good);
    rp_json_put(object, "cut_differs", json_boolean(table->cut_differs), good);
    rp_json_put(object, "model", models, good);
    rp_json_put(object, "run", runs_of(table->plan, good), good);
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
