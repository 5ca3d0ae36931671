#include "wire/frame.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include <pb_decode.h>
#include <pb_encode.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Why a header that passes check_header() always fits into RP_HEADER_BYTES_MAX: the largest bytes
 * of each field as nanopb writes it (repeated numbers packed). nanopb's own rp_Header_size knows
 * neither that a shape's product is below 2^31, nor that text and several shapes exclude each
 * other. */
enum {
    VARINT_32 = 5,
    VARINT_64 = 10,
    PART_BYTES_BITS = 35,
    /* tag, length; then tag, length, 6 dims of 1 byte, and 1 more byte per 7 of the product's bits
     */
    SHAPE = 2 + 2 + RP_DIMS_MAX + 31 / 7,
    SHAPES = RP_PARTS_MAX * SHAPE,
    TEXT = 2 + 2 + (int)sizeof(((rp_Header *)0)->text) - 1,
    LARGEST_HEADER = (1 + 1)                                    /* version */
                     + (1 + 1)                                  /* kind */
                     + (1 + 8)                                  /* run */
                     + 5 * (1 + VARINT_64)                      /* seq ack credit session step */
                     + 3 * (1 + VARINT_32)                      /* first count epoch */
                     + (2 + RP_PARTS_MAX * PART_BYTES_BITS / 7) /* part_bytes */
                     + (1 + 8)                                  /* payload_hash */
                     + (1 + VARINT_32) + (2 + VARINT_32)        /* stage code */
                     + (2 + 1 + 8 * 8)                          /* number */
                     + (2 + 1 + 8 * VARINT_64)                  /* whole */
                     + (2 + VARINT_64)                          /* peer */
                     + (SHAPES > TEXT + SHAPE ? SHAPES : TEXT + SHAPE)
};
static_assert((int)LARGEST_HEADER <= (int)RP_HEADER_BYTES_MAX, "a header may not fit");

bool rp_frame_is_data(rp_Kind kind) {
    return kind == RP_KIND_INPUT || kind == RP_KIND_LABEL || kind == RP_KIND_ACTIVATION ||
           kind == RP_KIND_GRADIENT;
}

bool rp_frame_is_numbered(rp_Kind kind) {
    return kind != RP_KIND_ACK && kind != RP_KIND_PROBE && kind != RP_KIND_PING &&
           kind != RP_KIND_PONG;
}

/* A switch without default: the compiler asks for every new kind. */
static bool is_known(rp_Kind kind) {
    switch (kind) {
    case RP_KIND_NONE:
        return false;
    case RP_KIND_INPUT:
    case RP_KIND_LABEL:
    case RP_KIND_ACTIVATION:
    case RP_KIND_GRADIENT:
    case RP_KIND_HELLO:
    case RP_KIND_ASSIGN:
    case RP_KIND_READY:
    case RP_KIND_START:
    case RP_KIND_STOP:
    case RP_KIND_STEP_DONE:
    case RP_KIND_NORMS:
    case RP_KIND_VERDICT:
    case RP_KIND_TENSOR:
    case RP_KIND_TENSORS_END:
    case RP_KIND_PROBE_DONE:
    case RP_KIND_TRACE:
    case RP_KIND_FAULT:
    case RP_KIND_FINISHED:
    case RP_KIND_PROFILE:
    case RP_KIND_BYE:
    case RP_KIND_EVAL:
    case RP_KIND_EVAL_DONE:
    case RP_KIND_CONNECT:
    case RP_KIND_SAVE:
    case RP_KIND_SKIPPED:
    case RP_KIND_STEER:
    case RP_KIND_ACK:
    case RP_KIND_PROBE:
    case RP_KIND_PING:
    case RP_KIND_PONG:
        return true;
    }
    return false;
}

static bool has_f32_parts(rp_Kind kind) {
    return kind == RP_KIND_INPUT || kind == RP_KIND_ACTIVATION || kind == RP_KIND_GRADIENT ||
           kind == RP_KIND_TENSOR;
}

/* Bytes of the printable UTF-8 character at `text`, 0 when it is none. `text` ends with 0. */
static size_t character(const unsigned char *text) {
    if (text[0] < 0x80) {
        return text[0] >= 0x20 && text[0] != 0x7f ? 1 : 0;
    }
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool control = text[0] == 0xc2 && text[1] < 0xa0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool surrogate = text[0] == 0xed && text[1] >= 0xa0;
    bool too_large = text[0] == 0xf4 && text[1] >= 0x90;
    return control || overlong || surrogate || too_large ? 0 : length;
}

static bool is_printable(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        size_t length = character(at);
        if (length == 0) {
            return false;
        }
        at += length;
    }
    return true;
}

static void make_printable(char *text, size_t size) {
    text[size - 1] = 0;
    for (char *at = text; *at;) {
        size_t length = character((const unsigned char *)at);
        if (length == 0) {
            *at = '?';
            length = 1;
        }
        at += length;
    }
}

static void read_shape(const rp_Header *header, uint32_t index, rp_shape *out) {
    const rp_Shape *shape = &header->shape[index];
    *out = (rp_shape){.dims = shape->dim_count};
    memcpy(out->dim, shape->dim, shape->dim_count * sizeof shape->dim[0]);
}

static rp_err check_shapes(const rp_Header *header) {
    bool f32 = has_f32_parts(header->kind);
    if (f32 && header->shape_count != header->part_bytes_count) {
        return rp_fail(RP_ERR_FORMAT, "header: kind %d has %u parts and %u shapes",
                       (int)header->kind, header->part_bytes_count, header->shape_count);
    }
    for (uint32_t i = 0; i < header->shape_count; i++) {
        rp_shape shape;
        if (header->shape[i].dim_count > RP_DIMS_MAX) {
            return rp_fail(RP_ERR_LIMIT, "header: shape %u has %u dimensions", i,
                           header->shape[i].dim_count);
        }
        read_shape(header, i, &shape);
        if (!rp_shape_check(&shape)) {
            return rp_fail(RP_ERR_FORMAT, "header: shape %u is empty or too large", i);
        }
        uint64_t bytes = (uint64_t)rp_shape_count(&shape) * sizeof(float);
        if (f32 && bytes != header->part_bytes[i]) {
            return rp_fail(RP_ERR_FORMAT, "header: part %u has %llu bytes, its shape %llu", i,
                           (unsigned long long)header->part_bytes[i], (unsigned long long)bytes);
        }
    }
    return RP_OK;
}

/* What holds for every header, sent or received; the counts are within the arrays. */
static rp_err check_header(const rp_Header *header) {
    if (header->version != RP_WIRE_VERSION) {
        return rp_fail(RP_ERR_FORMAT, "header: wire version %u, this end speaks %d",
                       header->version, RP_WIRE_VERSION);
    }
    if (!is_known(header->kind)) {
        return rp_fail(RP_ERR_FORMAT, "header: unknown kind %d", (int)header->kind);
    }
    if (header->text[0] && header->shape_count > 1) {
        return rp_fail(RP_ERR_FORMAT, "header: text together with %u shapes", header->shape_count);
    }
    if (!rp_frame_is_numbered(header->kind) && header->part_bytes_count) {
        return rp_fail(RP_ERR_FORMAT, "header: kind %d has parts", (int)header->kind);
    }
    return check_shapes(header);
}

static uint64_t hash_parts(const rp_part *parts, uint32_t part_count) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (uint32_t i = 0; i < part_count; i++) {
        XXH3_64bits_update(&state, parts[i].data, parts[i].bytes);
    }
    return XXH3_64bits_digest(&state);
}

rp_err rp_frame_write(const rp_Header *header, uint8_t *out, size_t *bytes) {
    pb_ostream_t stream = pb_ostream_from_buffer(out, RP_HEADER_BYTES_MAX);
    if (!pb_encode(&stream, rp_Header_fields, header)) {
        return rp_fail(RP_ERR_FORMAT, "header: %s", PB_GET_ERROR(&stream));
    }
    *bytes = stream.bytes_written;
    return RP_OK;
}

rp_err rp_frame_encode(rp_Header *header, const rp_part *parts, uint32_t part_count, uint8_t *out,
                       size_t *bytes) {
    if (part_count > RP_PARTS_MAX || header->shape_count > RP_PARTS_MAX ||
        header->number_count > sizeof header->number / sizeof header->number[0] ||
        header->whole_count > sizeof header->whole / sizeof header->whole[0]) {
        return rp_fail(RP_ERR_LIMIT,
                       "header: %u parts, %u shapes, %u numbers, %u wholes: at most 8", part_count,
                       header->shape_count, header->number_count, header->whole_count);
    }
    header->version = RP_WIRE_VERSION;
    header->part_bytes_count = (pb_size_t)part_count;
    for (uint32_t i = 0; i < part_count; i++) {
        if ((uint64_t)parts[i].bytes >> PART_BYTES_BITS) {
            return rp_fail(RP_ERR_LIMIT, "header: part %u has %zu bytes", i, parts[i].bytes);
        }
        header->part_bytes[i] = parts[i].bytes;
    }
    header->payload_hash = hash_parts(parts, part_count);
    make_printable(header->text, sizeof header->text);
    rp_err err = check_header(header);
    return err ? err : rp_frame_write(header, out, bytes);
}

rp_err rp_frame_decode(const uint8_t *bytes, size_t count, size_t part_bytes_max, rp_Header *out) {
    if (count > RP_HEADER_BYTES_MAX) {
        return rp_fail(RP_ERR_FORMAT, "header: %zu bytes, at most %d", count, RP_HEADER_BYTES_MAX);
    }
    pb_istream_t stream = pb_istream_from_buffer(bytes, count);
    if (!pb_decode(&stream, rp_Header_fields, out)) {
        return rp_fail(RP_ERR_FORMAT, "header: %s", PB_GET_ERROR(&stream));
    }
    if (!is_printable(out->text)) {
        return rp_fail(RP_ERR_FORMAT, "header: text is not printable UTF-8");
    }
    for (uint32_t i = 0; i < out->part_bytes_count; i++) {
        if (out->part_bytes[i] > part_bytes_max) {
            return rp_fail(RP_ERR_FORMAT, "header: part %u has %llu bytes, at most %zu", i,
                           (unsigned long long)out->part_bytes[i], part_bytes_max);
        }
    }
    return check_header(out);
}

rp_err rp_frame_check_parts(const rp_Header *header, const rp_part *parts, uint32_t part_count) {
    if (part_count != header->part_bytes_count) {
        return rp_fail(RP_ERR_FORMAT, "message: %u parts came, the header says %u", part_count,
                       header->part_bytes_count);
    }
    for (uint32_t i = 0; i < part_count; i++) {
        if (parts[i].bytes != header->part_bytes[i]) {
            return rp_fail(RP_ERR_FORMAT, "message: part %u has %zu bytes, the header says %llu", i,
                           parts[i].bytes, (unsigned long long)header->part_bytes[i]);
        }
    }
    if (hash_parts(parts, part_count) != header->payload_hash) {
        return rp_fail(RP_ERR_FORMAT, "message: the parts do not have the header's hash");
    }
    return RP_OK;
}

void rp_frame_add_shape(rp_Header *header, const rp_shape *shape) {
    RP_ASSERT(header->shape_count < RP_PARTS_MAX);
    RP_ASSERT(shape->dims <= RP_DIMS_MAX);
    rp_Shape *out = &header->shape[header->shape_count++];
    out->dim_count = (pb_size_t)shape->dims;
    memcpy(out->dim, shape->dim, shape->dims * sizeof shape->dim[0]);
}

rp_err rp_frame_shape(const rp_Header *header, uint32_t index, rp_shape *out) {
    if (index >= header->shape_count) {
        return rp_fail(RP_ERR_FORMAT, "header: no shape %u", index);
    }
    read_shape(header, index, out);
    return RP_OK;
}
