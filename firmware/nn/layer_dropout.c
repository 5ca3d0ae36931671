/* Dropout: an element is kept with probability 1 - p and then scaled by 1 / (1 - p).
 *
 * The mask is not stored. Element e of sample s (counted over the run) is dropped if word s *
 * elements + e of the stream "dropout/<layer>" is below p, where `elements` are those of a sample
 * of the longest steps. Forward, recomputation and backward therefore agree, and neither the cut
 * nor the microbatch size nor the length of a step changes the mask. */
#include <stdio.h>

#include "nn/dropout.h"

enum { GROUP_ITEMS = 16, ITEM_WORDS = 64 };

typedef struct {
    double p;
} dropout_spec;

static rp_err parse_dropout(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)data;
    dropout_spec *spec = layer->spec;
    spec->p = 0.5;
    return rp_node_f64(keys, "p", 0.0, 1.0, &spec->p);
}

static rp_err plan_dropout(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const double elements = layer->frozen ? 0 : (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = *in,
        .in_place = true,
        .same = layer->frozen,
        .draws = !layer->frozen,
        .flops_forward = 20.0 * elements,
        .flops_backward = 20.0 * elements,
    };
    return RP_OK;
}

/* Passes the layer's stream and p to the kernel. */
rp_err rp_dropout_mask(const rp_layer_call *call, rp_rows to, rp_rows from, double chance,
                       bool add) {
    const double p = call->training ? chance : 0.0;
    const size_t elements = rp_shape_count(&call->in[0]);
    const size_t words = rp_shape_count(rp_layer_longest_in(call, 0));
    const uint64_t first = call->sample_first * words;
    /* samples of full length are one row */
    const size_t rows = words == elements ? 1 : call->n;
    const size_t count = rows == 1 ? call->n * elements : elements;
    char name[RP_LAYER_NAME_MAX + 16];
    rp_kernel *kernel;
    rp_err err;
    snprintf(name, sizeof name, "dropout/%s", call->layer->name);
    const rp_rng rng = rp_rng_named(call->seed, name);
    RP_TRY(rp_kernel_find(call->device, "dropout", "dropout", NULL, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_buffer(&launch, to.buffer);
    rp_arg_u64(&launch, to.first);
    rp_arg_buffer(&launch, from.buffer);
    rp_arg_u64(&launch, from.first);
    rp_arg_u32(&launch, (uint32_t)count);
    rp_arg_u64(&launch, first);
    rp_arg_u64(&launch, words);
    rp_arg_u32(&launch, rng.key[0]);
    rp_arg_u32(&launch, rng.key[1]);
    rp_arg_u32(&launch, (uint32_t)(p * 0x1p24 + 0.5));
    rp_arg_f32(&launch, p < 1.0 ? (float)(1.0 / (1.0 - p)) : 0.0f);
    rp_arg_u32(&launch, add);
    const size_t before =
        rows == 1 ? first % 4 : 3; /* at most, in the block of a row's first word */
    const size_t items = (count + before + ITEM_WORDS - 1) / ITEM_WORDS;
    RP_TRY(rp_launch_run(&launch, 2, (size_t[]){items, rows}, (size_t[]){GROUP_ITEMS, 1}));
    return RP_OK;
fail:
    return err;
}

static rp_err mask_tensor(const rp_layer_call *call, const rp_tensor *to, const rp_tensor *from,
                          bool add) {
    const dropout_spec *spec = call->layer->spec;
    return rp_dropout_mask(call, rp_layer_rows(to, 0), rp_layer_rows(from, 0), spec->p, add);
}

static rp_err forward_dropout(const rp_layer_call *call) {
    if (call->layer->frozen) {
        return rp_layer_copy(call, call->y, call->x[0], &call->in[0], false);
    }
    if (!call->training && rp_tensor_same_memory(call->x[0], call->y)) {
        return RP_OK;
    }
    return mask_tensor(call, call->y, call->x[0], false);
}

static rp_err backward_dropout(const rp_layer_call *call) {
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    if (call->layer->frozen) {
        return rp_layer_copy(call, call->dx[0], call->dy, &call->in[0], call->dx_add[0]);
    }
    return mask_tensor(call, call->dx[0], call->dy, call->dx_add[0]);
}

const rp_layer_kind rp_layer_dropout = {
    .name = "dropout",
    .keys = "p",
    .source = "Srivastava et al. 2014; torch.nn.Dropout",
    .spec_bytes = sizeof(dropout_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_dropout,
    .plan = plan_dropout,
    .forward = forward_dropout,
    .backward = backward_dropout,
};
