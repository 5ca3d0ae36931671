/* Decodes type and shape of a value; private to the room. */
#ifndef RP_ONNX_INFO_READ_H
#define RP_ONNX_INFO_READ_H

#include "onnx/decode.h"

/* Decodes a ValueInfoProto. decoder->err: FORMAT, LIMIT, MEMORY */
bool rp_onnx_read_info(rp_onnx_decoder *decoder, pb_istream_t *stream, const char **name,
                       rp_onnx_info *out);

#endif
