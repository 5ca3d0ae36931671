/* Private to the model's parser. */
#ifndef RP_NN_MODEL_OWN_H
#define RP_NN_MODEL_OWN_H

#include "nn/model.h"

/* Reads `input` into the model's input, input_type and input_count; size[i]: the first size of
 * input i, if there are several. errors USAGE; SHAPE: the data set has other samples */
rp_err rp_model_read_input(rp_node *root, const rp_model_data *data, rp_model *model,
                           uint32_t size[RP_LAYER_INPUTS_MAX]) RP_MUST_CHECK;

/* Reads `onnx: {inputs: [..], outputs: [..]}` into onnx_input and onnx_output. The inputs of the
 * model are known. errors USAGE, MEMORY */
rp_err rp_model_read_onnx(rp_arena *arena, rp_node *root, rp_model *model) RP_MUST_CHECK;

#endif
