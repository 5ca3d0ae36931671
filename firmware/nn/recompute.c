#include "nn/recompute.h"

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

static const char *const offload_names[RP_OFFLOADS] = {[RP_OFFLOAD_NONE] = "none",
                                                       [RP_OFFLOAD_HOST] = "host",
                                                       [RP_OFFLOAD_FLASH] = "flash",
                                                       [RP_OFFLOAD_AUTO] = "auto"};

const char *rp_offload_name(rp_offload offload) {
    return offload_names[offload];
}

rp_offload rp_offload_find(const char *name) {
    rp_offload at = RP_OFFLOAD_NONE;
    while (at < RP_OFFLOADS && strcmp(offload_names[at], name) != 0) {
        at++;
    }
    return at;
}

static rp_err read_word(const rp_node *node, rp_offload *out) {
    *out = rp_node_is_scalar(node) ? rp_offload_find(rp_node_text(node)) : RP_OFFLOADS;
    return *out < RP_OFFLOADS
               ? RP_OK
               : rp_node_fail(node, "expected none, host, flash, auto, a list of stages, or a "
                                    "word by stage");
}

static rp_err read_stages(rp_node *map, uint32_t stages, rp_offload *stage) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < rp_node_count(map); i++) {
        char *end;
        const char *key = rp_node_key(map, i);
        const unsigned long number = strtoul(key, &end, 10);
        if (!*key || *end || number >= stages) {
            return rp_node_fail(rp_node_item(map, i), "expected a stage, from 0 to %u, found '%s'",
                                stages - 1, key);
        }
        RP_TRY(read_word(rp_node_find(map, key), &stage[number]));
    }
fail:
    return err;
}

rp_err rp_offload_read(rp_node *root, uint32_t stages, rp_offload *stage) {
    rp_node *node = rp_node_find(root, "offload");
    const bool by_stage = node && (rp_node_is_list(node) || rp_node_is_map(node));
    rp_offload all = by_stage ? RP_OFFLOAD_NONE : RP_OFFLOAD_AUTO;
    rp_err err = RP_OK;
    RP_TRY(node && !by_stage ? read_word(node, &all) : RP_OK);
    for (uint32_t k = 0; k < stages; k++) {
        stage[k] = all;
    }
    if (node && rp_node_is_map(node)) {
        return read_stages(node, stages, stage);
    }
    for (uint32_t i = 0; by_stage && i < rp_node_count(node); i++) {
        uint32_t number = 0;
        RP_TRY(rp_node_item_u32(node, i, 0, stages - 1, &number));
        stage[number] = RP_OFFLOAD_HOST;
    }
fail:
    return err;
}

/* Tensors that cross the boundary before a layer. */
static uint32_t count_crossing(const rp_model *model, uint32_t layer) {
    rp_boundary boundary;
    return layer < model->layer_count && rp_cut_boundary_at(model, layer, &boundary) == RP_OK
               ? boundary.count
               : RP_CUT_TENSORS_MAX + 1;
}

/* Whether the layer keeps more for its backward than its output, as recurrent layers do. */
static bool keeps_more(const rp_layer_plan *plan) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < plan->saved_count; i++) {
        bytes += plan->saved[i].sample_bytes;
    }
    return bytes > rp_shape_count(&plan->out) * sizeof(float);
}

/* A block begins at a layer that only one tensor reaches, and that opens a skip connection or keeps
 * more than its output: a residual unit, half a transformer block, an LSTM layer. */
static void find_blocks(const rp_model *model, bool *begins) {
    for (uint32_t i = 1; i < model->layer_count; i++) {
        const bool opens = i + 1 < model->layer_count && count_crossing(model, i + 1) > 1;
        begins[i] = count_crossing(model, i) == 1 && (opens || keeps_more(&model->plan[i]));
    }
}

rp_err rp_recompute_read(rp_node *root, const rp_model *model, const rp_cut *cut, bool *stage,
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
    if (strcmp(word, "blocks") == 0) {
        find_blocks(model, begins);
    } else if (strcmp(word, "all") != 0) {
        return rp_node_fail(node,
                            "expected none, all, blocks, auto, or a list of stages and layers");
    }
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        stage[k] = true;
    }
fail:
    return err;
}
