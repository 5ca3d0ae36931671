#include "onnx/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/symbols.h"
#include "onnx/tensor.h"

static int by_count(const void *a, const void *b) {
    const rp_onnx_op_count *x = a;
    const rp_onnx_op_count *y = b;
    return x->nodes != y->nodes ? (x->nodes < y->nodes) - (x->nodes > y->nodes)
                                : strcmp(x->op, y->op);
}

rp_err rp_onnx_count_ops(rp_arena *arena, const rp_onnx_model *model, rp_onnx_op_count **out,
                         uint32_t *count) {
    rp_onnx_symbols ops;
    uint32_t op;
    rp_err err;
    rp_onnx_symbols_init(&ops, arena);
    RP_TRY(RP_ARENA_NEW(arena, model->node_count + 1, out));
    for (uint32_t i = 0; i < model->node_count; i++) {
        RP_TRY(rp_onnx_symbols_add(&ops, model->node[i].op, &op));
        (*out)[op].op = model->node[i].op;
        (*out)[op].nodes++;
    }
    *count = ops.count;
    qsort(*out, *count, sizeof **out, by_count);
fail:
    return err;
}

void rp_onnx_count_floats(const rp_onnx_model *model, uint32_t *tensors, uint64_t *elements) {
    *tensors = 0;
    *elements = 0;
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        if (rp_onnx_type_is_float(model->tensor[i].type)) {
            (*tensors)++;
            *elements += model->tensor[i].count;
        }
    }
}

const char *rp_onnx_info_text(const rp_onnx_info *info, char *out, size_t room) {
    size_t used;
    if (!info->known) {
        (void)snprintf(out, room, "not a tensor");
        return out;
    }
    (void)snprintf(out, room, "%s%s", rp_onnx_type_name(info->type),
                   info->shaped ? " [" : ", shape unknown");
    for (uint32_t i = 0; info->shaped && i < info->rank; i++) {
        used = strlen(out);
        if (info->dim[i] > 0) {
            (void)snprintf(out + used, room - used, "%s%" PRId64, i > 0 ? ", " : "", info->dim[i]);
        } else {
            (void)snprintf(out + used, room - used, "%s%s", i > 0 ? ", " : "",
                           info->symbol[i][0] ? info->symbol[i] : "?");
        }
    }
    used = strlen(out);
    (void)snprintf(out + used, room - used, "%s", info->shaped ? "]" : "");
    return out;
}
