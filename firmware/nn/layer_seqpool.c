/* One row [C] of a sequence [T, C]: the mean, the maximum, the last or the first row. If the second
 * input is the token ids [T], steps whose id is `padding` do not count; without any other step y is
 * 0. */
#include "nn/layer_common.h"

enum { GROUP_ITEMS = 64, STEPS_MAX = 1 << 24 /* a step is saved as a float */ };

typedef enum { MEAN, MAX, LAST, FIRST } seqpool_mode;

typedef struct {
    uint32_t mode;    /* seqpool_mode */
    uint32_t padding; /* only with ids */
} seqpool_spec;

static bool has_ids(const rp_layer *layer) {
    return layer->input_count == 2;
}

static rp_err parse_seqpool(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    static const char *const modes[] = {"mean", "max", "last", "first", NULL};
    seqpool_spec *spec = layer->spec;
    rp_err err;
    (void)data;
    *spec = (seqpool_spec){.mode = MEAN};
    RP_TRY(rp_node_word(keys, "mode", modes, &spec->mode));
    const rp_node *padding = rp_node_find(keys, "padding");
    RP_TRY(rp_node_u32(keys, "padding", 0, INT32_MAX, &spec->padding));
    if (has_ids(layer) && !padding) {
        return rp_node_fail(keys, "seqpool with token ids needs `padding`, the id to leave out");
    }
    if (layer->input_count == 1 && padding) {
        return rp_node_fail(padding, "`padding` needs the token ids as second input of seqpool: "
                                     "from: [LAYER, data]");
    }
fail:
    return err;
}

static rp_err check_shapes(const rp_layer *layer, const rp_shape *in) {
    rp_err err = rp_layer_need_sequence(layer, in);
    if (err != RP_OK) {
        return err;
    }
    if (in->dim[0] > STEPS_MAX) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': seqpool takes at most %d steps, found %u",
                       layer->name, STEPS_MAX, in->dim[0]);
    }
    if (has_ids(layer) && (in[1].dims != 1 || in[1].dim[0] != in->dim[0])) {
        char text[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE, "layer '%s': seqpool needs token ids [%u], found %s",
                       layer->name, in->dim[0], rp_layer_shape_text(&in[1], text));
    }
    return RP_OK;
}

static rp_err plan_seqpool(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const seqpool_spec *spec = layer->spec;
    rp_err err = check_shapes(layer, in);
    if (err != RP_OK) {
        return err;
    }
    const bool mean = spec->mode == MEAN;
    const double elements = (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = rp_shape_1(in->dim[1]),
        .saved_count = !mean || has_ids(layer),
        .saved = {{.sample_bytes = (mean ? in->dim[0] : in->dim[1]) * sizeof(float)}},
        .ids = has_ids(layer) ? 2 : 0,
        .flops_forward = elements,
        .flops_backward = elements,
    };
    return RP_OK;
}

/* The tensor of what is saved, from the first sample of the call on. */
static void arg_saved(const rp_layer_call *call, rp_launch *launch) {
    const uint64_t each = call->plan->saved[0].sample_bytes / sizeof(float);
    rp_arg_buffer(launch, call->plan->saved_count > 0 ? call->saved[0] : NULL);
    rp_arg_u64(launch, call->saved_first * each);
}

/* The shape, as arguments. */
static void arg_shape(const rp_layer_call *call, rp_launch *launch) {
    rp_arg_u32(launch, call->n);
    rp_arg_u32(launch, call->in[0].dim[0]);
    rp_arg_u32(launch, call->in[0].dim[1]);
}

/* One item for each 16 columns of `rows` rows. */
static rp_err run_rows(const rp_layer_call *call, rp_launch *launch, uint32_t rows) {
    const size_t pieces = rp_layer_divide_up(call->in[0].dim[1], 16);
    return rp_layer_run_items(launch, pieces * rows, GROUP_ITEMS);
}

static rp_err forward_seqpool(const rp_layer_call *call) {
    const seqpool_spec *spec = call->layer->spec;
    const bool end = spec->mode == LAST || spec->mode == FIRST;
    const char *entry = end ? "seqpool_end" : spec->mode == MAX ? "seqpool_max" : "seqpool_mean";
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "seqpool", entry, NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_tensor(&launch, has_ids(call->layer) ? call->x[1] : NULL);
    arg_saved(call, &launch);
    arg_shape(call, &launch);
    rp_arg_i32(&launch, (int32_t)spec->padding);
    if (end) {
        rp_arg_u32(&launch, spec->mode == LAST);
    }
    return run_rows(call, &launch, call->n);
}

static rp_err backward_seqpool(const rp_layer_call *call) {
    const seqpool_spec *spec = call->layer->spec;
    rp_launch launch;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    rp_err err = rp_layer_begin(
        call, "seqpool", spec->mode == MEAN ? "seqpool_spread" : "seqpool_place", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    arg_saved(call, &launch);
    arg_shape(call, &launch);
    rp_arg_u32(&launch, call->dx_add[0]);
    return run_rows(call, &launch, call->n * call->in[0].dim[0]);
}

const rp_layer_kind rp_layer_seqpool = {
    .name = "seqpool",
    .keys = "from, mode, padding",
    .source = "Collobert & Weston 2008 (max); Iyyer et al. 2015 (mean)",
    .spec_bytes = sizeof(seqpool_spec),
    .inputs_min = 1,
    .inputs_max = 2,
    .parse = parse_seqpool,
    .plan = plan_seqpool,
    .forward = forward_seqpool,
    .backward = backward_seqpool,
};
