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
    return rp_lab_table_row(m->table, m->model, line);
}

/* Prepares a figure with room for `room` series; keep_figure() adds it to the list. */
static rp_err add_figure(maker *m, rp_lab_part part, const char *name, const rp_plot *plot,
                         uint32_t room, rp_lab_figure **out, rp_series **series) {
    char *file;
    rp_err err;
    RP_ASSERT(m->out->count < m->room);
    RP_TRY(
        rp_arena_printf(m->arena, &file, "%s-%s.svg", m->table->plan->lab->folder[m->model], name));
    RP_TRY(RP_ARENA_NEW(m->arena, room, series));
    *out = &m->out->figure[m->out->count];
    **out = (rp_lab_figure){.file = file, .model = m->model, .part = part, .plot = *plot};
    (*out)->plot.series = *series;
fail:
    return err;
}

static void keep_figure(maker *m) {
    m->out->count++;
}

/* ---- curves over seeds ----------------------------------------------------------------------- */

typedef enum {
    ACCURACY, /* of an evaluation */
    LOSS,
    TRAIN_LOSS, /* of a bin of steps */
    PREDICTED,  /* distance of the predicted weights from the later ones */
    STALE,      /* distance of the stale weights from the later ones */
    SPEED       /* one point: samples/s and the main number */
} quantity;

typedef struct {
    quantity y;
    enum { BY_EPOCH, BY_STEP, BY_TIME } x; /* for ACCURACY and LOSS */
    uint32_t stage;                        /* for PREDICTED and STALE */
} sample;

/* Number of evaluations that all finished seeds have, or of bins of the first seed. */
static uint32_t samples_of(const rp_lab_row *row, const sample *what) {
    const rp_lab_result *first = rp_lab_row_first(row);
    uint32_t common = POINTS_MAX;
    switch (what->y) {
    case ACCURACY:
    case LOSS:
        for (uint32_t s = 0; s < row->wanted; s++) {
            const uint32_t count = row->result[s] ? row->result[s]->eval_count : common;
            common = count < common ? count : common;
        }
        return first ? common : 0;
    case TRAIN_LOSS:
        return first ? first->bin_count : 0;
    case PREDICTED:
    case STALE:
        return first ? RP_LAB_BINS : 0;
    case SPEED:
        break;
    }
    return first && row->diverged == 0;
}

/* Time counts from the first step, because kernels are built before it. */
static double eval_x(const rp_lab_result *result, const rp_lab_eval *eval, const sample *what) {
    const double start_s = isfinite(result->first_step_s) ? result->first_step_s : 0;
    return what->x == BY_EPOCH  ? eval->epoch
           : what->x == BY_STEP ? eval->step
                                : eval->time_s - start_s;
}

/* Sample `i` of one seed; false: none. A seed whose bins are not as wide as the first seed's is
 * left out. */
static bool take_sample(const rp_lab_result *result, const rp_lab_result *first, const sample *what,
                        uint32_t i, double *x, double *y) {
    const rp_lab_prediction *p = rp_lab_result_prediction(result, what->stage);
    const rp_lab_eval *eval = result->eval ? result->eval + i : NULL;
    *x = (i + 0.5) * result->bin_steps;
    switch (what->y) {
    case ACCURACY:
    case LOSS:
        *x = eval_x(result, eval, what);
        *y = what->y == LOSS ? eval->loss : isfinite(eval->loss) ? eval->accuracy : none;
        return true;
    case TRAIN_LOSS:
        *y = i < result->bin_count ? result->bin_loss[i] : none;
        return result->bin_steps == first->bin_steps && i < result->bin_count;
    case PREDICTED:
    case STALE:
        *y = !p ? none : what->y == STALE ? p->stale[i] : p->error[i];
        return p && result->bin_steps == first->bin_steps;
    case SPEED:
        break;
    }
    *x = result->samples_per_s;
    *y = result->classes ? result->accuracy : result->eval_loss;
    return true;
}

static rp_err open_series(maker *m, uint32_t room, double *part[4], rp_series *out) {
    double *all;
    rp_err err = RP_ARENA_NEW(m->arena, 4 * (size_t)room + 1, &all);
    for (uint32_t i = 0; err == RP_OK && i < 4; i++) {
        part[i] = all + (size_t)i * room;
    }
    out->x = part[0];
    out->y = part[1];
    out->low = part[2];
    out->high = part[3];
    return err;
}

/* Mean over seeds, with one deviation to each side; NaN if a seed is not finite. */
static rp_err make_curve(maker *m, const rp_lab_row *row, const sample *what, const char *name,
                         rp_series *out) {
    const uint32_t count = samples_of(row, what);
    const rp_lab_result *first = rp_lab_row_first(row);
    double x[RP_LAB_SEEDS_MAX];
    double y[RP_LAB_SEEDS_MAX];
    double *part[4];
    *out = (rp_series){.name = name, .line = row->line, .marked = UINT32_MAX};
    rp_err err = open_series(m, count, part, out);
    for (uint32_t i = 0; err == RP_OK && i < count; i++) {
        uint32_t n = 0;
        for (uint32_t s = 0; s < row->wanted; s++) {
            n += row->result[s] && take_sample(row->result[s], first, what, i, &x[n], &y[n]);
        }
        const rp_stats mean = rp_stats_of(y, n);
        if (mean.count > 0 || (what->y != PREDICTED && what->y != STALE)) {
            const bool whole = mean.absent == 0;
            part[0][out->count] = rp_stats_of(x, n).mean;
            part[1][out->count] = whole ? mean.mean : none;
            part[2][out->count] = whole ? mean.mean - mean.deviation : none;
            part[3][out->count] = whole ? mean.mean + mean.deviation : none;
            out->count++;
        }
    }
    return err;
}

static bool any_finite(const rp_series *series) {
    for (uint32_t i = 0; i < series->count; i++) {
        if (isfinite(series->x[i]) && isfinite(series->y[i])) {
            return true;
        }
    }
    return false;
}

/* Adds a figure with one curve for each row, unless all are empty. */
static rp_err add_curves(maker *m, rp_lab_part part, const char *name, const rp_plot *plot,
                         sample what) {
    rp_lab_figure *figure;
    rp_series *series;
    bool any = false;
    rp_err err;
    RP_TRY(add_figure(m, part, name, plot, m->table->line_count, &figure, &series));
    for (uint32_t line = 0; line < m->table->line_count; line++) {
        rp_series *curve = &series[figure->plot.count];
        RP_TRY(make_curve(m, row_at(m, line), &what, row_at(m, line)->label, curve));
        figure->plot.count += curve->count > 0;
        any = any || any_finite(curve);
    }
    if (any) {
        keep_figure(m);
    }
fail:
    return err;
}

/* ---- learning -------------------------------------------------------------------------------- */

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

static rp_err add_learning(maker *m) {
    const bool epochs = epochs_known(m);
    const bool classes = m->table->classes;
    const bool validation = m->table->validation;
    const char *note =
        m->table->plan->lab->seed_count > 1 ? "mean over seeds \xc2\xb1 one sample deviation" : "";
    char *over_time;
    rp_err err;
    RP_TRY(rp_arena_printf(m->arena, &over_time, "%s %s over time",
                           validation ? "Validation" : "Test", classes ? "accuracy" : "loss"));
    const rp_plot accuracy = {.title = validation ? "Validation accuracy" : "Test accuracy",
                              .note = note,
                              .x_label = epochs ? "epochs" : "steps",
                              .y_label = "accuracy, %",
                              .percent = true,
                              .whole_x = true};
    const rp_plot loss = {.title = validation ? "Validation loss" : "Test loss",
                          .note = note,
                          .x_label = epochs ? "epochs" : "steps",
                          .y_label = "loss",
                          .whole_x = true};
    const rp_plot train = {
        .title = "Train loss", .note = note, .x_label = "steps", .y_label = "loss"};
    const rp_plot time = {.title = over_time,
                          .note = "since the first step, evaluations included",
                          .x_label = "time, s",
                          .y_label = classes ? "accuracy, %" : "loss",
                          .percent = classes};
    const sample by_time = {.y = classes ? ACCURACY : LOSS, .x = BY_TIME};
    if (classes) {
        RP_TRY(add_curves(m, RP_LAB_LEARNING_PART, "accuracy", &accuracy,
                          (sample){.y = ACCURACY, .x = epochs ? BY_EPOCH : BY_STEP}));
    }
    RP_TRY(add_curves(m, RP_LAB_LEARNING_PART, "test-loss", &loss,
                      (sample){.y = LOSS, .x = epochs ? BY_EPOCH : BY_STEP}));
    RP_TRY(add_curves(m, RP_LAB_LEARNING_PART, "train-loss", &train, (sample){.y = TRAIN_LOSS}));
    RP_TRY(add_curves(m, RP_LAB_RESULT_PART, "time", &time, by_time));
fail:
    return err;
}

/* ---- differences ----------------------------------------------------------------------------- */

/* The row's values minus the baseline's, with their mean and its interval. */
static rp_err make_differences(maker *m, const rp_lab_row *row, const rp_lab_row *base,
                               rp_series *out) {
    const rp_lab_table *table = m->table;
    const rp_stats_paired *over = rp_lab_row_over(table, row);
    const double *own = table->classes ? row->accuracy_of : row->loss_of;
    const double *other = table->classes ? base->accuracy_of : base->loss_of;
    const double scale = table->classes ? 100 : 1;
    double *x;
    rp_err err = RP_ARENA_NEW(m->arena, (size_t)row->wanted + 3, &x);
    for (uint32_t s = 0; err == RP_OK && s < row->wanted; s++) {
        x[s] = scale * (own[s] - other[s]);
    }
    if (err == RP_OK) {
        double *rest = x + row->wanted;
        rest[0] = scale * over->mean;
        rest[1] = scale * over->low;
        rest[2] = scale * over->high;
        *out = (rp_series){.name = row->label,
                           .line = row->line,
                           .x = x,
                           .y = rest,
                           .low = rest + 1,
                           .high = rest + 2,
                           .count = row->wanted,
                           .verdict = rp_lab_row_verdict(table, row)};
    }
    return err;
}

static rp_err add_differences(maker *m) {
    const rp_lab_table *table = m->table;
    const rp_lab_row *base = rp_lab_table_baseline(table, m->model);
    rp_lab_figure *figure;
    rp_series *series;
    char *title;
    rp_err err;
    if (!base) {
        return RP_OK;
    }
    RP_TRY(rp_arena_printf(m->arena, &title, "%s against %s",
                           table->classes ? "Test accuracy" : "Test loss", base->label));
    const rp_plot plot = {.kind = RP_PLOT_DIFFERENCES,
                          .title = title,
                          .note = "dots: seeds; diamond: their mean; line: its 95 % interval",
                          .x_label = table->classes
                                         ? "difference, percentage points; right is better"
                                         : "difference of the loss; left is better"};
    RP_TRY(add_figure(m, RP_LAB_RESULT_PART, "difference", &plot, table->line_count, &figure,
                      &series));
    for (uint32_t line = 0; line < table->line_count; line++) {
        const rp_lab_row *row = row_at(m, line);
        if (!row->baseline && rp_lab_row_over(table, row)->count > 0 && row->diverged == 0) {
            RP_TRY(make_differences(m, row, base, &series[figure->plot.count++]));
        }
    }
    if (figure->plot.count > 0) {
        keep_figure(m);
    }
fail:
    return err;
}

/* ---- cost ------------------------------------------------------------------------------------ */

static rp_err add_speed(maker *m) {
    const bool classes = m->table->classes;
    const rp_plot plot = {.title = classes ? "Accuracy and speed" : "Loss and speed",
                          .note = classes ? "up and to the right is better"
                                          : "down and to the right is better",
                          .x_label = "speed, samples/s",
                          .y_label = classes ? "test accuracy, %" : "test loss",
                          .percent = classes,
                          .names = true,
                          .x_from_low = true};
    return add_curves(m, RP_LAB_RESULT_PART, "speed", &plot, (sample){.y = SPEED});
}

static rp_err add_memory(maker *m) {
    const rp_lab_table *table = m->table;
    const rp_plot plot = {.kind = RP_PLOT_BARS,
                          .title = "Device memory by stage",
                          .note = "largest at any time, of any seed",
                          .x_label = "stage",
                          .y_label = "device memory, MiB"};
    rp_lab_figure *figure;
    rp_series *series;
    rp_err err;
    uint32_t stages = 0;
    RP_TRY(
        add_figure(m, RP_LAB_WEIGHTS_PART, "memory", &plot, table->line_count, &figure, &series));
    for (uint32_t line = 0; line < table->line_count; line++) {
        const uint32_t count = row_at(m, line)->stage_count;
        stages = count > stages ? count : stages;
    }
    for (uint32_t line = 0; line < table->line_count; line++) {
        const rp_lab_row *row = row_at(m, line);
        double *y;
        RP_TRY(RP_ARENA_NEW(m->arena, (size_t)stages + 1, &y));
        for (uint32_t k = 0; k < stages; k++) {
            y[k] = k < row->stage_count ? row->stage[k].device_bytes_max / (1 << 20) : none;
        }
        series[figure->plot.count] =
            (rp_series){.name = row->label, .line = line, .y = y, .count = stages};
        figure->plot.count += row->stage_count > 0;
    }
    if (stages > 0) {
        keep_figure(m);
    }
fail:
    return err;
}

/* ---- predictions ----------------------------------------------------------------------------- */

static rp_err add_prediction_pair(maker *m, const rp_lab_row *row, uint32_t stage, rp_plot *plot,
                                  rp_series *series) {
    static const char *const words[] = {"predicted", "stale"};
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < 2; i++) {
        const sample what = {.y = i == 0 ? PREDICTED : STALE, .stage = stage};
        rp_series *curve = &series[plot->count];
        char *name;
        RP_TRY(rp_arena_printf(m->arena, &name, "%s, %s", row->label, words[i]));
        RP_TRY(make_curve(m, row, &what, name, curve));
        curve->dashed = i == 1;
        curve->low = i == 1 ? NULL : curve->low;
        plot->count += curve->count > 0;
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
        rp_series *series;
        char *name;
        char *title;
        if (!has_gap(m, stage)) {
            continue;
        }
        RP_TRY(rp_arena_printf(m->arena, &name, "prediction-stage-%u", stage));
        RP_TRY(
            rp_arena_printf(m->arena, &title, "Distance from the later weights, stage %u", stage));
        const rp_plot plot = {.title = title,
                              .note = "solid: predicted weights; dashed: stale weights",
                              .x_label = "steps",
                              .y_label = "L2 norm",
                              .log_y = true};
        RP_TRY(add_figure(m, RP_LAB_WEIGHTS_PART, name, &plot, 2 * m->table->line_count, &figure,
                          &series));
        for (uint32_t line = 0; line < m->table->line_count; line++) {
            RP_TRY(add_prediction_pair(m, row_at(m, line), stage, &figure->plot, series));
        }
        if (figure->plot.count > 0) {
            keep_figure(m);
        }
    }
fail:
    return err;
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

static rp_err add_sweep_curve(maker *m, const rp_lab_tuning *tuning, rp_series *out) {
    const rp_lab_method *method = &m->table->plan->lab->method[tuning->method];
    const uint32_t count = tuning->trial_count;
    double *part[4];
    *out =
        (rp_series){.name = method->name, .line = tuning->method, .count = count, .marked = count};
    rp_err err = open_series(m, count, part, out);
    for (uint32_t i = 0; err == RP_OK && i < count; i++) {
        const rp_lab_trial *trial = &tuning->trial[i];
        uint32_t at = 0; /* rank of the number */
        for (uint32_t j = 0; j < count; j++) {
            at += method->number[j] < method->number[i] ||
                  (method->number[j] == method->number[i] && j < i);
        }
        part[0][at] = method->number[i];
        part[1][at] = trial->diverged ? none : trial->score.mean;
        part[2][at] = part[1][at] - trial->score.deviation;
        part[3][at] = part[1][at] + trial->score.deviation;
        out->marked = trial->chosen ? at : out->marked;
    }
    return err;
}

/* Whether values span more than a decade, which takes a log axis. */
static bool wide_range(const rp_series *curve, uint32_t count) {
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

/* One drawing for each key that is the only swept key of a method and has numbers. */
static rp_err add_sweep(maker *m, const char *key) {
    const rp_labfile *lab = m->table->plan->lab;
    const char *dot = strrchr(key, '.');
    rp_lab_figure *figure;
    rp_series *curve;
    char *name;
    char *title;
    const rp_lab_tuning *last = NULL;
    rp_err err;
    RP_TRY(rp_arena_printf(m->arena, &name, "sweep-%s", key));
    RP_TRY(rp_arena_printf(m->arena, &title, "Sweep of %s", key));
    const rp_plot plot = {.title = title,
                          .note = "mean over the tuning seeds; a ring marks the chosen value",
                          .x_label = dot ? dot + 1 : key,
                          .x_from_low = true};
    RP_TRY(add_figure(m, RP_LAB_SWEEP_PART, name, &plot, m->table->tuning_count, &figure, &curve));
    for (uint32_t i = 0; i < m->table->tuning_count; i++) {
        const rp_lab_tuning *tuning = &m->table->tuning[i];
        const rp_lab_method *method = &lab->method[tuning->method];
        if (tuning->model == m->model && method->number && strcmp(method->sweep, key) == 0) {
            RP_TRY(add_sweep_curve(m, tuning, &curve[figure->plot.count++]));
            last = tuning;
        }
    }
    figure->plot.log_x = wide_range(curve, figure->plot.count);
    figure->plot.percent = last && last->accuracy;
    figure->plot.y_label = !figure->plot.percent ? "loss"
                           : last->validation    ? "validation accuracy, %"
                                                 : "test accuracy, %";
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
        RP_TRY(add_differences(&m));
        RP_TRY(add_speed(&m));
        RP_TRY(add_learning(&m));
        RP_TRY(add_memory(&m));
        RP_TRY(add_predictions(&m));
        RP_TRY(add_sweeps(&m));
    }
fail:
    return err;
}
