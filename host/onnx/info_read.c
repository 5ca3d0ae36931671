#include "onnx/info_read.h"

#include "onnx_read.pb.h"

typedef struct {
    rp_onnx_decoder *decoder;
    rp_onnx_info *info;
} parts;

static bool take_dim(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    const parts *p = *arg;
    rp_onnx_info *info = p->info;
    onnx_Dimension message = onnx_Dimension_init_zero;
    rp_onnx_text_field symbol = {.decoder = p->decoder, .text = ""};
    (void)field;
    message.dim_param = rp_onnx_call(rp_onnx_take_text, &symbol);
    message.dim_value = -1;
    if (!pb_decode_ex(stream, onnx_Dimension_fields, &message, PB_DECODE_NOINIT)) {
        return false;
    }
    if (info->rank == RP_ONNX_RANK_MAX) {
        return rp_onnx_decode_fail(p->decoder, RP_ERR_LIMIT, "%s: a shape has more than %d sizes",
                                   p->decoder->file, RP_ONNX_RANK_MAX);
    }
    /* 0 may be written for a free size, and no size of a tensor that is trained is 0 */
    info->dim[info->rank] = message.dim_value > 0 && !symbol.text[0] ? message.dim_value : -1;
    info->symbol[info->rank++] = symbol.text;
    return true;
}

static bool take_shape(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    parts *p = *arg;
    onnx_TensorShapeProto message = onnx_TensorShapeProto_init_zero;
    (void)field;
    message.dim = rp_onnx_call(take_dim, p);
    p->info->shaped = true;
    p->info->rank = 0;
    return rp_onnx_decode(p->decoder, stream, onnx_TensorShapeProto_fields, &message, "a shape");
}

static bool take_tensor_type(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    parts *p = *arg;
    onnx_TensorTypeProto message = onnx_TensorTypeProto_init_zero;
    (void)field;
    message.shape = rp_onnx_call(take_shape, p);
    if (!rp_onnx_decode(p->decoder, stream, onnx_TensorTypeProto_fields, &message, "a type")) {
        return false;
    }
    p->info->known = true;
    p->info->type = message.elem_type;
    return true;
}

static bool take_type(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    parts *p = *arg;
    onnx_TypeProto message = onnx_TypeProto_init_zero;
    (void)field;
    message.tensor_type = rp_onnx_call(take_tensor_type, p);
    return rp_onnx_decode(p->decoder, stream, onnx_TypeProto_fields, &message, "a type");
}

bool rp_onnx_read_info(rp_onnx_decoder *decoder, pb_istream_t *stream, const char **name,
                       rp_onnx_info *out) {
    onnx_ValueInfoProto message = onnx_ValueInfoProto_init_zero;
    rp_onnx_text_field text = {.decoder = decoder, .text = ""};
    parts p = {.decoder = decoder, .info = out};
    *out = (rp_onnx_info){0};
    message.name = rp_onnx_call(rp_onnx_take_text, &text);
    message.type = rp_onnx_call(take_type, &p);
    if (!rp_onnx_decode(decoder, stream, onnx_ValueInfoProto_fields, &message,
                        "a value's description")) {
        return false;
    }
    *name = text.text;
    return true;
}
