/* Writes ONNX files byte by byte, so that tests need no package: protobuf by hand. */
#ifndef RP_TESTS_ONNX_ONNX_BYTES_H
#define RP_TESTS_ONNX_ONNX_BYTES_H

#include "expect.h"

enum { BYTES_ROOM = 1 << 16 };

typedef struct {
    uint8_t at[BYTES_ROOM];
    size_t count;
} bytes;

static inline void put_varint(bytes *b, uint64_t value) {
    do {
        assert_true(b->count < BYTES_ROOM);
        b->at[b->count++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value > 0);
}

static inline void put_number(bytes *b, uint32_t field, int64_t value) {
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)value);
}

static inline void put_bytes(bytes *b, uint32_t field, const void *from, size_t count) {
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, count);
    assert_true(b->count + count < BYTES_ROOM);
    memcpy(b->at + b->count, from, count);
    b->count += count;
}

static inline void put_text(bytes *b, uint32_t field, const char *text) {
    put_bytes(b, field, text, strlen(text));
}

static inline void put_part(bytes *b, uint32_t field, const bytes *part) {
    put_bytes(b, field, part->at, part->count);
}

/* A tensor of floats (type 1) or int64 (type 7) with raw data of `count` zero elements, or those of
 * `data`. */
static inline bytes tensor(const char *name, int32_t type, uint32_t rank, const int64_t *dim,
                           const void *data) {
    bytes b = {.count = 0};
    static const uint8_t zeros[BYTES_ROOM];
    size_t count = type == 7 ? 8 : 4;
    for (uint32_t i = 0; i < rank; i++) {
        put_number(&b, 1, dim[i]);
        count *= (size_t)dim[i];
    }
    put_number(&b, 2, type);
    put_text(&b, 8, name);
    put_bytes(&b, 9, data ? data : zeros, count);
    return b;
}

/* A value's description; -1 is a free size called `batch`. */
static inline bytes value(const char *name, int32_t type, uint32_t rank, const int64_t *dim) {
    bytes b = {.count = 0};
    bytes shape = {.count = 0};
    bytes tensor_type = {.count = 0};
    bytes whole = {.count = 0};
    for (uint32_t i = 0; i < rank; i++) {
        bytes one = {.count = 0};
        if (dim[i] < 0) {
            put_text(&one, 2, "batch");
        } else {
            put_number(&one, 1, dim[i]);
        }
        put_part(&shape, 1, &one);
    }
    put_number(&tensor_type, 1, type);
    put_part(&tensor_type, 2, &shape);
    put_part(&whole, 1, &tensor_type);
    put_text(&b, 1, name);
    put_part(&b, 2, &whole);
    return b;
}

static inline bytes attribute_int(const char *name, int64_t number) {
    bytes b = {.count = 0};
    put_text(&b, 1, name);
    put_number(&b, 3, number);
    put_number(&b, 20, 2);
    return b;
}

static inline bytes attribute_text(const char *name, const char *text) {
    bytes b = {.count = 0};
    put_text(&b, 1, name);
    put_text(&b, 4, text);
    put_number(&b, 20, 3);
    return b;
}

static inline bytes attribute_ints(const char *name, uint32_t count, const int64_t *number) {
    bytes b = {.count = 0};
    put_text(&b, 1, name);
    for (uint32_t i = 0; i < count; i++) {
        put_number(&b, 8, number[i]);
    }
    put_number(&b, 20, 7);
    return b;
}

/* A node with inputs and outputs as words between blanks; `-` is an absent input. */
static inline bytes node(const char *op, const char *inputs, const char *outputs) {
    bytes b = {.count = 0};
    const char *list[2] = {inputs, outputs};
    char name[200];
    for (uint32_t field = 1; field <= 2; field++) {
        for (const char *at = list[field - 1]; *at;) {
            const size_t length = strcspn(at, " ");
            put_bytes(&b, field, at, *at == '-' && length == 1 ? 0 : length);
            at += length + (at[length] == ' ');
        }
    }
    (void)snprintf(name, sizeof name, "/%s/%s", outputs, op);
    put_text(&b, 3, name);
    put_text(&b, 4, op);
    return b;
}

/* A model around a graph. */
static inline bytes model_of(const bytes *graph, int64_t opset) {
    bytes b = {.count = 0};
    bytes set = {.count = 0};
    put_number(&b, 1, 8);
    put_text(&b, 2, "hand");
    put_part(&b, 7, graph);
    put_number(&set, 2, opset);
    put_part(&b, 8, &set);
    return b;
}

#define GRAPH_NODE 1
#define GRAPH_INITIALISER 5
#define GRAPH_INPUT 11
#define GRAPH_OUTPUT 12
#define NODE_ATTRIBUTE 5

#endif
