/* Bytes as the file of prediction gains: what is read is what is written again, and steering
 * goes on from it with shares of a prediction. */
#include "fuzz.h"

#include "checkpoint/checkpoint.h"

enum { PARAMS = 2, NUMBERS = 1 + RP_STEER_HISTORY + PARAMS * (4 + RP_STEER_HISTORY) };

static void go_on(rp_steer *steer, uint64_t step) {
    const rp_steer_probe probe[] = {{1, 2, 1}, {1e30, 1e-30, 1e30}, {1e-40, 1, 1e-40}};
    for (uint32_t i = 0; i < 24; i++) {
        const double gain =
            rp_steer_add(steer, step + 2 * i, step + 2 * i + 4, i % PARAMS, &probe[i / 8]);
        RP_ASSERT(gain >= 0 && gain <= 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_arena arena;
    rp_arena_init(&arena, "fuzz", 64 << 20);
    rp_st_reader *reader = NULL;
    rp_steer steer;
    rp_steer again;
    double packed[NUMBERS];
    double packed_again[NUMBERS];
    if (rp_st_open_bytes(&arena, bytes, count, "fuzz", &reader) == RP_OK &&
        rp_steer_open(&arena, PARAMS, &steer) == RP_OK &&
        rp_steer_open(&arena, PARAMS, &again) == RP_OK &&
        rp_checkpoint_read_steer(&arena, reader, "fuzz", &steer) == RP_OK) {
        RP_ASSERT(rp_steer_size(&steer) == NUMBERS);
        rp_steer_pack(&steer, packed);
        RP_ASSERT(rp_steer_unpack(&again, "packed", packed) == RP_OK);
        go_on(&steer, steer.history[0].step % 1000);
        rp_steer_pack(&steer, packed_again);
        RP_ASSERT(rp_steer_unpack(&again, "packed", packed_again) == RP_OK);
    }
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return 0;
}
