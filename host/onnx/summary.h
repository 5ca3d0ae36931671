/* Facts about a model for people. */
#ifndef RP_ONNX_SUMMARY_H
#define RP_ONNX_SUMMARY_H

#include "onnx/model.h"

typedef struct {
    const char *op;
    uint32_t nodes;
} rp_onnx_op_count;

/* The operators of the model, the most frequent first. errors MEMORY */
rp_err rp_onnx_count_ops(rp_arena *arena, const rp_onnx_model *model, rp_onnx_op_count **out,
                         uint32_t *count) RP_MUST_CHECK;

/* Float initialisers and their elements. */
void rp_onnx_count_floats(const rp_onnx_model *model, uint32_t *tensors, uint64_t *elements);

/* Writes "FLOAT [batch, 3, 32, 32]" for a value. Returns out. */
const char *rp_onnx_info_text(const rp_onnx_info *info, char *out, size_t room);

#endif
