/* The time that an op takes on a board that is made slow: an affine cost of its samples. */
#include <math.h>
#include <string.h>

#include "expect.h"
#include "stage/throttle.h"

static const rp_throttle all = {.forward_ms = 8,
                                .backward_ms = 16,
                                .forward_op_ms = 3,
                                .backward_op_ms = 5,
                                .forward_sample_ms = 0.5,
                                .backward_sample_ms = 0.25,
                                .update_ms = 7,
                                .gflops = 2};

static double seconds(const rp_throttle *throttle, rp_op_kind kind, uint32_t samples) {
    return rp_throttle_s(
        throttle,
        &(rp_throttled_op){.kind = kind, .samples = samples, .micro = 8, .flops = {4e6, 6e6}});
}

static void a_part_in_proportion_and_a_part_for_each_op(void **state) {
    (void)state;
    /* 3 + n (8/8 + 0.5 + 4e6/2e9 s); 5 + n (16/8 + 0.25 + 3) */
    expect_close(seconds(&all, RP_OP_FORWARD, 8), (3 + 8 * 3.5) * 1e-3, 1e-15, 0);
    expect_close(seconds(&all, RP_OP_FORWARD, 3), (3 + 3 * 3.5) * 1e-3, 1e-15, 0);
    expect_close(seconds(&all, RP_OP_BACKWARD, 8), (5 + 8 * 5.25) * 1e-3, 1e-15, 0);
    expect_close(seconds(&all, RP_OP_UPDATE, 0), 7e-3, 1e-15, 0);
    const double halves =
        seconds(&all, RP_OP_BACKWARD_INPUT, 5) + seconds(&all, RP_OP_BACKWARD_WEIGHT, 5);
    expect_close(halves, seconds(&all, RP_OP_BACKWARD, 5), 1e-15, 0);
}

static void without_keys_an_op_takes_what_it_takes(void **state) {
    (void)state;
    const rp_throttle none = {0};
    assert_false(rp_throttle_is_set(&none));
    assert_true(rp_throttle_is_set(&(rp_throttle){.gflops = 1}));
    for (int kind = 0; kind < RP_OP_KINDS; kind++) {
        expect_close(seconds(&none, (rp_op_kind)kind, 8), 0, 0, 0);
    }
    const rp_throttled_op odd = {.kind = RP_OP_FORWARD, .samples = 8, .flops = {1, 1}};
    assert_true(isfinite(rp_throttle_s(&all, &odd))); /* micro 0 is no division */
}

static void what_is_written_is_read_back(void **state) {
    (void)state;
    const rp_throttle some = {.backward_ms = 1.0 / 3, .gflops = 1e-3};
    const rp_throttle *const cases[] = {&all, &some};
    for (size_t i = 0; i < 2; i++) {
        char text[400];
        rp_arena arena;
        rp_node *root;
        rp_throttle back;
        rp_arena_init(&arena, "test", 0);
        FILE *file = fmemopen(text, sizeof text, "w");
        assert_non_null(file);
        rp_throttle_put(file, cases[i]);
        assert_int_equal(fclose(file), 0);
        expect_ok(rp_config_read_text(&arena, text, strlen(text), "job", &root));
        expect_ok(rp_throttle_parse(root, &back));
        assert_memory_equal(&back, cases[i], sizeof back);
        rp_arena_finish(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_in_proportion_and_a_part_for_each_op),
        cmocka_unit_test(without_keys_an_op_takes_what_it_takes),
        cmocka_unit_test(what_is_written_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
