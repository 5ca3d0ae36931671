/* The table of operators. To add one: a row here, and a handler in the file of its kind. */
#include "onnx/ops.h"

#include <string.h>

#define FOLDS(name) rp_onnx_fold_##name
#define ARRANGES(name) rp_onnx_arrange_##name
#define LAYER(name) rp_onnx_layer_##name
#define SHAPE(name) rp_onnx_shape_##name

static const rp_onnx_op ops[] = {
    /* constants and shapes */
    {"Constant", 0, 0, FOLDS(constant), NULL, NULL, NULL},
    {"ConstantOfShape", 1, 1, FOLDS(constant_of_shape), NULL, NULL, NULL},
    {"Range", 3, 3, FOLDS(range), NULL, NULL, NULL},
    {"Shape", 1, 1, NULL, ARRANGES(shape), NULL, NULL},
    {"Size", 1, 1, NULL, ARRANGES(size), NULL, NULL},
    {"Cast", 1, 1, FOLDS(cast), ARRANGES(cast), NULL, SHAPE(same)},
    {"CastLike", 2, 2, FOLDS(cast), ARRANGES(cast_like), NULL, SHAPE(same)},
    {"CumSum", 2, 2, FOLDS(cumsum), NULL, NULL, NULL},
    {"Trilu", 1, 2, FOLDS(trilu), NULL, NULL, SHAPE(same)},
    {"Equal", 2, 2, FOLDS(binary), NULL, NULL, SHAPE(mask)},
    {"Less", 2, 2, FOLDS(binary), NULL, NULL, SHAPE(mask)},
    {"Greater", 2, 2, FOLDS(binary), NULL, NULL, SHAPE(mask)},
    {"LessOrEqual", 2, 2, FOLDS(binary), NULL, NULL, SHAPE(mask)},
    {"GreaterOrEqual", 2, 2, FOLDS(binary), NULL, NULL, SHAPE(mask)},
    {"And", 2, 2, FOLDS(binary), NULL, NULL, SHAPE(mask)},
    {"Or", 2, 2, FOLDS(binary), NULL, NULL, SHAPE(mask)},
    {"Not", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(mask)},
    {"IsNaN", 1, 1, NULL, NULL, NULL, SHAPE(mask)},
    {"Mod", 2, 2, FOLDS(binary), NULL, NULL, SHAPE(broadcast)},
    {"Sin", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(same)},
    {"Cos", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(same)},
    {"Ceil", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(same)},
    {"Floor", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(same)},
    {"RandomUniformLike", 1, 1, NULL, ARRANGES(random), NULL, NULL},
    /* arrangements */
    {"Identity", 1, 1, NULL, ARRANGES(identity), NULL, NULL},
    {"Reshape", 2, 2, NULL, ARRANGES(reshape), NULL, NULL},
    {"Flatten", 1, 1, NULL, ARRANGES(flatten), NULL, NULL},
    {"Squeeze", 1, 2, NULL, ARRANGES(squeeze), NULL, NULL},
    {"Unsqueeze", 2, 2, NULL, ARRANGES(unsqueeze), NULL, NULL},
    {"Transpose", 1, 1, NULL, ARRANGES(transpose), NULL, NULL},
    {"Slice", 3, 5, NULL, ARRANGES(slice), NULL, NULL},
    {"Split", 1, 2, NULL, ARRANGES(split), NULL, NULL},
    {"SplitToSequence", 2, 2, NULL, ARRANGES(split_to_sequence), NULL, NULL},
    {"SequenceAt", 2, 2, NULL, ARRANGES(sequence_at), NULL, NULL},
    {"Expand", 2, 2, NULL, ARRANGES(expand), NULL, NULL},
    {"Tile", 2, 2, NULL, ARRANGES(tile), NULL, NULL},
    {"DepthToSpace", 1, 1, NULL, ARRANGES(depth_to_space), NULL, NULL},
    {"SpaceToDepth", 1, 1, NULL, ARRANGES(space_to_depth), NULL, NULL},
    {"Gather", 2, 2, FOLDS(gather), ARRANGES(gather), LAYER(gather), NULL},
    {"GatherND", 2, 2, FOLDS(gather_nd), NULL, NULL, SHAPE(gather_nd)},
    {"GatherElements", 2, 2, FOLDS(gather_elements), NULL, NULL, NULL},
    {"Concat", 1, RP_ONNX_INPUTS_MAX, NULL, ARRANGES(concat), LAYER(concat), SHAPE(concat)},
    /* images */
    {"Conv", 2, 3, NULL, NULL, LAYER(conv), NULL},
    {"ConvTranspose", 2, 3, NULL, NULL, LAYER(conv_transpose), NULL},
    {"MaxPool", 1, 1, NULL, NULL, LAYER(max_pool), NULL},
    {"AveragePool", 1, 1, NULL, NULL, LAYER(average_pool), NULL},
    {"GlobalAveragePool", 1, 1, NULL, NULL, LAYER(global_pool), NULL},
    {"Resize", 1, 4, NULL, NULL, LAYER(resize), NULL},
    {"Pad", 2, 4, NULL, NULL, LAYER(pad), SHAPE(pad)},
    /* normalisation */
    {"BatchNormalization", 5, 5, NULL, NULL, LAYER(batchnorm), SHAPE(same)},
    {"LayerNormalization", 2, 3, NULL, NULL, LAYER(layernorm), SHAPE(same)},
    {"RMSNormalization", 2, 2, NULL, NULL, LAYER(rmsnorm), SHAPE(same)},
    {"InstanceNormalization", 3, 3, NULL, NULL, LAYER(instancenorm), SHAPE(same)},
    {"GroupNormalization", 3, 3, NULL, NULL, LAYER(groupnorm), SHAPE(same)},
    /* activations */
    {"Relu", 1, 1, NULL, NULL, LAYER(plain), SHAPE(same)},
    {"Tanh", 1, 1, FOLDS(unary), NULL, LAYER(plain), SHAPE(same)},
    {"Sigmoid", 1, 1, NULL, NULL, LAYER(plain), SHAPE(same)},
    {"Softplus", 1, 1, NULL, NULL, LAYER(plain), SHAPE(same)},
    {"HardSwish", 1, 1, NULL, NULL, LAYER(plain), SHAPE(same)},
    {"Mish", 1, 1, NULL, NULL, LAYER(plain), SHAPE(same)},
    {"LeakyRelu", 1, 1, NULL, NULL, LAYER(leaky_relu), SHAPE(same)},
    {"Elu", 1, 1, NULL, NULL, LAYER(elu), SHAPE(same)},
    {"PRelu", 2, 2, NULL, NULL, LAYER(prelu), SHAPE(same)},
    {"HardSigmoid", 1, 1, NULL, NULL, LAYER(hard_sigmoid), SHAPE(same)},
    {"Gelu", 1, 1, NULL, NULL, LAYER(gelu), SHAPE(same)},
    {"Clip", 1, 3, NULL, NULL, LAYER(clip), SHAPE(same)},
    {"Dropout", 1, 3, NULL, NULL, LAYER(dropout), SHAPE(same)},
    {"Softmax", 1, 1, NULL, NULL, LAYER(softmax), SHAPE(same)},
    {"LogSoftmax", 1, 1, NULL, NULL, LAYER(softmax), SHAPE(same)},
    /* arithmetic */
    {"Add", 2, 2, FOLDS(binary), NULL, LAYER(add), SHAPE(broadcast)},
    {"Mul", 2, 2, FOLDS(binary), NULL, LAYER(mul), SHAPE(broadcast)},
    {"Sub", 2, 2, FOLDS(binary), NULL, NULL, SHAPE(broadcast)},
    {"Div", 2, 2, FOLDS(binary), NULL, LAYER(formula), SHAPE(broadcast)},
    {"Min", 2, 2, FOLDS(binary), NULL, LAYER(formula), SHAPE(broadcast)},
    {"Max", 2, 2, FOLDS(binary), NULL, LAYER(formula), SHAPE(broadcast)},
    {"Pow", 2, 2, FOLDS(binary), NULL, NULL, SHAPE(broadcast)},
    {"Where", 3, 3, FOLDS(where), NULL, NULL, SHAPE(broadcast)},
    {"Neg", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(same)},
    {"Abs", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(same)},
    {"Exp", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(same)},
    {"Log", 1, 1, FOLDS(unary), NULL, LAYER(formula), SHAPE(same)},
    {"Sqrt", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(same)},
    {"Erf", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(same)},
    {"Reciprocal", 1, 1, FOLDS(unary), NULL, NULL, SHAPE(same)},
    {"ReduceMean", 1, 2, NULL, NULL, LAYER(mean), SHAPE(reduce)},
    {"ReduceSum", 1, 2, NULL, NULL, NULL, SHAPE(reduce)},
    {"ReduceMax", 1, 2, NULL, NULL, NULL, SHAPE(reduce)},
    /* products and sequences */
    {"Gemm", 2, 3, NULL, NULL, LAYER(gemm), NULL},
    {"MatMul", 2, 2, FOLDS(matmul), NULL, LAYER(matmul), SHAPE(matmul)},
    {"Attention", 3, 6, NULL, NULL, LAYER(attention), NULL},
    {"LSTM", 3, 8, NULL, NULL, LAYER(lstm), NULL},
    {"GRU", 3, 6, NULL, NULL, LAYER(gru), NULL},
};

const rp_onnx_op *rp_onnx_op_find(const char *name) {
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(ops[i].name, name) == 0) {
            return &ops[i];
        }
    }
    return NULL;
}

const rp_onnx_op *rp_onnx_op_of(const rp_onnx_node *node) {
    return node->domain[0] || node->has_graph ? NULL : rp_onnx_op_find(node->op);
}

bool rp_onnx_has_inputs(const rp_onnx_node *node, const rp_onnx_op *op) {
    bool good = node->input_count <= op->inputs_max;
    for (uint32_t i = 0; good && i < op->inputs_min; i++) {
        good = i < node->input_count && node->input[i] != RP_ONNX_NONE;
    }
    return good;
}

bool rp_onnx_is_standard(const rp_onnx_node *node) {
    const rp_onnx_op *op = rp_onnx_op_of(node);
    return op && rp_onnx_has_inputs(node, op);
}
