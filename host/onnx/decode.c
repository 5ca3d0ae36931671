#include "onnx/decode.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "onnx_read.pb.h"

bool rp_onnx_decode(rp_onnx_decoder *decoder, pb_istream_t *stream, const pb_msgdesc_t *fields,
                    void *message, const char *what) {
    if (pb_decode(stream, fields, message)) {
        return true;
    }
    if (decoder->err == RP_OK) {
        return rp_onnx_decode_fail(decoder, RP_ERR_FORMAT, "%s: %s%s%s is no valid protobuf: %s",
                                   decoder->file, what, decoder->node[0] ? " of node " : "",
                                   decoder->node, PB_GET_ERROR(stream));
    }
    return false;
}

bool rp_onnx_make_room(rp_onnx_decoder *decoder, void **items, size_t size, uint32_t count,
                       uint32_t *room, uint32_t most, const char *what) {
    void *grown;
    if (count < *room) {
        return true;
    }
    if (count >= most) {
        return rp_onnx_decode_fail(decoder, RP_ERR_LIMIT, "%s: more than %u %s%s%s", decoder->file,
                                   most, what, decoder->node[0] ? " in node " : "", decoder->node);
    }
    const uint32_t more = *room > 0 ? 2 * *room : 4;
    decoder->err = rp_arena_alloc(decoder->arena, more, size, &grown);
    if (decoder->err != RP_OK) {
        return false;
    }
    if (count > 0) {
        memcpy(grown, *items, count * size);
    }
    *items = grown;
    *room = more;
    return true;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* The bytes of a field are in memory, because the stream reads a buffer. */
static const uint8_t *bytes_of(const pb_istream_t *stream) {
    return stream->state;
}

static bool skip(pb_istream_t *stream, size_t count) {
    return pb_read(stream, NULL, count);
}

bool rp_onnx_take_text(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    rp_onnx_text_field *out = *arg;
    rp_onnx_decoder *decoder = out->decoder;
    const size_t count = stream->bytes_left;
    char *text;
    (void)field;
    if (count >= RP_ONNX_NAME_MAX) {
        return rp_onnx_decode_fail(decoder, RP_ERR_LIMIT,
                                   "%s: a name%s%s has %zu bytes, at most %d are supported",
                                   decoder->file, decoder->node[0] ? " of node " : "",
                                   decoder->node, count, RP_ONNX_NAME_MAX - 1);
    }
    decoder->err = rp_arena_text(decoder->arena, (const char *)bytes_of(stream), count, &text);
    if (decoder->err != RP_OK) {
        return false;
    }
    if (strlen(text) != count || !rp_utf8_is_valid(text)) {
        return rp_onnx_decode_fail(decoder, RP_ERR_FORMAT, "%s: a name%s%s is not UTF-8: '%.100s'",
                                   decoder->file, decoder->node[0] ? " of node " : "",
                                   decoder->node, text);
    }
    out->text = text;
    return skip(stream, count);
}

bool rp_onnx_take_bytes(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    rp_onnx_bytes_field *out = *arg;
    (void)field;
    *out =
        (rp_onnx_bytes_field){.given = true, .at = bytes_of(stream), .count = stream->bytes_left};
    return skip(stream, stream->bytes_left);
}

bool rp_onnx_count_fields(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    uint32_t *count = *arg;
    (void)field;
    *count += *count < UINT32_MAX;
    return skip(stream, stream->bytes_left);
}

bool rp_onnx_take_whole(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    rp_onnx_whole_field *out = *arg;
    (void)field;
    while (stream->bytes_left > 0) {
        uint64_t value;
        if (!pb_decode_varint(stream, &value) ||
            !rp_onnx_make_room(out->decoder, (void **)&out->item, sizeof *out->item, out->count,
                               &out->room, out->most, out->what)) {
            return false;
        }
        out->item[out->count++] = (int64_t)value;
    }
    return true;
}

/* Adds `count` bytes to a list that is no longer one piece of the file. */
static bool append(rp_onnx_real_field *out, const uint8_t *bytes, size_t count) {
    size_t sum;
    uint8_t *grown;
    if (count == 0) {
        return true;
    }
    if (!rp_add_size(out->bytes, count, &sum)) {
        return false;
    }
    if (sum > out->room) {
        const size_t room = sum < SIZE_MAX / 2 ? 2 * sum : sum;
        out->decoder->err = RP_ARENA_NEW(out->decoder->arena, room, &grown);
        if (out->decoder->err != RP_OK) {
            return false;
        }
        if (out->bytes > 0) {
            memcpy(grown, out->at, out->bytes);
        }
        out->at = grown;
        out->room = room;
    }
    memcpy((uint8_t *)(uintptr_t)out->at + out->bytes, bytes, count);
    out->bytes = sum;
    return true;
}

bool rp_onnx_take_real(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    rp_onnx_real_field *out = *arg;
    const rp_onnx_decoder *decoder = out->decoder;
    const uint8_t *bytes = bytes_of(stream);
    const size_t count = stream->bytes_left;
    const bool in_file = (uintptr_t)bytes >= (uintptr_t)decoder->bytes &&
                         (uintptr_t)bytes < (uintptr_t)decoder->bytes + decoder->count;
    (void)field;
    if (count % out->width != 0) {
        return rp_onnx_decode_fail(out->decoder, RP_ERR_FORMAT,
                                   "%s: a list of numbers has %zu bytes, which is no multiple of "
                                   "%zu",
                                   decoder->file, count, out->width);
    }
    if (in_file && out->bytes == 0) {
        out->at = bytes;
        out->bytes = count;
    } else if (!append(out, bytes, count)) {
        return false;
    }
    return skip(stream, count);
}

bool rp_onnx_decode_pair(rp_onnx_decoder *decoder, pb_istream_t *stream, const char **key,
                         rp_onnx_bytes_field *value) {
    onnx_StringStringEntryProto message = onnx_StringStringEntryProto_init_zero;
    rp_onnx_text_field name = {.decoder = decoder, .text = ""};
    *value = (rp_onnx_bytes_field){.at = (const uint8_t *)""};
    message.key = rp_onnx_call(rp_onnx_take_text, &name);
    message.value = rp_onnx_call(rp_onnx_take_bytes, value);
    if (!rp_onnx_decode(decoder, stream, onnx_StringStringEntryProto_fields, &message,
                        "a property")) {
        return false;
    }
    *key = name.text;
    return true;
}
