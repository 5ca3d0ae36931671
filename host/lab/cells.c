#include "lab/cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DASH "\xe2\x80\x93"
#define MINUS "\xe2\x88\x92"
#define PLUS_MINUS " \xc2\xb1 "
#define TIMES "\xc3\x97"

/* ---- words ----------------------------------------------------------------------------------- */

static void put_words(char *text, const char *words) {
    (void)snprintf(text, RP_LAB_CELL_BYTES, "%s", words);
}

static void add_words(char *text, const char *words) {
    size_t used = strlen(text);
    (void)snprintf(text + used, RP_LAB_CELL_BYTES - used, "%s", words);
}

/* Decimals that suit a value: two of percentages, four of losses; -1: four digits of what is large
 * or small. */
static int decimals_of(double value, double scale) {
    double size = fabs(value);
    return scale == 100 ? 2 : size < 1000 && (size >= 0.01 || size == 0) ? 4 : -1;
}

static void add_number(char *text, double value, double scale, bool sign, int decimals) {
    char number[40];
    double shown = fabs(value * scale);
    if (!isfinite(value)) {
        add_words(text, DASH);
        return;
    }
    if (decimals >= 0) {
        (void)snprintf(number, sizeof number, "%.*f", decimals, shown);
    } else {
        (void)snprintf(number, sizeof number, "%.4g", shown);
    }
    bool zero = strspn(number, "0.") == strlen(number); /* no "-0.00" */
    add_words(text, value < 0 && !zero ? MINUS : sign ? "+" : "");
    add_words(text, number);
}

/* A deviation has the decimals of its mean. */
static void add_mean_with(char *text, double mean, double deviation, double scale, bool sign,
                          int decimals) {
    add_number(text, mean, scale, sign, decimals);
    if (isfinite(deviation)) {
        add_words(text, PLUS_MINUS);
        add_number(text, deviation, scale, false, decimals);
    }
}

static void add_mean(char *text, double mean, double deviation, double scale, bool sign) {
    add_mean_with(text, mean, deviation, scale, sign, decimals_of(mean, scale));
}

void rp_lab_write_mean(const rp_stats *stats, double scale, char *text) {
    text[0] = '\0';
    add_mean(text, stats->mean, stats->deviation, scale, false);
}

void rp_lab_write_number(double value, char *text) {
    if (!isfinite(value)) {
        put_words(text, DASH);
    } else if (value == floor(value) && fabs(value) < 1e7) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%.0f", value);
    } else if (fabs(value) >= 1e7 || fabs(value) < 1e-3) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%.3g", value);
    } else {
        int decimals = fabs(value) >= 1000 ? 0 : fabs(value) >= 100 ? 1 : fabs(value) >= 1 ? 2 : 4;
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%.*f", decimals, value);
    }
}

void rp_lab_write_duration(double seconds, char *text) {
    if (!(seconds >= 0 && seconds < 1e9)) {
        put_words(text, DASH);
        return;
    }
    unsigned long s = (unsigned long)(seconds + 0.5);
    if (seconds < 60) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
    } else if (s < 3600) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%lu:%02lu min", s / 60, s % 60);
    } else {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%lu:%02lu:%02lu h", s / 3600, s / 60 % 60, s % 60);
    }
}

const char *rp_lab_write_status(const rp_lab_result *result) {
    static const char *const words[] = {"not run", "interrupted", "failed", "finished"};
    return result->diverged ? "diverged" : words[result->status];
}

const char *rp_lab_write_verdict(const rp_lab_table *table, const rp_lab_row *row) {
    int verdict = rp_lab_row_verdict(table, row);
    const rp_stats_paired *over = rp_lab_row_over(table, row);
    if (row->baseline || over->count == 0) {
        return "";
    }
    return verdict > 0       ? "better"
           : verdict < 0     ? "worse"
           : over->count > 1 ? "no clear difference"
                             : "one seed";
}

/* ---- columns of methods ---------------------------------------------------------------------- */

static bool shown_always(const rp_lab_table *table) {
    (void)table;
    return true;
}

static bool shown_nowhere(const rp_lab_table *table) {
    (void)table;
    return false;
}

static bool has_classes(const rp_lab_table *table) {
    return table->classes;
}

static bool has_baseline(const rp_lab_table *table) {
    return table->plan->lab->baseline < table->plan->lab->method_count;
}

static bool has_goal(const rp_lab_table *table) {
    return table->plan->lab->goal > 0;
}

static bool has_prediction(const rp_lab_table *table) {
    return table->predicted;
}

static void write_label(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    (void)table;
    put_words(text, row->label);
}

/* A row with a diverged run has no mean: the seeds that survived would flatter it. */
static bool no_mean(const rp_lab_row *row, char *text) {
    if (row->diverged > 0 || row->point == RP_LAB_NONE_IS_GOOD) {
        put_words(text, "diverged");
        if (row->diverged > 0 && row->wanted > 1) {
            char count[32];
            (void)snprintf(count, sizeof count, " (%u of %u)", row->diverged, row->finished);
            add_words(text, count);
        }
    } else if (row->finished == 0) {
        put_words(text, row->failed ? "failed" : DASH);
    } else {
        return false;
    }
    return true;
}

static void write_accuracy(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    (void)table;
    if (!no_mean(row, text)) {
        rp_lab_write_mean(&row->accuracy, 100, text);
    }
}

static void write_loss(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    if (!no_mean(row, text)) {
        rp_lab_write_mean(&row->loss, 1, text);
    } else if (table->classes) {
        put_words(text, DASH);
    }
}

static void write_train_loss(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    (void)table;
    if (no_mean(row, text)) {
        put_words(text, DASH);
    } else {
        rp_lab_write_mean(&row->train_loss, 1, text);
    }
}

static void write_difference(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    const rp_stats_paired *over = rp_lab_row_over(table, row);
    double scale = table->classes ? 100 : 1;
    put_words(text, row->baseline ? "baseline" : DASH);
    if (row->baseline || row->diverged > 0 || over->count == 0) {
        return;
    }
    text[0] = '\0';
    add_mean(text, over->mean, over->deviation, scale, true);
}

static void write_interval(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    const rp_stats_paired *over = rp_lab_row_over(table, row);
    double scale = table->classes ? 100 : 1;
    put_words(text, row->baseline ? "" : DASH);
    if (row->baseline || row->diverged > 0 || over->count < 2) {
        return;
    }
    put_words(text, "[");
    int decimals = decimals_of(over->high - over->low, scale);
    add_number(text, over->low, scale, true, decimals);
    add_words(text, ", ");
    add_number(text, over->high, scale, true, decimals);
    add_words(text, "] ");
    add_words(text, rp_lab_write_verdict(table, row));
}

/* Of the seeds that get there: the others would take longer. */
static void write_goal(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    const rp_stats *seconds = &row->seconds_to_goal;
    (void)table;
    text[0] = '\0';
    add_mean_with(text, seconds->mean, seconds->deviation, 1, false, seconds->mean < 100 ? 1 : 0);
    if (seconds->count < row->finished) {
        char some[40];
        (void)snprintf(some, sizeof some, " (%u of %u reach it)", seconds->count, row->finished);
        add_words(text, some);
    }
}

static void write_speed(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    const rp_stats *speed = &row->samples_per_s;
    (void)table;
    text[0] = '\0';
    add_mean_with(text, speed->mean, speed->deviation, 1, false, speed->mean < 100 ? 1 : 0);
}

static void write_speed_over(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    (void)table;
    put_words(text, DASH);
    if (isfinite(row->speed)) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%s%.2f", TIMES, row->speed);
    }
}

static void write_mib(double bytes, char *text) {
    put_words(text, DASH);
    if (isfinite(bytes)) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%.1f", bytes / (1 << 20));
    }
}

static void write_memory(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    (void)table;
    write_mib(row->device_bytes, text);
}

static void write_versions(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    (void)table;
    rp_lab_write_number(row->versions_max, text);
}

static void write_gap(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    (void)table;
    rp_lab_write_number(row->gap_max, text);
}

static void write_gain(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    (void)table;
    rp_lab_write_number(row->gain.mean, text);
}

static void write_seeds(const rp_lab_table *table, const rp_lab_row *row, char *text) {
    char more[64] = "";
    (void)table;
    if (row->finished == row->wanted) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%u", row->wanted);
        return;
    }
    (void)snprintf(text, RP_LAB_CELL_BYTES, "%u of %u", row->finished, row->wanted);
    if (row->failed > 0) {
        (void)snprintf(more, sizeof more, ", %u failed", row->failed);
    }
    add_words(text, more);
}

static double size_speed(const rp_lab_row *row) {
    return row->samples_per_s.mean;
}

static double size_memory(const rp_lab_row *row) {
    return row->device_bytes;
}

const rp_lab_column rp_lab_columns[] = {
    {.title = "method", .hint = "", .shown = shown_always, .write = write_label},
    {.title = "test accuracy %",
     .hint = "at the end of training, mean over seeds \xc2\xb1 sample deviation",
     .shown = has_classes,
     .write = write_accuracy,
     .main = true,
     .verdict = true},
    {.title = "test loss",
     .hint = "at the end of training",
     .shown = shown_always,
     .write = write_loss,
     .main = true},
    {.title = "difference",
     .hint = "to the baseline at the same seed, mean \xc2\xb1 sample deviation",
     .shown = has_baseline,
     .write = write_difference,
     .verdict = true},
    {.title = "95 % interval",
     .hint = "of the mean paired difference, Student's t",
     .shown = has_baseline,
     .write = write_interval,
     .verdict = true,
     .below = true},
    {.title = "train loss",
     .hint = "mean over the last epoch",
     .shown = shown_always,
     .write = write_train_loss},
    {.title = "seconds to the goal",
     .hint = "from the first step to the first evaluation as accurate as the goal",
     .shown = has_goal,
     .write = write_goal},
    {.title = "samples/s",
     .hint = "training and evaluation, without starting up",
     .shown = shown_always,
     .write = write_speed,
     .size = size_speed},
    {.title = "speed",
     .hint = "samples/s over the baseline's",
     .shown = has_baseline,
     .write = write_speed_over,
     .below = true},
    {.title = "seconds",
     .hint = "of a run",
     .shown = shown_nowhere,
     .number = "seconds",
     .key = "seconds"},
    {.title = "bubble",
     .hint = "share of the boards' time in which they wait",
     .shown = shown_always,
     .number = "bubble",
     .key = "bubble",
     .share = true},
    {.title = "memory MiB",
     .hint = "on the devices, largest at any time, sum over stages",
     .shown = shown_always,
     .write = write_memory,
     .size = size_memory},
    {.title = "versions",
     .hint = "of the weights, largest of any stage",
     .shown = shown_always,
     .write = write_versions},
    {.title = "gap",
     .hint = "updates between a microbatch's forward and its backward, largest of any stage",
     .shown = shown_always,
     .write = write_gap},
    {.title = "stale / predicted",
     .hint = "distance from the weights that will be: of those at hand over those predicted; above "
             "1 the prediction helps",
     .shown = has_prediction,
     .write = write_gain},
    {.title = "seeds", .hint = "finished runs", .shown = shown_always, .write = write_seeds},
    {.title = NULL},
};

rp_stats rp_lab_column_stats(const rp_lab_column *column, const rp_lab_row *row) {
    double value[RP_LAB_SEEDS_MAX];
    uint32_t count = 0;
    for (uint32_t s = 0; s < row->wanted && count < RP_LAB_SEEDS_MAX; s++) {
        if (row->result[s]) {
            value[count++] = rp_lab_result_number(row->result[s], column->number);
        }
    }
    return rp_stats_of(value, count);
}

static void write_number(const rp_lab_column *column, const rp_lab_row *row, char *text) {
    const rp_stats stats = rp_lab_column_stats(column, row);
    if (!column->share) {
        rp_lab_write_mean(&stats, 1, text);
    } else if (isfinite(stats.mean)) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%.0f %%", 100 * stats.mean);
    } else {
        put_words(text, DASH);
    }
}

void rp_lab_write_cell(const rp_lab_column *column, const rp_lab_table *table,
                       const rp_lab_row *row, char *text) {
    if (column->write) {
        column->write(table, row, text);
    } else {
        write_number(column, row, text);
    }
}

bool rp_lab_column_is_main(const rp_lab_column *column, const rp_lab_table *table) {
    const rp_lab_column *first = rp_lab_columns;
    while (first->title && !(first->main && first->shown(table))) {
        first++;
    }
    return column == first;
}

/* ---- columns of stages ----------------------------------------------------------------------- */

static void stage_layers(const rp_lab_row *row, uint32_t stage, char *text) {
    const rp_lab_stage *s = &row->stage[stage];
    put_words(text, s->first_layer);
    if (strcmp(s->first_layer, s->last_layer) != 0) {
        add_words(text, " .. ");
        add_words(text, s->last_layer);
    }
}

static void stage_memory(const rp_lab_row *row, uint32_t stage, char *text) {
    write_mib(row->stage[stage].device_bytes_max, text);
}

static void stage_weights(const rp_lab_row *row, uint32_t stage, char *text) {
    write_mib(row->stage[stage].weight_bytes, text);
}

static void stage_versions(const rp_lab_row *row, uint32_t stage, char *text) {
    rp_lab_write_number(row->stage[stage].weight_versions_max, text);
}

static void stage_in_flight(const rp_lab_row *row, uint32_t stage, char *text) {
    rp_lab_write_number(row->stage[stage].in_flight_max, text);
}

static void stage_gap(const rp_lab_row *row, uint32_t stage, char *text) {
    rp_lab_write_number(row->stage[stage].gap_max, text);
}

static void stage_busy(const rp_lab_row *row, uint32_t stage, char *text) {
    const rp_lab_stage *s = &row->stage[stage];
    double all = s->busy_s + s->idle_s;
    put_words(text, DASH);
    if (all > 0) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%.0f %%", 100 * s->busy_s / all);
    }
}

typedef struct {
    double ahead, error, stale;
} distances;

/* Means over seeds, of one stage; NaN: nothing was predicted. */
static distances distances_of(const rp_lab_row *row, uint32_t stage) {
    distances sum = {0, 0, 0};
    uint32_t count = 0;
    for (uint32_t s = 0; s < row->wanted; s++) {
        const rp_lab_result *result = row->result[s];
        for (uint32_t i = 0; result && i < result->prediction_count; i++) {
            const rp_lab_prediction *p = &result->prediction[i];
            if (p->stage == stage) {
                sum.ahead += p->ahead_mean;
                sum.error += p->error_mean;
                sum.stale += p->stale_mean;
                count++;
            }
        }
    }
    const double none = (double)NAN;
    return count ? (distances){sum.ahead / count, sum.error / count, sum.stale / count}
                 : (distances){none, none, none};
}

static void stage_ahead(const rp_lab_row *row, uint32_t stage, char *text) {
    rp_lab_write_number(distances_of(row, stage).ahead, text);
}

static void stage_error(const rp_lab_row *row, uint32_t stage, char *text) {
    rp_lab_write_number(distances_of(row, stage).error, text);
}

static void stage_stale(const rp_lab_row *row, uint32_t stage, char *text) {
    rp_lab_write_number(distances_of(row, stage).stale, text);
}

static void stage_gain(const rp_lab_row *row, uint32_t stage, char *text) {
    distances d = distances_of(row, stage);
    rp_lab_write_number(d.error > 0 ? d.stale / d.error : (double)NAN, text);
}

const rp_lab_stage_column rp_lab_stage_columns[] = {
    {"layers", "", false, stage_layers},
    {"memory MiB", "on the device, largest at any time", false, stage_memory},
    {"weights MiB", "one copy", false, stage_weights},
    {"versions", "of the weights", false, stage_versions},
    {"in flight", "microbatches between forward and backward", false, stage_in_flight},
    {"gap", "updates between forward and backward", false, stage_gap},
    {"busy", "share of the run's time", false, stage_busy},
    {"ahead", "updates that were predicted ahead, mean", true, stage_ahead},
    {"predicted", "mean L2 distance of the predicted weights from those that came", true,
     stage_error},
    {"stale", "mean L2 distance of the weights at hand from those that came", true, stage_stale},
    {"stale / predicted", "above 1 the prediction helps", true, stage_gain},
    {NULL, NULL, false, NULL},
};

/* ---- wires ----------------------------------------------------------------------------------- */

static void wire_ends(const rp_lab_wire *wire, char *text) {
    (void)snprintf(text, RP_LAB_CELL_BYTES, "%s %.40s \xe2\x86\x92 %.40s", wire->kind, wire->from,
                   wire->to);
}

static void wire_bytes(const rp_lab_wire *wire, char *text) {
    write_mib(wire->number[RP_LAB_WIRE_BYTES], text);
}

static void wire_busy(const rp_lab_wire *wire, char *text) {
    const double share = wire->number[RP_LAB_WIRE_BUSY];
    put_words(text, DASH);
    if (isfinite(share)) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%.0f %%", 100 * share);
    }
}

static void wire_rate(const rp_lab_wire *wire, char *text) {
    rp_lab_write_number(wire->number[RP_LAB_WIRE_RATE], text);
}

static void wire_delay(const rp_lab_wire *wire, char *text) {
    rp_lab_write_number(wire->number[RP_LAB_WIRE_DELAY], text);
}

static void wire_delay_most(const rp_lab_wire *wire, char *text) {
    rp_lab_write_number(wire->number[RP_LAB_WIRE_DELAY_MOST], text);
}

static void wire_resent(const rp_lab_wire *wire, char *text) {
    rp_lab_write_number(wire->number[RP_LAB_WIRE_RESENT], text);
}

static void wire_resets(const rp_lab_wire *wire, char *text) {
    rp_lab_write_number(wire->number[RP_LAB_WIRE_RESETS], text);
}

static void wire_codec(const rp_lab_wire *wire, char *text) {
    put_words(text, "");
    add_words(text, wire->codec);
}

const rp_lab_wire_column rp_lab_wire_columns[] = {
    {"wire",
     "One way between two ends: a hop between boards, the feed of inputs and labels, control",
     wire_ends},
    {"MiB", "Sent, acks included", wire_bytes},
    {"busy", "Share of the time trained that the bytes take at the measured rate", wire_busy},
    {"Mbit/s", "Measured: a wire that was seldom full may be faster", wire_rate},
    {"ms, half", "From a message to its ack: half of them took at most so long", wire_delay},
    {"ms, 95 %", "From a message to its ack: 95 % took at most so long", wire_delay_most},
    {"resent", "Messages that were sent again", wire_resent},
    {"resets", "Connections that were made anew", wire_resets},
    {"codec", "Of the tensors on it", wire_codec},
    {0},
};
