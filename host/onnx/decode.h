/* Parts of protobuf messages that several readers need; private to the room. A message is decoded
 * by nanopb from the mapped file. Callbacks keep pointers into it where they can. */
#ifndef RP_ONNX_DECODE_H
#define RP_ONNX_DECODE_H

#include <pb_decode.h>

#include "onnx/maps.h"
#include "onnx/model.h"

typedef struct {
    rp_arena *arena;
    const char *file; /* for messages */
    rp_onnx_maps *maps;
    const uint8_t *bytes; /* the whole file */
    size_t count;
    const char *node; /* name of the node that is decoded, for messages; "" outside of nodes */
    rp_err err;       /* of the first failure; it has been logged */
} rp_onnx_decoder;

/* Logs a failure, keeps its error, and returns false, as callbacks of nanopb do. */
#define rp_onnx_decode_fail(decoder, error, ...)                                                   \
    ((decoder)->err = rp_fail((error), __VA_ARGS__), false)

/* Decodes a message. If nanopb found the mistake, it is logged here. */
bool rp_onnx_decode(rp_onnx_decoder *decoder, pb_istream_t *stream, const pb_msgdesc_t *fields,
                    void *message, const char *what);

/* Grows a list in the arena to hold one more item; `*items` may move. */
bool rp_onnx_make_room(rp_onnx_decoder *decoder, void **items, size_t size, uint32_t count,
                       uint32_t *room, uint32_t most, const char *what);

/* Callbacks. The argument is one of the structs below. */

/* A string: copied, valid UTF-8, less than RP_ONNX_NAME_MAX bytes. */
typedef struct {
    rp_onnx_decoder *decoder;
    const char *text; /* "" if the field is absent */
} rp_onnx_text_field;
bool rp_onnx_take_text(pb_istream_t *stream, const pb_field_t *field, void **arg);

/* Bytes, which stay where they are. */
typedef struct {
    bool given;
    const uint8_t *at;
    size_t count;
} rp_onnx_bytes_field;
bool rp_onnx_take_bytes(pb_istream_t *stream, const pb_field_t *field, void **arg);

/* Counts fields and skips them; the argument is a uint32_t. */
bool rp_onnx_count_fields(pb_istream_t *stream, const pb_field_t *field, void **arg);

/* Whole numbers, packed or not. */
typedef struct {
    rp_onnx_decoder *decoder;
    const char *what;
    uint32_t most, count, room;
    int64_t *item;
} rp_onnx_whole_field;
bool rp_onnx_take_whole(pb_istream_t *stream, const pb_field_t *field, void **arg);

/* Floats (width 4) or doubles (width 8), packed or not. One packed list stays where it is. */
typedef struct {
    rp_onnx_decoder *decoder;
    size_t width;
    const uint8_t *at;
    size_t bytes, room; /* room > 0: `at` is a copy */
} rp_onnx_real_field;
bool rp_onnx_take_real(pb_istream_t *stream, const pb_field_t *field, void **arg);

static inline pb_callback_t
rp_onnx_call(bool (*decode)(pb_istream_t *, const pb_field_t *, void **), void *arg) {
    return (pb_callback_t){.funcs = {.decode = decode}, .arg = arg};
}

/* Key and value of an entry; the strings are "" where they are absent. */
bool rp_onnx_decode_pair(rp_onnx_decoder *decoder, pb_istream_t *stream, const char **key,
                         rp_onnx_bytes_field *value);

#endif
