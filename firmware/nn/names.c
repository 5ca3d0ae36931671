#include "nn/names.h"

#include <string.h>

#include "base/safetensors.h"
#include "nn/layer_common.h"

/* ---- reading --------------------------------------------------------------------------------- */

bool rp_names_is_valid(const char *name, size_t room) {
    const size_t length =
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
    return length > 0 && name[length] == '\0' && length < room;
}

const char *rp_names_reserved(const char *name) {
    static const char *const beginnings[] = {"optim.", "older.", "centre.", "replica."};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0) {
            return beginnings[i];
        }
    }
    return strcmp(name, RP_ST_META_KEY) == 0 ? RP_ST_META_KEY : NULL;
}

/* `weight: NAME` or `weight: {name: NAME, dims: 3}`; *dims 0: not given. */
static rp_err read_entry(rp_node *names, const char *suffix, const rp_node **name, uint32_t *dims) {
    rp_node *entry = rp_node_find(names, suffix);
    rp_err err = RP_OK;
    *name = entry;
    *dims = 0;
    if (rp_node_is_map(entry)) {
        RP_TRY(rp_node_need(entry, "name"));
        *name = rp_node_find(entry, "name");
        RP_TRY(rp_node_u32(entry, "dims", 1, RP_DIMS_MAX, dims));
        RP_TRY(rp_node_done(entry));
    }
fail:
    return err;
}

rp_err rp_names_read(rp_layer *layer, rp_node *keys) {
    rp_node *names = rp_node_find(keys, "names");
    const rp_node *name;
    uint32_t dims;
    rp_err err = RP_OK;
    if (!names) {
        return RP_OK;
    }
    if (!rp_node_is_map(names)) {
        return rp_node_fail(names,
                            "layer '%s': expected names of parameters, such as {weight: "
                            "embed.weight}",
                            layer->name);
    }
    for (uint32_t i = 0; i < rp_node_count(names); i++) {
        RP_TRY(read_entry(names, rp_node_key(names, i), &name, &dims));
        if (!rp_node_is_scalar(name) || !rp_names_is_valid(rp_node_text(name), RP_PARAM_NAME_MAX)) {
            return rp_node_fail(name,
                                "layer '%s': a parameter's name has 1 to %d of A-Z a-z 0-9 _ . -, "
                                "found '%.200s'",
                                layer->name, RP_PARAM_NAME_MAX - 1,
                                rp_node_is_scalar(name) ? rp_node_text(name) : "a list or map");
        }
    }
    layer->names = names;
fail:
    return err;
}

static rp_node *find_entry(const rp_layer *layer, const char *suffix) {
    const uint32_t count = layer->names ? rp_node_count(layer->names) : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(rp_node_key(layer->names, i), suffix) == 0) {
            return rp_node_item(layer->names, i);
        }
    }
    return NULL;
}

/* The node of the name that the file gives to a parameter, or NULL. */
static const rp_node *find_given(const rp_layer *layer, const char *suffix) {
    rp_node *entry = find_entry(layer, suffix);
    return entry && rp_node_is_map(entry) ? rp_node_find(entry, "name") : entry;
}

bool rp_names_shape(const rp_shape *layer, uint32_t dims, rp_shape *out) {
    *out = *layer;
    for (; out->dims < dims && out->dims < RP_DIMS_MAX; out->dims++) {
        memmove(out->dim + 1, out->dim, out->dims * sizeof *out->dim);
        out->dim[0] = 1;
    }
    while (out->dims > dims && out->dims > 1 && out->dim[out->dims - 2] == 1) {
        out->dims--;
        out->dim[out->dims - 1] = out->dim[out->dims];
    }
    return out->dims == dims;
}

/* The shape in weights files, with as many dimensions as `dims` says. */
static rp_err find_shape(const rp_layer *layer, const rp_param *param, rp_shape *out) {
    rp_node *entry = find_entry(layer, param->suffix);
    uint32_t dims = param->shape.dims;
    char text[RP_LAYER_SHAPE_TEXT];
    rp_err err = RP_OK;
    *out = param->shape;
    if (!entry || !rp_node_is_map(entry)) {
        return RP_OK;
    }
    RP_TRY(rp_node_u32(entry, "dims", 1, RP_DIMS_MAX, &dims));
    if (!rp_names_shape(&param->shape, dims, out)) {
        return rp_node_fail(rp_node_find(entry, "dims"),
                            "layer '%s': expected %u to %d, because %s has the shape %s, found %u",
                            layer->name, out->dims, RP_DIMS_MAX, param->suffix,
                            rp_layer_shape_text(&param->shape, text), dims);
    }
fail:
    return err;
}

static bool has_suffix(const rp_layer_plan *plan, const char *suffix) {
    bool found = false;
    for (uint32_t i = 0; i < plan->param_count; i++) {
        found |=
            plan->param[i].role != RP_PARAM_SCRATCH && strcmp(plan->param[i].suffix, suffix) == 0;
    }
    return found;
}

/* Every key of `names` is a parameter of the layer. */
static rp_err check_suffixes(const rp_layer *layer, const rp_layer_plan *plan) {
    const uint32_t count = layer->names ? rp_node_count(layer->names) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *key = rp_node_key(layer->names, i);
        if (has_suffix(plan, key)) {
            continue;
        }
        char known[300] = "";
        size_t used = 0;
        for (uint32_t p = 0; p < plan->param_count && used < sizeof known; p++) {
            used += plan->param[p].role == RP_PARAM_SCRATCH
                        ? 0
                        : (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                           used > 0 ? ", " : "", plan->param[p].suffix);
        }
        return rp_node_fail(rp_node_item(layer->names, i),
                            "layer '%s': %s has no parameter '%.100s'; expected %s", layer->name,
                            layer->kind->name, key,
                            known[0] ? known : "no names, because it has no parameters");
    }
    return RP_OK;
}

/* The name of a parameter: the given one, or layer.suffix. */
static rp_err check_name(const rp_layer *layer, const char *suffix, rp_node *keys) {
    const rp_node *given = find_given(layer, suffix);
    const rp_node *at = given ? given : rp_node_find(keys, "name");
    char name[RP_LAYER_NAME_MAX + RP_PARAM_NAME_MAX];
    const int length = given ? snprintf(name, sizeof name, "%s", rp_node_text(given))
                             : snprintf(name, sizeof name, "%s.%s", layer->name, suffix);
    if (length >= RP_PARAM_NAME_MAX) {
        return rp_node_fail(at,
                            "layer '%s': the tensor's name '%.200s' has %d characters, expected at "
                            "most %d",
                            layer->name, name, length, RP_PARAM_NAME_MAX - 1);
    }
    const char *reserved = rp_names_reserved(name);
    if (reserved) {
        return rp_node_fail(at,
                            "layer '%s': the tensor's name would be '%s'; expected one that does "
                            "not begin with '%s', because checkpoints use that for other entries",
                            layer->name, name, reserved);
    }
    return RP_OK;
}

rp_err rp_names_check(const rp_layer *layer, const rp_layer_plan *plan, rp_node *keys) {
    rp_err err;
    RP_TRY(check_suffixes(layer, plan));
    for (uint32_t i = 0; i < plan->param_count; i++) {
        RP_TRY(plan->param[i].role != RP_PARAM_SCRATCH
                   ? check_name(layer, plan->param[i].suffix, keys)
                   : RP_OK);
    }
fail:
    return err;
}

/* ---- ties ------------------------------------------------------------------------------------ */

static bool is_given(const rp_model *model, uint32_t param) {
    const rp_model_param *p = &model->param[param];
    return find_given(&model->layer[p->layer], model->plan[p->layer].param[p->index].suffix);
}

static rp_err fail_tie(const rp_model *model, uint32_t owner, uint32_t use, const char *why) {
    const rp_model_param *p = &model->param[use];
    const rp_layer *layer = &model->layer[p->layer];
    const rp_layer *first = &model->layer[model->param[owner].layer];
    const rp_node *at = find_given(layer, model->plan[p->layer].param[p->index].suffix);
    if (!at) { /* then the first use has the given name */
        const rp_model_param *o = &model->param[owner];
        at = find_given(first, model->plan[o->layer].param[o->index].suffix);
    }
    RP_ASSERT(at);
    return rp_node_fail(at, "layers '%s' (line %u) and '%s' (line %u) share '%s', %s", first->name,
                        first->line, layer->name, layer->line, p->name, why);
}

/* Both uses must have one shape, and the same must happen to both. */
static rp_err check_use(const rp_model *model, uint32_t owner, uint32_t use) {
    const rp_model_param *a = &model->param[owner];
    const rp_model_param *b = &model->param[use];
    char shape[2][RP_LAYER_SHAPE_TEXT];
    char why[3 * RP_LAYER_SHAPE_TEXT];
    if (a->layer == b->layer) {
        return fail_tie(model, owner, use, "but parameters of one layer need different names");
    }
    if (a->role == RP_PARAM_STATE || b->role == RP_PARAM_STATE) {
        return fail_tie(model, owner, use, "but running statistics cannot be shared");
    }
    if (a->role != b->role) {
        return fail_tie(model, owner, use,
                        a->role == RP_PARAM_FROZEN
                            ? "but only the first one is frozen; freeze both, or neither"
                            : "but only the second one is frozen; freeze both, or neither");
    }
    if (!rp_shape_equal(&a->shape, &b->shape)) {
        (void)snprintf(why, sizeof why, "but its shape is %s in the first and %s in the second",
                       rp_layer_shape_text(&a->shape, shape[0]),
                       rp_layer_shape_text(&b->shape, shape[1]));
        return fail_tie(model, owner, use, why);
    }
    return RP_OK;
}

/* Sets the owner of every parameter. Only a name that the file gives can occur twice. */
static rp_err find_owners(rp_model *model) {
    rp_err err = RP_OK;
    for (uint32_t p = 0; p < model->param_count; p++) {
        model->param[p].owner = p;
    }
    for (uint32_t given = 0; given < model->param_count; given++) {
        uint32_t owner = model->param_count;
        if (!is_given(model, given)) {
            continue;
        }
        for (uint32_t p = 0; p < model->param_count; p++) {
            if (model->param[p].role == RP_PARAM_SCRATCH ||
                strcmp(model->param[p].name, model->param[given].name) != 0) {
                continue;
            }
            owner = owner < p ? owner : p;
            model->param[p].owner = owner;
            if (p != owner) {
                RP_TRY(check_use(model, owner, p));
                model->param[p].tied = model->param[owner].tied = true;
            }
        }
    }
fail:
    return err;
}

rp_err rp_names_list_params(rp_arena *arena, rp_model *model) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, model->layer_count + 1, &model->param_first));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        model->param_first[i + 1] = model->param_first[i] + model->plan[i].param_count;
    }
    model->param_count = model->param_first[model->layer_count];
    RP_TRY(RP_ARENA_NEW(arena, model->param_count + 1, &model->param));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const rp_layer *layer = &model->layer[i];
        for (uint32_t j = 0; j < model->plan[i].param_count; j++) {
            const rp_param *from = &model->plan[i].param[j];
            const rp_node *given = find_given(layer, from->suffix);
            rp_shape shape;
            char *name;
            RP_TRY(find_shape(layer, from, &shape));
            RP_TRY(given ? rp_arena_string(arena, rp_node_text(given), &name)
                         : rp_arena_printf(arena, &name, "%s.%s", layer->name, from->suffix));
            model->param[model->param_first[i] + j] =
                (rp_model_param){.name = name,
                                 .layer = i,
                                 .index = j,
                                 .role = from->role,
                                 .shape = shape,
                                 .count = rp_shape_count(&from->shape)};
        }
    }
    RP_TRY(find_owners(model));
fail:
    return err;
}
