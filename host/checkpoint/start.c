/* Start weights by `train.init`: maps tensors of the file to tensors of the model. */
#include "checkpoint/checkpoint_own.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum { LINE_BYTES = 300 };

/* ---- messages -------------------------------------------------------------------------------- */

static const char *name_in_file(const void *file, uint32_t index) {
    return rp_st_entry_at(file, index)->name;
}

static const char *name_in_model(const void *model, uint32_t index) {
    return ((const rp_model *)model)->param[index].name;
}

static rp_err fail_in_file(const rp_node *node, const rp_st_reader *file, const char *path,
                           const char *format, ...) {
    char text[LINE_BYTES];
    char names[RP_NAMES_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return rp_node_fail(node, "%s; %.120s has: %s", text, path,
                        rp_names_list(name_in_file, file, rp_st_count(file), names));
}

static rp_err fail_in_model(const rp_node *node, const rp_model *model, const char *format,
                            const char *name) {
    char text[LINE_BYTES];
    char names[RP_NAMES_BYTES];
    (void)snprintf(text, sizeof text, format, name);
    return rp_node_fail(node, "%s; the model has: %s", text,
                        rp_names_list(name_in_model, model, model->param_count, names));
}

/* ---- checks ---------------------------------------------------------------------------------- */

static rp_err check_patterns(const rp_node *patterns, const rp_model *model) {
    for (uint32_t i = 0; i < rp_patterns_count(patterns); i++) {
        const rp_node *pattern = rp_patterns_at(patterns, i);
        uint32_t p = 0;
        while (p < model->param_count && !rp_pattern_fits(pattern, model->param[p].name)) {
            p++;
        }
        if (p == model->param_count) {
            return fail_in_model(pattern, model, "'%.200s' matches no tensor of the model",
                                 rp_node_text(pattern));
        }
    }
    return RP_OK;
}

/* Index of the entry with this name, or the list's count. */
static uint32_t find_entry(const rp_checkpoint_list *list, const char *name) {
    uint32_t i = 0;
    while (i < list->count && strcmp(list->entry[i].name, name) != 0) {
        i++;
    }
    return i;
}

static rp_err give_source(const rp_init *init, const rp_st_entry *from, rp_checkpoint_list *list,
                          const char **source, uint32_t index) {
    if (source[index]) {
        return rp_node_fail(init->rename ? init->rename : init->node,
                            "'%.200s' and '%.200s' of %.200s would both become '%.200s'",
                            source[index], from->name, init->from, list->entry[index].name);
    }
    source[index] = from->name;
    return RP_OK;
}

/* source: for each entry of the list the name of its tensor in the file; NULL: not in the file.
 * Checks that every rule of `rename` applies to at least one tensor. */
static rp_err find_sources(rp_arena *arena, const rp_init *init, const rp_model *model,
                           const rp_st_reader *file, rp_checkpoint_list *list,
                           const char **source) {
    const uint32_t rules = init->rename ? rp_node_count(init->rename) : 0;
    bool *fitted;
    bool *used;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, rules + 1, &fitted));
    RP_TRY(RP_ARENA_NEW(arena, rules + 1, &used));
    for (uint32_t i = 0; i < rp_st_count(file); i++) {
        const rp_st_entry *from = rp_st_entry_at(file, i);
        char name[RP_INIT_NAME_BYTES];
        uint32_t rule;
        rp_init_rename(init, from->name, name, &rule);
        const uint32_t index = find_entry(list, name);
        if (rule != RP_INIT_NO_RULE) {
            fitted[rule] = true;
            used[rule] |= index < list->count;
        }
        if (index < list->count) {
            RP_TRY(give_source(init, from, list, source, index));
        }
    }
    for (uint32_t i = 0; i < rules; i++) {
        const rp_node *to = rp_node_item(init->rename, i);
        if (!fitted[i]) {
            return fail_in_file(to, file, init->from,
                                "'%.200s' is not a tensor or layer of the file",
                                rp_node_key(init->rename, i));
        }
        if (!used[i]) {
            return fail_in_model(to, model, "'%.200s' is not a tensor or layer of the model",
                                 rp_node_text(to));
        }
    }
fail:
    return err;
}

/* Does the run take the file's states? *updates: as in rp_checkpoint_start_updates(). */
static rp_err read_states(const rp_init *init, const rp_st_reader *file, bool *states,
                          uint64_t *updates) {
    const char *text = rp_st_meta(file, RP_CHECKPOINT_START_UPDATES);
    *states = text && !init->only && !init->except && !init->rename;
    *updates = 0;
    return !*states || (rp_checkpoint_number(text, updates) &&
                        *updates <= RP_CHECKPOINT_START_UPDATES_MAX)
               ? RP_OK
               : rp_node_fail(init->node, "%.120s: metadata '%s': expected a number", init->from,
                              RP_CHECKPOINT_START_UPDATES);
}

/* Keeps only entries that are taken, and checks that the file has them. */
static rp_err choose_entries(const rp_init *init, const rp_st_reader *file,
                             rp_checkpoint_list *list, const char **source) {
    const uint32_t values = list->evaluated;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const bool is_state = i >= values;
        if (!rp_init_takes(init, list->entry[i].name) || (is_state && !source[i])) {
            continue;
        }
        if (!source[i]) {
            return fail_in_file(
                init->node, file, init->from,
                "the file has no '%.200s' (to take only a part of a file, use `only`, "
                "`except` and `rename`)",
                list->entry[i].name);
        }
        list->entry[kept] = list->entry[i];
        list->param[kept] = list->param[i];
        source[kept++] = source[i];
        list->evaluated = is_state ? list->evaluated : kept;
    }
    list->count = kept;
    if (kept == 0) {
        return rp_node_fail(
            init->node, "`only` and `except` leave no tensor to be taken from %.200s", init->from);
    }
    return RP_OK;
}

/* Lists the tensors that `run->init` takes from the file, and their names there. */
static rp_err make_start(rp_arena *arena, const rp_runfile *run, const rp_st_reader *file,
                         rp_checkpoint_list *list, const char *const **source, uint64_t *updates) {
    const rp_init *init = run->init;
    const char **names;
    bool states;
    rp_err err;
    RP_TRY(read_states(init, file, &states, updates));
    RP_TRY(rp_checkpoint_make_list(arena, run, states, list));
    RP_TRY(RP_ARENA_NEW(arena, list->count + 1, &names));
    RP_TRY(check_patterns(init->only, run->model));
    RP_TRY(check_patterns(init->except, run->model));
    RP_TRY(find_sources(arena, init, run->model, file, list, names));
    RP_TRY(choose_entries(init, file, list, names));
    *source = names;
fail:
    return err;
}

/* Logs if tensors of the file are cast to F32, in which the net computes. */
static void note_casts(const char *path, const rp_st_reader *file, const char *const *source,
                       uint32_t count) {
    uint32_t casts = 0;
    const rp_st_entry *first = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const rp_st_entry *entry = rp_st_find(file, source[i]);
        const bool is_cast = entry->type != RP_ST_F32;
        first = is_cast && !first ? entry : first;
        casts += is_cast;
    }
    if (first) {
        rp_log_info("%s: %u of %u start weights are cast to F32, e.g. '%s' from %s%s", path, casts,
                    count, first->name, rp_st_type_name(first->type),
                    first->type == RP_ST_F64 ? ", which rounds" : "");
    }
}

rp_err rp_checkpoint_check_start(const rp_runfile *run) {
    rp_arena arena;
    rp_st_reader *file = NULL;
    rp_checkpoint_list list;
    const char *const *source;
    uint64_t updates;
    rp_err err;
    rp_arena_init(&arena, "start weights", 0);
    RP_TRY(rp_st_open(&arena, run->init->from, &file));
    RP_TRY(make_start(&arena, run, file, &list, &source, &updates));
    for (uint32_t i = 0; i < list.count; i++) {
        const float *values;
        RP_TRY(rp_st_need_f32(file, source[i], list.entry[i].dims, list.entry[i].dim, &values));
    }
    note_casts(run->init->from, file, source, list.count);
fail:
    rp_st_close(&file);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_checkpoint_open_start(rp_arena *arena, const rp_runfile *run,
                                rp_checkpoint_reader **out) {
    rp_checkpoint_reader *reader = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &reader));
    *reader = (rp_checkpoint_reader){.method = &run->method, .model = run->model};
    RP_TRY(rp_st_open(arena, run->init->from, &reader->file));
    RP_TRY(make_start(arena, run, reader->file, &reader->list, &reader->source, &reader->updates));
    *out = reader;
    return RP_OK;
fail:
    if (reader) {
        rp_st_close(&reader->file);
    }
    return err;
}
