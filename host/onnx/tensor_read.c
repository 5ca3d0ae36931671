#include "onnx/tensor_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/tensor.h"
#include "onnx_read.pb.h"

enum {
    /* Numbers in a field that is not raw bytes: they are copied, so there is a limit. */
    TYPED_MAX = 1 << 24
};

/* A tensor while it is decoded. */
typedef struct {
    rp_onnx_decoder *decoder;
    rp_onnx_text_field name;
    rp_onnx_whole_field dims, whole;
    rp_onnx_real_field floats, doubles;
    rp_onnx_bytes_field raw;
    bool external;
    const char *location; /* of external data, "" if it is missing */
    uint64_t offset, length;
    bool has_length;
} parts;

static rp_err fail_tensor(const rp_onnx_decoder *decoder, const char *name, const char *problem) {
    return rp_fail(RP_ERR_FORMAT, "%s: tensor %s%s%s: %s", decoder->file, name,
                   decoder->node[0] ? " of node " : "", decoder->node, problem);
}

/* ---- external data --------------------------------------------------------------------------- */

static bool read_number(const rp_onnx_bytes_field *value, uint64_t *out) {
    char text[24];
    char *end = NULL;
    if (value->count == 0 || value->count >= sizeof text || value->at[0] < '0' ||
        value->at[0] > '9') {
        return false;
    }
    memcpy(text, value->at, value->count);
    text[value->count] = '\0';
    *out = strtoull(text, &end, 10);
    return *end == '\0' && value->count < 20;
}

static bool take_external(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    parts *p = *arg;
    rp_onnx_bytes_field value;
    const char *key;
    char *location;
    (void)field;
    if (!rp_onnx_decode_pair(p->decoder, stream, &key, &value)) {
        return false;
    }
    if (strcmp(key, "location") == 0) {
        if (value.count >= RP_ONNX_NAME_MAX || memchr(value.at, '\0', value.count)) {
            p->decoder->err =
                fail_tensor(p->decoder, p->name.text, "the path of its data is invalid");
            return false;
        }
        p->decoder->err =
            rp_arena_text(p->decoder->arena, (const char *)value.at, value.count, &location);
        p->location = location;
        return p->decoder->err == RP_OK;
    }
    const bool is_offset = strcmp(key, "offset") == 0;
    const bool is_length = strcmp(key, "length") == 0;
    if ((is_offset || is_length) && !read_number(&value, is_offset ? &p->offset : &p->length)) {
        p->decoder->err = fail_tensor(p->decoder, p->name.text,
                                      "offset or length of its external data is invalid");
        return false;
    }
    p->has_length |= is_length;
    return true;
}

static rp_err find_external(parts *p, rp_onnx_tensor *out, uint64_t bytes) {
    rp_onnx_decoder *decoder = p->decoder;
    const uint8_t *file;
    size_t count;
    rp_err err;
    RP_TRY(rp_onnx_maps_external(decoder->maps, out->name, p->location, &file, &count));
    if (p->has_length && p->length != bytes) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: tensor %s: its external data have %" PRIu64
                       " bytes, the shape needs %" PRIu64,
                       decoder->file, out->name, p->length, bytes);
    }
    if (p->offset > count || bytes > count - p->offset) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: tensor %s: bytes %" PRIu64 " to %" PRIu64
                       " are expected in %s, which has %zu",
                       decoder->file, out->name, p->offset, p->offset + bytes, p->location, count);
    }
    out->data = file + p->offset;
    return RP_OK;
fail:
    return err;
}

/* ---- shape and data -------------------------------------------------------------------------- */

static rp_err read_shape(const parts *p, rp_onnx_tensor *out) {
    const rp_onnx_decoder *decoder = p->decoder;
    char text[RP_ONNX_SHAPE_TEXT];
    out->rank = p->dims.count;
    out->count = 1;
    for (uint32_t i = 0; i < out->rank; i++) {
        out->dim[i] = p->dims.item[i];
        if (out->dim[i] < 0 ||
            __builtin_mul_overflow(out->count, (uint64_t)out->dim[i], &out->count)) {
            return fail_tensor(decoder, out->name, "its shape is negative or too large");
        }
    }
    if (out->count > (UINT64_C(1) << 40)) {
        return rp_fail(RP_ERR_LIMIT, "%s: tensor %s: its shape %s is too large", decoder->file,
                       out->name, rp_onnx_shape_text(out->rank, out->dim, text));
    }
    return RP_OK;
}

static rp_err fail_bytes(const parts *p, const rp_onnx_tensor *tensor, const char *what,
                         uint64_t found, uint64_t needed) {
    char text[RP_ONNX_SHAPE_TEXT];
    return rp_fail(RP_ERR_FORMAT,
                   "%s: tensor %s%s%s: %s has %" PRIu64 " bytes, the shape %s of %s needs %" PRIu64,
                   p->decoder->file, tensor->name, p->decoder->node[0] ? " of node " : "",
                   p->decoder->node, what, found,
                   rp_onnx_shape_text(tensor->rank, tensor->dim, text),
                   rp_onnx_type_name(tensor->type), needed);
}

/* Writes numbers of a typed field as raw bytes of the tensor's type. */
static rp_err pack_whole(const parts *p, rp_onnx_tensor *out) {
    const uint32_t width = rp_onnx_type_bytes(out->type);
    uint8_t *bytes;
    if (p->whole.count != out->count) {
        return fail_bytes(p, out, "the list of numbers", (uint64_t)p->whole.count * width,
                          out->count * width);
    }
    const rp_err err = RP_ARENA_NEW(p->decoder->arena, out->count * width + 1, &bytes);
    if (err != RP_OK) {
        return err;
    }
    for (uint64_t i = 0; i < out->count; i++) {
        for (uint32_t b = 0; b < width; b++) {
            bytes[i * width + b] = (uint8_t)((uint64_t)p->whole.item[i] >> (8 * b));
        }
    }
    out->data = bytes;
    return RP_OK;
}

static rp_err find_data(parts *p, rp_onnx_tensor *out) {
    const uint64_t width = rp_onnx_type_bytes(out->type);
    const uint64_t bytes = out->count * width;
    const rp_onnx_real_field *real = out->type == RP_ONNX_FLOAT    ? &p->floats
                                     : out->type == RP_ONNX_DOUBLE ? &p->doubles
                                                                   : NULL;
    if (width == 0) {
        return RP_OK; /* an unsupported type, of which nothing is read */
    }
    if (p->external) {
        return find_external(p, out, bytes);
    }
    if (p->raw.given) {
        out->data = p->raw.at;
        return p->raw.count == bytes ? RP_OK : fail_bytes(p, out, "raw data", p->raw.count, bytes);
    }
    if (real) {
        out->data = real->at;
        return real->bytes == bytes ? RP_OK
                                    : fail_bytes(p, out, "the list of numbers", real->bytes, bytes);
    }
    return pack_whole(p, out);
}

bool rp_onnx_read_tensor(rp_onnx_decoder *decoder, pb_istream_t *stream, rp_onnx_tensor *out) {
    onnx_TensorProto message = onnx_TensorProto_init_zero;
    parts p = {
        .decoder = decoder,
        .name = {.decoder = decoder, .text = ""},
        .dims = {.decoder = decoder, .what = "dimensions", .most = RP_ONNX_RANK_MAX},
        .whole = {.decoder = decoder, .what = "numbers", .most = TYPED_MAX},
        .floats = {.decoder = decoder, .width = sizeof(float), .at = (const uint8_t *)""},
        .doubles = {.decoder = decoder, .width = sizeof(double), .at = (const uint8_t *)""},
        .location = "",
    };
    message.dims = rp_onnx_call(rp_onnx_take_whole, &p.dims);
    message.float_data = rp_onnx_call(rp_onnx_take_real, &p.floats);
    message.double_data = rp_onnx_call(rp_onnx_take_real, &p.doubles);
    message.int32_data = rp_onnx_call(rp_onnx_take_whole, &p.whole);
    message.int64_data = rp_onnx_call(rp_onnx_take_whole, &p.whole);
    message.uint64_data = rp_onnx_call(rp_onnx_take_whole, &p.whole);
    message.name = rp_onnx_call(rp_onnx_take_text, &p.name);
    message.raw_data = rp_onnx_call(rp_onnx_take_bytes, &p.raw);
    message.external_data = rp_onnx_call(take_external, &p);
    if (!rp_onnx_decode(decoder, stream, onnx_TensorProto_fields, &message, "a tensor")) {
        return false;
    }
    *out = (rp_onnx_tensor){.name = p.name.text, .type = message.data_type};
    p.external = message.data_location == 1;
    decoder->err = read_shape(&p, out);
    if (decoder->err == RP_OK) {
        decoder->err = find_data(&p, out);
    }
    return decoder->err == RP_OK;
}
