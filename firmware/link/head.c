#include "link/head.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void write_sum(const uint8_t *bytes, size_t count, uint8_t sum[RP_HEAD_SUM_BYTES]) {
    const uint64_t hash = XXH3_64bits(bytes, count);
    for (int i = 0; i < RP_HEAD_SUM_BYTES; i++) {
        sum[i] = (uint8_t)(hash >> (8 * i));
    }
}

size_t rp_head_seal(uint8_t *bytes, size_t count) {
    write_sum(bytes, count, bytes + count);
    return count + RP_HEAD_SUM_BYTES;
}

rp_err rp_head_write(const rp_Frame *frame, rp_buffer **out) {
    uint8_t written[RP_HEAD_BYTES_MAX];
    size_t bytes;
    void *memory;
    *out = NULL;
    rp_err err = rp_frame_write(frame, written, &bytes);
    if (err != RP_OK) {
        return err;
    }
    bytes = rp_head_seal(written, bytes);
    err = rp_buffer_new(bytes, out, &memory);
    if (err == RP_OK) {
        memcpy(memory, written, bytes);
    }
    return err;
}

rp_err rp_head_read(const rp_buffer *head, size_t part_bytes_max, rp_Frame *out) {
    uint8_t sum[RP_HEAD_SUM_BYTES];
    if (head->bytes < RP_HEAD_SUM_BYTES || head->bytes > RP_HEAD_BYTES_MAX) {
        return RP_ERR_FORMAT;
    }
    const uint8_t *bytes = head->data;
    const size_t count = head->bytes - RP_HEAD_SUM_BYTES;
    write_sum(bytes, count, sum);
    if (memcmp(sum, bytes + count, RP_HEAD_SUM_BYTES) != 0) {
        return RP_ERR_FORMAT;
    }
    return rp_frame_decode(bytes, count, part_bytes_max, out);
}
