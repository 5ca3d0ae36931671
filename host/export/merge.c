#include "export/merge.h"

rp_err rp_export_lora_scale(rp_node *lora, double *out) {
    uint32_t rank = 1;
    double alpha;
    rp_err err;
    RP_TRY(rp_node_u32(lora, "rank", 1, UINT32_MAX, &rank));
    alpha = 2.0 * rank; /* as the layer's */
    RP_TRY(rp_node_f64(lora, "alpha", 0.0, 1e9, &alpha));
    *out = (double)((float)alpha / (float)rank);
fail:
    return err;
}

/* The product B A of a layer, [out, in]; W is stored [in, out] if `in_out`. */
typedef struct {
    const float *a, *b, *w;
    uint32_t rank, in, out;
    bool in_out;
    double scale;
} correction;

static void add_correction(const correction *c, float *sum) {
    for (uint32_t k = 0; k < c->out; k++) {
        for (uint32_t i = 0; i < c->in; i++) {
            const size_t at = c->in_out ? (size_t)i * c->out + k : (size_t)k * c->in + i;
            double product = 0.0;
            for (uint32_t r = 0; r < c->rank; r++) {
                product +=
                    (double)c->b[(size_t)k * c->rank + r] * (double)c->a[(size_t)r * c->in + i];
            }
            sum[at] = (float)((double)c->w[at] + c->scale * product);
        }
    }
}

static rp_err merge_layer(rp_export_net *net, uint32_t layer, rp_node *keys) {
    static const char *const layouts[] = {"out-in", "in-out", NULL};
    const rp_model *model = net->model;
    const uint32_t w = rp_export_find_param(model, layer, "weight");
    const uint32_t a = rp_export_find_param(model, layer, "lora_A.weight");
    const uint32_t b = rp_export_find_param(model, layer, "lora_B.weight");
    uint32_t in_out = 0;
    float *sum;
    rp_err err;
    RP_ASSERT(w != UINT32_MAX && a != UINT32_MAX && b != UINT32_MAX);
    if (model->param[w].tied) {
        return rp_fail(RP_ERR_USAGE,
                       "layer '%s': its weight %s is shared with another layer, so its correction "
                       "cannot be merged; export without --merge",
                       model->layer[layer].name, model->param[w].name);
    }
    const rp_shape *of_a = &model->plan[layer].param[model->param[a].index].shape;
    correction c = {.a = net->value[a],
                    .b = net->value[b],
                    .w = net->value[w],
                    .rank = of_a->dim[0],
                    .in = of_a->dim[1]};
    c.out = (uint32_t)(model->param[w].count / c.in);
    RP_TRY(rp_node_word(keys, "layout", layouts, &in_out));
    c.in_out = in_out == 1;
    RP_TRY(rp_export_lora_scale(rp_node_find(keys, "lora"), &c.scale));
    RP_TRY(RP_ARENA_NEW(net->arena, model->param[w].count, &sum));
    add_correction(&c, sum);
    net->value[w] = sum;
    net->value[a] = NULL;
    net->value[b] = NULL;
fail:
    return err;
}

rp_err rp_export_merge(rp_export_net *net) {
    uint32_t merged = 0;
    rp_err err = RP_OK;
    for (uint32_t i = net->model->input_count; i < net->model->layer_count; i++) {
        rp_node *keys = rp_node_item(net->layers, i - net->model->input_count);
        if (rp_node_find(keys, "lora")) {
            RP_TRY(merge_layer(net, i, keys));
            merged++;
        }
    }
    if (merged == 0) {
        return rp_fail(RP_ERR_USAGE, "--merge: no layer of the model has corrections (`lora`)");
    }
fail:
    return err;
}
