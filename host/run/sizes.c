#include "run/sizes.h"

#include <string.h>

static rp_err read_planner(rp_node *map, rp_sizes *out) {
    const char *name = NULL;
    rp_err err = rp_node_string(map, "planner", &name);
    if (err != RP_OK || !name) {
        return err;
    }
    out->planner = rp_planner_find(strcmp(name, "auto") == 0 ? "tidgap" : name);
    if (!out->planner) {
        return rp_node_fail(rp_node_find(map, "planner"),
                            "unknown planner '%s': expected auto, dgap or tidgap", name);
    }
    if (out->at) {
        return rp_node_fail(rp_node_find(map, "planner"),
                            "`planner` chooses the sizes, so `forward` and `backward` cannot be "
                            "set also: remove one of the two");
    }
    return RP_OK;
}

rp_err rp_sizes_read(rp_arena *arena, rp_node *root, const rp_method *method, uint32_t stages,
                     uint32_t batch, uint32_t micro, rp_sizes *out) {
    static const char *const keys[] = {"forward", "backward"};
    rp_node *map = rp_node_find(root, "schedule");
    uint32_t(*at)[2];
    bool said = false;
    rp_err err;
    *out = (rp_sizes){0};
    RP_TRY(rp_method_sizes(arena, method, root, stages, micro, &at));
    out->in_use = at != NULL;
    if (!out->in_use || !rp_node_is_map(map)) {
        return RP_OK;
    }
    for (uint32_t d = 0; d < 2; d++) {
        const rp_node *node = rp_node_find(map, keys[d]);
        said |= node != NULL;
        out->by_stage |= node && rp_node_is_list(node);
    }
    if (!said) {
        return read_planner(map, out);
    }
    for (uint32_t i = 0; i < 2 * stages; i++) {
        const uint32_t size = at[i / 2][i % 2];
        if (size > batch) {
            return rp_node_fail(rp_node_find(map, keys[i % 2]),
                                "stage %u has microbatches of %u samples; expected at most those "
                                "of a step, %u (train.batch)",
                                i / 2, size, batch);
        }
    }
    out->at = (const uint32_t(*)[2])at;
    err = read_planner(map, out);
fail:
    return err;
}

rp_err rp_sizes_fit_cut(const rp_sizes *sizes, rp_node *root, const rp_model *model,
                        const rp_cut *cut, uint32_t micro) {
    for (uint32_t k = 0; sizes->at && k < cut->stage_count; k++) {
        const uint32_t *size = sizes->at[k];
        const rp_layer *layer = rp_cut_whole_layer(model, cut, k);
        if (layer && (size[0] != micro || size[1] != micro)) {
            return rp_node_fail(rp_node_find(root, "schedule"),
                                "stage %u has microbatches of %u samples forward and %u backward, "
                                "but its layer '%s' normalises over a microbatch, so another size "
                                "would change the model; expected train.microbatch, %u, in both "
                                "directions (or groupnorm or layernorm, which have no such limit)",
                                k, size[0], size[1], layer->name, micro);
        }
    }
    return RP_OK;
}
