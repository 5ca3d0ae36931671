#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "plan/plan_own.h"

static json_t *texts_json(const char *const *text, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, json_string(text[i]));
    }
    return list;
}

/* The layers at which the second and later stages begin. */
static json_t *cut_list(const rp_plan *plan) {
    json_t *list = json_array();
    for (uint32_t k = 1; k < plan->stage_count; k++) {
        if (plan->stage[k].layer_count > 0) {
            (void)json_array_append_new(list, json_string(plan->stage[k].layer[0]));
        }
    }
    return list;
}

static json_t *stage_object(const rp_plan_stage *stage) {
    const rp_plan_measured *m = &stage->measured;
    json_t *object = json_object();
    if (m->board) {
        (void)json_object_set_new(object, "board", json_string(m->board));
    }
    json_t *rest =
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:I}", "layers",
                  texts_json((const char *const *)stage->layer, stage->layer_count), "slots",
                  (json_int_t)m->slots, "weight_copies", (json_int_t)m->weight_copies,
                  "device_bytes", (json_int_t)m->device_bytes, "weight_bytes",
                  (json_int_t)m->weight_bytes, "resident_bytes", (json_int_t)m->resident_bytes);
    (void)json_object_update_missing(object, rest);
    json_decref(rest);
    if (m->has_seconds) {
        (void)json_object_set_new(object, "forward_s", json_real(m->forward_s));
        (void)json_object_set_new(object, "backward_s", json_real(m->backward_s));
    }
    (void)json_object_set_new(object, "forward", json_integer(stage->micro_forward));
    (void)json_object_set_new(object, "backward", json_integer(stage->micro_backward));
    if (stage->as_forward) {
        (void)json_object_set_new(object, "as_forward", json_true());
    }
    (void)json_object_set_new(object, "recompute",
                              stage->recompute && stage->group_count > 0
                                  ? texts_json(stage->group, stage->group_count)
                                  : json_boolean(stage->recompute));
    (void)json_object_set_new(object, "offload", json_string(stage->offload));
    if (stage->leave_tensors > 0) { /* only if set: former versions do not know the key */
        (void)json_object_set_new(object, "offload_tensors", json_integer(stage->leave_tensors));
    }
    return object;
}

static json_t *node_object(const rp_plan *plan, const rp_plan_node *node) {
    json_t *holds = json_array();
    for (uint32_t h = node->hold_first; h < node->hold_first + node->hold_count; h++) {
        const rp_plan_hold *hold = &plan->hold[h];
        (void)json_array_append_new(
            holds, json_pack("{s:i, s:s, s:[f, f], s:i}", "stage", (int)hold->stage, "role",
                             rp_role_name(hold->role), "samples", hold->share[0], hold->share[1],
                             "slots", (int)hold->slots));
    }
    json_t *object =
        json_pack("{s:s, s:o, s:I, s:s}", "name", node->name, "holds", holds, "memory_bytes",
                  (json_int_t)node->memory_bytes, "executor", node->executor);
    if (node->dials) { /* only if set: former versions do not know the key */
        (void)json_object_set_new(object, "dials", json_true());
    }
    return object;
}

static json_t *edge_object(const rp_plan *plan, const rp_plan_edge *edge) {
    return json_pack("{s:s, s:s, s:i, s:s, s:o, s:s, s:i}", "from",
                     rp_plan_node_name(plan, edge->from), "to", rp_plan_node_name(plan, edge->to),
                     "stage", (int)edge->stage, "carries", rp_carries_name(edge->carries),
                     "tensors", texts_json((const char *const *)edge->tensor, edge->tensor_count),
                     "codec", rp_codec_name(edge->codec), "window", (int)edge->window);
}

/* Adds facts that may be missing, if they are known. */
static void add_known(const rp_plan *plan, json_t *root) {
    if (plan->has_advance) {
        json_t *busy = json_array();
        for (uint32_t a = 0; a < plan->advance_tried; a++) {
            (void)json_array_append_new(busy, json_real(plan->advance_busy[a]));
        }
        (void)json_object_set_new(
            root, "advance",
            json_pack("{s:i, s:o}", "chosen", (int)plan->method.advance, "busy", busy));
    }
    if (plan->tie_count > 0) { /* only if set: former versions do not know the key */
        json_t *ties = json_array();
        for (uint32_t i = 0; i < plan->tie_count; i++) {
            (void)json_array_append_new(
                ties, json_pack("[i, i]", (int)plan->tie[i].first, (int)plan->tie[i].second));
        }
        (void)json_object_set_new(root, "ties", ties);
    }
    if (plan->agent_program_bytes > 0) {
        (void)json_object_set_new(root, "agent_program_bytes",
                                  json_integer((json_int_t)plan->agent_program_bytes));
    }
    if (plan->predicted_step_s > 0) {
        (void)json_object_set_new(root, "predicted",
                                  json_pack("{s:f, s:s*}", "step_s", plan->predicted_step_s,
                                            "limits", plan->predicted_limits));
    }
}

static json_t *plan_object(const rp_plan *plan, json_t *method) {
    json_t *stages = json_array();
    json_t *nodes = json_array();
    json_t *edges = json_array();
    char digest[17];
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        (void)json_array_append_new(stages, stage_object(&plan->stage[k]));
    }
    for (uint32_t k = 0; k < plan->node_count; k++) {
        (void)json_array_append_new(nodes, node_object(plan, &plan->node[k]));
    }
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        (void)json_array_append_new(edges, edge_object(plan, &plan->edge[e]));
    }
    (void)snprintf(digest, sizeof digest, "%016llx", (unsigned long long)plan->model_digest);
    return json_pack("{s:i, s:s, s:s, s:s, s:o, s:i, s:i, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
                     "version", 1, "model", plan->model, "model_digest", digest, "schedule",
                     plan->method.kind->name, "method", method, "batch", (int)plan->batch,
                     "microbatch", (int)plan->micro, "epoch_samples",
                     (json_int_t)plan->epoch_samples, "step_first", (json_int_t)plan->step_first,
                     "steps", (json_int_t)plan->steps, "cut", cut_list(plan), "stages", stages,
                     "nodes", nodes, "edges", edges);
}

static rp_err make_root(const rp_plan *plan, json_t **out) {
    char method[512];
    rp_err err = rp_method_write(&plan->method, method, sizeof method);
    if (err != RP_OK) {
        return err;
    }
    *out = plan_object(plan, json_loads(method, 0, NULL));
    if (!*out) {
        return rp_fail(RP_ERR_MEMORY, "no memory for a plan's text");
    }
    add_known(plan, *out);
    return RP_OK;
}

rp_err rp_plan_write(const rp_plan *plan, FILE *file) {
    json_t *root;
    const rp_err err = make_root(plan, &root);
    if (err != RP_OK) {
        return err;
    }
    const bool failed = json_dumpf(root, file, JSON_INDENT(2)) != 0 || fputc('\n', file) == EOF;
    const int code = errno;
    json_decref(root);
    return failed ? rp_fail(RP_ERR_IO, "the plan could not be written: %s", strerror(code)) : RP_OK;
}

rp_err rp_plan_text(rp_arena *arena, const rp_plan *plan, char **out) {
    json_t *root = NULL;
    rp_err err;
    RP_TRY(make_root(plan, &root));
    const size_t bytes = json_dumpb(root, NULL, 0, JSON_INDENT(2));
    if (bytes == 0) {
        err = rp_fail(RP_ERR_MEMORY, "no memory for a plan's text");
        goto fail;
    }
    RP_TRY(RP_ARENA_NEW(arena, bytes + 2, out)); /* a newline and the terminating 0 */
    (void)json_dumpb(root, *out, bytes, JSON_INDENT(2));
    (*out)[bytes] = '\n';
fail:
    json_decref(root);
    return err;
}
