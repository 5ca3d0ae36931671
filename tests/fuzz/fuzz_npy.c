/* .npy files in memory, and their headers alone: whatever the bytes, an error or a shape that is
 * within its bounds. */
#include "fuzz.h"

#include "data/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_array array = {0};
    if (rp_array_parse_npy((const char *)bytes, count, "fuzz.npy", &array) == RP_OK) {
        RP_ASSERT(array.sample.dims <= RP_DIMS_MAX && array.bytes >= 1 && array.bytes <= 8);
    }
    if (rp_array_open_bytes(bytes, count, "fuzz.npy", &array) == RP_OK) {
        const uint64_t numbers = (uint64_t)array.count * rp_shape_count(&array.sample);
        RP_ASSERT(numbers > 0 && numbers * array.bytes < count);
        RP_ASSERT(array.unpacked + numbers * array.bytes == bytes + count);
    }
    return 0;
}
