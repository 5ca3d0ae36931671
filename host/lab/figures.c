#include "lab/figures.h"

#include <math.h>
#include <string.h>

enum { POINTS_MAX = 4096 };

static const double none = (double)NAN;

typedef struct {
    rp_arena *arena;
    const rp_lab_table *table;
    rp_lab_figures *out;
    uint32_t room, model;
} maker;

static const rp_lab_row *row_at(const maker *m, uint32_t line) {
    return &m->table->row[m->model * m->table->line_count + line];
}

static rp_err add_figure(maker *m, rp_lab_part part, rp_lab_drawing drawing, const char *name,
                         rp_lab_figure **out) {
    char *file;
    rp_err err =
        rp_arena_printf(m->arena, &file, "%s-%s.svg", m->table->plan->lab->folder[m->model], name);
    RP_ASSERT(m->out->count < m->room);
    *out = &m->out->figure[m->out->count];
    **out = (rp_lab_figure){
        .file = err == RP_OK ? file : "", .model = m->model, .part = part, .drawing = drawing};
    return err;
}

static void keep_figure(maker *m) {
    m->out->count++;
}

/* ---- curves over seeds ----------------------------------------------------------------------- */

typedef struct {
    double *x, *y, *low, *high;
    uint32_t count;
} points;

static rp_err open_points(maker *m, uint32_t count, points *out) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(m->arena, (size_t)count + 1, &out->x));
    RP_TRY(RP_ARENA_NEW(m->arena, (size_t)count + 1, &out->y));
    RP_TRY(RP_ARENA_NEW(m->arena, (size_t)count + 1, &out->low));
    RP_TRY(RP_ARENA_NEW(m->arena, (size_t)count + 1, &out->high));
    out->count = 0;
fail:
    return err;
}

/* Mean over seeds with one deviation to each side; a seed that is not finite leaves no mean. */
static void add_point(points *to, double x, const double *value, uint32_t count) {
    rp_stats s = rp_stats_of(value, count);
    bool whole = s.absent == 0;
    uint32_t i = to->count++;
    to->x[i] = x;
    to->y[i] = whole ? s.mean : none;
    to->low[i] = whole ? s.mean - s.deviation : none;
    to->high[i] = whole ? s.mean + s.deviation : none;
}

static rp_curve curve_of(const rp_lab_row *row, const char *name, const points *p) {
    return (rp_curve){.name = name,
                      .line = row->line,
                      .x = p->x,
                      .y = p->y,
                      .low = p->low,
                      .high = p->high,
                      .count = p->count,
                      .marked = p->count};
}

typedef enum { BY_EPOCH, BY_STEP, BY_TIME } abscissa;

/* Time counts from the first step: what comes before is building kernels. */
static double eval_x(const rp_lab_result *result, const rp_lab_eval *eval, abscissa by) {
    const double start_s = isfinite(result->first_step_s) ? result->first_step_s : 0;
    return by == BY_EPOCH ? eval->epoch : by == BY_STEP ? eval->step : eval->time_s - start_s;
}

/* The evaluations that all finished seeds have. */
static rp_err eval_points(maker *m, const rp_lab_row *row, bool accuracy, abscissa by,
                          points *out) {
    double value[RP_LAB_SEEDS_MAX];
    double x[RP_LAB_SEEDS_MAX];
    uint32_t common = POINTS_MAX;
    rp_err err;
    for (uint32_t s = 0; s < row->wanted; s++) {
        uint32_t count = row->result[s] ? row->result[s]->eval_count : common;
        common = count < common ? count : common;
    }
    common = row->finished == 0 ? 0 : common;
    RP_TRY(open_points(m, common, out));
    for (uint32_t i = 0; i < common; i++) {
        uint32_t n = 0;
        for (uint32_t s = 0; s < row->wanted; s++) {
            if (row->result[s]) {
                const rp_lab_eval *eval = &row->result[s]->eval[i];
                x[n] = eval_x(row->result[s], eval, by);
                value[n++] = accuracy && isfinite(eval->loss) ? eval->accuracy
                             : accuracy                       ? none
                                                              : eval->loss;
            }
        }
        add_point(out, rp_stats_of(x, n).mean, value, n);
    }
fail:
    return err;
}

static const rp_lab_result *first_result(const rp_lab_row *row) {
    for (uint32_t s = 0; s < row->wanted; s++) {
        if (row->result[s]) {
            return row->result[s];
        }
    }
    return NULL;
}

/* Bins of the first seed's width; a seed with other bins is another kind of run, and left out. */
static rp_err train_points(maker *m, const rp_lab_row *row, points *out) {
    const rp_lab_result *first = first_result(row);
    double value[RP_LAB_SEEDS_MAX];
    uint32_t bins = first ? first->bin_count : 0;
    rp_err err;
    RP_TRY(open_points(m, bins, out));
    for (uint32_t i = 0; i < bins; i++) {
        uint32_t n = 0;
        for (uint32_t s = 0; s < row->wanted; s++) {
            const rp_lab_result *result = row->result[s];
            if (result && result->bin_steps == first->bin_steps && i < result->bin_count) {
                value[n++] = result->bin_loss[i];
            }
        }
        add_point(out, (i + 0.5) * first->bin_steps, value, n);
    }
fail:
    return err;
}

/* Only bins in which something was measured. */
static rp_err prediction_points(maker *m, const rp_lab_row *row, uint32_t stage, bool stale,
                                points *out) {
    const rp_lab_result *first = first_result(row);
    double value[RP_LAB_SEEDS_MAX];
    rp_err err;
    RP_TRY(open_points(m, RP_LAB_BINS, out));
    for (uint32_t i = 0; first && i < RP_LAB_BINS; i++) {
        uint32_t n = 0;
        uint32_t measured = 0;
        for (uint32_t s = 0; s < row->wanted; s++) {
            const rp_lab_result *result = row->result[s];
            const rp_lab_prediction *p = rp_lab_result_prediction(result, stage);
            if (p && result->bin_steps == first->bin_steps) {
                value[n] = stale ? p->stale[i] : p->error[i];
                measured += isfinite(value[n]) ? 1 : 0;
                n++;
            }
        }
        if (measured > 0) {
            add_point(out, (i + 0.5) * first->bin_steps, value, n);
        }
    }
fail:
    return err;
}

/* ---- learning -------------------------------------------------------------------------------- */

static bool any_finite(const points *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        if (isfinite(p->x[i]) && isfinite(p->y[i])) {
            return true;
        }
    }
    return false;
}

static bool epochs_known(const maker *m) {
    for (uint32_t line = 0; line < m->table->line_count; line++) {
        const rp_lab_row *row = row_at(m, line);
        for (uint32_t s = 0; s < row->wanted; s++) {
            const rp_lab_result *result = row->result[s];
            for (uint32_t i = 0; result && i < result->eval_count; i++) {
                if (!isfinite(result->eval[i].epoch)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static const char *band_note(const maker *m) {
    return m->table->plan->lab->seed_count > 1 ? "mean over seeds \xc2\xb1 one sample deviation"
                                               : "";
}

typedef rp_err (*point_maker)(maker *m, const rp_lab_row *row, points *out);

/* One curve a row; kept when there is anything to see. */
static rp_err add_chart(maker *m, rp_lab_part part, const char *name, const rp_chart *model,
                        point_maker make) {
    rp_lab_figure *figure;
    rp_curve *curve;
    bool any = false;
    rp_err err;
    RP_TRY(add_figure(m, part, RP_LAB_CHART, name, &figure));
    RP_TRY(RP_ARENA_NEW(m->arena, m->table->line_count, &curve));
    figure->chart = *model;
    figure->chart.curve = curve;
    for (uint32_t line = 0; line < m->table->line_count; line++) {
        const rp_lab_row *row = row_at(m, line);
        points p;
        RP_TRY(make(m, row, &p));
        if (p.count > 0) {
            curve[figure->chart.count++] = curve_of(row, row->label, &p);
            any = any || any_finite(&p);
        }
    }
    if (any) {
        keep_figure(m);
    }
fail:
    return err;
}

static rp_err accuracy_points(maker *m, const rp_lab_row *row, points *out) {
    return eval_points(m, row, true, epochs_known(m) ? BY_EPOCH : BY_STEP, out);
}

static rp_err loss_points(maker *m, const rp_lab_row *row, points *out) {
    return eval_points(m, row, false, epochs_known(m) ? BY_EPOCH : BY_STEP, out);
}

static rp_err accuracy_time_points(maker *m, const rp_lab_row *row, points *out) {
    return eval_points(m, row, true, BY_TIME, out);
}

static rp_err loss_time_points(maker *m, const rp_lab_row *row, points *out) {
    return eval_points(m, row, false, BY_TIME, out);
}

static rp_err add_learning(maker *m) {
    const char *epochs = epochs_known(m) ? "epochs" : "steps";
    const char *note = band_note(m);
    const bool classes = m->table->classes;
    const bool validation = m->table->validation;
    char *over_time;
    rp_err err;
    RP_TRY(rp_arena_printf(m->arena, &over_time, "%s %s over time",
                           validation ? "Validation" : "Test", classes ? "accuracy" : "loss"));
    if (classes) {
        const rp_chart accuracy = {.title = validation ? "Validation accuracy" : "Test accuracy",
                                   .note = note,
                                   .x_label = epochs,
                                   .y_label = "accuracy, %",
                                   .percent = true,
                                   .whole_x = true};
        RP_TRY(add_chart(m, RP_LAB_LEARNING_PART, "accuracy", &accuracy, accuracy_points));
    }
    const rp_chart loss = {.title = validation ? "Validation loss" : "Test loss",
                           .note = note,
                           .x_label = epochs,
                           .y_label = "loss",
                           .whole_x = true};
    RP_TRY(add_chart(m, RP_LAB_LEARNING_PART, "test-loss", &loss, loss_points));
    const rp_chart train = {
        .title = "Train loss", .note = note, .x_label = "steps", .y_label = "loss"};
    RP_TRY(add_chart(m, RP_LAB_LEARNING_PART, "train-loss", &train, train_points));
    const rp_chart time = {.title = over_time,
                           .note = "since the first step, evaluations included",
                           .x_label = "time, s",
                           .y_label = classes ? "accuracy, %" : "loss",
                           .percent = classes};
    RP_TRY(add_chart(m, RP_LAB_RESULT_PART, "time", &time,
                     classes ? accuracy_time_points : loss_time_points));
fail:
    return err;
}

/* ---- differences ----------------------------------------------------------------------------- */

static rp_err add_forest(maker *m) {
    const rp_lab_table *table = m->table;
    const rp_lab_row *base = NULL;
    rp_lab_figure *figure;
    rp_forest_row *to;
    char *title;
    rp_err err;
    double scale = table->classes ? 100 : 1;
    for (uint32_t line = 0; line < table->line_count; line++) {
        base = row_at(m, line)->baseline ? row_at(m, line) : base;
    }
    if (!base) {
        return RP_OK;
    }
    RP_TRY(add_figure(m, RP_LAB_RESULT_PART, RP_LAB_FOREST, "difference", &figure));
    RP_TRY(RP_ARENA_NEW(m->arena, table->line_count, &to));
    RP_TRY(rp_arena_printf(m->arena, &title, "%s against %s",
                           table->classes ? "Test accuracy" : "Test loss", base->label));
    figure->forest =
        (rp_forest){.title = title,
                    .note = "dots are seeds, the diamond their mean, the line its 95 % interval",
                    .x_label = table->classes ? "difference, percentage points; right is better"
                                              : "difference of the loss; left is better",
                    .row = to};
    for (uint32_t line = 0; line < table->line_count; line++) {
        const rp_lab_row *row = row_at(m, line);
        const rp_stats_paired *over = rp_lab_row_over(table, row);
        double *difference;
        if (row->baseline || over->count == 0 || row->diverged > 0) {
            continue;
        }
        RP_TRY(RP_ARENA_NEW(m->arena, row->wanted, &difference));
        for (uint32_t s = 0; s < row->wanted; s++) {
            difference[s] = scale * (table->classes ? row->accuracy_of[s] - base->accuracy_of[s]
                                                    : row->loss_of[s] - base->loss_of[s]);
        }
        to[figure->forest.count++] = (rp_forest_row){.name = row->label,
                                                     .line = line,
                                                     .difference = difference,
                                                     .count = row->wanted,
                                                     .mean = scale * over->mean,
                                                     .low = scale * over->low,
                                                     .high = scale * over->high,
                                                     .verdict = rp_lab_row_verdict(table, row)};
    }
    if (figure->forest.count > 0) {
        keep_figure(m);
    }
fail:
    return err;
}

/* ---- cost ------------------------------------------------------------------------------------ */

static rp_err speed_points(maker *m, const rp_lab_row *row, points *out) {
    const rp_stats *value = rp_lab_row_main(m->table, row);
    rp_err err = open_points(m, 1, out);
    if (err != RP_OK || row->diverged > 0 || value->count == 0 || row->samples_per_s.count == 0) {
        return err;
    }
    out->count = 1;
    out->x[0] = row->samples_per_s.mean;
    out->y[0] = value->mean;
    out->low[0] = value->mean - value->deviation;
    out->high[0] = value->mean + value->deviation;
    return err;
}

static rp_err add_speed(maker *m) {
    bool classes = m->table->classes;
    const rp_chart chart = {.title = classes ? "Accuracy and speed" : "Loss and speed",
                            .note = classes ? "up and to the right is better"
                                            : "down and to the right is better",
                            .x_label = "speed, samples/s",
                            .y_label = classes ? "test accuracy, %" : "test loss",
                            .percent = classes,
                            .names = true,
                            .x_from_low = true};
    return add_chart(m, RP_LAB_RESULT_PART, "speed", &chart, speed_points);
}

static rp_err add_memory(maker *m) {
    const rp_lab_table *table = m->table;
    rp_lab_figure *figure;
    const char **name;
    uint32_t *line_of;
    double *value;
    rp_err err;
    uint32_t stages = 0;
    uint32_t series = 0;
    for (uint32_t line = 0; line < table->line_count; line++) {
        uint32_t count = row_at(m, line)->stage_count;
        stages = count > stages ? count : stages;
    }
    if (stages == 0) {
        return RP_OK;
    }
    RP_TRY(add_figure(m, RP_LAB_WEIGHTS_PART, RP_LAB_BARS, "memory", &figure));
    RP_TRY(RP_ARENA_NEW(m->arena, table->line_count, &name));
    RP_TRY(RP_ARENA_NEW(m->arena, table->line_count, &line_of));
    RP_TRY(RP_ARENA_NEW(m->arena, (size_t)table->line_count * stages, &value));
    for (uint32_t line = 0; line < table->line_count; line++) {
        const rp_lab_row *row = row_at(m, line);
        for (uint32_t k = 0; row->stage_count && k < stages; k++) {
            value[series * stages + k] =
                k < row->stage_count ? row->stage[k].device_bytes_max / (1 << 20) : none;
        }
        name[series] = row->label;
        line_of[series] = line;
        series += row->stage_count > 0;
    }
    figure->bars = (rp_bars){.title = "Device memory by stage",
                             .note = "largest at any time, of any seed",
                             .y_label = "device memory, MiB",
                             .group_label = "stage",
                             .name = name,
                             .line = line_of,
                             .value = value,
                             .series_count = series,
                             .group_count = stages};
    keep_figure(m);
fail:
    return err;
}

/* ---- predictions ----------------------------------------------------------------------------- */

static rp_err add_prediction_pair(maker *m, const rp_lab_row *row, uint32_t stage, rp_chart *chart,
                                  rp_curve *curve) {
    static const char *const what[] = {"predicted", "stale"};
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < 2; i++) {
        points p;
        char *name;
        RP_TRY(prediction_points(m, row, stage, i == 1, &p));
        if (p.count > 0) {
            RP_TRY(rp_arena_printf(m->arena, &name, "%s, %s", row->label, what[i]));
            curve[chart->count] = curve_of(row, name, &p);
            curve[chart->count].dashed = i == 1;
            curve[chart->count].low = i == 1 ? NULL : p.low;
            chart->count++;
        }
    }
fail:
    return err;
}

static bool has_gap(const maker *m, uint32_t stage) {
    for (uint32_t line = 0; line < m->table->line_count; line++) {
        const rp_lab_row *row = row_at(m, line);
        for (uint32_t s = 0; s < row->wanted; s++) {
            const rp_lab_prediction *p = rp_lab_result_prediction(row->result[s], stage);
            if (p && (p->gap_max > 0 || p->stale_mean > 0)) {
                return true;
            }
        }
    }
    return false;
}

static rp_err add_predictions(maker *m) {
    rp_err err = RP_OK;
    for (uint32_t stage = 0; m->table->predicted && stage < RP_LAB_STAGES_MAX; stage++) {
        rp_lab_figure *figure;
        rp_curve *curve;
        char *name;
        char *title;
        if (!has_gap(m, stage)) {
            continue;
        }
        RP_TRY(rp_arena_printf(m->arena, &name, "prediction-stage-%u", stage));
        RP_TRY(rp_arena_printf(m->arena, &title, "Distance from the weights to come, stage %u",
                               stage));
        RP_TRY(add_figure(m, RP_LAB_WEIGHTS_PART, RP_LAB_CHART, name, &figure));
        RP_TRY(RP_ARENA_NEW(m->arena, 2 * (size_t)m->table->line_count, &curve));
        figure->chart =
            (rp_chart){.title = title,
                       .note = "solid: predicted weights; dashed: the stale ones at hand",
                       .x_label = "steps",
                       .y_label = "L2 norm",
                       .log_y = true,
                       .curve = curve};
        for (uint32_t line = 0; line < m->table->line_count; line++) {
            RP_TRY(add_prediction_pair(m, row_at(m, line), stage, &figure->chart, curve));
        }
        if (figure->chart.count > 0) {
            keep_figure(m);
        }
    }
fail:
    return err;
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

static rp_err add_sweep_curve(maker *m, const rp_lab_tuning *tuning, rp_curve *to) {
    const rp_lab_method *method = &m->table->plan->lab->method[tuning->method];
    uint32_t *order;
    points p;
    rp_err err;
    RP_TRY(open_points(m, tuning->trial_count, &p));
    RP_TRY(RP_ARENA_NEW(m->arena, tuning->trial_count, &order));
    for (uint32_t i = 0; i < tuning->trial_count; i++) { /* by insertion: they are few */
        uint32_t at = i;
        for (; at > 0 && method->number[order[at - 1]] > method->number[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    *to = (rp_curve){.name = method->name, .line = tuning->method, .marked = tuning->trial_count};
    for (uint32_t i = 0; i < tuning->trial_count; i++) {
        const rp_lab_trial *trial = &tuning->trial[order[i]];
        p.x[i] = method->number[order[i]];
        p.y[i] = trial->diverged ? none : trial->score.mean;
        p.low[i] = p.y[i] - trial->score.deviation;
        p.high[i] = p.y[i] + trial->score.deviation;
        to->marked = trial->chosen ? i : to->marked;
    }
    to->x = p.x;
    to->y = p.y;
    to->low = p.low;
    to->high = p.high;
    to->count = tuning->trial_count;
fail:
    return err;
}

/* Values over more than a decade are read on a log axis. */
static bool wide_range(const rp_curve *curve, uint32_t count) {
    double low = none;
    double high = none;
    for (uint32_t c = 0; c < count; c++) {
        for (uint32_t i = 0; i < curve[c].count; i++) {
            double x = curve[c].x[i];
            low = !(x >= low) ? x : low;
            high = !(x <= high) ? x : high;
        }
    }
    return low > 0 && high >= 9 * low;
}

/* One drawing for each key that was swept alone, over numbers. */
static rp_err add_sweep(maker *m, const char *key) {
    const rp_labfile *lab = m->table->plan->lab;
    const char *dot = strrchr(key, '.');
    rp_lab_figure *figure;
    rp_curve *curve;
    char *name;
    char *title;
    bool accuracy = false;
    bool validation = false;
    rp_err err;
    RP_TRY(rp_arena_printf(m->arena, &name, "sweep-%s", key));
    RP_TRY(rp_arena_printf(m->arena, &title, "Sweep of %s", key));
    RP_TRY(add_figure(m, RP_LAB_SWEEP_PART, RP_LAB_CHART, name, &figure));
    RP_TRY(RP_ARENA_NEW(m->arena, m->table->tuning_count, &curve));
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->table->tuning_count; i++) {
        const rp_lab_tuning *tuning = &m->table->tuning[i];
        const rp_lab_method *method = &lab->method[tuning->method];
        if (tuning->model == m->model && method->number && strcmp(method->sweep, key) == 0) {
            RP_TRY(add_sweep_curve(m, tuning, &curve[count++]));
            accuracy = tuning->accuracy;
            validation = tuning->validation;
        }
    }
    figure->chart = (rp_chart){.title = title,
                               .note = "mean over the tuning seeds; the ring is what was chosen",
                               .x_label = dot ? dot + 1 : key,
                               .y_label = !accuracy    ? "loss"
                                          : validation ? "validation accuracy, %"
                                                       : "test accuracy, %",
                               .log_x = wide_range(curve, count),
                               .percent = accuracy,
                               .x_from_low = true,
                               .curve = curve,
                               .count = count};
    keep_figure(m);
fail:
    return err;
}

static rp_err add_sweeps(maker *m) {
    const rp_labfile *lab = m->table->plan->lab;
    rp_err err = RP_OK;
    for (uint32_t i = 0; lab->tune && i < lab->method_count; i++) {
        const rp_lab_method *method = &lab->method[i];
        bool first = method->number != NULL;
        for (uint32_t j = 0; first && j < i; j++) {
            first = !lab->method[j].number || strcmp(lab->method[j].sweep, method->sweep) != 0;
        }
        if (first) {
            RP_TRY(add_sweep(m, method->sweep));
        }
    }
fail:
    return err;
}

/* ---- all ------------------------------------------------------------------------------------- */

rp_err rp_lab_figures_make(rp_arena *arena, const rp_lab_table *table, rp_lab_figures *out) {
    const rp_labfile *lab = table->plan->lab;
    maker m = {.arena = arena, .table = table, .out = out};
    rp_err err;
    *out = (rp_lab_figures){0};
    m.room = lab->model_count * (8 + lab->method_count + RP_LAB_STAGES_MAX);
    RP_TRY(RP_ARENA_NEW(arena, m.room, &out->figure));
    for (m.model = 0; m.model < lab->model_count; m.model++) {
        RP_TRY(add_forest(&m));
        RP_TRY(add_speed(&m));
        RP_TRY(add_learning(&m));
        RP_TRY(add_memory(&m));
        RP_TRY(add_predictions(&m));
        RP_TRY(add_sweeps(&m));
    }
fail:
    return err;
}

void rp_lab_figure_write(FILE *file, const rp_lab_figure *figure, bool standalone) {
    switch (figure->drawing) {
    case RP_LAB_CHART:
        rp_chart_write(file, &figure->chart, standalone);
        break;
    case RP_LAB_FOREST:
        rp_forest_write(file, &figure->forest, standalone);
        break;
    case RP_LAB_BARS:
        rp_bars_write(file, &figure->bars, standalone);
        break;
    }
}
