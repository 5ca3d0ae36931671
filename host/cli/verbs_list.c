/* list: all registered names with descriptions, for the user and for tests/generate.py, which makes
 * lists of the manual and of the completions from them. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "agent/board.h"
#include "base/json_print.h"
#include "cli/cli.h"
#include "data/data.h"
#include "data/fetch.h"
#include "nn/layer.h"
#include "nn/loss.h"
#include "optim/optim.h"
#include "record/sink.h"
#include "run/links.h"
#include "run/zoo.h"
#include "sched/sched.h"
#include "sim/faults.h"
#include "stage/executor.h"
#include "transport/transport.h"

/* {"name": name, "about": about, "keys": keys}, without members that are NULL. */
static json_t *list_entry(const char *name, const char *about, const char *keys) {
    return name ? json_pack("{s:s, s:s*, s:s*}", "name", name, "about", about, "keys", keys) : NULL;
}

/* ---- one function for each list: entry i, or NULL after the last ------------------------------
 */

/* "letter" and "value" are optional; options of one "group" exclude each other. */
static json_t *option_object(const rp_option *option) {
    const char letter[] = {option->letter, '\0'};
    return json_pack("{s:s, s:s, s:s*, s:s*, s:b, s:i}", "name", option->name, "about",
                     option->about, "letter", letter[0] ? letter : NULL, "value", option->value,
                     "required", option->required, "group", (int)option->group);
}

static json_t *verb_at(uint32_t i) {
    const rp_cli_verb *verb = &rp_cli_verbs[i];
    rp_option table[RP_OPTIONS_MAX];
    if (!verb->name) {
        return NULL;
    }
    json_t *options = json_array();
    rp_cli_options_of(verb, table);
    for (const rp_option *at = table; verb->run && at->name; at++) {
        (void)json_array_append_new(options, option_object(at));
    }
    return json_pack("{s:s, s:s, s:s, s:o}", "name", verb->name, "about", verb->summary, "words",
                     verb->words, "options", options);
}

static json_t *layer_at(uint32_t i) {
    const rp_layer_kind *kind = rp_layer_kinds[i];
    return kind ? list_entry(kind->name, kind->source, kind->keys) : NULL;
}

static json_t *loss_at(uint32_t i) {
    const rp_loss_kind *kind = rp_loss_kinds[i];
    return kind ? list_entry(kind->name, kind->source, NULL) : NULL;
}

static json_t *optimizer_at(uint32_t i) {
    const rp_optim_kind *kind = rp_optim_kinds[i];
    return kind ? list_entry(kind->name, kind->source, kind->keys) : NULL;
}

static json_t *rate_at(uint32_t i) {
    return list_entry(rp_lr_kinds[i], NULL, NULL);
}

static json_t *schedule_at(uint32_t i) {
    static const char *const averages[] = {"none", "elastic", "reference"};
    const rp_sched_kind *kind = rp_sched_kinds[i];
    if (!kind) {
        return NULL;
    }
    json_t *object = list_entry(kind->name, kind->manual, NULL);
    (void)json_object_set_new(object, "source", json_string(kind->source));
    (void)json_object_set_new(object, "flushed", json_boolean(kind->flushed));
    (void)json_object_set_new(object, "weights", json_string(rp_weights_rules[kind->weights]));
    (void)json_object_set_new(object, "average", json_string(averages[kind->average]));
    return object;
}

static json_t *weights_at(uint32_t i) {
    return list_entry(rp_weights_rules[i], NULL, NULL);
}

static json_t *data_at(uint32_t i) {
    const rp_data_kind *kind = rp_data_kinds[i];
    return kind ? list_entry(kind->name, kind->source, NULL) : NULL;
}

static json_t *fetch_at(uint32_t i) {
    return list_entry(rp_data_fetch_name(i), NULL, NULL);
}

static json_t *executor_at(uint32_t i) {
    return rp_executor_kinds[i] ? list_entry(rp_executor_kinds[i]->name, NULL, NULL) : NULL;
}

static json_t *transport_at(uint32_t i) {
    return rp_transport_kinds[i] ? list_entry(rp_transport_kinds[i]->name, NULL, NULL) : NULL;
}

static json_t *fault_at(uint32_t i) {
    const rp_sim_fault_facts *facts = rp_sim_fault_facts_at(i);
    if (!facts) {
        return NULL;
    }
    json_t *object = list_entry(facts->name, facts->about, facts->keys);
    (void)json_object_set_new(object, "unit", json_string(facts->unit));
    (void)json_object_set_new(object, "most", json_real(facts->most));
    return object;
}

static json_t *output_at(uint32_t i) {
    return rp_sink_kinds[i] ? list_entry(rp_sink_kinds[i]->name, NULL, NULL) : NULL;
}

/* Kinds of events; "about" is the name that log.jsonl has for it, "keys" are its facts. */
static json_t *event_at(uint32_t i) {
    char name[RP_WORDS_KIND];
    uint32_t kind = RP_EVENT_NONE + 1;
    for (; kind < RP_EVENT_KINDS; kind++) {
        if (rp_event_rows[kind].event && i-- == 0) {
            break;
        }
    }
    return kind == RP_EVENT_KINDS
               ? NULL
               : list_entry(rp_words_kind((rp_event_kind)kind, name), rp_event_rows[kind].event,
                            rp_event_rows[kind].facts);
}

static json_t *fact_at(uint32_t i) {
    const char *name;
    const char *about;
    return rp_words_fact(i, &name, &about) ? list_entry(name, about, NULL) : NULL;
}

static json_t *link_at(uint32_t i) {
    const char *const *names;
    const char *about;
    json_t *object = NULL;
    uint32_t count;
    rp_arena arena;
    rp_arena_init(&arena, "profiles of links", 0);
    if (rp_links_names(&arena, &names, &count) == RP_OK && i < count) {
        const bool good = rp_links_about(&arena, names[i], &about) == RP_OK;
        object = list_entry(names[i], good ? about : "cannot be read", NULL);
    }
    rp_arena_finish(&arena);
    return object;
}

/* A model of the zoo; "about" has the input and classes for which it is counted, as in inspect. */
static json_t *model_object(rp_arena *arena, const char *name) {
    const rp_model_data data = {0};
    rp_model *model;
    const char *path;
    char about[160];
    bool assumed;
    if (rp_zoo_path(arena, name, &path) != RP_OK ||
        rp_zoo_open(arena, path, &data, &assumed, &model) != RP_OK) {
        return list_entry(name, "cannot be read", NULL);
    }
    const uint32_t layers = model->layer_count;
    const size_t parameters = rp_model_tensor_count(model, RP_PARAM_TRAINED) +
                              rp_model_tensor_count(model, RP_PARAM_FROZEN);
    const rp_shape *in = &model->input;
    if (model->input_type == RP_I32) {
        (void)snprintf(about, sizeof about, "%u layers, %zu parameters, for texts of %u tokens",
                       layers, parameters, in->dim[0]);
    } else {
        (void)snprintf(about, sizeof about, "%u layers, %zu parameters, for %ux%ux%u, %u classes",
                       layers, parameters, in->dim[0], in->dims > 1 ? in->dim[1] : 1,
                       in->dims > 2 ? in->dim[2] : 1, model->classes);
    }
    return json_pack("{s:s, s:s, s:i, s:I}", "name", name, "about", about, "layers", (int)layers,
                     "parameters", (json_int_t)parameters);
}

static json_t *model_at(uint32_t i) {
    const char *const *names;
    json_t *object = NULL;
    uint32_t count;
    rp_arena arena;
    rp_arena_init(&arena, "models", 0);
    if (rp_zoo_names(&arena, &names, &count) == RP_OK && i < count) {
        object = model_object(&arena, names[i]);
    }
    rp_arena_finish(&arena);
    return object;
}

/* A board profile with the facts for README's table; "about" is its model, or an error. */
static json_t *board_object(rp_arena *arena, const char *name) {
    rp_board_about facts;
    if (rp_board_read_about(arena, name, &facts) != RP_OK) {
        return list_entry(name, "cannot be read", NULL);
    }
    return json_pack("{s:s, s:s++, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s}",
                     "name", name, "about", facts.vendor, " ", facts.model, "soc", facts.soc,
                     "arch", facts.arch, "memory", facts.memory, "network", facts.network, "opencl",
                     facts.route, "tier", (int)facts.tier, "evidence", facts.evidence, "checked",
                     facts.checked, "packages", facts.packages, "console", facts.console, "method",
                     facts.method, "flash", facts.how);
}

static json_t *board_at(uint32_t i) {
    char *names[RP_BOARDS_MAX];
    json_t *object = NULL;
    uint32_t count;
    rp_arena arena;
    rp_arena_init(&arena, "profiles of boards", 0);
    if (rp_board_list(&arena, names, RP_BOARDS_MAX, &count) == RP_OK && i < count) {
        object = board_object(&arena, names[i]);
    }
    rp_arena_finish(&arena);
    return object;
}

static const struct {
    const char *name;
    json_t *(*at)(uint32_t i);
} lists[] = {{"verbs", verb_at},           {"layers", layer_at},
             {"losses", loss_at},          {"optimizers", optimizer_at},
             {"lr-schedules", rate_at},    {"schedules", schedule_at},
             {"weights", weights_at},      {"data", data_at},
             {"fetch", fetch_at},          {"executors", executor_at},
             {"transports", transport_at}, {"outputs", output_at},
             {"events", event_at},         {"facts", fact_at},
             {"faults", fault_at},         {"links", link_at},
             {"boards", board_at},         {"models", model_at}};
enum { LISTS = sizeof lists / sizeof *lists };

/* ---- the verb ---------------------------------------------------------------------------------
 */

static json_t *make_list(uint32_t list) {
    json_t *array = json_array();
    json_t *object;
    for (uint32_t i = 0; (object = lists[list].at(i)) != NULL; i++) {
        (void)json_array_append_new(array, object);
    }
    return array;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void print_list(const json_t *array) {
    int columns = 14;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const int own = (int)strlen(text_of(json_array_get(array, i), "name"));
        columns = own > columns ? own : columns;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *object = json_array_get(array, i);
        const char *keys = text_of(object, "keys");
        (void)printf("%-*s %s%s%s%s\n", columns, text_of(object, "name"), text_of(object, "about"),
                     keys[0] ? " {" : "", keys, keys[0] ? "}" : "");
    }
}

static void print_names(const char *list, const json_t *array) {
    (void)printf("%s:", list);
    for (size_t i = 0; i < json_array_size(array); i++) {
        (void)printf(" %s", text_of(json_array_get(array, i), "name"));
    }
    (void)printf("\n");
}

static rp_err fail_list(const char *name) {
    char known[256] = "";
    for (uint32_t i = 0; i < LISTS; i++) {
        const size_t used = strlen(known);
        (void)snprintf(known + used, sizeof known - used, " %s", lists[i].name);
    }
    return rp_fail(RP_ERR_USAGE, "unknown list '%s'; expected one of:%s", name, known);
}

rp_err rp_verb_list(rp_arena *arena, const rp_cli_args *args) {
    (void)arena;
    const char *wanted = args->words.count > 0 ? args->words.item[0] : NULL;
    const bool json = rp_cli_is_json(args);
    json_t *all = json_pack("{s:i}", "version", 1);
    bool found = false;
    for (uint32_t i = 0; i < LISTS; i++) {
        if (wanted && strcmp(wanted, lists[i].name) != 0) {
            continue;
        }
        json_t *array = make_list(i);
        found = true;
        if (!json && wanted) {
            print_list(array);
        } else if (!json) {
            print_names(lists[i].name, array);
        }
        (void)json_object_set_new(all, lists[i].name, array);
    }
    if (json && found) {
        return rp_json_print(all, 0, stdout);
    }
    json_decref(all);
    return found ? RP_OK : fail_list(wanted);
}
