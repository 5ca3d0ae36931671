/* Bytes as the file of what is in flight: what is read lies inside the bytes, in whole floats. */
#include "fuzz.h"

#include "checkpoint/checkpoint.h"

enum { STAGES = 3, STEP = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_arena arena;
    rp_arena_init(&arena, "fuzz", 64 << 20);
    rp_st_reader *reader = NULL;
    rp_in_flight in_flight;
    if (rp_st_open_bytes(&arena, bytes, count, "fuzz", &reader) == RP_OK &&
        rp_checkpoint_read_in_flight(&arena, reader, "fuzz", "a,b,c", STAGES, STEP, &in_flight) ==
            RP_OK) {
        unsigned sum = 0;
        RP_ASSERT(in_flight.fill_step <= STEP && (in_flight.here || in_flight.fill_step == 0));
        RP_ASSERT(in_flight.end == 0 || (in_flight.here && in_flight.end >= STEP));
        for (uint32_t k = 0; in_flight.here && k < STAGES; k++) {
            const rp_checkpoint_bytes *part = &in_flight.part[k];
            RP_ASSERT(part->bytes % sizeof(float) == 0 && part->bytes <= count);
            for (size_t b = 0; b < part->bytes; b++) {
                sum += ((const uint8_t *)part->data)[b];
            }
        }
        RP_ASSERT(sum <= 255u * count);
    }
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return 0;
}
