#include "nn/row_norm.h"

#include <string.h>

#include "nn/groups.h"

rp_err rp_row_norm_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)data;
    rp_row_norm *spec = layer->spec;
    rp_err err;
    *spec = *(const rp_row_norm *)layer->kind->facts;
    RP_TRY(rp_node_u32(keys, "dims", 0, RP_DIMS_MAX, &spec->dims));
    RP_TRY(rp_node_f32(keys, "eps", 0.0, 1e6, &spec->eps));
    return RP_OK;
fail:
    return err;
}

static rp_shape row_of(const rp_row_norm *spec, const rp_shape *in) {
    const uint32_t dims = spec->dims == 0 ? in->dims : spec->dims;
    rp_shape row = {.dims = dims};
    memcpy(row.dim, &in->dim[in->dims - dims], dims * sizeof *in->dim);
    return row;
}

/* Every element of a row is a channel of the row's only group. */
static rp_groups groups_of(const rp_row_norm *spec, const rp_shape *in) {
    const rp_shape row = row_of(spec, in);
    const uint32_t wide = (uint32_t)rp_shape_count(&row);
    return (rp_groups){
        .rows = (uint32_t)rp_shape_count(in) / wide,
        .groups = 1,
        .wide = wide,
        .pixels = 1,
        .rms = spec->rms,
    };
}

rp_err rp_row_norm_plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const rp_row_norm *spec = layer->spec;
    if (spec->dims > in->dims) {
        char text[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %s over %u axes, but its input is %s",
                       layer->name, layer->kind->name, spec->dims, rp_layer_shape_text(in, text));
    }
    const rp_groups groups = groups_of(spec, in);
    const rp_shape row = row_of(spec, in);
    rp_groups_plan(in, &groups, &row, out);
    return RP_OK;
}

size_t rp_row_norm_workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan,
                                   const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)plan;
    (void)choice;
    const rp_groups groups = groups_of(layer->spec, in);
    return rp_groups_workspace_bytes(&groups, n);
}

rp_err rp_row_norm_forward(const rp_layer_call *call) {
    const rp_row_norm *spec = call->layer->spec;
    const rp_groups groups = groups_of(spec, &call->in[0]);
    return rp_groups_forward(call, &groups, spec->eps);
}

rp_err rp_row_norm_backward(const rp_layer_call *call) {
    const rp_groups groups = groups_of(call->layer->spec, &call->in[0]);
    return rp_groups_backward(call, &groups);
}
