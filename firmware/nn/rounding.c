#include "nn/rounding.h"

/* Whether the model's output is this tensor, or shares its values. */
static bool is_model_output(const rp_model *model, uint32_t producer) {
    uint32_t layer = model->layer_count - 1;
    while (layer != producer && model->plan[layer].same &&
           model->layer[layer].input[0] != RP_LAYER_DATA) {
        layer = model->layer[layer].input[0];
    }
    return layer == producer;
}

static bool is_read_by_backward(const rp_model *model, uint32_t layer, uint32_t producer) {
    const bool needs_x = model->wants_grad[layer] && model->plan[layer].needs_x;
    for (uint32_t j = 0; needs_x && j < model->layer[layer].input_count; j++) {
        if (model->layer[layer].input[j] == producer) {
            return true;
        }
    }
    return false;
}

bool rp_rounds_output(const rp_model *model, uint32_t producer) {
    if (producer == RP_LAYER_DATA || rp_model_type(model, producer) != RP_F32 ||
        is_model_output(model, producer)) {
        return false;
    }
    bool is_kept = model->wants_grad[producer] && model->plan[producer].needs_y;
    for (uint32_t i = producer + 1; i < model->layer_count && !is_kept; i++) {
        is_kept = is_read_by_backward(model, i, producer);
    }
    return is_kept;
}

rp_err rp_rounding_read(rp_node *map, const char *key, rp_dtype *out) {
    static const char *const words[] = {"f32", "bf16", "f16", NULL};
    static const rp_dtype formats[] = {RP_F32, RP_BF16, RP_F16};
    uint32_t word = 0;
    while (formats[word] != *out) {
        word++;
    }
    const rp_err err = rp_node_word(map, key, words, &word);
    *out = formats[word];
    return err;
}
