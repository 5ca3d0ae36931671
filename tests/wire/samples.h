/* One frame of each kind, every field of it set to something else, with parts that fit. */
#ifndef RP_TESTS_WIRE_SAMPLES_H
#define RP_TESTS_WIRE_SAMPLES_H

#include <pb_common.h>
#include <stdio.h>
#include <string.h>

#include "wire/frame.h"

enum { SAMPLE_KINDS_END = 72 };

static const uint8_t sample_payload[48] = {0, 0, 128, 63, 0, 0, 0, 64, 7, 7};
static const char *const sample_text = "conv1/weight µ";

static inline void sample_fill(const pb_msgdesc_t *fields, void *message, uint32_t *next);

/* One value of a field, which nanopb describes. */
static inline void sample_fill_value(const pb_field_iter_t *field, void *at, uint32_t *next) {
    const uint64_t value = ++*next * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    const double number = (double)value / 256.0;
    const bool yes = true;
    switch (PB_LTYPE(field->type)) {
    case PB_LTYPE_BOOL:
        memcpy(at, &yes, sizeof yes);
        break;
    case PB_LTYPE_FIXED64: /* the only ones in a body are doubles */
        memcpy(at, &number, sizeof number);
        break;
    case PB_LTYPE_STRING:
        (void)snprintf(at, field->data_size, "%s", sample_text);
        break;
    case PB_LTYPE_SUBMESSAGE:
        sample_fill(field->submsg_desc, at, next);
        break;
    default: { /* little-endian, as nanopb wants it, too; enums stay small */
        const uint64_t small = PB_LTYPE(field->type) == PB_LTYPE_UVARINT ? value : value % 5 + 1;
        memcpy(at, field->data_size == 8 ? &value : &small, field->data_size);
    }
    }
}

static inline void sample_fill(const pb_msgdesc_t *fields, void *message, uint32_t *next) {
    pb_field_iter_t field;
    if (!pb_field_iter_begin(&field, fields, message)) {
        return;
    }
    do {
        const pb_size_t count = PB_HTYPE(field.type) == PB_HTYPE_REPEATED ? 2 : 1;
        if (count > 1) {
            memcpy(field.pSize, &count, sizeof count);
        }
        for (pb_size_t i = 0; i < count; i++) {
            sample_fill_value(&field, (char *)field.pData + (size_t)i * field.data_size, next);
        }
    } while (pb_field_iter_next(&field));
}

/* Parts that the kind's rule asks for: as many as it may have, two at most. */
static inline uint32_t sample_parts(rp_Frame *frame, rp_part *parts) {
    const rp_kind_facts *facts = rp_kind_facts_of(rp_frame_kind(frame));
    const rp_shape shape = rp_shape_2(2, 3);
    rp_part part = {0};
    switch (facts->parts) {
    case RP_PARTS_NONE:
        break;
    case RP_PARTS_SAMPLES:
        frame->body.input.count = shape.dim[0];
        part = rp_part_of_tensor(RP_DTYPE_F32, sample_payload, &shape);
        break;
    case RP_PARTS_TENSOR:
        part = rp_part_of_tensor(RP_DTYPE_F32, sample_payload, &shape);
        break;
    case RP_PARTS_TEXT:
        part = rp_part_of_text(sample_text);
        break;
    case RP_PARTS_BYTES:
        part = rp_part_of_bytes(sample_payload, 21);
        break;
    case RP_PARTS_F64:
        part = rp_part_of_array(RP_DTYPE_F64, sample_payload, 3);
        break;
    case RP_PARTS_U64:
        part = rp_part_of_array(RP_DTYPE_U64, sample_payload, 2);
        break;
    }
    parts[0] = parts[1] = parts[2] = part;
    const uint32_t some = facts->parts_max < 2 ? facts->parts_max : 2;
    const bool assigns = facts == rp_kind_facts_of(RP_KIND_ASSIGN);
    const uint32_t least = assigns ? facts->parts_max : facts->parts_min; /* as hosts send it */
    return least > some ? least : some;
}

/* The fields that take plain names only. */
static inline void sample_names(rp_Frame *frame) {
    if (rp_frame_kind(frame) == RP_KIND_ENROL) {
        (void)snprintf(frame->body.enrol.board, sizeof frame->body.enrol.board, "rk3588-a_1.b");
    } else if (rp_frame_kind(frame) == RP_KIND_ENROLLED) {
        rp_Enrolled *enrolled = &frame->body.enrolled;
        (void)snprintf(enrolled->host, sizeof enrolled->host, "desk");
        (void)snprintf(enrolled->name, sizeof enrolled->name, "left-1");
    }
}

/* A frame of this kind as it could be sent; returns its parts, of memory that stays. */
static inline uint32_t sample_frame(rp_kind kind, rp_Frame *frame, rp_part *parts) {
    const rp_kind_facts *facts = rp_kind_facts_of(kind);
    uint32_t next = (uint32_t)kind;
    memset(frame, 0, sizeof *frame);
    frame->which_body = (pb_size_t)kind;
    frame->run_id = UINT64_C(0x1122334455667788);
    frame->term = 6;
    frame->session = 99;
    frame->peer = 101;
    frame->ack = 300;
    frame->credit = 17;
    frame->seq = facts->of_class == RP_CLASS_LINK ? 0 : 200;
    if (facts->body) {
        sample_fill(facts->body, &frame->body, &next);
    }
    sample_names(frame);
    return sample_parts(frame, parts);
}

#endif
