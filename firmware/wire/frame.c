#include "wire/frame.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <pb_common.h>
#include <pb_decode.h>
#include <pb_encode.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/quote.h"

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Largest encoded size of each field as nanopb writes it (repeated numbers packed), kind by kind.
 * It proves that a frame that passes check_frame() always fits. nanopb's own rp_Frame_size is too
 * large because it does not know that a shape's product is below 2^31, nor how many parts a kind
 * has. */
enum {
    VARINT_32 = 5,
    VARINT_64 = 10,
    PART_BYTES_BITS = 35,
    LINK_FIELDS = (1 + VARINT_32)       /* version */
                  + 5 * (1 + VARINT_64) /* seq ack credit session peer */
                  + (1 + 8)             /* run_id */
                  + (1 + VARINT_32)     /* term */
                  + (1 + 8),            /* payload_hash */
    PART = 2                            /* tag, length */
           + (1 + 1)                    /* dtype */
           + 2 + RP_DIMS_MAX + 31 / 7   /* dims of 1 byte, and 1 more per 7 bits of the product */
           + (1 + PART_BYTES_BITS / 7)  /* bytes */
           + (1 + VARINT_32),           /* block */
    BODY = 2 + 2                        /* tag, length */
};
enum { FIRST_VERSION = 2 }; /* first version with this layout; earlier versions are not readable */
#define X(NAME, member, Message, from, class_, least, most, rule)                                  \
    static_assert((int)LINK_FIELDS + (most) * (int)PART + (int)BODY + rp_##Message##_size <=       \
                      (RP_CLASS_##class_ == RP_CLASS_DATA ? (int)RP_FRAME_DATA_BYTES_MAX           \
                                                          : (int)RP_FRAME_BYTES_MAX),              \
                  "a frame of this kind may not fit");                                             \
    static_assert((most) <= (int)RP_PARTS_MAX, "a message has fewer parts");
RP_KIND_LIST(X)
#undef X

enum { KINDS_END = 72 };

static const rp_kind_facts kinds[KINDS_END] = {
#define X(NAME, member, Message, from_, class_, least, most, rule)                                 \
    [rp_Frame_##member##_tag] = {#member, RP_FROM_##from_, RP_CLASS_##class_,    least,            \
                                 most,    RP_PARTS_##rule, rp_##Message##_fields},
    RP_KIND_LIST(X)
#undef X
};

const rp_kind_facts *rp_kind_facts_of(rp_kind kind) {
    return &kinds[(uint32_t)kind < KINDS_END ? (uint32_t)kind : (uint32_t)RP_KIND_NONE];
}

const char *rp_kind_name(rp_kind kind) {
    const char *name = rp_kind_facts_of(kind)->name;
    return name ? name : "unknown";
}

static const rp_kind_facts *facts_of(const rp_Frame *frame) {
    return rp_kind_facts_of(rp_frame_kind(frame));
}

bool rp_frame_is_data(const rp_Frame *frame) {
    const rp_kind_facts *facts = facts_of(frame);
    return facts->name && facts->of_class == RP_CLASS_DATA;
}

bool rp_frame_is_numbered(const rp_Frame *frame) {
    return facts_of(frame)->of_class != RP_CLASS_LINK;
}

rp_Frame rp_frame_of_parcel(rp_kind kind, const rp_Parcel *parcel) {
    rp_Frame frame = {.which_body = (pb_size_t)kind, .body.input = *parcel};
    RP_ASSERT(rp_frame_is_data(&frame));
    return frame;
}

const rp_Parcel *rp_frame_parcel(const rp_Frame *frame) {
    RP_ASSERT(rp_frame_is_data(frame));
    return &frame->body.input; /* all data kinds have the same members */
}

/* ---- parts ----------------------------------------------------------------------------------- */

static size_t bytes_of_element(rp_Dtype dtype) {
    switch (dtype) {
    case RP_DTYPE_BYTES:
    case RP_DTYPE_TEXT:
        return 0;
    case RP_DTYPE_F32:
    case RP_DTYPE_I32:
        return 4;
    case RP_DTYPE_F16:
    case RP_DTYPE_BF16:
        return 2;
    case RP_DTYPE_I8:
    case RP_DTYPE_U8:
        return 1;
    case RP_DTYPE_F64:
    case RP_DTYPE_U64:
        return 8;
    }
    return 0;
}

uint64_t rp_part_bytes(rp_Dtype dtype, uint64_t count, uint32_t block) {
    const bool blocks = dtype == RP_DTYPE_I8;
    if (blocks != (block > 0)) {
        return 0;
    }
    const uint64_t scales = blocks ? (count / block + (count % block > 0)) * sizeof(float) : 0;
    return count * bytes_of_element(dtype) + scales;
}

rp_part rp_part_of_bytes(const void *data, size_t bytes) {
    return (rp_part){.data = data, .bytes = bytes, .dtype = RP_DTYPE_BYTES};
}

rp_part rp_part_of_text(const char *text) {
    return (rp_part){.data = text, .bytes = strlen(text), .dtype = RP_DTYPE_TEXT};
}

rp_part rp_part_of_array(rp_Dtype dtype, const void *data, size_t count) {
    RP_ASSERT(count < UINT32_MAX);
    const rp_shape shape = rp_shape_1((uint32_t)count);
    return rp_part_of_tensor(dtype, data, &shape);
}

rp_part rp_part_of_tensor(rp_Dtype dtype, const void *data, const rp_shape *shape) {
    return (rp_part){.data = data,
                     .bytes = rp_shape_count(shape) * bytes_of_element(dtype),
                     .dtype = dtype,
                     .shape = *shape};
}

rp_part rp_frame_part(const rp_Frame *frame, uint32_t index, const void *data, size_t bytes) {
    const rp_Part *in = &frame->part[index];
    rp_part part = {.data = data,
                    .bytes = bytes,
                    .dtype = in->dtype,
                    .block = in->block,
                    .shape = {.dims = in->dim_count}};
    memcpy(part.shape.dim, in->dim, in->dim_count * sizeof in->dim[0]);
    return part;
}

static rp_err describe_part(rp_Frame *frame, uint32_t index, const rp_part *part) {
    rp_Part *out = &frame->part[index];
    if ((uint64_t)part->bytes >> PART_BYTES_BITS || part->shape.dims > RP_DIMS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "frame: part %u of %zu bytes and %u dimensions is too large",
                       index, part->bytes, part->shape.dims);
    }
    *out = (rp_Part){.dtype = part->dtype,
                     .dim_count = (pb_size_t)part->shape.dims,
                     .bytes = part->bytes,
                     .block = part->block};
    memcpy(out->dim, part->shape.dim, part->shape.dims * sizeof out->dim[0]);
    return RP_OK;
}

/* ---- versions -------------------------------------------------------------------------------- */

bool rp_wire_narrow(rp_wire_range *range, uint32_t peer_min, uint32_t peer_max) {
    const uint32_t min = range->min > peer_min ? range->min : peer_min;
    const uint32_t max = range->max < peer_max ? range->max : peer_max;
    if (min > max || max == 0) {
        return false;
    }
    *range = (rp_wire_range){min, max};
    return true;
}

static rp_err check_version(const rp_Frame *frame) {
    const rp_kind kind = rp_frame_kind(frame);
    const bool ours = frame->version >= RP_WIRE_MIN && frame->version <= RP_WIRE_MAX;
    const bool frozen = kind == RP_KIND_HELLO || !rp_frame_is_numbered(frame);
    if (ours || (frozen && frame->version >= FIRST_VERSION)) {
        return RP_OK;
    }
    return rp_fail(RP_ERR_FORMAT,
                   "frame: %s in wire version %u, but this end has versions %d to %d",
                   rp_kind_name(kind), frame->version, RP_WIRE_MIN, RP_WIRE_MAX);
}

/* Version 1 began like this but had another layout later, so a frame may not even decode. */
static rp_err check_first_version(const uint8_t *bytes, size_t count) {
    static const uint8_t first[] = {0x08, 0x01};
    return count >= sizeof first && memcmp(bytes, first, sizeof first) == 0
               ? rp_fail(RP_ERR_FORMAT, "frame: wire version 1, but this end has versions %d to %d",
                         RP_WIRE_MIN, RP_WIRE_MAX)
               : RP_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool is_printable(const char *at) {
    while (*at) {
        const size_t length = rp_printable_bytes(at);
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
        size_t length = rp_printable_bytes(at);
        if (length == 0) {
            *at = '?';
            length = 1;
        }
        at += length;
    }
}

/* Visits every string of the body: the sender replaces invalid characters, the receiver checks. */
static rp_err visit_texts(rp_Frame *frame, bool mend) {
    pb_field_iter_t field;
    if (!pb_field_iter_begin(&field, facts_of(frame)->body, &frame->body)) {
        return RP_OK; /* a body without fields */
    }
    do {
        if (PB_LTYPE(field.type) != PB_LTYPE_STRING) {
            continue;
        }
        const bool repeated = PB_HTYPE(field.type) == PB_HTYPE_REPEATED;
        const pb_size_t count = repeated ? *(const pb_size_t *)field.pSize : 1;
        for (pb_size_t i = 0; i < count; i++) {
            char *text = (char *)field.pData + (size_t)i * field.data_size;
            if (mend) {
                make_printable(text, field.data_size);
            } else if (!is_printable(text)) {
                return rp_fail(RP_ERR_FORMAT, "frame: a text of %s is not printable UTF-8",
                               rp_kind_name(rp_frame_kind(frame)));
            }
        }
    } while (pb_field_iter_next(&field));
    return RP_OK;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool is_dtype_of(rp_kind_parts rule, rp_Dtype dtype) {
    switch (rule) {
    case RP_PARTS_NONE:
        return false;
    case RP_PARTS_SAMPLES:
    case RP_PARTS_TENSOR:
        return dtype != RP_DTYPE_BYTES && dtype != RP_DTYPE_TEXT;
    case RP_PARTS_TEXT:
        return dtype == RP_DTYPE_TEXT;
    case RP_PARTS_BYTES:
        return dtype == RP_DTYPE_BYTES;
    case RP_PARTS_F64:
        return dtype == RP_DTYPE_F64;
    case RP_PARTS_U64:
        return dtype == RP_DTYPE_U64;
    }
    return false;
}

static rp_err check_part(const rp_Frame *frame, uint32_t index) {
    const rp_kind_facts *facts = facts_of(frame);
    const rp_Part *in = &frame->part[index];
    const rp_part part = rp_frame_part(frame, index, NULL, (size_t)in->bytes);
    if (!is_dtype_of(facts->parts, in->dtype)) {
        return rp_fail(RP_ERR_FORMAT, "frame: part %u of %s has dtype %d", index, facts->name,
                       (int)in->dtype);
    }
    if (bytes_of_element(in->dtype) == 0 && in->dtype <= RP_DTYPE_TEXT) {
        return in->dim_count == 0 && in->block == 0
                   ? RP_OK
                   : rp_fail(RP_ERR_FORMAT, "frame: part %u of %s has a shape, expected none",
                             index, facts->name);
    }
    if (in->dim_count == 0 || !rp_shape_check(&part.shape)) {
        return rp_fail(RP_ERR_FORMAT, "frame: the shape of part %u is empty or too large", index);
    }
    const uint64_t bytes = rp_part_bytes(in->dtype, rp_shape_count(&part.shape), in->block);
    if (bytes == 0 || bytes != in->bytes) {
        return rp_fail(RP_ERR_FORMAT,
                       "frame: part %u has %llu bytes, but its shape and dtype need %llu", index,
                       (unsigned long long)in->bytes, (unsigned long long)bytes);
    }
    if (facts->parts == RP_PARTS_SAMPLES && in->dim[0] != rp_frame_parcel(frame)->count) {
        return rp_fail(RP_ERR_FORMAT, "frame: part %u has %u samples, but the parcel has %u", index,
                       in->dim[0], rp_frame_parcel(frame)->count);
    }
    return RP_OK;
}

/* Names that the receiver writes into its roster or its list of keys must not need quotes. */
static rp_err check_names(const rp_Frame *frame) {
    const rp_Enrolled *enrolled = &frame->body.enrolled;
    const rp_kind kind = rp_frame_kind(frame);
    const bool good = kind == RP_KIND_ENROL ? rp_is_plain_name(frame->body.enrol.board)
                      : kind == RP_KIND_ENROLLED
                          ? rp_is_plain_name(enrolled->host) && rp_is_plain_name(enrolled->name)
                          : true;
    return good ? RP_OK
                : rp_fail(RP_ERR_FORMAT,
                          "frame: a name in %s has characters other than A-Z a-z 0-9 . _ -",
                          rp_kind_name(kind));
}

/* Checks what holds for every frame, sent or received; the counts do not exceed the arrays. */
static rp_err check_frame(const rp_Frame *frame) {
    const rp_kind_facts *facts = facts_of(frame);
    rp_err err = check_version(frame);
    if (err == RP_OK &&
        (frame->part_count < facts->parts_min || frame->part_count > facts->parts_max)) {
        err = rp_fail(RP_ERR_FORMAT, "frame: %s has %u parts, expected %u to %u", facts->name,
                      frame->part_count, facts->parts_min, facts->parts_max);
    }
    for (uint32_t i = 0; err == RP_OK && i < frame->part_count; i++) {
        err = check_part(frame, i);
    }
    return err == RP_OK ? check_names(frame) : err;
}

static rp_err check_kind(const rp_Frame *frame) {
    return facts_of(frame)->name
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "frame: unknown kind %u in wire version %u",
                         (unsigned)frame->which_body, frame->version);
}

/* ---- encoding -------------------------------------------------------------------------------- */

static uint64_t hash_parts(const rp_part *parts, uint32_t part_count) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (uint32_t i = 0; i < part_count; i++) {
        XXH3_64bits_update(&state, parts[i].data, parts[i].bytes);
    }
    return XXH3_64bits_digest(&state);
}

static bool write_number(pb_ostream_t *stream, uint32_t tag, uint64_t value) {
    return value == 0 ||
           (pb_encode_tag(stream, PB_WT_VARINT, tag) && pb_encode_varint(stream, value));
}

static bool write_fixed(pb_ostream_t *stream, uint32_t tag, uint64_t value) {
    return value == 0 ||
           (pb_encode_tag(stream, PB_WT_64BIT, tag) && pb_encode_fixed64(stream, &value));
}

static bool write_message(pb_ostream_t *stream, uint32_t tag, const pb_msgdesc_t *fields,
                          const void *message) {
    return pb_encode_tag(stream, PB_WT_STRING, tag) &&
           pb_encode_submessage(stream, fields, message);
}

/* Writes the same bytes as pb_encode(), which is slower because it searches all kinds for the
 * body's. A field that is added to Frame must be added here (tests/fuzz/fuzz_wire.c compares the
 * two). */
static bool write_fields(pb_ostream_t *stream, const rp_Frame *f) {
    bool good = write_number(stream, rp_Frame_version_tag, f->version) &&
                write_number(stream, rp_Frame_seq_tag, f->seq) &&
                write_number(stream, rp_Frame_ack_tag, f->ack) &&
                write_number(stream, rp_Frame_credit_tag, f->credit) &&
                write_number(stream, rp_Frame_session_tag, f->session) &&
                write_number(stream, rp_Frame_peer_tag, f->peer) &&
                write_fixed(stream, rp_Frame_run_id_tag, f->run_id) &&
                write_number(stream, rp_Frame_term_tag, f->term);
    for (uint32_t i = 0; good && i < f->part_count; i++) {
        good = write_message(stream, rp_Frame_part_tag, rp_Part_fields, &f->part[i]);
    }
    return good && write_fixed(stream, rp_Frame_payload_hash_tag, f->payload_hash) &&
           (f->which_body == 0 ||
            write_message(stream, f->which_body, facts_of(f)->body, &f->body));
}

rp_err rp_frame_write(const rp_Frame *frame, uint8_t *out, size_t *bytes) {
    pb_ostream_t stream = pb_ostream_from_buffer(out, RP_FRAME_BYTES_MAX);
    if (!write_fields(&stream, frame)) {
        return rp_fail(RP_ERR_FORMAT, "frame: %s", PB_GET_ERROR(&stream));
    }
    *bytes = stream.bytes_written;
    return RP_OK;
}

rp_err rp_frame_seal(rp_Frame *frame, const rp_part *parts, uint32_t part_count) {
    rp_err err;
    RP_TRY(check_kind(frame));
    if (part_count > RP_PARTS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "frame: %u parts, at most %d", part_count, RP_PARTS_MAX);
    }
    frame->version = frame->version ? frame->version : RP_WIRE_MAX;
    frame->part_count = (pb_size_t)part_count;
    for (uint32_t i = 0; i < part_count; i++) {
        RP_TRY(describe_part(frame, i, &parts[i]));
    }
    frame->payload_hash = hash_parts(parts, part_count);
    RP_TRY(visit_texts(frame, true));
    RP_TRY(check_frame(frame));
fail:
    return err;
}

rp_err rp_frame_encode(rp_Frame *frame, const rp_part *parts, uint32_t part_count, uint8_t *out,
                       size_t *bytes) {
    rp_err err = rp_frame_seal(frame, parts, part_count);
    return err ? err : rp_frame_write(frame, out, bytes);
}

rp_err rp_frame_decode(const uint8_t *bytes, size_t count, size_t part_bytes_max, rp_Frame *out) {
    rp_err err;
    if (count > RP_FRAME_BYTES_MAX) {
        return rp_fail(RP_ERR_FORMAT, "frame: %zu bytes, at most %d", count, RP_FRAME_BYTES_MAX);
    }
    RP_TRY(check_first_version(bytes, count));
    pb_istream_t stream = pb_istream_from_buffer(bytes, count);
    static_assert(offsetof(rp_Frame, body) + sizeof out->body == sizeof *out, "the body is last");
    memset(out, 0, offsetof(rp_Frame, body)); /* the body is cleared when its kind is known */
    if (!pb_decode_ex(&stream, rp_Frame_fields, out, PB_DECODE_NOINIT)) {
        return rp_fail(RP_ERR_FORMAT, "frame: %s", PB_GET_ERROR(&stream));
    }
    RP_TRY(check_kind(out));
    if (rp_frame_is_data(out) && count > RP_FRAME_DATA_BYTES_MAX) {
        return rp_fail(RP_ERR_FORMAT, "frame: %s of %zu bytes, at most %d",
                       rp_kind_name(rp_frame_kind(out)), count, RP_FRAME_DATA_BYTES_MAX);
    }
    RP_TRY(visit_texts(out, false));
    for (uint32_t i = 0; i < out->part_count; i++) {
        if (out->part[i].bytes > part_bytes_max) {
            return rp_fail(RP_ERR_FORMAT, "frame: part %u has %llu bytes, at most %zu", i,
                           (unsigned long long)out->part[i].bytes, part_bytes_max);
        }
    }
    RP_TRY(check_frame(out));
fail:
    return err;
}

rp_err rp_frame_check_parts(const rp_Frame *frame, const rp_part *parts, uint32_t part_count) {
    if (part_count != frame->part_count) {
        return rp_fail(RP_ERR_FORMAT, "message: has %u parts, but its frame lists %u", part_count,
                       frame->part_count);
    }
    for (uint32_t i = 0; i < part_count; i++) {
        if (parts[i].bytes != frame->part[i].bytes) {
            return rp_fail(RP_ERR_FORMAT, "message: part %u has %zu bytes, but its frame says %llu",
                           i, parts[i].bytes, (unsigned long long)frame->part[i].bytes);
        }
    }
    if (hash_parts(parts, part_count) != frame->payload_hash) {
        return rp_fail(RP_ERR_FORMAT,
                       "message: the checksum of the parts differs from the one in the frame");
    }
    return RP_OK;
}
