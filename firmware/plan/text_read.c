/* Reads a plan from its text. Types and ranges are checked here, consistency by rp_plan_check(). */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/input.h"
#include "plan/plan_own.h"

enum { PATH_BYTES = 64, FILE_BYTES_MAX = 64 << 20 };

/* An object of the text and its position: "nodes[1].holds[0]". */
typedef struct {
    const char *name; /* name of the text */
    char path[PATH_BYTES];
    const json_t *json;
} location;

static rp_err fail_at(const location *at, const char *key, const char *format, ...) RP_PRINTF(3, 4);
static rp_err fail_at(const location *at, const char *key, const char *format, ...) {
    char text[256];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return rp_fail(RP_ERR_FORMAT, "%s: %s%s%.40s: %s", at->name, at->path, at->path[0] ? "." : "",
                   key, text);
}

static rp_err is_object(const location *at) {
    return json_is_object(at->json)
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: %s: expected an object", at->name, at->path);
}

/* Checks that every key is in the list, which ends with NULL. */
static rp_err check_keys(const location *at, const char *const *keys) {
    const char *key;
    json_t *value;
    rp_err err = is_object(at);
    if (err != RP_OK) {
        return err;
    }
    json_object_foreach((json_t *)(uintptr_t)at->json, key, value) {
        bool known = false;
        for (const char *const *k = keys; *k && !known; k++) {
            known = strcmp(*k, key) == 0;
        }
        if (!known) {
            return fail_at(at, key, "is not a key of this part of a plan");
        }
    }
    return RP_OK;
}

static rp_err read_u64(const location *at, const char *key, uint64_t min, uint64_t max,
                       uint64_t *out) {
    const json_t *value = json_object_get(at->json, key);
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || (uint64_t)number < min || (uint64_t)number > max) {
        return fail_at(at, key, "expected a whole number from %llu to %llu",
                       (unsigned long long)min, (unsigned long long)max);
    }
    *out = (uint64_t)number;
    return RP_OK;
}

static rp_err read_u32(const location *at, const char *key, uint32_t min, uint32_t max,
                       uint32_t *out) {
    uint64_t value;
    rp_err err = read_u64(at, key, min, max, &value);
    if (err == RP_OK) {
        *out = (uint32_t)value;
    }
    return err;
}

static rp_err read_real(const location *at, const char *key, double max, double *out) {
    const json_t *value = json_object_get(at->json, key);
    const double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= 0 && number <= max)) {
        return fail_at(at, key, "expected a number from 0 to %g", max);
    }
    *out = number;
    return RP_OK;
}

static rp_err read_text(rp_arena *arena, const location *at, const char *key, const char **out) {
    const json_t *value = json_object_get(at->json, key);
    char *copy;
    if (!json_is_string(value)) {
        return fail_at(at, key, "expected a text");
    }
    rp_err err = rp_arena_string(arena, json_string_value(value), &copy);
    *out = err == RP_OK ? copy : NULL;
    return err;
}

/* One of `count` words, named by name_of(). */
static rp_err read_word(const location *at, const char *key, const char *(*name_of)(uint32_t),
                        uint32_t count, uint32_t *out) {
    const char *word = json_string_value(json_object_get(at->json, key));
    char known[128] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (word && strcmp(word, name_of(i)) == 0) {
            *out = i;
            return RP_OK;
        }
        const int more = snprintf(known + used, sizeof known - used, " %s", name_of(i));
        used += more > 0 ? (size_t)more : 0;
        used = used < sizeof known ? used : sizeof known - 1;
    }
    return fail_at(at, key, "expected one of%s", known);
}

static rp_err read_list(const location *at, const char *key, uint32_t max, const json_t **out,
                        uint32_t *count) {
    const json_t *value = json_object_get(at->json, key);
    if (!json_is_array(value) || json_array_size(value) > max) {
        return fail_at(at, key, "expected a list of at most %u", max);
    }
    *out = value;
    *count = (uint32_t)json_array_size(value);
    return RP_OK;
}

static location item_of(const location *at, const char *key, const json_t *list, uint32_t index) {
    location out = {.name = at->name, .json = json_array_get(list, index)};
    (void)snprintf(out.path, sizeof out.path, "%.30s%s%s[%u]", at->path, at->path[0] ? "." : "",
                   key, index);
    return out;
}

static rp_err read_texts(rp_arena *arena, const location *at, const char *key, uint32_t max,
                         const char ***out, uint32_t *count) {
    const json_t *list;
    rp_err err;
    RP_TRY(read_list(at, key, max, &list, count));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)*count + 1, out));
    for (uint32_t i = 0; i < *count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        char *copy;
        if (!text) {
            return fail_at(at, key, "expected a list of texts");
        }
        RP_TRY(rp_arena_string(arena, text, &copy));
        (*out)[i] = copy;
    }
fail:
    return err;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static rp_err read_measured(rp_arena *arena, const location *at, rp_plan_measured *out) {
    rp_err err = RP_OK;
    if (json_object_get(at->json, "board")) {
        RP_TRY(read_text(arena, at, "board", &out->board));
    }
    RP_TRY(read_u64(at, "slots", 0, INT64_MAX, &out->slots));
    RP_TRY(read_u64(at, "weight_copies", 0, INT64_MAX, &out->weight_copies));
    RP_TRY(read_u64(at, "device_bytes", 0, INT64_MAX, &out->device_bytes));
    RP_TRY(read_u64(at, "weight_bytes", 0, INT64_MAX, &out->weight_bytes));
    RP_TRY(read_u64(at, "resident_bytes", 0, INT64_MAX, &out->resident_bytes));
    out->has_seconds = json_object_get(at->json, "forward_s") != NULL;
    if (out->has_seconds) {
        RP_TRY(read_real(at, "forward_s", 1e9, &out->forward_s));
        RP_TRY(read_real(at, "backward_s", 1e9, &out->backward_s));
    }
fail:
    return err;
}

/* true, false, or the layers at which further groups begin. */
static rp_err read_recompute(rp_arena *arena, const location *at, rp_plan_stage *out) {
    const json_t *recompute = json_object_get(at->json, "recompute");
    out->recompute = json_is_true(recompute) || json_is_array(recompute);
    if (json_is_array(recompute)) {
        return read_texts(arena, at, "recompute", RP_MODEL_LAYERS_MAX, &out->group,
                          &out->group_count);
    }
    return json_is_boolean(recompute)
               ? RP_OK
               : fail_at(at, "recompute", "expected true, false, or names of layers");
}

static rp_err read_stage(rp_arena *arena, const location *at, rp_plan_stage *out) {
    static const char *const keys[] = {
        "board",        "layers",       "slots",           "weight_copies",
        "device_bytes", "weight_bytes", "resident_bytes",  "forward_s",
        "backward_s",   "forward",      "backward",        "as_forward",
        "recompute",    "offload",      "offload_tensors", NULL};
    rp_err err;
    RP_TRY(check_keys(at, keys));
    RP_TRY(read_texts(arena, at, "layers", RP_MODEL_LAYERS_MAX, &out->layer, &out->layer_count));
    RP_TRY(read_measured(arena, at, &out->measured));
    RP_TRY(read_u32(at, "forward", 1, INT32_MAX, &out->micro_forward));
    RP_TRY(read_u32(at, "backward", 1, INT32_MAX, &out->micro_backward));
    const json_t *as_forward = json_object_get(at->json, "as_forward");
    if (as_forward && !json_is_boolean(as_forward)) {
        return fail_at(at, "as_forward", "expected true or false");
    }
    out->as_forward = json_is_true(as_forward);
    RP_TRY(read_recompute(arena, at, out));
    RP_TRY(read_text(arena, at, "offload", &out->offload));
    if (json_object_get(at->json, "offload_tensors")) {
        RP_TRY(read_u32(at, "offload_tensors", 1, INT32_MAX, &out->leave_tensors));
    }
fail:
    return err;
}

static rp_err read_stages(rp_arena *arena, const location *root, rp_plan *plan) {
    const json_t *list;
    rp_err err;
    RP_TRY(read_list(root, "stages", RP_PLAN_STAGES_MAX, &list, &plan->stage_count));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)plan->stage_count + 1, &plan->stage));
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const location at = item_of(root, "stages", list, k);
        RP_TRY(read_stage(arena, &at, &plan->stage[k]));
    }
fail:
    return err;
}

static const char *role_name(uint32_t role) {
    return rp_role_name((rp_role)role);
}

static const char *carries_name(uint32_t carries) {
    return rp_carries_name((rp_carries)carries);
}

static rp_err read_hold(const location *at, const rp_plan *plan, rp_plan_hold *out) {
    static const char *const keys[] = {"stage", "role", "samples", "slots", NULL};
    const json_t *samples = json_object_get(at->json, "samples");
    uint32_t role;
    rp_err err;
    RP_TRY(check_keys(at, keys));
    RP_TRY(read_u32(at, "stage", 0, plan->stage_count - 1, &out->stage));
    RP_TRY(read_word(at, "role", role_name, RP_ROLES, &role));
    out->role = (rp_role)role;
    for (size_t i = 0; i < 2; i++) {
        const json_t *number = json_array_get(samples, i);
        out->share[i] = json_number_value(number);
        if (json_array_size(samples) != 2 || !json_is_number(number) ||
            !(out->share[i] >= 0 && out->share[i] <= 1)) {
            return fail_at(at, "samples", "expected two numbers from 0 to 1");
        }
    }
    RP_TRY(read_u32(at, "slots", 0, INT32_MAX, &out->slots));
fail:
    return err;
}

/* Appends the node's own holds to those of the nodes before it. */
static rp_err read_node(rp_arena *arena, const location *at, rp_plan *plan, rp_plan_node *out) {
    static const char *const keys[] = {"name", "holds", "memory_bytes", "executor", "dials", NULL};
    const json_t *list;
    rp_err err;
    RP_TRY(check_keys(at, keys));
    RP_TRY(read_text(arena, at, "name", &out->name));
    RP_TRY(read_text(arena, at, "executor", &out->executor));
    RP_TRY(read_u64(at, "memory_bytes", 0, INT64_MAX, &out->memory_bytes));
    const json_t *dials = json_object_get(at->json, "dials");
    if (dials && !json_is_boolean(dials)) {
        return fail_at(at, "dials", "expected true or false");
    }
    out->dials = json_is_true(dials);
    RP_TRY(read_list(at, "holds", RP_PLAN_STAGES_MAX, &list, &out->hold_count));
    out->hold_first = plan->hold_count;
    for (uint32_t h = 0; h < out->hold_count; h++) {
        const location item = item_of(at, "holds", list, h);
        rp_plan_hold *hold = &plan->hold[plan->hold_count++];
        RP_TRY(read_hold(&item, plan, hold));
        hold->node = (uint32_t)(out - plan->node);
    }
fail:
    return err;
}

static rp_err read_nodes(rp_arena *arena, const location *root, rp_plan *plan) {
    const json_t *list;
    size_t holds = 0;
    rp_err err;
    RP_TRY(read_list(root, "nodes", RP_PLAN_NODES_MAX, &list, &plan->node_count));
    for (uint32_t k = 0; k < plan->node_count; k++) {
        holds += json_array_size(json_object_get(json_array_get(list, k), "holds"));
    }
    if (plan->stage_count == 0 || plan->node_count == 0) {
        return fail_at(root, "nodes", "expected at least one node and one stage");
    }
    if (holds > RP_PLAN_EDGES_MAX) {
        return fail_at(root, "nodes", "hold more than %d stages in all", RP_PLAN_EDGES_MAX);
    }
    RP_TRY(RP_ARENA_NEW(arena, plan->node_count, &plan->node));
    RP_TRY(RP_ARENA_NEW(arena, holds + 1, &plan->hold));
    for (uint32_t k = 0; k < plan->node_count; k++) {
        const location at = item_of(root, "nodes", list, k);
        RP_TRY(read_node(arena, &at, plan, &plan->node[k]));
    }
fail:
    return err;
}

static rp_err read_end(const location *at, const char *key, const rp_plan *plan, uint32_t *out) {
    const char *name = json_string_value(json_object_get(at->json, key));
    const bool host = name && strcmp(name, "host") == 0 && strcmp(key, "from") == 0;
    *out = host ? RP_PLAN_HOST : name ? rp_plan_find_node(plan, name) : plan->node_count;
    return host || *out < plan->node_count ? RP_OK
                                           : fail_at(at, key, "expected the name of a node");
}

static const char *codec_name(uint32_t codec) {
    return rp_codec_name((rp_codec)codec);
}

static rp_err read_edge(rp_arena *arena, const location *at, const rp_plan *plan,
                        rp_plan_edge *out) {
    static const char *const keys[] = {"from",    "to",    "stage",  "carries",
                                       "tensors", "codec", "window", NULL};
    uint32_t carries;
    uint32_t codec;
    rp_err err;
    RP_TRY(check_keys(at, keys));
    RP_TRY(read_end(at, "from", plan, &out->from));
    RP_TRY(read_end(at, "to", plan, &out->to));
    RP_TRY(read_u32(at, "stage", 0, plan->stage_count - 1, &out->stage));
    RP_TRY(read_word(at, "carries", carries_name, RP_CARRIES, &carries));
    out->carries = (rp_carries)carries;
    RP_TRY(read_texts(arena, at, "tensors", RP_CUT_TENSORS_MAX, &out->tensor, &out->tensor_count));
    RP_TRY(read_word(at, "codec", codec_name, RP_CODECS, &codec));
    out->codec = (rp_codec)codec;
    RP_TRY(read_u32(at, "window", 1, INT32_MAX, &out->window));
fail:
    return err;
}

static rp_err read_edges(rp_arena *arena, const location *root, rp_plan *plan) {
    const json_t *list;
    rp_err err;
    RP_TRY(read_list(root, "edges", RP_PLAN_EDGES_MAX, &list, &plan->edge_count));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)plan->edge_count + 1, &plan->edge));
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const location at = item_of(root, "edges", list, e);
        RP_TRY(read_edge(arena, &at, plan, &plan->edge[e]));
    }
    RP_TRY(rp_plan_index_edges(arena, plan));
fail:
    return err;
}

/* Pairs of stages, in ascending order. */
static rp_err read_ties(rp_arena *arena, const location *root, rp_plan *plan) {
    const json_t *list;
    rp_err err = RP_OK;
    if (!json_object_get(root->json, "ties")) {
        return RP_OK;
    }
    RP_TRY(read_list(root, "ties", RP_PLAN_EDGES_MAX, &list, &plan->tie_count));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)plan->tie_count + 1, &plan->tie));
    for (uint32_t i = 0; i < plan->tie_count; i++) {
        const json_t *pair = json_array_get(list, i);
        const json_int_t first = json_integer_value(json_array_get(pair, 0));
        const json_int_t second = json_integer_value(json_array_get(pair, 1));
        if (json_array_size(pair) != 2 || !json_is_integer(json_array_get(pair, 0)) ||
            !json_is_integer(json_array_get(pair, 1)) || first < 0 || second <= first ||
            second >= (json_int_t)plan->stage_count) {
            return fail_at(root, "ties", "entry %u: expected two stages, the lower one first", i);
        }
        plan->tie[i] = (rp_plan_tie){(uint32_t)first, (uint32_t)second};
    }
fail:
    return err;
}

/* Uses the parser of a run file's `schedule`. */
static rp_err read_method(rp_arena *arena, const location *root, rp_plan *plan) {
    const char *schedule = json_string_value(json_object_get(root->json, "schedule"));
    char *method;
    char *text;
    char *name;
    rp_node *tree;
    rp_err err;
    const json_t *object = json_object_get(root->json, "method");
    if (!json_is_object(object)) {
        return fail_at(root, "method", "expected an object");
    }
    const size_t bytes = json_dumpb(object, NULL, 0, 0);
    RP_TRY(RP_ARENA_NEW(arena, bytes + 1, &method));
    (void)json_dumpb(object, method, bytes, 0);
    RP_TRY(rp_arena_printf(arena, &text, "schedule: %s", method));
    RP_TRY(rp_arena_printf(arena, &name, "%s: method", root->name));
    RP_TRY(rp_config_read_text(arena, text, strlen(text), name, &tree));
    if (rp_method_parse(tree, plan->node_count, &plan->method) != RP_OK) {
        return RP_ERR_FORMAT;
    }
    if (!schedule || strcmp(schedule, plan->method.kind->name) != 0) {
        return fail_at(root, "schedule", "expected the method's kind, %s", plan->method.kind->name);
    }
fail:
    return err;
}

static rp_err read_advance(const location *root, rp_plan *plan) {
    static const char *const keys[] = {"chosen", "busy", NULL};
    const location at = {
        .name = root->name, .path = "advance", .json = json_object_get(root->json, "advance")};
    uint32_t chosen;
    rp_err err = RP_OK;
    plan->has_advance = at.json != NULL;
    if (!plan->has_advance) {
        return RP_OK;
    }
    RP_TRY(check_keys(&at, keys));
    RP_TRY(read_u32(&at, "chosen", plan->method.advance, plan->method.advance, &chosen));
    const json_t *busy = json_object_get(at.json, "busy");
    const size_t tried = json_array_size(busy);
    if (tried <= chosen || tried > RP_ADVANCE_MAX + 1) {
        return fail_at(&at, "busy", "expected %u to %d numbers", chosen + 1, RP_ADVANCE_MAX + 1);
    }
    plan->advance_tried = (uint32_t)tried;
    for (uint32_t a = 0; a < tried; a++) {
        const json_t *share = json_array_get(busy, a);
        plan->advance_busy[a] = json_number_value(share);
        if (!json_is_number(share)) {
            return fail_at(&at, "busy", "expected numbers");
        }
    }
fail:
    return err;
}

static rp_err read_predicted(rp_arena *arena, const location *root, rp_plan *plan) {
    static const char *const keys[] = {"step_s", "limits", NULL};
    const location at = {
        .name = root->name, .path = "predicted", .json = json_object_get(root->json, "predicted")};
    rp_err err = RP_OK;
    if (at.json) {
        RP_TRY(check_keys(&at, keys));
        RP_TRY(read_real(&at, "step_s", 1e12, &plan->predicted_step_s));
        if (json_object_get(at.json, "limits")) {
            RP_TRY(read_text(arena, &at, "limits", &plan->predicted_limits));
        }
    }
fail:
    return err;
}

/* Compares `cut` with the stages: it repeats where they begin, for human readers. */
static rp_err check_cut(const location *root, const rp_plan *plan) {
    const json_t *list;
    uint32_t count;
    uint32_t at = 0;
    rp_err err;
    RP_TRY(read_list(root, "cut", RP_PLAN_STAGES_MAX, &list, &count));
    for (uint32_t k = 1; k < plan->stage_count; k++) {
        const rp_plan_stage *stage = &plan->stage[k];
        const char *name = json_string_value(json_array_get(list, at));
        if (stage->layer_count > 0 && (!name || strcmp(name, stage->layer[0]) != 0)) {
            return fail_at(root, "cut", "expected '%.60s' where stage %u begins", stage->layer[0],
                           k);
        }
        at += stage->layer_count > 0;
    }
    if (at != count) {
        return fail_at(root, "cut", "expected %u layers, found %u", at, count);
    }
fail:
    return err;
}

static rp_err read_digest(const location *root, rp_plan *plan) {
    const char *text = json_string_value(json_object_get(root->json, "model_digest"));
    char again[17] = "";
    if (text && strlen(text) == 16) {
        plan->model_digest = strtoull(text, NULL, 16);
        (void)snprintf(again, sizeof again, "%016llx", (unsigned long long)plan->model_digest);
    }
    return text && strcmp(text, again) == 0
               ? RP_OK
               : fail_at(root, "model_digest", "expected 16 hexadecimal digits");
}

static rp_err read_plan(rp_arena *arena, const location *root, rp_plan *plan) {
    static const char *const keys[] = {"version",
                                       "model",
                                       "model_digest",
                                       "schedule",
                                       "method",
                                       "batch",
                                       "microbatch",
                                       "epoch_samples",
                                       "step_first",
                                       "steps",
                                       "cut",
                                       "stages",
                                       "nodes",
                                       "edges",
                                       "advance",
                                       "agent_program_bytes",
                                       "predicted",
                                       "ties",
                                       NULL};
    uint32_t version;
    rp_err err;
    RP_TRY(check_keys(root, keys));
    RP_TRY(read_u32(root, "version", 1, 1, &version));
    RP_TRY(read_text(arena, root, "model", &plan->model));
    RP_TRY(read_digest(root, plan));
    RP_TRY(read_u32(root, "batch", 1, INT32_MAX, &plan->batch));
    RP_TRY(read_u32(root, "microbatch", 1, plan->batch, &plan->micro));
    RP_TRY(read_u64(root, "epoch_samples", 1, UINT64_C(1) << 48, &plan->epoch_samples));
    RP_TRY(read_u64(root, "steps", 0, UINT64_C(1) << 48, &plan->steps));
    RP_TRY(read_u64(root, "step_first", 0, plan->steps, &plan->step_first));
    plan->fill_step = plan->step_first;
    RP_TRY(read_stages(arena, root, plan));
    RP_TRY(read_nodes(arena, root, plan));
    RP_TRY(read_method(arena, root, plan));
    RP_TRY(read_ties(arena, root, plan));
    RP_TRY(read_edges(arena, root, plan));
    RP_TRY(check_cut(root, plan));
    RP_TRY(read_advance(root, plan));
    RP_TRY(read_predicted(arena, root, plan));
    if (json_object_get(root->json, "agent_program_bytes")) {
        RP_TRY(read_u64(root, "agent_program_bytes", 0, INT64_MAX, &plan->agent_program_bytes));
    }
fail:
    return err;
}

rp_err rp_plan_parse(rp_arena *arena, const char *text, size_t bytes, const char *name,
                     rp_plan **out) {
    json_error_t error;
    rp_plan *plan;
    rp_err err = RP_ARENA_NEW(arena, 1, &plan);
    if (err != RP_OK) {
        return err;
    }
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json) {
        return rp_fail(RP_ERR_FORMAT, "%s:%d: %s", name, error.line, error.text);
    }
    const location root = {.name = name, .json = json};
    char *source;
    err = rp_arena_string(arena, name, &source);
    if (err == RP_OK) {
        plan->source = source;
        err = read_plan(arena, &root, plan);
    }
    json_decref(json);
    if (err == RP_OK) {
        *out = plan;
    }
    return err;
}

rp_err rp_plan_read(rp_arena *arena, const char *path, rp_plan **out) {
    const char *why;
    FILE *file = rp_input_fopen(rp_input_path(path), &why);
    path = rp_input_name(path);
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, why);
    }
    rp_arena own;
    char *text;
    rp_err err;
    rp_arena_init(&own, "plan's text", 0);
    const bool measured = fseek(file, 0, SEEK_END) == 0;
    const long bytes = measured ? ftell(file) : -1;
    if (bytes < 0 || bytes > FILE_BYTES_MAX || fseek(file, 0, SEEK_SET) != 0) {
        err =
            rp_fail(RP_ERR_IO, "%s: is not a file, or longer than %d bytes", path, FILE_BYTES_MAX);
        goto fail;
    }
    RP_TRY(RP_ARENA_NEW(&own, (size_t)bytes + 1, &text));
    const size_t got = fread(text, 1, (size_t)bytes, file);
    RP_TRY(rp_plan_parse(arena, text, got, path, out));
fail:
    (void)fclose(file);
    rp_arena_finish(&own);
    return err;
}
