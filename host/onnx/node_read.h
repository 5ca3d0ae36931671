/* Decodes a node; private to the room. */
#ifndef RP_ONNX_NODE_READ_H
#define RP_ONNX_NODE_READ_H

#include "onnx/decode.h"
#include "onnx/symbols.h"

/* Decodes a NodeProto; names of its inputs and outputs become values of `values`.
 * decoder->err: FORMAT, LIMIT, IO, MEMORY */
bool rp_onnx_read_node(rp_onnx_decoder *decoder, pb_istream_t *stream, rp_onnx_symbols *values,
                       rp_onnx_node *out);

#endif
