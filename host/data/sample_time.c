#include "data/sample_time.h"

#include "data/layout.h"

rp_err rp_time_read(rp_node *keys, const rp_data_input *input, uint32_t parts, uint32_t *out) {
    const rp_shape *shape = &input->shape;
    const bool stated = input->type == RP_I32 && shape->dims > 0;
    const uint32_t own = stated ? shape->dim[0] / parts : 0;
    char each[60] = "";
    char text[RP_LAYOUT_TEXT_BYTES];
    rp_err err;
    if (stated && (shape->dims != 1 || own > RP_TIME_MAX)) {
        return rp_node_fail(rp_node_find(keys, "set"),
                            "samples are rows of 1 to %u token ids, but the model's input is %s",
                            RP_TIME_MAX * parts, rp_layout_text(shape, text));
    }
    if (stated && own * parts != shape->dim[0]) {
        return rp_node_fail(rp_node_find(keys, "set"),
                            "samples are a source and a target of the same length, but the model's "
                            "input has %u ids",
                            shape->dim[0]);
    }
    if (stated && parts > 1 && input->parts > 0 && input->part[0].size != own) {
        return rp_node_fail(rp_node_find(keys, "set"),
                            "samples are a source and a target of the same length, but the model's "
                            "inputs have %u and %u ids",
                            input->part[0].size, shape->dim[0] - input->part[0].size);
    }
    *out = own;
    RP_TRY(stated ? RP_OK : rp_node_need(keys, "time"));
    RP_TRY(rp_node_u32(keys, "time", 1, RP_TIME_MAX, out));
    if (stated && *out != own) {
        if (parts > 1) {
            (void)snprintf(each, sizeof each, ", so source and target have %u ids each", own);
        }
        return rp_node_fail(rp_node_find(keys, "time"),
                            "expected %u, because the model's input is %s%s, found %u", own,
                            rp_layout_text(shape, text), each, *out);
    }
fail:
    return err;
}
