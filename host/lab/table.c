#include "lab/table.h"

#include <math.h>
#include <string.h>

static const double none = (double)NAN;

/* ---- rows ------------------------------------------------------------------------------------ */

const rp_lab_row *rp_lab_table_row(const rp_lab_table *table, uint32_t model, uint32_t line) {
    return &table->row[model * table->line_count + line];
}

const rp_lab_row *rp_lab_table_baseline(const rp_lab_table *table, uint32_t model) {
    const rp_lab_row *base = NULL;
    for (uint32_t line = 0; line < table->line_count; line++) {
        const rp_lab_row *row = rp_lab_table_row(table, model, line);
        base = row->baseline ? row : base;
    }
    return base;
}

const rp_lab_result *rp_lab_row_first(const rp_lab_row *row) {
    for (uint32_t s = 0; s < row->wanted; s++) {
        if (row->result[s]) {
            return row->result[s];
        }
    }
    return NULL;
}

static double larger(double a, double b) {
    return !(b <= a) && isfinite(b) ? b : a; /* a may be NaN */
}

static bool same_cut(const rp_lab_result *a, const rp_lab_result *b) {
    bool same = a->stage_count == b->stage_count;
    for (uint32_t k = 0; same && k < a->stage_count; k++) {
        same = strcmp(a->stage[k].first_layer, b->stage[k].first_layer) == 0;
    }
    return same;
}

/* Keeps the largest memory of all seeds, which a board must have. */
static void add_stages(rp_lab_row *row, const rp_lab_result *result) {
    for (uint32_t k = 0; k < row->stage_count && k < result->stage_count; k++) {
        rp_lab_stage *to = &row->stage[k];
        const rp_lab_stage *from = &result->stage[k];
        to->busy_s += from->busy_s;
        to->idle_s += from->idle_s;
        to->weight_bytes = larger(to->weight_bytes, from->weight_bytes);
        to->device_bytes_max = larger(to->device_bytes_max, from->device_bytes_max);
        to->weight_versions_max = larger(to->weight_versions_max, from->weight_versions_max);
        to->in_flight_max = larger(to->in_flight_max, from->in_flight_max);
        to->gap_max = larger(to->gap_max, from->gap_max);
    }
}

static rp_err fill_stages(rp_arena *arena, rp_lab_row *row) {
    const rp_lab_result *first = rp_lab_row_first(row);
    rp_err err;
    row->device_bytes = row->gap_max = row->versions_max = none;
    row->stage_count = first ? first->stage_count : 0;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)row->stage_count + 1, &row->stage));
    for (uint32_t k = 0; k < row->stage_count; k++) {
        row->stage[k] = first->stage[k];
        row->stage[k].busy_s = row->stage[k].idle_s = 0;
    }
    for (uint32_t s = 0; s < row->wanted; s++) {
        if (row->result[s]) {
            add_stages(row, row->result[s]);
        }
    }
    for (uint32_t k = 0; k < row->stage_count; k++) {
        double bytes = row->stage[k].device_bytes_max;
        row->device_bytes = k == 0 ? bytes : row->device_bytes + bytes;
        row->gap_max = larger(row->gap_max, row->stage[k].gap_max);
        row->versions_max = larger(row->versions_max, row->stage[k].weight_versions_max);
    }
fail:
    return err;
}

static bool same_wire(const rp_lab_wire *a, const rp_lab_wire *b) {
    return strcmp(a->kind, b->kind) == 0 && strcmp(a->from, b->from) == 0 &&
           strcmp(a->to, b->to) == 0;
}

/* Mean of a wire's number over the row's runs; NaN: no run has it. */
static double mean_of_wire(const rp_lab_row *row, const rp_lab_wire *wire, uint32_t number) {
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t s = 0; s < row->wanted; s++) {
        const rp_lab_result *result = row->result[s];
        for (uint32_t i = 0; result && i < result->wire_count; i++) {
            const double own = result->wire[i].number[number];
            const bool counts = same_wire(&result->wire[i], wire) && isfinite(own);
            sum += counts ? own : 0;
            count += counts;
        }
    }
    return count > 0 ? sum / count : none;
}

static rp_err fill_wires(rp_arena *arena, rp_lab_row *row) {
    const rp_lab_result *first = rp_lab_row_first(row);
    rp_err err;
    row->wire_count = first ? first->wire_count : 0;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)row->wire_count + 1, &row->wire));
    for (uint32_t w = 0; w < row->wire_count; w++) {
        row->wire[w] = first->wire[w];
        for (uint32_t i = 0; i < RP_LAB_WIRE_NUMBERS; i++) {
            row->wire[w].number[i] = mean_of_wire(row, &row->wire[w], i);
        }
    }
fail:
    return err;
}

/* A diverged run has speed and memory, but no loss and accuracy. */
static rp_err fill_numbers(rp_arena *arena, rp_lab_row *row, uint32_t seeds, double goal) {
    double *value[6];
    rp_err err;
    for (uint32_t i = 0; i < 6; i++) {
        RP_TRY(RP_ARENA_NEW(arena, (size_t)seeds + 1, &value[i]));
    }
    for (uint32_t s = 0; s < seeds; s++) {
        const rp_lab_result *result = row->result[s];
        bool good = result && !result->diverged;
        value[0][s] = good ? result->accuracy : none;
        value[1][s] = good ? result->eval_loss : none;
        value[2][s] = good ? result->train_loss : none;
        value[3][s] = result ? result->samples_per_s : none;
        value[4][s] = result ? rp_lab_result_gain(result) : none;
        value[5][s] = result && goal > 0 ? rp_lab_result_seconds_to(result, goal) : none;
    }
    row->accuracy = rp_stats_of(value[0], seeds);
    row->loss = rp_stats_of(value[1], seeds);
    row->train_loss = rp_stats_of(value[2], seeds);
    row->samples_per_s = rp_stats_of(value[3], seeds);
    row->gain = rp_stats_of(value[4], seeds);
    row->seconds_to_goal = rp_stats_of(value[5], seeds);
    row->accuracy_of = value[0];
    row->loss_of = value[1];
fail:
    return err;
}

static rp_err fill_row(rp_arena *arena, const rp_lab_plan *plan, rp_lab_row *row) {
    const rp_labfile *lab = plan->lab;
    const rp_lab_result **result;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, lab->seed_count, &result));
    row->result = result;
    row->wanted = lab->seed_count;
    for (uint32_t s = 0; s < lab->seed_count && row->point < RP_LAB_NONE_IS_GOOD; s++) {
        const rp_lab_result *got =
            &rp_lab_plan_run(plan, row->model, row->method, row->point, s)->result;
        result[s] = got->status == RP_LAB_FINISHED ? got : NULL;
        row->finished += got->status == RP_LAB_FINISHED;
        row->failed += got->status == RP_LAB_FAILED;
        row->diverged += got->diverged;
    }
    RP_TRY(fill_numbers(arena, row, lab->seed_count, lab->goal));
    RP_TRY(fill_stages(arena, row));
    RP_TRY(fill_wires(arena, row));
fail:
    return err;
}

static rp_err make_row(rp_arena *arena, const rp_lab_plan *plan, uint32_t point, rp_lab_row *row) {
    const rp_lab_method *method = &plan->lab->method[row->method];
    rp_err err = RP_OK;
    row->point = point;
    row->baseline = row->method == plan->lab->baseline;
    row->label = method->name;
    if (point < RP_LAB_NONE_IS_GOOD) {
        row->label = rp_lab_plan_run(plan, row->model, row->method, point, 0)->label;
    }
    err = fill_row(arena, plan, row);
    return err;
}

static rp_err make_rows(rp_arena *arena, rp_lab_table *table) {
    const rp_lab_plan *plan = table->plan;
    const rp_labfile *lab = plan->lab;
    rp_err err;
    for (uint32_t i = 0; i < lab->method_count; i++) {
        table->line_count += lab->tune ? 1 : lab->method[i].point_count;
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)table->line_count * lab->model_count, &table->row));
    for (uint32_t model = 0; model < lab->model_count; model++) {
        uint32_t line = 0;
        for (uint32_t method = 0; method < lab->method_count; method++) {
            uint32_t lines = lab->tune ? 1 : lab->method[method].point_count;
            for (uint32_t i = 0; i < lines; i++) {
                rp_lab_row *row = &table->row[table->row_count++];
                *row = (rp_lab_row){.model = model, .method = method, .line = line++};
                uint32_t chosen = plan->chosen[model * lab->method_count + method];
                RP_TRY(make_row(arena, plan, lab->tune ? chosen : i, row));
            }
        }
    }
fail:
    return err;
}

/* The first finished run of the model with the same number of stages. */
static const rp_lab_result *first_alike(const rp_lab_table *table, uint32_t model,
                                        const rp_lab_result *result) {
    for (uint32_t i = 0; i < table->row_count; i++) {
        const rp_lab_row *row = &table->row[i];
        for (uint32_t s = 0; row->model == model && s < row->wanted; s++) {
            const rp_lab_result *other = row->result[s];
            if (other && other->stage_count == result->stage_count) {
                return other;
            }
        }
    }
    return result;
}

static void compare_cuts(rp_lab_table *table) {
    for (uint32_t i = 0; i < table->row_count; i++) {
        const rp_lab_row *row = &table->row[i];
        for (uint32_t s = 0; s < row->wanted; s++) {
            const rp_lab_result *result = row->result[s];
            table->cut_differs =
                table->cut_differs ||
                (result && !same_cut(first_alike(table, row->model, result), result));
        }
    }
}

static void compare_rows(rp_lab_table *table) {
    const rp_labfile *lab = table->plan->lab;
    for (uint32_t i = 0; i < table->row_count; i++) {
        rp_lab_row *row = &table->row[i];
        const rp_lab_row *base = rp_lab_table_baseline(table, row->model);
        row->speed = none;
        row->accuracy_over = row->loss_over = rp_stats_pair(NULL, NULL, 0);
        if (base && base != row) {
            row->accuracy_over =
                rp_stats_pair(row->accuracy_of, base->accuracy_of, lab->seed_count);
            row->loss_over = rp_stats_pair(row->loss_of, base->loss_of, lab->seed_count);
            row->speed = row->samples_per_s.mean / base->samples_per_s.mean;
        }
        for (uint32_t s = 0; s < lab->seed_count; s++) {
            table->classes = table->classes || (row->result[s] && row->result[s]->classes);
            table->validation = table->validation || (row->result[s] && row->result[s]->validated);
        }
        table->predicted = table->predicted || row->gain.count > 0;
    }
}

/* ---- tuning ---------------------------------------------------------------------------------- */

static rp_err make_trial(rp_arena *arena, const rp_lab_plan *plan, rp_lab_tuning *tuning,
                         uint32_t point, rp_lab_trial *out) {
    const rp_labfile *lab = plan->lab;
    const rp_lab_method *method = &lab->method[tuning->method];
    double *score;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)lab->seed_all + 1, &score));
    *out = (rp_lab_trial){.label = method->point[point].label};
    for (uint32_t seed = 0; seed < lab->seed_all; seed++) {
        const rp_lab_result *result =
            &rp_lab_plan_run(plan, tuning->model, tuning->method, point, seed)->result;
        score[seed] = lab->tunes[seed] ? rp_lab_metric_of(plan, result) : none;
        out->wanted += lab->tunes[seed];
        out->finished += lab->tunes[seed] && result->status == RP_LAB_FINISHED;
        out->diverged += lab->tunes[seed] && result->diverged;
        tuning->validation = tuning->validation || (lab->tunes[seed] && result->validated);
    }
    out->score = rp_stats_of(score, lab->seed_all);
    out->chosen = plan->chosen[tuning->model * lab->method_count + tuning->method] == point;
    if (out->chosen && method->number) {
        bool least = true;
        bool most = true;
        for (uint32_t i = 0; i < method->point_count; i++) {
            least = least && method->number[point] <= method->number[i];
            most = most && method->number[point] >= method->number[i];
        }
        out->at_edge = least || most;
    }
fail:
    return err;
}

static bool scores_are_accuracies(const rp_lab_plan *plan) {
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const rp_lab_result *result = &plan->run[i].result;
        if (result->status == RP_LAB_FINISHED) {
            return rp_lab_metric_is_accuracy(plan, result);
        }
    }
    return plan->lab->metric != RP_LAB_LOSS;
}

static rp_err make_tunings(rp_arena *arena, rp_lab_table *table) {
    const rp_lab_plan *plan = table->plan;
    const rp_labfile *lab = plan->lab;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)lab->model_count * lab->method_count, &table->tuning));
    for (uint32_t i = 0; lab->tune && i < lab->model_count * lab->method_count; i++) {
        const rp_lab_method *method = &lab->method[i % lab->method_count];
        if (method->point_count == 1) {
            continue;
        }
        rp_lab_tuning *tuning = &table->tuning[table->tuning_count++];
        *tuning = (rp_lab_tuning){.model = i / lab->method_count,
                                  .method = i % lab->method_count,
                                  .accuracy = scores_are_accuracies(plan),
                                  .trial_count = method->point_count};
        RP_TRY(RP_ARENA_NEW(arena, method->point_count, &tuning->trial));
        for (uint32_t point = 0; point < method->point_count; point++) {
            RP_TRY(make_trial(arena, plan, tuning, point, &tuning->trial[point]));
        }
    }
fail:
    return err;
}

/* ---- equal keys ------------------------------------------------------------------------------ */

enum { LEAVES_MAX = 512, KEY_BYTES = 128 };

typedef struct {
    const char *key; /* "optimizer.lr" */
    const char *text;
    uint32_t files; /* number of files with the key */
    bool differs;
} leaf;

typedef struct {
    rp_arena *arena;
    leaf leaf[LEAVES_MAX];
    uint32_t count, files;
} leaves;

static rp_err take_leaf(leaves *to, const char *key, const rp_node *node) {
    char *text;
    char *copy;
    rp_err err;
    RP_TRY(rp_config_text(to->arena, node, &text));
    for (uint32_t i = 0; i < to->count; i++) {
        if (strcmp(to->leaf[i].key, key) == 0) {
            to->leaf[i].files++;
            to->leaf[i].differs = to->leaf[i].differs || strcmp(to->leaf[i].text, text) != 0;
            return RP_OK;
        }
    }
    if (to->count < LEAVES_MAX) {
        RP_TRY(rp_arena_string(to->arena, key, &copy));
        to->leaf[to->count++] = (leaf){.key = copy, .text = text, .files = 1};
    }
fail:
    return err;
}

static rp_err take_leaves(leaves *to, const char *above, const rp_node *map, uint32_t depth) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < rp_node_count(map); i++) {
        const rp_node *node = rp_node_item(map, i);
        char key[KEY_BYTES];
        (void)snprintf(key, sizeof key, "%s%s%s", above, above[0] ? "." : "", rp_node_key(map, i));
        if (rp_node_is_map(node) && depth < RP_CONFIG_DEPTH_MAX) {
            RP_TRY(take_leaves(to, key, node, depth + 1));
        } else if (strcmp(key, "model") != 0 && strcmp(key, "train.seed") != 0) {
            RP_TRY(take_leaf(to, key, node));
        }
    }
fail:
    return err;
}

/* Compares one run file of each row with a finished run; seeds change no other key. */
static rp_err find_equal(rp_arena *arena, rp_lab_table *table) {
    const rp_lab_plan *plan = table->plan;
    leaves *all;
    rp_arena files;
    rp_arena_init(&files, "run files", 0);
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &all));
    all->arena = arena;
    for (uint32_t i = 0; i < table->row_count; i++) {
        const rp_lab_row *row = &table->row[i];
        uint32_t seed = 0;
        while (seed < row->wanted && !row->result[seed]) {
            seed++;
        }
        if (seed == row->wanted) {
            continue;
        }
        rp_node *root;
        rp_arena_finish(&files);
        rp_arena_init(&files, "run files", 0);
        RP_TRY(rp_config_read_file(
            &files, rp_lab_plan_run(plan, row->model, row->method, row->point, seed)->file, &root));
        RP_TRY(take_leaves(all, "", root, 0));
        all->files++;
    }
    RP_TRY(RP_ARENA_NEW(arena, LEAVES_MAX, &table->equal));
    RP_TRY(RP_ARENA_NEW(arena, LEAVES_MAX, &table->equal_value));
    RP_TRY(RP_ARENA_NEW(arena, LEAVES_MAX, &table->differs));
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->leaf[i].differs || all->leaf[i].files < all->files) {
            table->differs[table->differs_count++] = all->leaf[i].key;
        } else {
            table->equal_value[table->equal_count] = all->leaf[i].text;
            table->equal[table->equal_count++] = all->leaf[i].key;
        }
    }
fail:
    rp_arena_finish(&files);
    return err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

rp_err rp_lab_table_make(rp_arena *arena, const rp_lab_plan *plan, rp_lab_table *out) {
    rp_err err;
    *out = (rp_lab_table){.plan = plan};
    RP_TRY(make_rows(arena, out));
    compare_rows(out);
    compare_cuts(out);
    RP_TRY(make_tunings(arena, out));
    RP_TRY(find_equal(arena, out));
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const rp_lab_result *result = &plan->run[i].result;
        if (!plan->run[i].wanted || result->status != RP_LAB_FINISHED) {
            continue;
        }
        out->first_s =
            out->first_s == 0 || result->ended_s < out->first_s ? result->ended_s : out->first_s;
        out->last_s = result->ended_s > out->last_s ? result->ended_s : out->last_s;
    }
fail:
    return err;
}

uint32_t rp_lab_table_wires(const rp_lab_table *table, uint32_t model) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->line_count; i++) {
        count += rp_lab_table_row(table, model, i)->wire_count;
    }
    return count;
}

const char *rp_lab_table_chosen_on(const rp_lab_table *table) {
    uint32_t validated = 0;
    for (uint32_t i = 0; i < table->tuning_count; i++) {
        validated += table->tuning[i].validation;
    }
    return validated == 0                     ? "the test part, which biases their rows"
           : validated == table->tuning_count ? "the validation part"
                                              : "the validation part where the runs have one, "
                                                "else on the test part, which biases such rows";
}

const rp_stats_paired *rp_lab_row_over(const rp_lab_table *table, const rp_lab_row *row) {
    return table->classes ? &row->accuracy_over : &row->loss_over;
}

int rp_lab_row_verdict(const rp_lab_table *table, const rp_lab_row *row) {
    if (row->diverged > 0 || row->finished == 0) {
        return row->diverged > 0 ? -1 : 0;
    }
    int sign = rp_stats_sign(rp_lab_row_over(table, row));
    return table->classes ? sign : -sign;
}
