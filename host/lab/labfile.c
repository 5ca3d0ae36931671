#include "lab/labfile.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_BYTES = 160, VALUE_SHOWN = 40, KEYS_MAX = 64 /* keys of a method */ };

static bool name_char(char c) {
    return isalnum((unsigned char)c) || (c && strchr("._+-", c));
}

static bool fit_for_files(const char *text) {
    for (const char *c = text; *c; c++) {
        if (!name_char(*c)) {
            return false;
        }
    }
    return text[0] != '\0' && text[0] != '.';
}

/* ---- models and seeds ------------------------------------------------------------------------ */

static rp_err need_list(rp_node *map, const char *key, uint32_t max, rp_node **out) {
    rp_err err;
    RP_TRY(rp_node_need(map, key));
    *out = rp_node_find(map, key);
    if (!rp_node_is_list(*out) || rp_node_count(*out) == 0 || rp_node_count(*out) > max) {
        return rp_node_fail(*out, "expected a list of 1 to %u", max);
    }
fail:
    return err;
}

/* Folder of a model: "own" for host/models/own.yaml. */
static rp_err model_folder(rp_arena *arena, const rp_node *at, const char *model, char **out) {
    const char *slash = strrchr(model, '/');
    const char *name = slash ? slash + 1 : model;
    size_t bytes = strlen(name);
    if (bytes > 5 && strcmp(name + bytes - 5, ".yaml") == 0) {
        bytes -= 5;
    }
    rp_err err = rp_arena_text(arena, name, bytes, out);
    if (err == RP_OK && (!fit_for_files(*out) || bytes >= RP_LAB_NAME_BYTES)) {
        return rp_node_fail(at, "model '%s': expected a name of letters, digits and . _ + -",
                            model);
    }
    return err;
}

static rp_err read_models(rp_arena *arena, rp_node *root, rp_node *base, rp_labfile *lab) {
    rp_node *list = NULL;
    const char **model;
    const char **folder;
    rp_err err;
    if (rp_node_find(root, "models")) {
        RP_TRY(need_list(root, "models", RP_LAB_MODELS_MAX, &list));
    } else {
        RP_TRY(rp_node_need(base, "model"));
    }
    lab->model_count = list ? rp_node_count(list) : 1;
    RP_TRY(RP_ARENA_NEW(arena, lab->model_count, &model));
    RP_TRY(RP_ARENA_NEW(arena, lab->model_count, &folder));
    if (!list) {
        RP_TRY(rp_node_string(base, "model", &model[0]));
    }
    for (uint32_t i = 0; i < lab->model_count; i++) {
        const rp_node *at = list ? rp_node_item(list, i) : root;
        char *name;
        if (list && !rp_node_is_scalar(at)) {
            return rp_node_fail(at, "expected a model's name or path");
        }
        model[i] = list ? rp_node_text(at) : model[i];
        RP_TRY(model_folder(arena, at, model[i], &name));
        folder[i] = name;
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(folder[j], name) == 0) {
                return rp_node_fail(at, "two models are called '%s'", name);
            }
        }
    }
    lab->model = model;
    lab->folder = folder;
fail:
    return err;
}

static uint32_t seed_at(const uint64_t *seed, uint32_t count, uint64_t wanted) {
    uint32_t i = 0;
    while (i < count && seed[i] != wanted) {
        i++;
    }
    return i;
}

static rp_err read_seeds(rp_arena *arena, rp_node *root, rp_node *tune, rp_labfile *lab) {
    rp_node *list;
    rp_node *own = NULL;
    uint64_t *seed;
    bool *tunes;
    rp_err err;
    RP_TRY(need_list(root, "seeds", RP_LAB_SEEDS_MAX, &list));
    if (rp_node_find(tune, "seeds")) {
        RP_TRY(need_list(tune, "seeds", RP_LAB_SEEDS_MAX, &own));
    }
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)RP_LAB_SEEDS_MAX, &seed));
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)RP_LAB_SEEDS_MAX, &tunes));
    for (uint32_t i = 0; i < rp_node_count(list); i++) {
        uint32_t value;
        RP_TRY(rp_node_item_u32(list, i, 0, UINT32_MAX, &value));
        if (seed_at(seed, i, value) < i) {
            return rp_node_fail(rp_node_item(list, i), "seed %u is given twice", value);
        }
        seed[lab->seed_all++] = value;
    }
    lab->seed_count = lab->seed_all;
    tunes[0] = tune && !own;
    for (uint32_t i = 0; own && i < rp_node_count(own); i++) {
        uint32_t value;
        RP_TRY(rp_node_item_u32(own, i, 0, UINT32_MAX, &value));
        uint32_t at = seed_at(seed, lab->seed_all, value);
        if (tunes[at]) {
            return rp_node_fail(rp_node_item(own, i), "seed %u is given twice", value);
        }
        seed[at] = value;
        tunes[at] = true;
        lab->seed_all += at == lab->seed_all;
    }
    lab->seed = seed;
    lab->tunes = tunes;
fail:
    return err;
}

/* ---- methods --------------------------------------------------------------------------------- */

/* Whether `key` is `other` or one of the maps that contain it: "optimizer" for "optimizer.lr". */
static bool key_above(const char *key, const char *other) {
    size_t length = strlen(key);
    return strncmp(key, other, length) == 0 && (other[length] == '.' || other[length] == '\0');
}

static rp_err check_keys(const rp_node *map) {
    for (uint32_t i = 0; i < rp_node_count(map); i++) {
        const char *key = rp_node_key(map, i);
        const rp_node *value = rp_node_item(map, i);
        if (!fit_for_files(key) || strstr(key, "..") || key[strlen(key) - 1] == '.') {
            return rp_node_fail(value, "expected a key of the run file, like optimizer.lr");
        }
        if (strcmp(key, "train.seed") == 0 || strcmp(key, "model") == 0) {
            return rp_node_fail(value, "belongs to all methods: give it under `%s` above",
                                key[0] == 'm' ? "models" : "seeds");
        }
        if (rp_node_is_list(value) &&
            (rp_node_count(value) == 0 || rp_node_count(value) > RP_LAB_POINTS_MAX)) {
            return rp_node_fail(value, "a list is a sweep over 1 to %d values", RP_LAB_POINTS_MAX);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (key_above(key, rp_node_key(map, j))) {
                return rp_node_fail(value, "overwrites '%s', which is above it: put this key first",
                                    rp_node_key(map, j));
            }
        }
    }
    return RP_OK;
}

static uint32_t choices_of(const rp_node *value) {
    return rp_node_is_list(value) ? rp_node_count(value) : 1;
}

static const char *last_word(const char *key) {
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

/* Last word of a swept key, or the whole key if two swept keys have the same last word. */
static const char *short_key(const rp_node *map, uint32_t index) {
    const char *key = rp_node_key(map, index);
    for (uint32_t i = 0; i < rp_node_count(map); i++) {
        if (i != index && choices_of(rp_node_item(map, i)) > 1 &&
            strcmp(last_word(rp_node_key(map, i)), last_word(key)) == 0) {
            return key;
        }
    }
    return last_word(key);
}

static void add_setting(char *text, const char *comma, const char *key, const char *is,
                        const char *value) {
    size_t used = strlen(text);
    (void)snprintf(text + used, LABEL_BYTES - used, "%s%s%s%s", used ? comma : "", key, is, value);
}

/* Makes KEY=VALUE of one key of a point, and adds a swept key to the point's label and tag. */
static rp_err set_key(rp_arena *arena, const rp_node *map, uint32_t index, uint32_t choice,
                      char *label, char *tag, const char **out) {
    const char *key = rp_node_key(map, index);
    const rp_node *value = rp_node_item(map, index);
    const bool swept = choices_of(value) > 1;
    char *text;
    char *assignment;
    rp_err err;
    value = rp_node_is_list(value) ? rp_node_item(value, choice) : value;
    RP_TRY(rp_config_text(arena, value, &text));
    const size_t length = strlen(text);
    if (length > 0 && text[length - 1] == '\n') { /* the assignment is shown in messages */
        text[length - 1] = '\0';
    }
    RP_TRY(rp_arena_printf(arena, &assignment, "%s=%s", key, text));
    *out = assignment;
    if (swept) {
        const char *word = short_key(map, index);
        char number[16];
        (void)snprintf(number, sizeof number, "%u", choice + 1);
        size_t line = strcspn(text, "\n");
        bool one_line = text[line] == '\0' || text[line + 1] == '\0';
        text[line] = '\0';
        bool shown = one_line && line > 0 && line <= VALUE_SHOWN;
        bool plain = shown && rp_node_is_scalar(value) && fit_for_files(text);
        add_setting(label, ", ", word, shown ? "=" : " #", shown ? text : number);
        add_setting(tag, ",", word, plain ? "=" : ".", plain ? text : number);
    }
fail:
    return err;
}

static rp_err read_point(rp_arena *arena, const rp_node *map, uint32_t index, rp_lab_point *out) {
    uint32_t choice[KEYS_MAX];
    char label[LABEL_BYTES] = "";
    char tag[LABEL_BYTES] = "";
    const char **set;
    char *text;
    rp_err err;
    const uint32_t keys = rp_node_count(map);
    for (uint32_t i = keys; i-- > 0;) { /* the last key varies fastest */
        choice[i] = index % choices_of(rp_node_item(map, i));
        index /= choices_of(rp_node_item(map, i));
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)keys + 1, &set));
    for (uint32_t i = 0; i < keys; i++) {
        RP_TRY(set_key(arena, map, i, choice[i], label, tag, &set[i]));
    }
    if (strlen(tag) >= LABEL_BYTES - 1) {
        return rp_node_fail(map,
                            "a combination of this sweep has a name of more than %d characters",
                            LABEL_BYTES - 2);
    }
    *out = (rp_lab_point){.set = set, .set_count = keys};
    RP_TRY(rp_arena_string(arena, label, &text));
    out->label = text;
    RP_TRY(rp_arena_string(arena, tag, &text));
    out->tag = text;
fail:
    return err;
}

/* If only one key is swept and all its values are numbers, keeps the numbers: they show whether the
 * best value is at the end of the range. */
static rp_err read_numbers(rp_arena *arena, const rp_node *map, rp_lab_method *method) {
    const rp_node *list = NULL;
    uint32_t swept = 0;
    double *number;
    for (uint32_t i = 0; i < rp_node_count(map); i++) {
        if (choices_of(rp_node_item(map, i)) > 1) {
            swept++;
            list = rp_node_item(map, i);
            method->sweep = rp_node_key(map, i);
        }
    }
    if (swept != 1) {
        method->sweep = NULL;
        return RP_OK;
    }
    rp_err err = RP_ARENA_NEW(arena, rp_node_count(list), &number);
    for (uint32_t i = 0; err == RP_OK && i < rp_node_count(list); i++) {
        const rp_node *item = rp_node_item(list, i);
        char *end;
        if (!rp_node_is_scalar(item)) {
            return RP_OK;
        }
        number[i] = strtod(rp_node_text(item), &end);
        if (end == rp_node_text(item) || *end || !isfinite(number[i])) {
            return RP_OK;
        }
    }
    method->number = number;
    return err;
}

static rp_err read_method(rp_arena *arena, const char *name, const rp_node *map,
                          rp_lab_method *out) {
    rp_lab_point *point;
    uint64_t points = 1;
    rp_err err;
    if (!fit_for_files(name) || strlen(name) >= RP_LAB_NAME_BYTES) {
        return rp_node_fail(map,
                            "expected a method's name: at most %d letters, digits and . _ + -, "
                            "no dot first",
                            RP_LAB_NAME_BYTES - 1);
    }
    if (!rp_node_is_map(map) || rp_node_count(map) > KEYS_MAX) {
        return rp_node_fail(map, "expected a map of keys of the run file, like {schedule: gpipe}");
    }
    RP_TRY(check_keys(map));
    for (uint32_t i = 0; i < rp_node_count(map); i++) {
        points *= choices_of(rp_node_item(map, i));
        if (points > RP_LAB_POINTS_MAX) {
            return rp_node_fail(map, "the sweeps multiply to more than %d points",
                                RP_LAB_POINTS_MAX);
        }
    }
    RP_TRY(RP_ARENA_NEW(arena, points, &point));
    *out =
        (rp_lab_method){.name = name, .node = map, .point = point, .point_count = (uint32_t)points};
    RP_TRY(read_numbers(arena, map, out));
    for (uint32_t i = 0; i < points; i++) {
        RP_TRY(read_point(arena, map, i, &point[i]));
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(point[i].tag, point[j].tag) == 0) {
                return rp_node_fail(map, "the point '%s' is given twice", point[i].label);
            }
        }
    }
fail:
    return err;
}

static rp_err read_methods(rp_arena *arena, rp_node *root, rp_labfile *lab) {
    rp_lab_method *method;
    rp_err err;
    RP_TRY(rp_node_need(root, "methods"));
    rp_node *methods = rp_node_find(root, "methods");
    if (!rp_node_is_map(methods) || rp_node_count(methods) == 0 ||
        rp_node_count(methods) > RP_LAB_METHODS_MAX) {
        return rp_node_fail(methods,
                            "expected a map of 1 to %d methods, like {gpipe: {schedule: gpipe}}",
                            RP_LAB_METHODS_MAX);
    }
    lab->method_count = rp_node_count(methods);
    RP_TRY(RP_ARENA_NEW(arena, lab->method_count, &method));
    for (uint32_t i = 0; i < lab->method_count; i++) {
        RP_TRY(read_method(arena, rp_node_key(methods, i), rp_node_item(methods, i), &method[i]));
    }
    lab->method = method;
fail:
    return err;
}

/* ---- the file -------------------------------------------------------------------------------- */

static rp_err read_tune(rp_node *root, rp_node **out, rp_labfile *lab) {
    static const char *const words[] = {"accuracy", "loss", NULL};
    rp_node *tune = rp_node_find(root, "tune");
    uint32_t word = 0;
    rp_err err = RP_OK;
    *out = tune;
    if (!tune) {
        return RP_OK;
    }
    if (!rp_node_is_map(tune)) {
        return rp_node_fail(tune, "expected a map, like {metric: accuracy, seeds: [1]}");
    }
    lab->tune = true;
    if (rp_node_find(tune, "metric")) {
        RP_TRY(rp_node_word(tune, "metric", words, &word));
        lab->metric = word == 0 ? RP_LAB_ACCURACY : RP_LAB_LOSS;
    }
    (void)rp_node_find(tune, "seeds");
    (void)rp_node_find(tune, "set");
    RP_TRY(rp_node_done(tune));
fail:
    return err;
}

/* Reads tune.set, for instance shorter runs. Then no seed may both tune and be in the report. */
static rp_err read_tune_set(rp_arena *arena, rp_node *tune, rp_labfile *lab) {
    rp_lab_method *over;
    rp_err err;
    rp_node *map = rp_node_find(tune, "set");
    if (!map) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, 1, &over));
    RP_TRY(read_method(arena, "tune.set", map, over));
    for (uint32_t i = 0; i < rp_node_count(map); i++) {
        if (rp_node_is_list(rp_node_item(map, i))) {
            return rp_node_fail(rp_node_item(map, i), "expected one value: it is for every point");
        }
    }
    for (uint32_t i = 0; i < lab->seed_count; i++) {
        if (lab->tunes[i]) {
            return rp_node_fail(map, "needs `tune.seeds` that are not among `seeds` (%llu is)",
                                (unsigned long long)lab->seed[i]);
        }
    }
    lab->tune_set = over;
fail:
    return err;
}

static rp_err read_baseline(rp_node *root, rp_labfile *lab) {
    const char *name = NULL;
    rp_err err = rp_node_string(root, "baseline", &name);
    const rp_node *at = rp_node_find(root, "baseline");
    lab->baseline = lab->method_count;
    if (err != RP_OK || !name) {
        return err;
    }
    for (uint32_t i = 0; i < lab->method_count; i++) {
        lab->baseline = strcmp(lab->method[i].name, name) == 0 ? i : lab->baseline;
    }
    if (lab->baseline == lab->method_count) {
        return rp_node_fail(at, "no method '%s'", name);
    }
    if (lab->method[lab->baseline].point_count > 1 && !lab->tune) {
        return rp_node_fail(at, "'%s' has a sweep: which of its points? `tune` would choose one",
                            name);
    }
    return RP_OK;
}

static rp_err check_size(const rp_node *root, const rp_labfile *lab) {
    uint64_t points = 0;
    uint32_t most = 0;
    for (uint32_t i = 0; i < lab->method_count; i++) {
        points += lab->method[i].point_count;
        most = lab->method[i].point_count > most ? lab->method[i].point_count : most;
    }
    if (lab->tune && most == 1) {
        return rp_node_fail(root, "tune: no method has a list of values to choose from");
    }
    uint64_t runs = points * lab->model_count * lab->seed_all;
    if (runs > RP_LAB_RUNS_MAX) {
        return rp_node_fail(root, "asks for %llu runs, at most %d are possible",
                            (unsigned long long)runs, RP_LAB_RUNS_MAX);
    }
    return RP_OK;
}

static rp_err read_base_path(rp_arena *arena, rp_node *root, rp_labfile *lab) {
    const char *base = NULL;
    char *path;
    rp_err err;
    RP_TRY(rp_node_need(root, "base"));
    RP_TRY(rp_node_string(root, "base", &base));
    const char *slash = strrchr(lab->path, '/');
    int folder = slash && base[0] != '/' ? (int)(slash - lab->path) + 1 : 0;
    RP_TRY(rp_arena_printf(arena, &path, "%.*s%s", folder, lab->path, base));
    lab->base = path;
fail:
    return err;
}

rp_err rp_labfile_read(rp_arena *arena, const char *path, rp_labfile *out) {
    static const char *const keys[] = {"description", "goal",    "base",     "models", "tune",
                                       "seeds",       "methods", "baseline", NULL};
    rp_node *root;
    rp_node *base;
    rp_node *tune;
    rp_err err;
    *out = (rp_labfile){.path = path, .description = ""};
    RP_TRY(rp_config_read_file(arena, path, &root));
    RP_TRY(rp_node_keys(root, keys));
    RP_TRY(rp_node_string(root, "description", &out->description));
    RP_TRY(rp_node_f64(root, "goal", 0, 1, &out->goal));
    RP_TRY(read_base_path(arena, root, out));
    RP_TRY(rp_config_read_file(arena, out->base, &base));
    RP_TRY(read_models(arena, root, base, out));
    RP_TRY(read_tune(root, &tune, out));
    RP_TRY(read_seeds(arena, root, tune, out));
    RP_TRY(read_tune_set(arena, tune, out));
    RP_TRY(read_methods(arena, root, out));
    RP_TRY(read_baseline(root, out));
    RP_TRY(check_size(root, out));
fail:
    return err;
}

const rp_node *rp_labfile_blame(const rp_lab_method *method, const char *message) {
    for (uint32_t i = 0; i < rp_node_count(method->node); i++) {
        const char *at = strstr(message, rp_node_key(method->node, i));
        if (at && at > message && at[-1] == ' ') {
            return rp_node_item(method->node, i);
        }
    }
    return method->node;
}
