/* Bytes as a header: what decodes can be written again, decodes to the same, and its shapes can be
 * read; parts that do not come are noticed. */
#include "fuzz.h"

#include <string.h>

#include "wire/frame.h"

enum { PART_BYTES_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_Header header;
    rp_Header back;
    uint8_t first[RP_HEADER_BYTES_MAX];
    uint8_t second[RP_HEADER_BYTES_MAX];
    size_t first_count;
    size_t second_count;
    if (rp_frame_decode(bytes, count, PART_BYTES_MAX, &header) != RP_OK) {
        return 0;
    }
    RP_ASSERT(rp_frame_write(&header, first, &first_count) == RP_OK);
    RP_ASSERT(rp_frame_decode(first, first_count, PART_BYTES_MAX, &back) == RP_OK);
    RP_ASSERT(rp_frame_write(&back, second, &second_count) == RP_OK);
    RP_ASSERT(first_count == second_count && memcmp(first, second, first_count) == 0);
    for (uint32_t i = 0; i < header.shape_count; i++) {
        rp_shape shape;
        RP_ASSERT(rp_frame_shape(&header, i, &shape) == RP_OK && rp_shape_check(&shape));
    }
    rp_part part = {bytes, count};
    if (rp_frame_check_parts(&header, &part, 1) == RP_OK) {
        RP_ASSERT(header.part_bytes_count == 1 && header.part_bytes[0] == count);
    }
    return 0;
}
