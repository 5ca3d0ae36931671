#include "data/sample_time.h"

#include "data/layout.h"

rp_err rp_time_read(rp_node *keys, const rp_data_input *input, uint32_t *out) {
    const rp_shape *shape = &input->shape;
    const bool stated = input->type == RP_I32 && shape->dims > 0;
    char text[RP_LAYOUT_TEXT_BYTES];
    rp_err err;
    if (stated && (shape->dims != 1 || shape->dim[0] > RP_TIME_MAX)) {
        return rp_node_fail(rp_node_find(keys, "set"),
                            "samples are rows of 1 to %d token ids, but the model's input is %s",
                            RP_TIME_MAX, rp_layout_text(shape, text));
    }
    *out = stated ? shape->dim[0] : 0;
    RP_TRY(stated ? RP_OK : rp_node_need(keys, "time"));
    RP_TRY(rp_node_u32(keys, "time", 1, RP_TIME_MAX, out));
    if (stated && *out != shape->dim[0]) {
        return rp_node_fail(rp_node_find(keys, "time"),
                            "expected %u, because the model's input is %s, found %u", shape->dim[0],
                            rp_layout_text(shape, text), *out);
    }
fail:
    return err;
}
