/* A run that goes on: what its log says of that, and of settings that are others now. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"
#include "run/paths.h"
#include "run/rate.h"

enum { CHANGES_MAX = 12, CHANGES_BYTES = 600 };

/* Their file is as it was when the run began, also of former versions: nothing of it is an error.
 */
static void put_changes(const rp_controller *c, char *text, size_t bytes) {
    rp_arena arena;
    rp_node *before;
    rp_arena_init(&arena, "run.yaml", 0);
    text[0] = '\0';
    if (rp_config_read_file(&arena, c->folder.run_yaml, &before) != RP_OK ||
        rp_paths_make_absolute(&arena, before) != RP_OK ||
        rp_config_changes(before, c->run.root, CHANGES_MAX, text, bytes) != RP_OK) {
        (void)snprintf(text, bytes, "run.yaml of before can not be compared");
    }
    rp_arena_finish(&arena);
}

/* One of them, which what was trained before does not know: the boards, how long, how often. */
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

rp_err rp_controller_find_changes(rp_controller *c, char *text, size_t bytes) {
    char changes[CHANGES_BYTES];
    rp_err err;
    text[0] = '\0';
    RP_TRY(rp_paths_make_absolute(&c->arena, c->run.root));
    put_changes(c, changes, sizeof changes);
    for (const char *at = changes; at && *at; at = strstr(at, "; ") ? strstr(at, "; ") + 2 : NULL) {
        if (is_of_training(at)) {
            (void)snprintf(text, bytes, "other settings now: %.160s", at);
            break;
        }
    }
fail:
    return err;
}

/* A longer cosine is another curve. */
static rp_err note_rate(rp_controller *c) {
    char text[RP_RATE_BYTES];
    rp_arena arena;
    rp_node *before;
    rp_arena_init(&arena, "run.yaml", 0);
    rp_err err = rp_config_read_file(&arena, c->folder.run_yaml, &before);
    if (err == RP_OK) {
        rp_runfile_rate_change(before, &c->run, c->train.position.step, text);
    }
    if (err == RP_OK && text[0]) {
        err = rp_record_event(c->folder.record, "hint", c->train.position.step, text);
    }
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_controller_note_resumed(rp_controller *c) {
    char changes[CHANGES_BYTES];
    char text[CHANGES_BYTES + 80];
    put_changes(c, changes, sizeof changes);
    const int used =
        c->train.position.step > 0
            ? snprintf(text, sizeof text, "goes on from step %" PRIu64, c->train.position.step)
            : snprintf(text, sizeof text, "begins again: there is no checkpoint");
    if (changes[0]) {
        (void)snprintf(text + used, sizeof text - (size_t)used, ", with %s", changes);
    }
    const rp_err err =
        changes[0] ? rp_record_event(c->folder.record, "resumed", c->train.position.step, text)
                   : rp_record_note(c->folder.record, "resumed", c->train.position.step, text);
    return err == RP_OK && changes[0] ? note_rate(c) : err;
}

/* Their run.yaml has the number that was chosen; one that can not be read is said later. */
rp_err rp_controller_resume_micro(rp_controller *c) {
    rp_arena arena;
    rp_node *before;
    char text[64];
    rp_err err = RP_OK;
    if (!c->run.micro_auto || !c->options.resume) {
        return RP_OK;
    }
    rp_arena_init(&arena, "run.yaml", 0);
    if (rp_config_read_file(&arena, c->folder.run_yaml, &before) == RP_OK) {
        rp_node *train = rp_node_find(before, "train");
        uint32_t micro = 0;
        if (train && rp_node_u32(train, "microbatch", 1, c->run.batch, &micro) == RP_OK && micro) {
            c->run.micro = c->measure.profile.micro = micro;
            c->run.micro_auto = false;
            (void)snprintf(text, sizeof text, "train.microbatch=%u", micro);
            RP_TRY(rp_config_set(&c->arena, c->run.root, text));
        }
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

void *rp_controller_read_data_json(const rp_controller *c) {
    return c->options.resume ? json_load_file(c->folder.data_json, 0, NULL) : NULL;
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

rp_err rp_controller_compare_data(rp_controller *c, void *before) {
    static const char *const keys[] = {"set",  "sample", "target_width", "classes", "class_names",
                                       "mean", "std",    "x_texts",      "x_fill",  "samples",
                                       NULL};
    json_t *now = before ? json_load_file(c->folder.data_json, 0, NULL) : NULL;
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
    return used > none ? rp_record_event(c->folder.record, "resumed", c->train.position.step, text)
                       : RP_OK;
}
