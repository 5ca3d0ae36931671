#include "run/freeze.h"

/* A layer's name; "" if the layer is invalid, which the model's parser reports later. */
static const char *name_of(const void *layers, uint32_t index) {
    rp_node *layer = rp_node_item(layers, index);
    const rp_node *name = rp_node_is_map(layer) ? rp_node_find(layer, "name") : NULL;
    return name && rp_node_is_scalar(name) ? rp_node_text(name) : "";
}

static rp_err freeze_fitting(rp_arena *arena, const rp_node *pattern, const rp_node *layers) {
    char names[RP_NAMES_BYTES];
    bool found = false;
    for (uint32_t i = 0; i < rp_node_count(layers); i++) {
        if (!rp_node_is_map(rp_node_item(layers, i)) ||
            !rp_pattern_fits(pattern, name_of(layers, i))) {
            continue;
        }
        rp_err err = rp_config_set(arena, rp_node_item(layers, i), "train=false");
        if (err != RP_OK) {
            return err;
        }
        found = true;
    }
    return found ? RP_OK
                 : rp_node_fail(pattern, "'%.200s' matches no layer of the model; it has: %s",
                                rp_node_text(pattern),
                                rp_names_list(name_of, layers, rp_node_count(layers), names));
}

rp_err rp_freeze_layers(rp_arena *arena, const rp_node *patterns, rp_node *model) {
    const rp_node *layers = rp_node_find(model, "layers");
    rp_err err = rp_patterns_check(patterns);
    if (!layers || !rp_node_is_list(layers)) {
        return err; /* the model's parser reports the error */
    }
    for (uint32_t i = 0; err == RP_OK && i < rp_patterns_count(patterns); i++) {
        err = freeze_fitting(arena, rp_patterns_at(patterns, i), layers);
    }
    return err;
}

rp_err rp_freeze_check(const char *path, const rp_model *model) {
    const uint32_t layers = model->layer_count;
    const bool nothing = rp_model_param_count(model, RP_PARAM_TRAINED, 0, layers) == 0 &&
                         rp_model_param_count(model, RP_PARAM_FROZEN, 0, layers) > 0;
    return nothing
               ? rp_fail(RP_ERR_USAGE,
                         "%s: every layer with parameters is frozen, so there is nothing to "
                         "train; unfreeze one (train.freeze, or train: false in the model file)",
                         path)
               : RP_OK;
}
