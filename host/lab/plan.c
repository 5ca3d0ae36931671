#include "lab/plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace.h"
#include "run/paths.h"
#include "run/runfile.h"

enum { PATH_BYTES = 480 }; /* below the limit of host/run for a run folder */

/* ---- run files ------------------------------------------------------------------------------- */

static bool method_tuned(const rp_labfile *lab, uint32_t method) {
    return lab->tune && lab->method[method].point_count > 1;
}

/* tune.set for a run that tunes; NULL: none. */
static const rp_lab_point *tuning_point(const rp_labfile *lab, const rp_lab_run *run) {
    const bool tunes = method_tuned(lab, run->method) && lab->tunes[run->seed];
    return tunes && lab->tune_set ? lab->tune_set->point : NULL;
}

/* A path of a model file is relative to the base file, like all paths there. */
static rp_err find_model(rp_arena *arena, const rp_labfile *lab, const char *name, char **out) {
    const char *slash = strrchr(lab->base, '/');
    const bool is_path = name[0] != '/' && (strchr(name, '/') || strstr(name, ".yaml"));
    rp_err err = rp_arena_printf(
        arena, out, "%.*s%s", slash && is_path ? (int)(slash - lab->base) + 1 : 0, lab->base, name);
    if (err == RP_OK && access(*out, F_OK) != 0) {
        err = rp_arena_string(arena, name, out);
    }
    return err;
}

/* The --set assignments of a run: the method's, tune.set's, then model and seed. */
static rp_err sets_of(rp_arena *arena, const rp_lab_plan *plan, const rp_lab_run *run,
                      const char ***out, uint32_t *count) {
    const rp_labfile *lab = plan->lab;
    const rp_lab_point *const layer[] = {&lab->method[run->method].point[run->point],
                                         tuning_point(lab, run)};
    char *model;
    char *seed;
    uint32_t n = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(
        arena, (size_t)layer[0]->set_count + (layer[1] ? layer[1]->set_count : 0) + 2, out));
    for (int l = 0; l < 2; l++) {
        for (uint32_t i = 0; layer[l] && i < layer[l]->set_count; i++) {
            (*out)[n++] = layer[l]->set[i];
        }
    }
    RP_TRY(find_model(arena, lab, lab->model[run->model], &model));
    RP_TRY(rp_arena_printf(arena, &model, "model=%s", model));
    RP_TRY(
        rp_arena_printf(arena, &seed, "train.seed=%llu", (unsigned long long)lab->seed[run->seed]));
    (*out)[n++] = model;
    (*out)[n++] = seed;
    *count = n;
fail:
    return err;
}

/* Rewords a usage error of a run's settings to name the line in the lab file. */
static rp_err blame_setting(const rp_lab_plan *plan, const rp_lab_run *run, rp_err err) {
    const rp_labfile *lab = plan->lab;
    const rp_lab_method *method = &lab->method[run->method];
    char message[512];
    if (rp_err_exit_code(err) != 2) {
        return err;
    }
    (void)snprintf(message, sizeof message, "%s", rp_err_message());
    const rp_node *node = rp_labfile_blame(method, message);
    if (tuning_point(lab, run) && node == method->node) {
        node = rp_labfile_blame(lab->tune_set, message);
    }
    const char *hint = rp_node_is_list(node) ? " (a list is a sweep: a value that is a list is "
                                               "written [[...]])"
                                             : "";
    return rp_node_fail(node, "the run '%s' would not start: %s%s", run->name, message, hint);
}

/* Run files are in the comparison's folder, so the base's relative paths become absolute. */
static rp_err make_paths_absolute(rp_arena *arena, rp_node *root) {
    rp_node *model = rp_node_at(root, "model");
    const char *text = model && rp_node_is_scalar(model) ? rp_node_text(model) : "";
    const char *path;
    char *whole;
    rp_err err;
    RP_TRY(rp_paths_resolve(arena, root));
    RP_TRY(rp_paths_make_absolute(arena, root));
    if (text[0] != '/' && (strchr(text, '/') || strstr(text, ".yaml"))) {
        RP_TRY(rp_node_path(arena, model, &path));
        RP_TRY(rp_paths_absolute(arena, path, &whole));
        rp_node_set_text(model, whole);
    }
fail:
    return err;
}

static rp_err settings_of(rp_arena *arena, const rp_lab_plan *plan, const rp_lab_run *run,
                          rp_node **root) {
    const char **set;
    uint32_t count;
    rp_err err;
    RP_TRY(rp_config_read_file(arena, plan->lab->base, root));
    RP_TRY(sets_of(arena, plan, run, &set, &count));
    for (uint32_t i = 0; i < count; i++) {
        err = rp_config_set(arena, *root, set[i]);
        if (err != RP_OK) {
            return blame_setting(plan, run, err);
        }
    }
    RP_TRY(make_paths_absolute(arena, *root));
fail:
    return err;
}

/* Checks that an existing run folder was made with the same settings. */
static rp_err same_file(const rp_lab_plan *plan, const rp_lab_run *run) {
    rp_arena arena;
    rp_arena_init(&arena, "run file", 0);
    rp_node *wanted;
    rp_node *there;
    rp_err err;
    RP_TRY(settings_of(&arena, plan, run, &wanted));
    if (access(run->folder, F_OK) != 0) {
        goto fail; /* not begun */
    }
    RP_TRY(rp_config_read_file(&arena, run->file, &there));
    RP_TRY(make_paths_absolute(&arena, there)); /* older versions wrote relative ones */
    if (!rp_node_same(wanted, there)) {
        err = rp_fail(RP_ERR_USAGE,
                      "%s: this run was made with other settings; choose another --out, or remove "
                      "%s to make it again",
                      run->file, run->folder);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

static rp_err make_folder(char *path, size_t length) {
    char end = path[length];
    path[length] = '\0';
    rp_err err = RP_OK;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        err = rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    path[length] = end;
    return err;
}

static rp_err write_text(const char *path, const char *text) {
    FILE *file = rp_replace_begin(path);
    return rp_replace_end(file, path, file && fputs(text, file) != EOF);
}

rp_err rp_lab_plan_write(const rp_lab_plan *plan, const rp_lab_run *run) {
    rp_arena arena;
    rp_arena_init(&arena, "run file", 0);
    char *path;
    char *text;
    rp_node *settings;
    rp_err err;
    RP_TRY(rp_arena_string(&arena, run->file, &path));
    for (size_t i = strlen(plan->folder); path[i]; i++) {
        if (path[i] == '/') {
            RP_TRY(make_folder(path, i));
        }
    }
    RP_TRY(settings_of(&arena, plan, run, &settings));
    RP_TRY(rp_config_text(&arena, settings, &text));
    RP_TRY(write_text(run->file, text));
fail:
    rp_arena_finish(&arena);
    return err;
}

static rp_err check_run(rp_lab_plan *plan, const rp_lab_run *run, uint64_t *steps) {
    rp_arena arena;
    rp_arena_init(&arena, "check", 0);
    const char **set;
    uint32_t count;
    rp_runfile file = {0};
    rp_err err;
    RP_TRY(sets_of(&arena, plan, run, &set, &count));
    err = rp_runfile_read(&arena, plan->lab->base, set, count, &file);
    err = err == RP_OK ? rp_runfile_check_cut(&file) : err;
    if (err != RP_OK) {
        err = blame_setting(plan, run, err);
        rp_runfile_close(&file);
        goto fail;
    }
    *steps = file.steps;
    plan->on_roster = plan->on_roster || !file.local;
    if (!file.local) {
        rp_keypair keys;
        err = rp_runfile_read_keys(&file, plan->keys, &keys);
        explicit_bzero(&keys, sizeof keys);
    }
    if (err == RP_OK && plan->lab->metric == RP_LAB_ACCURACY && !file.loss->accuracy) {
        err = rp_fail(RP_ERR_USAGE, "%s: tune.metric: the loss %s has no accuracy; expected loss",
                      plan->lab->path, file.loss->name);
    }
    rp_runfile_close(&file);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* A seed changes neither validity nor steps, so one run is checked for all seeds of a point. */
rp_err rp_lab_plan_check(rp_lab_plan *plan) {
    const rp_labfile *lab = plan->lab;
    for (uint32_t i = 0; i < plan->run_count; i++) {
        rp_lab_run *run = &plan->run[i];
        bool ever = run->wanted || lab->tune; /* tuning may choose it */
        if (!ever || run->steps || run->result.status == RP_LAB_FINISHED) {
            continue;
        }
        uint64_t steps;
        rp_err err = check_run(plan, run, &steps);
        if (err != RP_OK) {
            return err;
        }
        for (uint32_t seed = 0; seed < lab->seed_all; seed++) {
            rp_lab_run *other = rp_lab_plan_run(plan, run->model, run->method, run->point, seed);
            if (tuning_point(lab, other) == tuning_point(lab, run)) {
                other->steps = steps;
            }
        }
    }
    return RP_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

rp_lab_run *rp_lab_plan_run(const rp_lab_plan *plan, uint32_t model, uint32_t method,
                            uint32_t point, uint32_t seed) {
    const rp_labfile *lab = plan->lab;
    uint32_t points = plan->run_count / (lab->model_count * lab->seed_all);
    uint32_t before = 0;
    for (uint32_t i = 0; i < method; i++) {
        before += lab->method[i].point_count;
    }
    return &plan->run[(model * lab->seed_all + seed) * points + before + point];
}

static rp_err name_run(rp_lab_plan *plan, rp_lab_run *run) {
    const rp_labfile *lab = plan->lab;
    const rp_lab_method *method = &lab->method[run->method];
    const rp_lab_point *point = &method->point[run->point];
    rp_arena *arena = plan->arena;
    char *text;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &text, "%s%s%s", method->name, point->label[0] ? ", " : "",
                           point->label));
    run->label = text;
    RP_TRY(rp_arena_printf(arena, &text, "%s/%s%s%s/seed-%llu", lab->folder[run->model],
                           method->name, point->tag[0] ? "@" : "", point->tag,
                           (unsigned long long)lab->seed[run->seed]));
    run->name = text;
    RP_TRY(rp_arena_printf(arena, &text, "%s/runs/%s", plan->folder, run->name));
    run->folder = text;
    if (strlen(text) >= PATH_BYTES) {
        return rp_fail(RP_ERR_USAGE, "%s: path too long", text);
    }
    RP_TRY(rp_arena_printf(arena, &text, "%s.yaml", run->folder));
    run->file = text;
    RP_TRY(rp_arena_printf(arena, &text, "%s.log", run->folder));
    run->log = text;
fail:
    return err;
}

static rp_err enumerate_runs(rp_lab_plan *plan) {
    const rp_labfile *lab = plan->lab;
    uint32_t points = 0;
    uint32_t n = 0;
    rp_err err;
    for (uint32_t i = 0; i < lab->method_count; i++) {
        points += lab->method[i].point_count;
    }
    plan->run_count = lab->model_count * lab->seed_all * points;
    RP_TRY(RP_ARENA_NEW(plan->arena, plan->run_count, &plan->run));
    for (uint32_t model = 0; model < lab->model_count; model++) {
        for (uint32_t seed = 0; seed < lab->seed_all; seed++) {
            for (uint32_t method = 0; method < lab->method_count; method++) {
                for (uint32_t point = 0; point < lab->method[method].point_count; point++) {
                    rp_lab_run *run = &plan->run[n++];
                    run->model = model;
                    run->seed = seed;
                    run->method = method;
                    run->point = point;
                    RP_TRY(name_run(plan, run));
                }
            }
        }
    }
    RP_ASSERT(n == plan->run_count);
fail:
    return err;
}

/* ---- tuning ---------------------------------------------------------------------------------- */

bool rp_lab_metric_is_accuracy(const rp_lab_plan *plan, const rp_lab_result *result) {
    return result->classes && plan->lab->metric != RP_LAB_LOSS;
}

double rp_lab_metric_of(const rp_lab_plan *plan, const rp_lab_result *result) {
    if (result->status != RP_LAB_FINISHED || result->diverged) {
        return (double)NAN;
    }
    const double accuracy = result->validated ? result->validation_accuracy : result->accuracy;
    const double loss = result->validated ? result->validation_loss : result->eval_loss;
    return rp_lab_metric_is_accuracy(plan, result) ? accuracy
           : plan->lab->metric == RP_LAB_ACCURACY  ? (double)NAN
           : isfinite(loss)                        ? loss
                                                   : result->train_loss;
}

/* *out: mean metric over the tuning seeds, negated for a loss, so larger is better; NaN when a run
 * diverged. False: a run is still to be made. */
static bool score_of(const rp_lab_plan *plan, uint32_t model, uint32_t method, uint32_t point,
                     double *out) {
    const rp_labfile *lab = plan->lab;
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t seed = 0; seed < lab->seed_all; seed++) {
        if (!lab->tunes[seed]) {
            continue;
        }
        const rp_lab_run *run = rp_lab_plan_run(plan, model, method, point, seed);
        if (run->running || (run->result.status != RP_LAB_FINISHED && !run->tried)) {
            return false;
        }
        double value = rp_lab_metric_of(plan, &run->result);
        sum += rp_lab_metric_is_accuracy(plan, &run->result) ? value : -value;
        count++;
    }
    *out = sum / count;
    return true;
}

/* The best point; the first one of equals. */
static uint32_t choose_point(const rp_lab_plan *plan, uint32_t model, uint32_t method) {
    uint32_t best = RP_LAB_NONE_IS_GOOD;
    double best_score = 0;
    for (uint32_t point = 0; point < plan->lab->method[method].point_count; point++) {
        double score;
        if (!score_of(plan, model, method, point, &score)) {
            return RP_LAB_NOT_CHOSEN;
        }
        if (isfinite(score) && (best == RP_LAB_NONE_IS_GOOD || score > best_score)) {
            best = point;
            best_score = score;
        }
    }
    return best;
}

static void choose_all(rp_lab_plan *plan) {
    const rp_labfile *lab = plan->lab;
    for (uint32_t i = 0; i < lab->model_count * lab->method_count; i++) {
        uint32_t method = i % lab->method_count;
        plan->chosen[i] =
            method_tuned(lab, method) ? choose_point(plan, i / lab->method_count, method) : 0;
    }
    for (uint32_t i = 0; i < plan->run_count; i++) {
        rp_lab_run *run = &plan->run[i];
        uint32_t chosen = plan->chosen[run->model * lab->method_count + run->method];
        bool every = !method_tuned(lab, run->method);
        run->wanted = ((every || chosen == run->point) && run->seed < lab->seed_count) ||
                      (!every && lab->tunes[run->seed]);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

rp_err rp_lab_plan_make(rp_arena *arena, const rp_labfile *lab, const char *folder,
                        rp_lab_plan *out) {
    rp_err err;
    *out = (rp_lab_plan){.arena = arena, .lab = lab, .folder = folder};
    RP_TRY(RP_ARENA_NEW(arena, (size_t)lab->model_count * lab->method_count, &out->chosen));
    RP_TRY(enumerate_runs(out));
    for (uint32_t i = 0; i < out->run_count; i++) {
        rp_lab_run *run = &out->run[i];
        RP_TRY(same_file(out, run));
        RP_TRY(rp_lab_result_read(arena, run->folder, run->log, &run->result));
    }
    choose_all(out);
fail:
    return err;
}

rp_err rp_lab_plan_refresh(rp_lab_plan *plan, rp_lab_run *run) {
    rp_err err = rp_lab_result_read(plan->arena, run->folder, run->log, &run->result);
    if (err == RP_OK) {
        choose_all(plan);
    }
    return err;
}

/* Runs that tuning needs come first, because the rest depends on it. */
rp_lab_run *rp_lab_plan_next(rp_lab_plan *plan) {
    const rp_labfile *lab = plan->lab;
    for (int all = 0; all < 2; all++) {
        for (uint32_t i = 0; i < plan->run_count; i++) {
            rp_lab_run *run = &plan->run[i];
            bool early = method_tuned(lab, run->method) && lab->tunes[run->seed];
            if (run->wanted && !run->tried && run->result.status != RP_LAB_FINISHED &&
                (all || early)) {
                return run;
            }
        }
    }
    return NULL;
}

rp_lab_counts rp_lab_plan_count(const rp_lab_plan *plan) {
    const rp_labfile *lab = plan->lab;
    rp_lab_counts counts = {.complete = true};
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const rp_lab_run *run = &plan->run[i];
        if (!run->wanted) {
            continue;
        }
        bool finished = run->result.status == RP_LAB_FINISHED;
        counts.wanted++;
        counts.finished += finished;
        counts.failed += run->result.status == RP_LAB_FAILED;
        counts.diverged += run->result.diverged;
        counts.steps_left += finished ? 0 : run->steps;
        counts.complete = counts.complete && finished;
    }
    for (uint32_t i = 0; i < lab->model_count * lab->method_count; i++) {
        counts.complete = counts.complete && plan->chosen[i] != RP_LAB_NOT_CHOSEN;
    }
    return counts;
}
