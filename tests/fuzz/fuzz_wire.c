/* Bytes as a frame: what decodes can be written again and decodes to the same; its shapes hold;
 * parts that do not come are noticed. */
#include "fuzz.h"

#include <pb_encode.h>
#include <string.h>

#include "wire/frame.h"

enum { PART_BYTES_MAX = 1 << 20 };

/* No field of the schema is forgotten by our own way to write one. */
static void check_against_schema(const rp_Frame *frame, const uint8_t *bytes, size_t count) {
    uint8_t all[RP_FRAME_BYTES_MAX];
    pb_ostream_t stream = pb_ostream_from_buffer(all, sizeof all);
    RP_ASSERT(pb_encode(&stream, rp_Frame_fields, frame));
    RP_ASSERT(stream.bytes_written == count && memcmp(all, bytes, count) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_Frame frame;
    rp_Frame back;
    uint8_t first[RP_FRAME_BYTES_MAX];
    uint8_t second[RP_FRAME_BYTES_MAX];
    size_t first_count;
    size_t second_count;
    if (rp_frame_decode(bytes, count, PART_BYTES_MAX, &frame) != RP_OK) {
        return 0;
    }
    RP_ASSERT(rp_frame_write(&frame, first, &first_count) == RP_OK);
    check_against_schema(&frame, first, first_count);
    RP_ASSERT(!rp_frame_is_data(&frame) || first_count <= RP_FRAME_DATA_BYTES_MAX);
    RP_ASSERT(rp_frame_decode(first, first_count, PART_BYTES_MAX, &back) == RP_OK);
    RP_ASSERT(rp_frame_write(&back, second, &second_count) == RP_OK);
    RP_ASSERT(first_count == second_count && memcmp(first, second, first_count) == 0);
    for (uint32_t i = 0; i < frame.part_count; i++) {
        const rp_part part = rp_frame_part(&frame, i, NULL, (size_t)frame.part[i].bytes);
        RP_ASSERT(rp_shape_check(&part.shape));
        RP_ASSERT(part.shape.dims == 0 ||
                  rp_part_bytes(part.dtype, rp_shape_count(&part.shape), part.block) == part.bytes);
    }
    const rp_part part = rp_part_of_bytes(bytes, count);
    if (rp_frame_check_parts(&frame, &part, 1) == RP_OK) {
        RP_ASSERT(frame.part_count == 1 && frame.part[0].bytes == count);
    }
    return 0;
}
