#include "data/sample_time.h"

rp_err rp_time_read(rp_node *keys, const rp_data_input *input, uint32_t *out) {
    const rp_shape *shape = &input->shape;
    const bool stated = input->type == RP_I32 && shape->dims == 1 && shape->dim[0] <= RP_TIME_MAX;
    rp_err err;
    *out = stated ? shape->dim[0] : 0;
    if (!stated) {
        RP_TRY(rp_node_need(keys, "time"));
    }
    RP_TRY(rp_node_u32(keys, "time", 1, RP_TIME_MAX, out));
    if (stated && *out != shape->dim[0]) {
        return rp_node_fail(rp_node_find(keys, "time"),
                            "expected %u, because the model's input is [%u], found %u",
                            shape->dim[0], shape->dim[0], *out);
    }
fail:
    return err;
}
