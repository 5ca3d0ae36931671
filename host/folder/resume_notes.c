/* A resumed run: logs where it continues and which settings have changed. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "folder/folder_own.h"
#include "run/paths.h"
#include "run/rate.h"

enum { CHANGES_MAX = 12, CHANGES_BYTES = 600 };

/* run.yaml is as the run began, maybe of an older version, so nothing in it is an error. */
static void put_changes(const rp_folder *folder, const rp_runfile *run, char *text, size_t bytes) {
    rp_arena arena;
    rp_node *before;
    rp_arena_init(&arena, "run.yaml", 0);
    text[0] = '\0';
    if (rp_config_read_file(&arena, folder->paths.run_yaml, &before) != RP_OK ||
        rp_paths_make_absolute(&arena, before) != RP_OK ||
        rp_config_changes(before, run->root, CHANGES_MAX, text, bytes) != RP_OK) {
        (void)snprintf(text, bytes, "the previous run.yaml cannot be compared");
    }
    rp_arena_finish(&arena);
}

/* The changed key affects earlier training; boards, length and intervals do not. */
static bool is_of_training(const char *change) {
    static const char *const others[] = {
        "ring.", "checkpoint.", "train.steps:", "train.epochs:", "train.eval_", NULL};
    for (const char *const *other = others; *other; other++) {
        if (strncmp(change, *other, strlen(*other)) == 0) {
            return false;
        }
    }
    return true;
}

rp_err rp_folder_find_change(rp_folder *folder, const rp_runfile *run, char *text, size_t bytes) {
    char changes[CHANGES_BYTES];
    rp_err err;
    text[0] = '\0';
    RP_TRY(rp_paths_make_absolute(folder->arena, run->root));
    put_changes(folder, run, changes, sizeof changes);
    for (const char *at = changes; at && *at; at = strstr(at, "; ") ? strstr(at, "; ") + 2 : NULL) {
        if (is_of_training(at)) {
            (void)snprintf(text, bytes, "%s", at);
            break;
        }
    }
fail:
    return err;
}

/* A longer schedule such as cosine changes the learning rate, which is logged. */
static rp_err note_rate(const rp_folder *folder, const rp_runfile *run, uint64_t step) {
    rp_rate_change change;
    rp_arena arena;
    rp_node *before;
    rp_arena_init(&arena, "run.yaml", 0);
    rp_err err = rp_config_read_file(&arena, folder->paths.run_yaml, &before);
    if (err == RP_OK && rp_runfile_rate_change(before, run, step, &change)) {
        err = rp_record_event(folder->record, &(rp_run_event){.kind = RP_EVENT_RATE_CHANGED,
                                                              .step = step,
                                                              .lr_before = change.before,
                                                              .lr = change.now,
                                                              .curve = change.curve,
                                                              .steps_before = change.steps_before,
                                                              .steps = change.steps});
    }
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_resumed_note(const rp_folder *folder, const rp_runfile *run, uint64_t step) {
    char changes[CHANGES_BYTES];
    put_changes(folder, run, changes, sizeof changes);
    const rp_run_event event = {.kind = changes[0] ? RP_EVENT_RESUMED : RP_EVENT_RESUMED_SAME,
                                .step = step,
                                .changes = changes};
    const rp_err err = rp_record_event(folder->record, &event);
    return err == RP_OK && changes[0] ? note_rate(folder, run, step) : err;
}

void *rp_resumed_read_data(const rp_folder *folder) {
    return json_load_file(folder->paths.data_json, 0, NULL);
}

/* Older versions wrote means and deviations as floats. */
static bool is_same(const json_t *a, const json_t *b) {
    const size_t count = json_array_size(a);
    if (json_equal(a, b)) {
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *x = json_array_get(a, i);
        const json_t *y = json_array_get(b, i);
        if (!json_is_number(x) || !json_is_number(y) ||
            (float)json_number_value(x) != (float)json_number_value(y)) {
            return false;
        }
    }
    return count > 0 && count == json_array_size(b);
}

rp_err rp_resumed_compare_data(const rp_folder *folder, void *before, uint64_t step) {
    static const char *const keys[] = {"set",  "sample", "target_width", "classes", "class_names",
                                       "mean", "std",    "x_texts",      "x_fill",  "samples",
                                       "type", "tokens", "token_count",  "buckets", NULL};
    json_t *now = before ? json_load_file(folder->paths.data_json, 0, NULL) : NULL;
    char differ[160] = "";
    size_t used = 0;
    for (const char *const *key = keys; now && *key; key++) {
        const json_t *was = json_object_get(before, *key);
        if (was && !is_same(was, json_object_get(now, *key))) {
            used += (size_t)snprintf(differ + used, sizeof differ - used, "%s%s",
                                     used > 0 ? ", " : "", *key);
        }
    }
    json_decref(before);
    json_decref(now);
    const rp_run_event event = {.kind = RP_EVENT_DATA_CHANGED, .step = step, .keys = differ};
    return used > 0 ? rp_record_event(folder->record, &event) : RP_OK;
}
