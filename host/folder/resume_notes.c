/* A resumed run: logs where it continues and which settings have changed. */
#include <inttypes.h>
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
        (void)snprintf(text, bytes, "run.yaml of before can not be compared");
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
            (void)snprintf(text, bytes, "other settings now: %.160s", at);
            break;
        }
    }
fail:
    return err;
}

/* A longer schedule such as cosine changes the learning rate, which is logged. */
static rp_err note_rate(const rp_folder *folder, const rp_runfile *run, uint64_t step) {
    char text[RP_RATE_BYTES];
    rp_arena arena;
    rp_node *before;
    rp_arena_init(&arena, "run.yaml", 0);
    rp_err err = rp_config_read_file(&arena, folder->paths.run_yaml, &before);
    if (err == RP_OK) {
        rp_runfile_rate_change(before, run, step, text);
    }
    if (err == RP_OK && text[0]) {
        err = rp_record_event(folder->record, "hint", step, text);
    }
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_resumed_note(const rp_folder *folder, const rp_runfile *run, uint64_t step) {
    char changes[CHANGES_BYTES];
    char text[CHANGES_BYTES + 80];
    put_changes(folder, run, changes, sizeof changes);
    const int used = step > 0 ? snprintf(text, sizeof text, "goes on from step %" PRIu64, step)
                              : snprintf(text, sizeof text, "begins again: there is no checkpoint");
    if (changes[0]) {
        (void)snprintf(text + used, sizeof text - (size_t)used, ", with %s", changes);
    }
    const rp_err err = changes[0] ? rp_record_event(folder->record, "resumed", step, text)
                                  : rp_record_note(folder->record, "resumed", step, text);
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
                                       NULL};
    json_t *now = before ? json_load_file(folder->paths.data_json, 0, NULL) : NULL;
    char text[200] = "the data are others than before: ";
    size_t used = strlen(text);
    const size_t none = used;
    for (const char *const *key = keys; now && *key; key++) {
        const json_t *was = json_object_get(before, *key);
        if (was && !is_same(was, json_object_get(now, *key))) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                     used > none ? ", " : "", *key);
        }
    }
    json_decref(before);
    json_decref(now);
    return used > none ? rp_record_event(folder->record, "resumed", step, text) : RP_OK;
}
