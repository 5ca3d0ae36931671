/* Bytes as the file of prediction gains: what is read is what is written again, and the estimator
 * goes on from it with shares of a prediction. */
#include "fuzz.h"

#include "checkpoint/checkpoint.h"

enum { PARAMS = 2, NUMBERS = 1 + RP_GAIN_HISTORY + PARAMS * (4 + RP_GAIN_HISTORY) };

static void go_on(rp_gain_estimator *estimator, uint64_t step) {
    const rp_gain_sample probe[] = {{1, 2, 1}, {1e30, 1e-30, 1e30}, {1e-40, 1, 1e-40}};
    for (uint32_t i = 0; i < 24; i++) {
        const double gain = rp_gain_estimator_add(estimator, step + 2 * i, step + 2 * i + 4,
                                                  i % PARAMS, &probe[i / 8]);
        RP_ASSERT(gain >= 0 && gain <= 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_arena arena;
    rp_arena_init(&arena, "fuzz", 64 << 20);
    rp_st_reader *reader = NULL;
    rp_gain_estimator estimator;
    rp_gain_estimator again;
    double packed[NUMBERS];
    double packed_again[NUMBERS];
    if (rp_st_open_bytes(&arena, bytes, count, "fuzz", &reader) == RP_OK &&
        rp_gain_estimator_open(&arena, PARAMS, &estimator) == RP_OK &&
        rp_gain_estimator_open(&arena, PARAMS, &again) == RP_OK &&
        rp_checkpoint_read_gains(&arena, reader, "fuzz", &estimator) == RP_OK) {
        RP_ASSERT(rp_gain_estimator_size(&estimator) == NUMBERS);
        rp_gain_estimator_pack(&estimator, packed);
        RP_ASSERT(rp_gain_estimator_unpack(&again, "packed", packed) == RP_OK);
        go_on(&estimator, estimator.history[0].step % 1000);
        rp_gain_estimator_pack(&estimator, packed_again);
        RP_ASSERT(rp_gain_estimator_unpack(&again, "packed", packed_again) == RP_OK);
    }
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return 0;
}
