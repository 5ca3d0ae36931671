#include "expect.h"

#include "base/rng.h"

/* Known answers of Random123's kat_vectors for philox4x32-10. */
static void philox_known_answers(void **state) {
    (void)state;
    rp_rng zero = {.key = {0, 0}};
    uint32_t out[4];
    rp_rng_block(&zero, 0, out);
    const uint32_t want[4] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
    assert_memory_equal(out, want, sizeof want);
}

static void streams_are_named(void **state) {
    (void)state;
    rp_rng a = rp_rng_named(1, "init/conv1/weight");
    rp_rng b = rp_rng_named(1, "init/conv1/bias");
    rp_rng c = rp_rng_named(2, "init/conv1/weight");
    rp_rng again = rp_rng_named(1, "init/conv1/weight");
    uint32_t first = rp_rng_u32(&a);
    assert_int_not_equal(first, rp_rng_u32(&b));
    assert_int_not_equal(first, rp_rng_u32(&c));
    assert_int_equal(first, rp_rng_word_at(&again, 0));
    assert_int_equal(rp_rng_u32(&a), rp_rng_word_at(&again, 1));
}

static void moments(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(3, "moments");
    double uniform = 0;
    const int n = 100000;
    for (int i = 0; i < n; i++) {
        float u = rp_rng_uniform(&rng);
        assert_true(u >= 0.0f && u < 1.0f);
        uniform += u;
    }
    expect_close(uniform / n, 0.5, 0, 0.01);
}

static void shuffle_is_a_permutation(void **state) {
    (void)state;
    uint32_t items[100];
    uint32_t seen[100] = {0};
    for (uint32_t i = 0; i < 100; i++) {
        items[i] = i;
    }
    rp_rng rng = rp_rng_named(1, "epoch/0");
    rp_rng_shuffle(&rng, items, 100);
    unsigned moved = 0;
    for (uint32_t i = 0; i < 100; i++) {
        seen[items[i]]++;
        moved += items[i] != i;
    }
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(seen[i], 1);
    }
    assert_true(moved > 80);
    for (int i = 0; i < 1000; i++) {
        assert_true(rp_rng_below(&rng, 7) < 7);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(streams_are_named),
        cmocka_unit_test(moments),
        cmocka_unit_test(shuffle_is_a_permutation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
