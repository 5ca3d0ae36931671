#include "lab/columns.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COLUMN(title_, key_, hint_, ...)                                                           \
    { .title = title_, .key = key_, .hint = hint_, __VA_ARGS__ }
#define IN_JSON(key_, ...) COLUMN(NULL, key_, NULL, __VA_ARGS__)
#define AT(kind_, type, field) .kind = RP_LAB_##kind_, .at = offsetof(type, field)

/* ---- values ---------------------------------------------------------------------------------- */

static rp_lab_value value_of_text(const char *text) {
    return (rp_lab_value){.kind = RP_LAB_TEXT, .text = text};
}

static rp_lab_value value_of_whole(uint64_t whole) {
    return (rp_lab_value){.kind = RP_LAB_WHOLE, .whole = whole};
}

static rp_lab_value value_of_real(double real) {
    return (rp_lab_value){.kind = RP_LAB_REAL, .stats = {.mean = real, .deviation = (double)NAN}};
}

static const rp_lab_format plain = {.scale = 1, .decimals = RP_LAB_SUITED};
static const rp_lab_format percent = {.scale = 100, .decimals = 2};
static const rp_lab_format rounded = {.scale = 1, .decimals = RP_LAB_ROUNDED};
static const rp_lab_format share = {.scale = 100, .after = " %", .alone = true};
static const rp_lab_format mib = {.scale = 1.0 / (1 << 20), .decimals = 1};
static const rp_lab_format times = {.scale = 1, .decimals = 2, .before = "\xc3\x97"};
static const rp_lab_format ratio = {.scale = 1, .decimals = RP_LAB_FOUR_DIGITS, .alone = true};

/* ---- which columns are shown ----------------------------------------------------------------- */

static bool has_classes(const rp_lab_sheet *sheet) {
    return sheet->table->classes;
}

static bool has_baseline(const rp_lab_sheet *sheet) {
    return sheet->table->plan->lab->baseline < sheet->table->plan->lab->method_count;
}

static bool has_goal(const rp_lab_sheet *sheet) {
    return sheet->table->plan->lab->goal > 0;
}

static bool has_prediction(const rp_lab_sheet *sheet) {
    return sheet->table->predicted;
}

static bool scores_loss(const rp_lab_sheet *sheet) {
    return !sheet->tuning->accuracy;
}

static bool scores_validation(const rp_lab_sheet *sheet) {
    return sheet->tuning->accuracy && sheet->tuning->validation;
}

static bool scores_test(const rp_lab_sheet *sheet) {
    return sheet->tuning->accuracy && !sheet->tuning->validation;
}

/* ---- methods --------------------------------------------------------------------------------- */

static rp_lab_value value_method(const rp_lab_line *line) {
    return value_of_text(line->sheet->table->plan->lab->method[line->row->method].name);
}

static rp_lab_value value_label(const rp_lab_line *line) {
    return value_of_text(line->row->label);
}

/* "better", "worse", "no clear difference", "" for the baseline and without one. */
static rp_lab_value value_verdict(const rp_lab_line *line) {
    const int verdict = rp_lab_row_verdict(line->sheet->table, line->row);
    const rp_stats_paired *over = rp_lab_row_over(line->sheet->table, line->row);
    return value_of_text(line->row->baseline || over->count == 0 ? ""
                         : verdict > 0                           ? "better"
                         : verdict < 0                           ? "worse"
                         : over->count > 1                       ? "no clear difference"
                                                                 : "one seed");
}

/* A row with a diverged run has no mean: the seeds that survived would flatter it. */
static const char *row_diverged(const rp_lab_line *line) {
    return line->row->diverged > 0 ? RP_LAB_DASH : NULL;
}

static void write_difference(const rp_lab_line *line, char *text) {
    const rp_stats_paired *over = rp_lab_row_over(line->sheet->table, line->row);
    rp_lab_format format = line->sheet->table->classes ? percent : plain;
    format.sign = true;
    if (line->row->baseline) {
        rp_lab_write_words(text, "baseline");
    } else {
        rp_lab_write_mean(text, over->mean, over->deviation, format);
    }
}

static void write_interval(const rp_lab_line *line, char *text) {
    const rp_stats_paired *over = rp_lab_row_over(line->sheet->table, line->row);
    rp_lab_format format =
        rp_lab_format_for(over->high - over->low, line->sheet->table->classes ? percent : plain);
    format.sign = true;
    rp_lab_write_words(text, line->row->baseline ? "" : RP_LAB_DASH);
    if (line->row->baseline || over->count < 2) {
        return;
    }
    rp_lab_write_words(text, "[");
    rp_lab_add_number(text, over->low, format);
    rp_lab_add_words(text, ", ");
    rp_lab_add_number(text, over->high, format);
    rp_lab_add_words(text, "] ");
    rp_lab_add_words(text, value_verdict(line).text);
}

/* Mean over the seeds that reach the goal, and their number if some do not. */
static void write_goal(const rp_lab_line *line, char *text) {
    const rp_stats *seconds = &line->row->seconds_to_goal;
    rp_lab_write_mean(text, seconds->mean, seconds->deviation, rounded);
    if (seconds->count < line->row->finished) {
        char some[40];
        (void)snprintf(some, sizeof some, " (%u of %u reach it)", seconds->count,
                       line->row->finished);
        rp_lab_add_words(text, some);
    }
}

static void write_seeds(const rp_lab_line *line, char *text) {
    const rp_lab_row *row = line->row;
    if (row->finished == row->wanted) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%u", row->wanted);
    } else if (row->failed == 0) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%u of %u", row->finished, row->wanted);
    } else {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%u of %u, %u failed", row->finished, row->wanted,
                       row->failed);
    }
}

/* Links to the row's first run in the list of runs. */
static void link_row(const rp_lab_line *line, char *text) {
    const rp_lab_plan *plan = line->sheet->table->plan;
    const rp_lab_row *row = line->row;
    text[0] = '\0';
    if (row->point < plan->lab->method[row->method].point_count) {
        const rp_lab_run *run = rp_lab_plan_run(plan, row->model, row->method, row->point, 0);
        (void)snprintf(text, RP_LAB_CELL_BYTES, "#r%u", (uint32_t)(run - plan->run));
    }
}

static const rp_lab_column methods[] = {
    IN_JSON("method", .value = value_method),
    COLUMN("method", "label", NULL, .value = value_label, .left = true, .mark = true,
           .link = link_row),
    IN_JSON("baseline", AT(TRUTH, rp_lab_row, baseline)),
    IN_JSON("seeds", AT(WHOLE, rp_lab_row, wanted)),
    IN_JSON("finished", AT(WHOLE, rp_lab_row, finished)),
    IN_JSON("failed", AT(WHOLE, rp_lab_row, failed)),
    IN_JSON("diverged", AT(WHOLE, rp_lab_row, diverged)),
    COLUMN("test accuracy %", "accuracy",
           "at the end of training, mean over seeds \xc2\xb1 sample deviation",
           AT(STATS, rp_lab_row, accuracy), .missing = row_diverged, .format = &percent,
           .shown = has_classes, .main = true, .verdict = true),
    IN_JSON("accuracy_difference", AT(PAIRED, rp_lab_row, accuracy_over), .missing = row_diverged,
            .shown = has_classes),
    COLUMN("test loss", "loss", "at the end of training", AT(STATS, rp_lab_row, loss),
           .missing = row_diverged, .main = true),
    IN_JSON("loss_difference", AT(PAIRED, rp_lab_row, loss_over), .missing = row_diverged),
    COLUMN("difference", NULL, "to the baseline at the same seed, mean \xc2\xb1 sample deviation",
           .missing = row_diverged, .write = write_difference, .shown = has_baseline,
           .verdict = true),
    COLUMN("95 % interval", NULL, "of the mean paired difference, Student's t",
           .missing = row_diverged, .write = write_interval, .shown = has_baseline, .verdict = true,
           .below = true),
    IN_JSON("verdict", .value = value_verdict),
    COLUMN("train loss", "train_loss", "mean over the last epoch",
           AT(STATS, rp_lab_row, train_loss), .missing = row_diverged),
    COLUMN("seconds to the goal", "seconds_to_goal",
           "from the first step to the first evaluation as accurate as the goal",
           AT(STATS, rp_lab_row, seconds_to_goal), .write = write_goal, .shown = has_goal,
           .always = true),
    COLUMN("samples/s", "samples_per_s", "training and evaluation, without starting up",
           AT(STATS, rp_lab_row, samples_per_s), .format = &rounded, .meter = true),
    COLUMN("speed", "speed", "samples/s over the baseline's", AT(REAL, rp_lab_row, speed),
           .format = &times, .shown = has_baseline, .always = true, .below = true),
    IN_JSON("seconds", .kind = RP_LAB_STATS, .path = "seconds"),
    COLUMN("bubble", "bubble", "share of the boards' time in which they wait", .kind = RP_LAB_STATS,
           .path = "bubble", .format = &share),
    COLUMN("memory MiB", "device_bytes", "on the devices, largest at any time, sum over stages",
           AT(REAL, rp_lab_row, device_bytes), .format = &mib, .meter = true),
    COLUMN("versions", "weight_versions_max", "of the weights, largest of any stage",
           AT(REAL, rp_lab_row, versions_max)),
    COLUMN("gap", "gap_max",
           "updates between a microbatch's forward and its backward, largest of any stage",
           AT(REAL, rp_lab_row, gap_max)),
    COLUMN("stale / predicted", "stale_over_predicted",
           "distance to the later weights: of the stale weights over that of the predicted ones; "
           "above "
           "1 the prediction helps",
           AT(STATS, rp_lab_row, gain), .format = &ratio, .shown = has_prediction),
    COLUMN("seeds", NULL, "finished runs", .write = write_seeds),
    {0},
};

/* ---- stages ---------------------------------------------------------------------------------- */

static rp_lab_value value_index(const rp_lab_line *line) {
    return value_of_whole(line->index);
}

static void write_layers(const rp_lab_line *line, char *text) {
    const rp_lab_stage *stage = line->item;
    rp_lab_write_words(text, stage->first_layer);
    if (strcmp(stage->first_layer, stage->last_layer) != 0) {
        rp_lab_add_words(text, " .. ");
        rp_lab_add_words(text, stage->last_layer);
    }
}

static rp_lab_value value_busy(const rp_lab_line *line) {
    const rp_lab_stage *stage = line->item;
    const double all = stage->busy_s + stage->idle_s;
    return value_of_real(all > 0 ? stage->busy_s / all : (double)NAN);
}

/* Mean over seeds of a number of the stage's prediction; NaN: nothing was predicted. */
static double prediction_mean(const rp_lab_line *line, size_t at) {
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t s = 0; s < line->row->wanted; s++) {
        const rp_lab_prediction *p = rp_lab_result_prediction(line->row->result[s], line->index);
        sum += p ? *(const double *)(const void *)((const char *)p + at) : 0;
        count += p != NULL;
    }
    return count ? sum / count : (double)NAN;
}

static rp_lab_value value_ahead(const rp_lab_line *line) {
    return value_of_real(prediction_mean(line, offsetof(rp_lab_prediction, ahead_mean)));
}

static rp_lab_value value_error(const rp_lab_line *line) {
    return value_of_real(prediction_mean(line, offsetof(rp_lab_prediction, error_mean)));
}

static rp_lab_value value_stale(const rp_lab_line *line) {
    return value_of_real(prediction_mean(line, offsetof(rp_lab_prediction, stale_mean)));
}

static rp_lab_value value_stage_gain(const rp_lab_line *line) {
    const double error = value_error(line).stats.mean;
    return value_of_real(error > 0 ? value_stale(line).stats.mean / error : (double)NAN);
}

static const rp_lab_column stages[] = {
    COLUMN("method", NULL, NULL, .value = value_label, .left = true, .mark = true),
    COLUMN("stage", NULL, NULL, .value = value_index),
    COLUMN("layers", NULL, NULL, .write = write_layers, .left = true),
    IN_JSON("first_layer", AT(TEXT, rp_lab_stage, first_layer)),
    IN_JSON("last_layer", AT(TEXT, rp_lab_stage, last_layer)),
    COLUMN("memory MiB", "device_bytes_max", "on the device, largest at any time",
           AT(REAL, rp_lab_stage, device_bytes_max), .format = &mib),
    COLUMN("weights MiB", "weight_bytes", "one copy", AT(REAL, rp_lab_stage, weight_bytes),
           .format = &mib),
    COLUMN("versions", "weight_versions_max", "of the weights",
           AT(REAL, rp_lab_stage, weight_versions_max)),
    COLUMN("in flight", "in_flight_max", "microbatches between forward and backward",
           AT(REAL, rp_lab_stage, in_flight_max)),
    COLUMN("gap", "gap_max", "updates between forward and backward",
           AT(REAL, rp_lab_stage, gap_max)),
    COLUMN("busy", NULL, "share of the run's time", .value = value_busy, .format = &share),
    COLUMN("ahead", NULL, "updates that were predicted, mean", .value = value_ahead,
           .shown = has_prediction),
    COLUMN("predicted", NULL, "mean L2 distance between predicted and later weights",
           .value = value_error, .shown = has_prediction),
    COLUMN("stale", NULL, "mean L2 distance between stale and later weights", .value = value_stale,
           .shown = has_prediction),
    COLUMN("stale / predicted", NULL, "above 1 the prediction helps", .value = value_stage_gain,
           .shown = has_prediction),
    {0},
};

/* ---- wires ----------------------------------------------------------------------------------- */

static void write_ends(const rp_lab_line *line, char *text) {
    const rp_lab_wire *wire = line->item;
    (void)snprintf(text, RP_LAB_CELL_BYTES, "%s %.40s \xe2\x86\x92 %.40s", wire->kind, wire->from,
                   wire->to);
}

#define WIRE_NUMBER(name) AT(REAL, rp_lab_wire, number[RP_LAB_WIRE_##name])

static const rp_lab_column wires[] = {
    COLUMN("method", NULL, NULL, .value = value_label, .left = true, .mark = true),
    COLUMN("wire", NULL,
           "One way between two ends: a hop between boards, the feed of inputs and labels, control",
           .write = write_ends, .left = true),
    IN_JSON("kind", AT(TEXT, rp_lab_wire, kind)),
    IN_JSON("from", AT(TEXT, rp_lab_wire, from)),
    IN_JSON("to", AT(TEXT, rp_lab_wire, to)),
    IN_JSON("codec", AT(TEXT, rp_lab_wire, codec)),
    COLUMN("MiB", "bytes", "Sent, acks included", WIRE_NUMBER(BYTES), .format = &mib),
    COLUMN("busy", "utilisation",
           "Share of the training time that the bytes take at the measured rate", WIRE_NUMBER(BUSY),
           .format = &share),
    COLUMN("Mbit/s", "rate_mbit", "Measured; a wire that was seldom full may be faster",
           WIRE_NUMBER(RATE)),
    COLUMN("ms, median", "delay_p50_ms", "From a message to its ack, median", WIRE_NUMBER(DELAY)),
    COLUMN("ms, 95 %", "delay_p95_ms", "From a message to its ack, 95th percentile",
           WIRE_NUMBER(DELAY_MOST)),
    COLUMN("resent", "resent", "Messages that were sent again", WIRE_NUMBER(RESENT)),
    COLUMN("resets", "resets", "Connections that were opened again", WIRE_NUMBER(RESETS)),
    COLUMN("codec", NULL, "Codec of the tensors on the wire", AT(TEXT, rp_lab_wire, codec)),
    {0},
};

/* ---- points of a tuned method ---------------------------------------------------------------- */

static const char *trial_diverged(const rp_lab_line *line) {
    return ((const rp_lab_trial *)line->item)->diverged > 0 ? "diverged" : NULL;
}

static const char *look_trial(const rp_lab_line *line) {
    const rp_lab_trial *trial = line->item;
    return trial->chosen ? "best" : trial->diverged > 0 ? "bad" : "";
}

static void write_trial_note(const rp_lab_line *line, char *text) {
    const rp_lab_trial *trial = line->item;
    rp_lab_write_words(text, trial->at_edge  ? "chosen, at the end of the range: a wider range may "
                                               "be better"
                             : trial->chosen ? "chosen"
                             : trial->finished < trial->wanted ? "not finished"
                                                               : "");
}

#define SCORE AT(STATS, rp_lab_trial, score), .missing = trial_diverged, .look = look_trial

static const rp_lab_column points[] = {
    COLUMN("point", "label", NULL, AT(TEXT, rp_lab_trial, label), .left = true),
    IN_JSON("score", SCORE),
    COLUMN("loss", NULL, NULL, SCORE, .shown = scores_loss),
    COLUMN("validation accuracy %", NULL, NULL, SCORE, .format = &percent,
           .shown = scores_validation),
    COLUMN("test accuracy %", NULL, NULL, SCORE, .format = &percent, .shown = scores_test),
    IN_JSON("finished", AT(WHOLE, rp_lab_trial, finished)),
    IN_JSON("diverged", AT(WHOLE, rp_lab_trial, diverged)),
    IN_JSON("chosen", AT(TRUTH, rp_lab_trial, chosen)),
    IN_JSON("at_edge", AT(TRUTH, rp_lab_trial, at_edge)),
    COLUMN("", NULL, NULL, .write = write_trial_note, .left = true),
    {0},
};

/* ---- runs ------------------------------------------------------------------------------------ */

const char *rp_lab_status_word(const rp_lab_result *result) {
    static const char *const words[] = {"not run", "interrupted", "failed", "finished"};
    return result->diverged ? "diverged" : words[result->status];
}

static const rp_lab_run *run_of(const rp_lab_line *line) {
    return line->item;
}

static rp_lab_value value_run_model(const rp_lab_line *line) {
    return value_of_text(line->sheet->table->plan->lab->model[run_of(line)->model]);
}

static rp_lab_value value_run_method(const rp_lab_line *line) {
    return value_of_text(line->sheet->table->plan->lab->method[run_of(line)->method].name);
}

static rp_lab_value value_seed(const rp_lab_line *line) {
    return value_of_whole(line->sheet->table->plan->lab->seed[run_of(line)->seed]);
}

static rp_lab_value value_status(const rp_lab_line *line) {
    return value_of_text(rp_lab_status_word(&run_of(line)->result));
}

static rp_lab_value value_note(const rp_lab_line *line) {
    const rp_lab_result *result = &run_of(line)->result;
    return result->status != RP_LAB_FINISHED && result->note[0] ? value_of_text(result->note)
                                                                : (rp_lab_value){0};
}

static const char *run_diverged(const rp_lab_line *line) {
    return run_of(line)->result.diverged ? RP_LAB_DASH : NULL;
}

static void write_note(const rp_lab_line *line, char *text) {
    const rp_lab_result *result = &run_of(line)->result;
    text[0] = '\0';
    if (result->status != RP_LAB_FINISHED) {
        rp_lab_write_words(text, result->note);
    } else if (result->skipped > 0) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%.0f step%s skipped", result->skipped,
                       result->skipped == 1 ? "" : "s");
    }
}

static void write_time(const rp_lab_line *line, char *text) {
    rp_lab_write_duration(run_of(line)->result.seconds, text);
}

static const char *look_status(const rp_lab_line *line) {
    const rp_lab_result *result = &run_of(line)->result;
    return result->status == RP_LAB_OPEN                            ? "soft"
           : result->status == RP_LAB_FINISHED && !result->diverged ? ""
                                                                    : "bad";
}

static const char *look_note(const rp_lab_line *line) {
    (void)line;
    return "wrap";
}

static void link_run(const rp_lab_line *line, char *text) {
    (void)snprintf(text, RP_LAB_CELL_BYTES, "runs/%s/", run_of(line)->name);
}

static const rp_lab_column runs[] = {
    COLUMN("run", "run", NULL, AT(TEXT, rp_lab_run, name), .left = true, .link = link_run),
    IN_JSON("model", .value = value_run_model),
    IN_JSON("method", .value = value_run_method),
    IN_JSON("label", AT(TEXT, rp_lab_run, label)),
    IN_JSON("seed", .value = value_seed),
    COLUMN("status", "status", NULL, .value = value_status, .left = true, .look = look_status),
    IN_JSON("note", .value = value_note, .optional = true),
    COLUMN("test accuracy %", "accuracy", NULL, AT(REAL, rp_lab_run, result.accuracy),
           .missing = run_diverged, .format = &percent, .shown = has_classes, .always = true),
    IN_JSON("loss", AT(REAL, rp_lab_run, result.eval_loss)),
    COLUMN("test loss", NULL, NULL, AT(REAL, rp_lab_run, result.eval_loss), .missing = run_diverged,
           .format = &plain),
    IN_JSON("train_loss", AT(REAL, rp_lab_run, result.train_loss)),
    IN_JSON("steps", AT(REAL, rp_lab_run, result.steps)),
    COLUMN("time", "seconds", NULL, AT(REAL, rp_lab_run, result.seconds), .write = write_time),
    COLUMN("samples/s", "samples_per_s", NULL, AT(REAL, rp_lab_run, result.samples_per_s)),
    IN_JSON("skipped_steps", AT(REAL, rp_lab_run, result.skipped)),
    COLUMN("note", NULL, NULL, .write = write_note, .left = true, .look = look_note),
    {0},
};

const rp_lab_column *const rp_lab_columns[RP_LAB_SHEETS] = {
    [RP_LAB_METHODS] = methods, [RP_LAB_STAGES] = stages, [RP_LAB_WIRES] = wires,
    [RP_LAB_POINTS] = points,   [RP_LAB_RUNS] = runs,
};
