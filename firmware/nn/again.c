#include "nn/again.h"

#include <stdlib.h>
#include <string.h>

static uint32_t stage_of(const rp_cut *cut, uint32_t layer) {
    uint32_t k = 0;
    while (cut->first[k + 1] <= layer) {
        k++;
    }
    return k;
}

static rp_err read_item(const rp_node *item, const rp_model *model, const rp_cut *cut, bool *stage,
                        bool *begins) {
    const char *text = rp_node_is_scalar(item) ? rp_node_text(item) : "";
    const uint32_t layer = rp_model_find(model, text);
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    if (layer < model->layer_count) {
        stage[stage_of(cut, layer)] = begins[layer] = true;
        return RP_OK;
    }
    if (*text && !*end && number < cut->stage_count) {
        stage[number] = true;
        return RP_OK;
    }
    return rp_node_fail(item, "expected a stage, from 0 to %u, or a layer of the model, found '%s'",
                        cut->stage_count - 1, text);
}

rp_err rp_offload_read(rp_node *root, uint32_t stages, bool *stage) {
    const rp_node *node = rp_node_find(root, "offload");
    const char *word = node && rp_node_is_scalar(node) ? rp_node_text(node) : "none";
    const bool is_list = node && rp_node_is_list(node);
    rp_err err = RP_OK;
    for (uint32_t i = 0; is_list && i < rp_node_count(node); i++) {
        uint32_t number = 0;
        RP_TRY(rp_node_item_u32(node, i, 0, stages - 1, &number));
        stage[number] = true;
    }
    const bool all = !is_list && strcmp(word, "host") == 0;
    if (!is_list && ((!all && strcmp(word, "none") != 0) || (node && !rp_node_is_scalar(node)))) {
        return rp_node_fail(node, "expected none, host, or a list of stages");
    }
    for (uint32_t k = 0; all && k < stages; k++) {
        stage[k] = true;
    }
fail:
    return err;
}

rp_err rp_again_read(rp_node *root, const rp_model *model, const rp_cut *cut, bool *stage,
                     bool *begins, bool *is_auto) {
    const rp_node *node = rp_node_find(root, "recompute");
    const char *word = node && rp_node_is_scalar(node) ? rp_node_text(node) : "";
    rp_err err = RP_OK;
    *is_auto = !node || strcmp(word, "auto") == 0;
    if (*is_auto || strcmp(word, "none") == 0) {
        return RP_OK;
    }
    if (rp_node_is_list(node)) {
        for (uint32_t i = 0; i < rp_node_count(node); i++) {
            RP_TRY(read_item(rp_node_item(node, i), model, cut, stage, begins));
        }
        return RP_OK;
    }
    if (strcmp(word, "all") != 0) {
        return rp_node_fail(node, "expected none, all, auto, or a list of stages and layers");
    }
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        stage[k] = true;
    }
fail:
    return err;
}
