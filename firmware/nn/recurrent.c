#include "nn/recurrent.h"

#include <math.h>
#include <stdio.h>

#include "nn/products.h"

enum {
    /* parameters of a direction */
    INPUT_WEIGHT,
    HIDDEN_WEIGHT,
    INPUT_BIAS,
    HIDDEN_BIAS,
    PARAMS,
    /* saved */
    GATES = 0,
    REST = 1,   /* c of lstm; h of gru if y has only the last one */
    BLOCKS = 4, /* of H floats that a row of gates has, as in kernels/recurrent.cl */
    LANES_MAX = 16,
    DEFINES_BYTES = 96,
    HIDDEN_MAX = 1 << 16
};

enum { OUTPUT_ALL, OUTPUT_LAST };

rp_err rp_recurrent_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    static const char *const outputs[] = {"all", "last", NULL};
    (void)data;
    rp_recurrent_spec *spec = layer->spec;
    rp_err err;
    *spec = (rp_recurrent_spec){0};
    RP_TRY(rp_node_need(keys, "hidden"));
    RP_TRY(rp_node_u32(keys, "hidden", 1, HIDDEN_MAX, &spec->hidden));
    RP_TRY(rp_node_bool(keys, "bidirectional", &spec->bidirectional));
    RP_TRY(rp_node_bool(keys, "reverse", &spec->reverse));
    RP_TRY(rp_node_word(keys, "output", outputs, &spec->output));
    RP_TRY(rp_node_bool(keys, "lengths", &spec->lengths));
    RP_TRY(rp_node_u32(keys, "padding", 0, INT32_MAX, &spec->padding));
    if (spec->bidirectional && spec->reverse) {
        return rp_node_fail(rp_node_find(keys, "reverse"),
                            "bidirectional already has the reverse direction: expected one of "
                            "`bidirectional` and `reverse`");
    }
    return RP_OK;
fail:
    return err;
}

/* ---- sizes ---------------------------------------------------------------------------------- */

/* Letters of recurrent.h; rows = n T. */
typedef struct {
    const rp_recurrent_spec *spec;
    uint32_t n, steps, rows;
    uint32_t in, hidden, gates; /* I, H, G H */
    uint32_t directions;
    bool gru, last;
} sizes;

static sizes sizes_of(const rp_layer *layer, const rp_shape *in, uint32_t n) {
    const rp_recurrent_spec *spec = layer->spec;
    const rp_recurrent *facts = layer->kind->facts;
    return (sizes){
        .spec = spec,
        .n = n,
        .steps = in->dim[0],
        .rows = n * in->dim[0],
        .in = in->dim[1],
        .hidden = spec->hidden,
        .gates = facts->gates * spec->hidden,
        .directions = spec->bidirectional ? 2 : 1,
        .gru = facts->gates == 3,
        .last = spec->output == OUTPUT_LAST,
    };
}

/* Floats of a sample. */
static size_t gates_floats(const sizes *z) {
    return (size_t)z->steps * z->directions * BLOCKS * z->hidden;
}

static size_t state_floats(const sizes *z) {
    return (size_t)z->steps * z->directions * z->hidden;
}

static rp_products input_products(const sizes *z) {
    return (rp_products){.rows = z->rows, .in = z->in, .out = z->gates};
}

static rp_products hidden_products(const sizes *z) {
    return (rp_products){.rows = z->rows, .in = z->hidden, .out = z->gates};
}

/* ---- plan ----------------------------------------------------------------------------------- */

static rp_err check_shapes(const rp_layer *layer, const rp_shape *in) {
    const rp_recurrent_spec *spec = layer->spec;
    const char *kind = layer->kind->name;
    char text[RP_LAYER_SHAPE_TEXT];
    if (in->dims != 2) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %s needs a sequence [T, I], its input is %s",
                       layer->name, kind, rp_layer_shape_text(in, text));
    }
    if (layer->input_count != (spec->lengths ? 2 : 1)) {
        return rp_fail(RP_ERR_SHAPE,
                       spec->lengths
                           ? "layer '%s': %s with `lengths` needs the token ids as second input"
                           : "layer '%s': %s has a second input, but not `lengths: true`",
                       layer->name, kind);
    }
    if (spec->lengths && (in[1].dims != 1 || in[1].dim[0] != in->dim[0])) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %s needs %u token ids, one a step, not %s",
                       layer->name, kind, in->dim[0], rp_layer_shape_text(&in[1], text));
    }
    return RP_OK;
}

static void plan_params(const sizes *z, rp_layer_plan *out) {
    static const char *const suffix[] = {
        "weight_ih_l0",         "weight_hh_l0",         "bias_ih_l0",         "bias_hh_l0",
        "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse"};
    const rp_shape shape[PARAMS] = {
        [INPUT_WEIGHT] = rp_shape_2(z->gates, z->in),
        [HIDDEN_WEIGHT] = rp_shape_2(z->gates, z->hidden),
        [INPUT_BIAS] = rp_shape_1(z->gates),
        [HIDDEN_BIAS] = rp_shape_1(z->gates),
    };
    const float bound = 1.0f / sqrtf((float)z->hidden);
    out->param_count = z->directions * PARAMS;
    for (uint32_t i = 0; i < out->param_count; i++) {
        out->param[i] =
            (rp_param){suffix[i], shape[i % PARAMS], RP_PARAM_TRAINED, RP_INIT_UNIFORM, bound};
    }
}

static void plan_saved(const sizes *z, rp_layer_plan *out) {
    out->saved_count = z->gru && !z->last ? 1 : 2;
    out->saved[GATES].sample_bytes = gates_floats(z) * sizeof(float);
    out->saved[REST].sample_bytes = out->saved_count > 1 ? state_floats(z) * sizeof(float) : 0;
}

rp_err rp_recurrent_plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    rp_err err = check_shapes(layer, in);
    if (err != RP_OK) {
        return err;
    }
    const sizes z = sizes_of(layer, in, 1);
    const uint32_t wide = z.directions * z.hidden;
    const double rows = (double)z.steps * z.directions;
    const double products = rows * z.gates * ((double)z.in + z.hidden);
    *out = (rp_layer_plan){
        .out = z.last ? rp_shape_1(wide) : rp_shape_2(z.steps, wide),
        .needs_x = !layer->frozen || z.spec->lengths,
        .needs_y = z.gru && !z.last, /* h of the step before */
        .ids = z.spec->lengths ? 2 : 0,
        .flops_forward = 2 * products + 15 * rows * z.gates,
        .flops_backward = (layer->frozen ? 2 : 4) * products + 8 * rows * z.gates,
    };
    plan_params(&z, out);
    plan_saved(&z, out);
    return RP_OK;
}

/* ---- workspace ------------------------------------------------------------------------------ */

/* First floats of the parts of the workspace: the products' own, the packed weights; then, in a
 * forward, what is not saved, or, in a backward, the gradients through time. */
typedef struct {
    size_t packed;
    size_t gates, cell, state, forward_end;
    size_t dgates, dhidden, before, carry, bias, backward_end;
} layout;

static layout layout_of(const sizes *z, rp_gemm_choice choice) {
    const rp_products of_x = input_products(z);
    const rp_products of_h = hidden_products(z);
    const size_t products[] = {rp_products_floats(&of_x, choice),
                               rp_products_floats(&of_h, choice)};
    const size_t columns = rp_layer_divide_up(z->hidden, LANES_MAX) * (size_t)LANES_MAX;
    const size_t gradients = (size_t)z->rows * z->directions * z->gates;
    const size_t states = z->n * state_floats(z);
    layout at = {.packed = products[0] > products[1] ? products[0] : products[1]};
    at.gates = at.packed + z->directions * columns * z->gates;
    at.cell = at.gates + z->n * gates_floats(z);
    at.state = at.cell + (z->gru ? 0 : states);
    at.forward_end = at.state + (z->last ? states : 0);
    at.dgates = at.gates;
    at.dhidden = z->gru ? at.dgates + gradients : at.dgates;
    at.before = at.dhidden + gradients;
    at.carry = at.before + states;
    at.bias = at.carry + (size_t)2 * z->n * z->directions * z->hidden;
    at.backward_end = at.bias + rp_layer_bias_floats(z->rows, z->gates, 1);
    return at;
}

size_t rp_recurrent_workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan,
                                    const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)plan;
    const sizes z = sizes_of(layer, in, n);
    const layout at = layout_of(&z, choice);
    return (at.forward_end > at.backward_end ? at.forward_end : at.backward_end) * sizeof(float);
}

/* ---- launches ------------------------------------------------------------------------------- */

/* How work-groups divide the samples; kernels/recurrent.cl. Changes no bit. */
typedef struct {
    uint32_t samples, tile, items, lanes;
} division;

/* On a CPU an item does all the work of a group with wide vectors, as many samples at a time as
 * leave no compute unit without a group. On other devices the items of a group share its columns.
 */
static division divide_samples(const rp_layer_call *call, const sizes *z) {
    const rp_device_facts *facts = rp_device_facts_of(call->device);
    division by = {.samples = 4, .items = facts->cpu ? 1 : 64, .lanes = facts->cpu ? LANES_MAX : 4};
    while (by.samples > 1 &&
           rp_layer_divide_up(z->n, by.samples) * z->directions < facts->compute_units) {
        by.samples /= 2;
    }
    by.tile = 4 / by.samples;
    return by;
}

static rp_err begin(const rp_layer_call *call, const sizes *z, const division *by,
                    const char *entry, rp_launch *launch) {
    char defines[DEFINES_BYTES];
    (void)snprintf(defines, sizeof defines, "-DSAMPLES=%u -DTILE=%u -DWG=%u -DLANES=%u%s",
                   by->samples, by->tile, by->items, by->lanes, z->gru ? " -DGRU=1" : "");
    return rp_layer_begin(call, "recurrent", entry, defines, launch);
}

static rp_err run_groups(rp_launch *launch, const sizes *z, const division *by) {
    const size_t groups = rp_layer_divide_up(z->n, by->samples);
    return rp_launch_run(launch, 2, (size_t[]){groups * by->items, z->directions},
                         (size_t[]){by->items, 1});
}

static const rp_buffer *param_of(const rp_layer_call *call, const sizes *z, uint32_t direction,
                                 uint32_t param) {
    return direction < z->directions ? call->param[direction * PARAMS + param]->buffer : NULL;
}

/* `turned`: W' for the forward, otherwise W. */
static rp_err pack_weights(const rp_layer_call *call, const sizes *z, const division *by,
                           const layout *at, bool turned) {
    const uint32_t chunks = rp_layer_divide_up(z->hidden, by->lanes);
    const uint32_t panels = turned ? z->gates / z->hidden * chunks : chunks;
    rp_launch launch;
    rp_err err = begin(call, z, by, "pack_weights", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, at->packed);
    rp_arg_buffer(&launch, param_of(call, z, 0, HIDDEN_WEIGHT));
    rp_arg_buffer(&launch, param_of(call, z, 1, HIDDEN_WEIGHT));
    rp_arg_u32(&launch, z->hidden);
    rp_arg_u32(&launch, turned);
    return rp_launch_run(&launch, 3,
                         (size_t[]){turned ? z->hidden : z->gates, panels, z->directions},
                         (size_t[]){16, 1, 1});
}

static void put_sizes(rp_launch *launch, const sizes *z) {
    rp_arg_u32(launch, z->n);
    rp_arg_u32(launch, z->steps);
    rp_arg_u32(launch, z->hidden);
    rp_arg_u32(launch, z->spec->reverse);
    rp_arg_i32(launch, (int32_t)z->spec->padding);
}

static void put_rows(rp_launch *launch, const rp_rows *rows) {
    rp_arg_buffer(launch, rows->buffer);
    rp_arg_u64(launch, rows->first);
}

/* Where gates, c and h of all rows are; a buffer is NULL if there are none. */
typedef struct {
    rp_rows gates, cell, state;
} history;

static rp_rows saved_rows(const rp_layer_call *call, uint32_t index, size_t floats) {
    return (rp_rows){call->saved[index], call->saved_first * floats, 0};
}

static history history_of(const rp_layer_call *call, const sizes *z, const layout *at) {
    const bool saved = call->saved[GATES] != NULL;
    const rp_rows rest = saved && !(z->gru && !z->last) ? saved_rows(call, REST, state_floats(z))
                                                        : (rp_rows){call->workspace, at->cell, 0};
    history h = {.gates = saved ? saved_rows(call, GATES, gates_floats(z))
                                : (rp_rows){call->workspace, at->gates, 0}};
    if (!z->gru) {
        h.cell = rest;
        h.state = (rp_rows){call->workspace, at->state, 0};
    } else {
        h.state = rest;
    }
    if (!z->last) {
        h.state = call->y ? rp_layer_rows(call->y, 0) : (rp_rows){NULL, 0, 0};
    }
    return h;
}

/* ---- forward -------------------------------------------------------------------------------- */

/* x Wi' + bi of all rows, to the places of the gates. */
static rp_err add_inputs(const rp_layer_call *call, const sizes *z, const history *h) {
    const rp_products products = input_products(z);
    rp_err err = RP_OK;
    for (uint32_t d = 0; err == RP_OK && d < z->directions; d++) {
        const rp_rows to = {h->gates.buffer, h->gates.first + (uint64_t)d * BLOCKS * z->hidden,
                            (uint64_t)z->directions * BLOCKS * z->hidden};
        err = rp_products_forward(
            call, &products, to, rp_layer_rows(call->x[0], z->in),
            param_of(call, z, d, INPUT_WEIGHT),
            &(rp_epilogue){.bias_axis = RP_BIAS_COL, .bias = param_of(call, z, d, INPUT_BIAS)});
    }
    return err;
}

rp_err rp_recurrent_forward(const rp_layer_call *call) {
    const sizes z = sizes_of(call->layer, call->in, call->n);
    const layout at = layout_of(&z, rp_device_gemm(call->device));
    const division by = divide_samples(call, &z);
    const history h = history_of(call, &z, &at);
    rp_launch launch;
    rp_err err;
    RP_TRY(add_inputs(call, &z, &h));
    RP_TRY(pack_weights(call, &z, &by, &at, true));
    RP_TRY(begin(call, &z, &by, "forward", &launch));
    put_rows(&launch, &h.gates);
    put_rows(&launch, &h.cell);
    put_rows(&launch, &h.state);
    rp_arg_tensor(&launch, z.last ? call->y : NULL);
    rp_arg_tensor(&launch, z.spec->lengths ? call->x[1] : NULL);
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, at.packed);
    rp_arg_buffer(&launch, param_of(call, &z, 0, HIDDEN_BIAS));
    rp_arg_buffer(&launch, param_of(call, &z, 1, HIDDEN_BIAS));
    put_sizes(&launch, &z);
    RP_TRY(run_groups(&launch, &z, &by));
    return RP_OK;
fail:
    return err;
}

/* ---- backward ------------------------------------------------------------------------------- */

/* Gradients of the sums x Wi' + bi and h Wh' + bh, and h of the step before, of all rows. */
static rp_err backward_steps(const rp_layer_call *call, const sizes *z, const layout *at) {
    const division by = divide_samples(call, z);
    const history h = history_of(call, z, at);
    rp_launch launch;
    rp_err err;
    RP_TRY(pack_weights(call, z, &by, at, false));
    RP_TRY(begin(call, z, &by, "backward", &launch));
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, at->packed);
    rp_arg_u64(&launch, at->dgates);
    rp_arg_u64(&launch, at->dhidden);
    rp_arg_u64(&launch, at->before);
    rp_arg_u64(&launch, at->carry);
    rp_arg_tensor(&launch, call->dy);
    put_rows(&launch, &h.gates);
    put_rows(&launch, &h.cell);
    put_rows(&launch, &h.state);
    rp_arg_tensor(&launch, z->spec->lengths ? call->x[1] : NULL);
    put_sizes(&launch, z);
    rp_arg_u32(&launch, z->last);
    RP_TRY(run_groups(&launch, z, &by));
    return RP_OK;
fail:
    return err;
}

/* The rows of direction `d` of a part of the workspace. */
static rp_rows part_rows(const rp_layer_call *call, const sizes *z, size_t first, uint32_t d,
                         uint32_t wide) {
    return (rp_rows){call->workspace, first + (uint64_t)d * z->rows * wide, wide};
}

static rp_err backward_params(const rp_layer_call *call, const sizes *z, const layout *at,
                              uint32_t d) {
    const rp_products of_x = input_products(z);
    const rp_products of_h = hidden_products(z);
    const rp_rows dgates = part_rows(call, z, at->dgates, d, z->gates);
    const rp_rows dhidden = part_rows(call, z, at->dhidden, d, z->gates);
    rp_tensor *const *to = &call->dparam[(size_t)d * PARAMS];
    rp_err err;
    RP_TRY(rp_products_weight(call, &of_x, to[INPUT_WEIGHT]->buffer, dgates,
                              rp_layer_rows(call->x[0], z->in)));
    RP_TRY(rp_products_weight(call, &of_h, to[HIDDEN_WEIGHT]->buffer, dhidden,
                              part_rows(call, z, at->before, d, z->hidden)));
    RP_TRY(rp_layer_bias_gradient(call, to[INPUT_BIAS]->buffer, at->bias, dgates, z->rows, z->gates,
                                  1));
    RP_TRY(rp_layer_bias_gradient(call, to[HIDDEN_BIAS]->buffer, at->bias, dhidden, z->rows,
                                  z->gates, 1));
    return RP_OK;
fail:
    return err;
}

rp_err rp_recurrent_backward(const rp_layer_call *call) {
    const sizes z = sizes_of(call->layer, call->in, call->n);
    const layout at = layout_of(&z, rp_device_gemm(call->device));
    const rp_products of_x = input_products(&z);
    const bool want_dx = call->want_dx && call->dx[0];
    rp_err err;
    if (!want_dx && !call->want_dw) {
        return RP_OK;
    }
    RP_TRY(backward_steps(call, &z, &at));
    for (uint32_t d = 0; d < z.directions; d++) {
        if (want_dx) {
            RP_TRY(rp_products_input(call, &of_x, rp_layer_rows(call->dx[0], z.in),
                                     part_rows(call, &z, at.dgates, d, z.gates),
                                     param_of(call, &z, d, INPUT_WEIGHT),
                                     call->dx_add[0] || d > 0));
        }
        if (call->want_dw) {
            RP_TRY(backward_params(call, &z, &at, d));
        }
    }
    return RP_OK;
fail:
    return err;
}
