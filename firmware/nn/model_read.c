/* Reads a model file. */
#include <string.h>

#include "nn/layer_common.h"
#include "nn/model_own.h"
#include "nn/names.h"
#include "nn/workspace.h"

static uint32_t find_before(const rp_model *model, uint32_t end, const char *name) {
    for (uint32_t i = 0; i < end; i++) {
        if (strcmp(model->layer[i].name, name) == 0) {
            return i;
        }
    }
    return end;
}

static rp_err take_name(const rp_model *model, uint32_t index, const rp_node *node,
                        const char *name) {
    if (!rp_names_is_valid(name, RP_LAYER_NAME_MAX)) {
        return rp_node_fail(node, "a layer's name has 1 to %d of A-Z a-z 0-9 _ . -, found '%s'",
                            RP_LAYER_NAME_MAX - 1, name);
    }
    if (strcmp(name, "data") == 0) {
        return rp_node_fail(node, "'data' is the model's input; give the layer another name");
    }
    uint32_t other = find_before(model, index, name);
    if (other < index) {
        return rp_node_fail(node, "%s '%s' is in line %u already",
                            other < model->input_count ? "an input" : "a layer", name,
                            model->layer[other].line);
    }
    model->layer[index].name = name;
    model->layer[index].line = rp_node_line(node);
    return RP_OK;
}

static rp_err read_name(const rp_model *model, uint32_t index, rp_node *keys) {
    rp_err err;
    const char *name = NULL;
    RP_TRY(rp_node_need(keys, "name"));
    RP_TRY(rp_node_string(keys, "name", &name));
    RP_TRY(take_name(model, index, rp_node_find(keys, "name"), name));
    model->layer[index].line = rp_node_line(keys);
fail:
    return err;
}

static rp_err read_kind(rp_layer *layer, rp_node *keys) {
    rp_err err;
    const char *word = NULL;
    RP_TRY(rp_node_need(keys, "kind"));
    RP_TRY(rp_node_string(keys, "kind", &word));
    layer->kind = rp_layer_find(word);
    if (!layer->kind) {
        char known[1000] = "";
        size_t used = 0;
        for (const rp_layer_kind *const *k = rp_layer_kinds; *k && used < sizeof known; k++) {
            used += (size_t)snprintf(known + used, sizeof known - used, " %s", (*k)->name);
        }
        return rp_node_fail(rp_node_find(keys, "kind"), "no layer kind '%s'; known:%s", word,
                            known);
    }
    return RP_OK;
fail:
    return err;
}

static rp_err read_source(const rp_model *model, uint32_t index, const rp_node *node,
                          uint32_t *out) {
    if (!rp_node_is_scalar(node)) {
        return rp_node_fail(node, "expected the name of an earlier layer");
    }
    const char *name = rp_node_text(node);
    uint32_t found = find_before(model, index, name);
    if (strcmp(name, "data") == 0) {
        found = RP_LAYER_DATA;
    } else if (found == index) {
        return rp_node_fail(node, "layer '%s': there is no earlier layer '%s'",
                            model->layer[index].name, name);
    }
    *out = found;
    return RP_OK;
}

static rp_err read_from(const rp_model *model, uint32_t index, rp_node *keys) {
    rp_layer *layer = &model->layer[index];
    const rp_node *from = rp_node_find(keys, "from");
    bool list = from && rp_node_is_list(from);
    const uint32_t usual = layer->kind->inputs_max > 0; /* a kind without inputs reads nothing */
    layer->input_count = list ? rp_node_count(from) : from ? 1 : usual;
    if (layer->input_count < layer->kind->inputs_min ||
        layer->input_count > layer->kind->inputs_max) {
        return rp_node_fail(from ? from : keys,
                            "layer '%s': %s takes %u to %u inputs (`from`), found %u", layer->name,
                            layer->kind->name, layer->kind->inputs_min, layer->kind->inputs_max,
                            layer->input_count);
    }
    if (!from && usual && index == model->input_count && index > 0) {
        return rp_node_fail(keys,
                            "layer '%s': the model has several inputs: expected `from` with "
                            "the name of one",
                            layer->name);
    }
    layer->input[0] = index > 0 ? index - 1 : RP_LAYER_DATA;
    for (uint32_t i = 0; from && i < layer->input_count; i++) {
        rp_err err =
            read_source(model, index, list ? rp_node_item(from, i) : from, &layer->input[i]);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

/* Only the model's input, or a part of it, can be token ids. */
static rp_err check_types(const rp_model *model, uint32_t index) {
    const rp_layer *layer = &model->layer[index];
    for (uint32_t i = 0; i < layer->input_count; i++) {
        const uint32_t from = layer->input[i];
        const bool ids = rp_layer_takes_ids(&model->plan[index], i);
        if (ids != (rp_model_type(model, from) == RP_I32)) {
            return ids ? rp_fail(RP_ERR_SHAPE,
                                 "layer '%s': input %u of %s takes token ids (i32), which only "
                                 "an input of the model can give; '%s' gives numbers",
                                 layer->name, i + 1, layer->kind->name,
                                 from == RP_LAYER_DATA ? "data" : model->layer[from].name)
                       : rp_fail(RP_ERR_SHAPE,
                                 "layer '%s': %s takes numbers, but '%s' gives token ids (i32): "
                                 "put an embedding between them",
                                 layer->name, layer->kind->name,
                                 from == RP_LAYER_DATA ? "data" : model->layer[from].name);
        }
    }
    return RP_OK;
}

static rp_err check_sizes(const rp_layer *layer, const rp_layer_plan *plan) {
    char text[RP_LAYER_SHAPE_TEXT];
    if (plan->out.dims >= RP_DIMS_MAX || !rp_shape_check(&plan->out)) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': output %s is too large", layer->name,
                       rp_layer_shape_text(&plan->out, text));
    }
    for (uint32_t i = 0; i < plan->param_count; i++) {
        if (!rp_shape_check(&plan->param[i].shape)) {
            return rp_fail(RP_ERR_SHAPE, "layer '%s': %s %s is too large", layer->name,
                           plan->param[i].suffix, rp_layer_shape_text(&plan->param[i].shape, text));
        }
    }
    return RP_OK;
}

static rp_err plan_checked(const rp_model *model, uint32_t index) {
    const rp_layer *layer = &model->layer[index];
    rp_layer_plan *plan = &model->plan[index];
    rp_err err;
    for (uint32_t i = 0; i < layer->input_count; i++) {
        model->in[index][i] = *rp_model_shape(model, layer->input[i]);
    }
    RP_TRY(rp_layer_make_plan(layer, model->in[index], plan));
    RP_TRY(check_types(model, index));
    RP_TRY(check_sizes(layer, plan));
fail:
    return err;
}

/* The layer knows what is wrong, and the tree the line. */
static rp_err plan_layer(const rp_model *model, uint32_t index, const rp_node *keys) {
    const bool held = rp_err_hold(true);
    const rp_err err = plan_checked(model, index);
    (void)rp_err_hold(held);
    if (err != RP_OK) {
        (void)!rp_node_fail(keys, "%s", rp_err_message());
    }
    return err;
}

static rp_err read_layer(rp_arena *arena, const rp_model *model, const rp_model_data *data,
                         uint32_t index, rp_node *keys) {
    rp_err err;
    rp_layer *layer = &model->layer[index];
    if (!rp_node_is_map(keys)) {
        return rp_node_fail(keys, "expected a layer like {name: fc1, kind: dense, out: 10}");
    }
    RP_TRY(read_name(model, index, keys));
    RP_TRY(read_kind(layer, keys));
    RP_TRY(read_from(model, index, keys));
    layer->reads_ids = layer->input_count > 0 && rp_model_type(model, layer->input[0]) == RP_I32;
    bool train = true;
    RP_TRY(rp_node_bool(keys, "train", &train));
    layer->frozen = !train;
    RP_TRY(rp_names_read(layer, keys));
    RP_TRY(rp_arena_alloc(arena, 1, layer->kind->spec_bytes + 1, &layer->spec));
    RP_TRY(layer->kind->parse(layer, keys, data));
    RP_TRY(rp_node_done(keys));
    RP_TRY(plan_layer(model, index, keys));
    RP_TRY(rp_names_check(layer, &model->plan[index], keys));
    return RP_OK;
fail:
    return err;
}

/* The inputs of a model with several are slices of its data. */
static rp_err add_inputs(rp_arena *arena, rp_node *inputs, const uint32_t *size,
                         const rp_model *model) {
    static const rp_model_data nothing = {0};
    uint32_t start = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < model->input_count; i++) {
        rp_layer *layer = &model->layer[i];
        const char *name = rp_node_key(inputs, i);
        const rp_node *node = rp_node_find(inputs, name);
        char *text;
        rp_node *keys;
        RP_TRY(take_name(model, i, node, name));
        RP_TRY(rp_arena_printf(arena, &text, "{start: %u, end: %u}", start, start + size[i]));
        RP_TRY(rp_config_read_text(arena, text, strlen(text), name, &keys));
        layer->kind = rp_layer_find("slice");
        layer->input_count = 1;
        layer->input[0] = RP_LAYER_DATA;
        layer->reads_ids = model->input_type == RP_I32;
        RP_TRY(rp_arena_alloc(arena, 1, layer->kind->spec_bytes, &layer->spec));
        RP_TRY(layer->kind->parse(layer, keys, &nothing));
        RP_TRY(plan_layer(model, i, node));
        start += size[i];
    }
fail:
    return err;
}

/* Gradients propagate back only to the first trained layer. */
static rp_err find_gradients(rp_arena *arena, rp_model *model) {
    rp_err err = RP_ARENA_NEW(arena, model->layer_count, &model->wants_grad);
    for (uint32_t i = 0; err == RP_OK && i < model->layer_count; i++) {
        model->wants_grad[i] = rp_layer_trains(&model->plan[i]);
        for (uint32_t j = 0; j < model->layer[i].input_count; j++) {
            const uint32_t from = model->layer[i].input[j];
            model->wants_grad[i] |= from != RP_LAYER_DATA && model->wants_grad[from];
        }
    }
    return err;
}

static rp_err check_readers(rp_arena *arena, const rp_model *model, rp_node *inputs,
                            const rp_node *layers) {
    bool *read;
    rp_err err = RP_ARENA_NEW(arena, model->layer_count, &read);
    if (err != RP_OK) {
        return err;
    }
    for (uint32_t i = 0; i < model->layer_count; i++) {
        for (uint32_t j = 0; j < model->layer[i].input_count; j++) {
            if (model->layer[i].input[j] != RP_LAYER_DATA) {
                read[model->layer[i].input[j]] = true;
            }
        }
    }
    for (uint32_t i = 0; i + 1 < model->layer_count; i++) {
        const bool input = i < model->input_count;
        if (!read[i]) {
            return rp_node_fail(input ? rp_node_find(inputs, model->layer[i].name)
                                      : rp_node_item(layers, i - model->input_count),
                                input ? "no layer reads the input '%s'"
                                      : "no layer reads the output of '%s'",
                                model->layer[i].name);
        }
    }
    return RP_OK;
}

rp_err rp_model_parse(rp_arena *arena, rp_node *root, const rp_model_data *data, rp_model **out) {
    rp_err err;
    rp_model *model;
    uint32_t size[RP_LAYER_INPUTS_MAX];
    RP_TRY(RP_ARENA_NEW(arena, 1, &model));
    model->classes = data->classes;
    RP_TRY(rp_model_read_input(root, data, model, size));
    RP_TRY(rp_model_read_onnx(arena, root, model));
    rp_node *inputs = rp_node_find(root, "input");
    RP_TRY(rp_node_need(root, "layers"));
    const rp_node *layers = rp_node_find(root, "layers");
    RP_TRY(rp_node_done(root));
    const uint32_t count = rp_node_is_list(layers) ? rp_node_count(layers) : 0;
    const uint32_t most = RP_MODEL_LAYERS_MAX - model->input_count;
    if (count == 0 || count > most) {
        return rp_node_fail(layers, "expected a list of 1 to %u layers", most);
    }
    model->layer_count = model->input_count + count;
    RP_TRY(RP_ARENA_NEW(arena, model->layer_count, &model->layer));
    RP_TRY(RP_ARENA_NEW(arena, model->layer_count, &model->plan));
    RP_TRY(RP_ARENA_NEW(arena, model->layer_count, &model->in));
    RP_TRY(add_inputs(arena, inputs, size, model));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(read_layer(arena, model, data, model->input_count + i, rp_node_item(layers, i)));
    }
    RP_TRY(check_readers(arena, model, inputs, layers));
    RP_TRY(rp_names_list_params(arena, model));
    RP_TRY(find_gradients(arena, model));
    RP_TRY(rp_model_new_workspaces(arena, model));
    *out = model;
    return RP_OK;
fail:
    return err;
}
