/* Bytes as a weights file: whatever opens has every tensor inside the bytes, and can be read. */
#include "fuzz.h"

#include <string.h>

#include "base/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_arena arena;
    rp_arena_init(&arena, "fuzz", 64 << 20);
    rp_st_reader *reader = NULL;
    if (rp_st_open_bytes(&arena, bytes, count, "fuzz", &reader) == RP_OK) {
        unsigned sum = 0;
        for (uint32_t i = 0; i < rp_st_count(reader); i++) {
            const rp_st_entry *entry = rp_st_entry_at(reader, i);
            const uint8_t *data = rp_st_data(reader, entry);
            RP_ASSERT(entry->bytes <= count && rp_st_find(reader, entry->name) == entry);
            for (uint64_t b = 0; b < entry->bytes; b++) {
                sum += data[b];
            }
        }
        (void)rp_st_meta(reader, "format");
        RP_ASSERT(sum <= 255u * count);
    }
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return 0;
}
