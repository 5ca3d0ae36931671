#include "cli/cli.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_print.h"
#include "run/zoo.h"

enum { SHAPE_BYTES = 80 };

/* Cost of one layer, or of all layers, for one sample. */
typedef struct {
    uint64_t parameters; /* trained and frozen ones */
    uint64_t state;      /* running statistics */
    double flops_forward, flops_backward;
    uint64_t activation_bytes; /* the output, and further values kept for the backward */
} cost;

bool rp_cli_is_model(const char *word) {
    const size_t length = strlen(word);
    const char *path;
    rp_arena arena;
    bool is_model = (length > 5 && strcmp(word + length - 5, ".yaml") == 0) ||
                    (length > 4 && strcmp(word + length - 4, ".yml") == 0);
    if (!is_model && access(word, F_OK) != 0 && !strchr(word, '/')) {
        rp_arena_init(&arena, "zoo", 0);
        is_model = rp_zoo_path(&arena, word, &path) == RP_OK && access(path, F_OK) == 0;
        rp_arena_finish(&arena);
    }
    return is_model;
}

static cost cost_of(const rp_model *model, uint32_t layer) {
    const rp_layer_plan *plan = &model->plan[layer];
    cost c = {.flops_forward = plan->flops_forward, .flops_backward = plan->flops_backward};
    for (uint32_t p = model->param_first[layer]; p < model->param_first[layer + 1]; p++) {
        const rp_param_role role = model->param[p].role;
        const bool counts = (role == RP_PARAM_TRAINED || role == RP_PARAM_FROZEN) &&
                            model->param[p].owner == p; /* a tied tensor counts once */
        c.parameters += counts ? model->param[p].count : 0;
        c.state += role == RP_PARAM_STATE ? model->param[p].count : 0;
    }
    c.activation_bytes = plan->same ? 0 : rp_shape_count(&plan->out) * sizeof(float);
    for (uint32_t s = 0; s < plan->saved_count; s++) {
        c.activation_bytes += plan->saved[s].sample_bytes;
    }
    return c;
}

static cost sum_costs(const rp_model *model) {
    cost sum = {0};
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const cost c = cost_of(model, i);
        sum.parameters += c.parameters;
        sum.state += c.state;
        sum.flops_forward += c.flops_forward;
        sum.flops_backward += c.flops_backward;
        sum.activation_bytes += c.activation_bytes;
    }
    return sum;
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *shape_text(const rp_shape *shape, char text[SHAPE_BYTES]) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t d = 0; d < shape->dims; d++) {
        used += (size_t)snprintf(text + used, SHAPE_BYTES - used, "%s%u", d ? ", " : "[",
                                 shape->dim[d]);
    }
    (void)snprintf(text + used, SHAPE_BYTES - used, "]");
    return text;
}

static void print_text(const rp_model *model, bool assumed) {
    const cost sum = sum_costs(model);
    char text[SHAPE_BYTES];
    int columns = 5;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const int own = (int)strlen(model->layer[i].name);
        columns = own > columns ? own : columns;
    }
    (void)printf("%-*s  %-13s  %-18s %12s %14s %14s %16s\n", columns, "layer", "kind", "output",
                 "parameters", "FLOPs forward", "backward", "activation bytes");
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const cost c = cost_of(model, i);
        (void)printf("%-*s  %-13s  %-18s %12" PRIu64 " %14.0f %14.0f %16" PRIu64 "\n", columns,
                     model->layer[i].name, model->layer[i].kind->name,
                     shape_text(&model->plan[i].out, text), c.parameters, c.flops_forward,
                     c.flops_backward, c.activation_bytes);
    }
    (void)printf("%-*s  %-13s  %-18s %12" PRIu64 " %14.0f %14.0f %16" PRIu64 "\n", columns, "total",
                 "", "", sum.parameters, sum.flops_forward, sum.flops_backward,
                 sum.activation_bytes);
    (void)printf("for each sample of %s", shape_text(&model->input, text));
    (void)printf(assumed
                     ? " and %u classes, which are assumed, because the file leaves them to the "
                       "data (set them with --input, --classes)\n"
                     : "\n",
                 model->classes);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *shape_json(const rp_shape *shape) {
    json_t *list = json_array();
    for (uint32_t d = 0; d < shape->dims; d++) {
        (void)json_array_append_new(list, json_integer(shape->dim[d]));
    }
    return list;
}

/* Adds the numbers to an object; NULL stays NULL. */
static json_t *add_cost(json_t *object, const cost *c) {
    json_t *numbers =
        json_pack("{s:I, s:I, s:f, s:f, s:I}", "parameters", (json_int_t)c->parameters, "state",
                  (json_int_t)c->state, "flops_forward", c->flops_forward, "flops_backward",
                  c->flops_backward, "activation_bytes", (json_int_t)c->activation_bytes);
    (void)json_object_update_missing(object, numbers);
    json_decref(numbers);
    return object;
}

static rp_err print_json(const rp_model *model, bool assumed) {
    const cost sum = sum_costs(model);
    json_t *layers = json_array();
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const cost c = cost_of(model, i);
        (void)json_array_append_new(
            layers, add_cost(json_pack("{s:s, s:s, s:o}", "name", model->layer[i].name, "kind",
                                       model->layer[i].kind->name, "output",
                                       shape_json(&model->plan[i].out)),
                             &c));
    }
    json_t *root =
        json_pack("{s:i, s:o, s:i, s:b, s:o}", "version", 1, "input", shape_json(&model->input),
                  "classes", (int)model->classes, "assumed", (int)assumed, "layers", layers);
    return rp_json_print(add_cost(root, &sum), 0, stdout);
}

/* ---- the verb -------------------------------------------------------------------------------- */

rp_err rp_cli_read_input(const char *text, rp_shape *out) {
    const char *at = text;
    char *end = NULL;
    *out = (rp_shape){0};
    while (text && out->dims < RP_DIMS_MAX) {
        const unsigned long side = strtoul(at, &end, 10);
        out->dim[out->dims++] = side < UINT32_MAX ? (uint32_t)side : 0;
        if (end == at || *end != ',') {
            break;
        }
        at = end + 1;
    }
    return !text || (end > at && !*end && rp_shape_check(out))
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "--input: expected the shape of a sample, as in 3,32,32, found '%s'",
                         text);
}

rp_err rp_cli_inspect_model(rp_arena *arena, const rp_cli_args *args) {
    rp_model_data data = {.classes = args->model.classes};
    rp_model *model;
    const char *path;
    bool assumed;
    rp_err err;
    RP_TRY(rp_cli_read_input(args->model.input, &data.sample));
    RP_TRY(rp_zoo_path(arena, args->words.item[0], &path));
    RP_TRY(rp_zoo_open(arena, path, &data, &assumed, &model));
    if (rp_cli_is_json(args)) {
        RP_TRY(print_json(model, assumed));
    } else {
        print_text(model, assumed);
    }
fail:
    return err;
}
