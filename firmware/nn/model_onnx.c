/* The key `onnx` of a model file: names of inputs and outputs in the ONNX model that it came from,
 * which an export writes again. It does not change what the model computes. */
#include <string.h>

#include "nn/model_own.h"

enum { NAME_BYTES = 512 /* of a name in an ONNX file, with its final 0 */ };

/* A list of `count` texts. */
static rp_err read_names(rp_arena *arena, rp_node *map, const char *key, uint32_t count,
                         const char ***out) {
    const rp_node *list = rp_node_find(map, key);
    rp_err err;
    *out = NULL;
    if (!list) {
        return RP_OK;
    }
    if (!rp_node_is_list(list) || rp_node_count(list) != count) {
        return rp_node_fail(list, "expected a list of %u name%s", count, count == 1 ? "" : "s");
    }
    RP_TRY(RP_ARENA_NEW(arena, count, out));
    for (uint32_t i = 0; i < count; i++) {
        const rp_node *item = rp_node_item(list, i);
        const char *name = rp_node_is_scalar(item) ? rp_node_text(item) : "";
        if (name[0] == '\0' || strlen(name) >= NAME_BYTES) {
            return rp_node_fail(item, "expected a name of 1 to %d bytes", NAME_BYTES - 1);
        }
        (*out)[i] = name;
    }
fail:
    return err;
}

rp_err rp_model_read_onnx(rp_arena *arena, rp_node *root, rp_model *model) {
    rp_node *map = rp_node_find(root, "onnx");
    const char **outputs;
    rp_err err = RP_OK;
    if (!map) {
        return RP_OK;
    }
    if (!rp_node_is_map(map)) {
        return rp_node_fail(map, "expected names like {inputs: [x], outputs: [y]}");
    }
    RP_TRY(read_names(arena, map, "inputs", model->input_count > 0 ? model->input_count : 1,
                      &model->onnx_input));
    RP_TRY(read_names(arena, map, "outputs", 1, &outputs));
    RP_TRY(rp_node_done(map));
    model->onnx_output = outputs ? outputs[0] : NULL;
fail:
    return err;
}
