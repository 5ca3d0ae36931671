/* Decodes a tensor; private to the room. */
#ifndef RP_ONNX_TENSOR_READ_H
#define RP_ONNX_TENSOR_READ_H

#include "onnx/decode.h"

/* Decodes a TensorProto and checks that its data have exactly the bytes of its shape.
 * decoder->err: FORMAT, LIMIT, IO, MEMORY */
bool rp_onnx_read_tensor(rp_onnx_decoder *decoder, pb_istream_t *stream, rp_onnx_tensor *out);

#endif
