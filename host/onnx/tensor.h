/* Tensors of an ONNX file: decoded, checked, and their elements. */
#ifndef RP_ONNX_TENSOR_H
#define RP_ONNX_TENSOR_H

#include "onnx/model.h"

/* Bytes of an element; 0: the type is unsupported. */
uint32_t rp_onnx_type_bytes(int32_t type);
const char *rp_onnx_type_name(int32_t type); /* "FLOAT", ...; "unknown" */
bool rp_onnx_type_is_float(int32_t type);    /* FLOAT, DOUBLE, FLOAT16, BFLOAT16 */
bool rp_onnx_type_is_whole(int32_t type);    /* signed and unsigned integers, and BOOL */

/* Writes "[3, 4]" to a text of at least RP_ONNX_SHAPE_TEXT bytes; -1 is written as `?`. */
enum { RP_ONNX_SHAPE_TEXT = 200 };
const char *rp_onnx_shape_text(uint32_t rank, const int64_t *dim, char *text);

/* Element `index` of a tensor with data, which need not be aligned. Conversions round to nearest.
 */
float rp_onnx_float_at(const rp_onnx_tensor *tensor, uint64_t index);
int64_t rp_onnx_whole_at(const rp_onnx_tensor *tensor, uint64_t index);

#endif
