/* For tests that ask which events a run has logged: by kind and facts, not by sentences. */
#ifndef RP_TESTS_EVENTS_H
#define RP_TESTS_EVENTS_H

#include "folder.h"

#include <math.h>
#include <string.h>

#include "record/words.h"

/* A fact of a logged event. Messages and words of other kinds only have to contain what is wanted.
 */
static inline bool is_fact(const char *name, const json_t *got, const json_t *wanted) {
    static const char *const contained[] = {"error", "why", "waits", "changes", NULL};
    if (!json_is_string(wanted)) {
        const double value = json_number_value(wanted);
        return json_is_number(got) && fabs(json_number_value(got) - value) <= 1e-9 * fabs(value);
    }
    for (const char *const *any = contained; *any; any++) {
        if (strcmp(name, *any) == 0) {
            return json_is_string(got) && strstr(json_string_value(got), json_string_value(wanted));
        }
    }
    return json_equal(got, wanted);
}

static inline bool is_event(const json_t *line, json_t *wanted) {
    const char *name;
    json_t *value;
    json_object_foreach(wanted, name, value) {
        const bool is_open = json_is_number(value) && json_number_value(value) == 0;
        if (!is_open && !is_fact(name, json_object_get(line, name), value)) {
            return false;
        }
    }
    return true;
}

/* Events in out/log.jsonl of the kind of `wanted` that have its facts; those that are 0 or NULL do
 * not count. */
static inline uint32_t count_events(const rp_run_event *wanted) {
    json_t *facts = json_object();
    char *text = strdup(slurp("out/log.jsonl", NULL));
    char *rest = text;
    uint32_t count = 0;
    rp_words_put_facts(wanted, facts);
    if (wanted->step > 0) {
        (void)!json_object_set_new(facts, "step", json_integer((json_int_t)wanted->step));
    }
    for (char *at = strtok_r(text, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
        json_t *line = json_loads(at, 0, NULL);
        count += is_event(line, facts);
        json_decref(line);
    }
    free(text);
    json_decref(facts);
    return count;
}

#define expect_events(times, ...)                                                                  \
    do {                                                                                           \
        if (count_events(&(rp_run_event){__VA_ARGS__}) != (times)) {                               \
            fail_msg("not %d times " #__VA_ARGS__ " in\n%s", (int)(times),                         \
                     slurp("out/log.jsonl", NULL));                                                \
        }                                                                                          \
    } while (0)

#endif
