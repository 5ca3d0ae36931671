/* Where values stand in the answer of a board that has measured itself. */
#include "agent/measure.h"
#include "expect.h"

/* Every place is had once, and the last one is the end. */
static void values_do_not_overlap(void **state) {
    (void)state;
    enum { LAYERS = 3, SIZES = 2 };
    enum { ROOM = 400 };
    uint32_t had[ROOM] = {0};
    const size_t count = rp_measured_all(LAYERS, SIZES);
    assert_true(count < ROOM && rp_measured_count(LAYERS, SIZES) < count);
    for (size_t i = 0; i < SIZES * LAYERS * RP_MEASURED_PASSES; i++) {
        const size_t at = rp_measured_at(LAYERS, i / RP_MEASURED_PASSES / LAYERS,
                                         i / RP_MEASURED_PASSES % LAYERS, i % RP_MEASURED_PASSES);
        had[at]++;
        had[at + 1]++;
    }
    for (size_t i = 0; i < LAYERS; i++) {
        had[rp_measured_update_at(LAYERS, SIZES, i)]++;
    }
    for (size_t i = 0; i < RP_MEASURED_COPIES; i++) {
        had[rp_measured_copy_at(LAYERS, SIZES, i)]++;
    }
    const size_t others[] = {RP_BESIDES_HANDLING, RP_BESIDES_PREDICTION, RP_BESIDES_PREDICTION + 1,
                             RP_BESIDES_AVERAGE, RP_BESIDES_AVERAGE + 1};
    for (size_t i = 0; i < 5 + 4 * RP_MEASURED_CODECS; i++) {
        const size_t codec = i < 5 ? 0 : (i - 5) / 4;
        const size_t which =
            i < 5 ? others[i] : rp_besides_codec(codec, (i - 5) / 2 % 2, (i - 5) % 2);
        const size_t at = rp_measured_besides_at(LAYERS, SIZES, which);
        had[at]++;
        had[at + 1]++;
    }
    for (size_t i = 0; i < ROOM; i++) {
        assert_int_equal(had[i], i < count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
