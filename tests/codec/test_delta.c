/* Differences of weights as bytes: what is lost, what is exact, and bytes that are refused. */
#include "expect.h"

#include <math.h>
#include <stdlib.h>

#include "codec/codec.h"
#include "codec/delta.h"

enum { MOST = 1000, BYTES_MOST = 8 * MOST };

static const rp_delta int8 = {.kind = RP_DELTA_INT8};

static rp_delta topk(double share) {
    return (rp_delta){.kind = RP_DELTA_TOPK, .share = share};
}

static void fill(float *values, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = ((float)(seed >> 8) / 8388608.0f - 1) * (i % 7 == 0 ? 10.0f : 0.1f);
    }
}

static const char *pass(const rp_delta *delta, const float *values, size_t count, float *back) {
    static uint8_t bytes[BYTES_MOST];
    assert_true(rp_delta_bytes(delta, count) <= sizeof bytes);
    memset(bytes, 0xa5, sizeof bytes);
    rp_delta_encode(delta, values, count, bytes);
    assert_int_equal(bytes[rp_delta_bytes(delta, count)], 0xa5); /* nothing past the end */
    return rp_delta_decode(delta, bytes, count, back);
}

static void texts(void **state) {
    static const char *const wrong[] = {"",        "int4",   "topk",       "topk:",    "topk:0",
                                        "topk:-1", "topk:2", "topk:0.1 x", "topk:nan", "int8:1"};
    char text[RP_DELTA_TEXT];
    rp_delta delta;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (rp_delta_parse(wrong[i], &delta)) {
            fail_msg("accepted: '%s'", wrong[i]);
        }
    }
    assert_true(rp_delta_parse("int8", &delta));
    assert_int_equal(delta.kind, RP_DELTA_INT8);
    rp_delta_print(&delta, text);
    assert_string_equal(text, "int8");
    const rp_delta tenth = topk(0.1);
    rp_delta_print(&tenth, text);
    assert_string_equal(text, "topk:0.1");
    const rp_delta third = topk(1.0 / 3);
    rp_delta_print(&third, text);
    assert_true(rp_delta_parse(text, &delta));
    expect_close(delta.share, 1.0 / 3, 0, 0);
    assert_true(rp_delta_parse("topk:0.1", &delta));
    assert_int_equal(delta.kind, RP_DELTA_TOPK);
    expect_close(delta.share, 0.1, 0, 0);
    rp_delta_print(&(rp_delta){0}, text);
    assert_string_equal(text, "");
}

static void sizes(void **state) {
    const rp_delta hundredth = topk(0.01);
    const rp_delta whole = topk(1);
    (void)state;
    assert_int_equal(rp_delta_bytes(&int8, 0), 0);
    assert_int_equal(rp_delta_bytes(&int8, 1), 5);
    assert_int_equal(rp_delta_bytes(&int8, 129), 129 + 8);
    assert_int_equal(rp_delta_bytes(&hundredth, 256), 15); /* 3 of 256 */
    assert_int_equal(rp_delta_bytes(&hundredth, 257), 20);
    assert_int_equal(rp_delta_bytes(&whole, 300), 1500);
    assert_int_equal(rp_delta_bytes(&hundredth, 0), 0);
}

static void int8_loses_half_a_step(void **state) {
    float values[MOST];
    float back[MOST];
    (void)state;
    fill(values, MOST, 1);
    assert_null(pass(&int8, values, MOST, back));
    for (size_t first = 0; first < MOST; first += RP_CODEC_BLOCK) {
        float most = 0;
        for (size_t i = first; i < first + RP_CODEC_BLOCK && i < MOST; i++) {
            most = fmaxf(most, fabsf(values[i]));
        }
        for (size_t i = first; i < first + RP_CODEC_BLOCK && i < MOST; i++) {
            expect_close(back[i], values[i], 0, (double)most / 254 * 1.0001);
        }
    }
    memset(values, 0, sizeof values);
    assert_null(pass(&int8, values, MOST, back));
    for (size_t i = 0; i < MOST; i++) {
        expect_close(back[i], 0, 0, 0);
    }
}

static void topk_keeps_the_largest(void **state) {
    const rp_delta some = topk(0.05);
    const rp_delta whole = topk(1);
    float values[MOST];
    float back[MOST];
    (void)state;
    fill(values, MOST, 2);
    assert_null(pass(&whole, values, MOST, back));
    assert_memory_equal(back, values, sizeof values);
    assert_null(pass(&some, values, MOST, back));
    for (size_t first = 0; first < MOST; first += RP_CODEC_KEPT_BLOCK) {
        const size_t end = first + RP_CODEC_KEPT_BLOCK < MOST ? first + RP_CODEC_KEPT_BLOCK : MOST;
        float least_kept = INFINITY;
        float most_lost = 0;
        size_t kept = 0;
        for (size_t i = first; i < end; i++) {
            const bool is_kept = back[i] != 0;
            kept += is_kept;
            if (is_kept) {
                assert_true(back[i] == values[i]);
                least_kept = fminf(least_kept, fabsf(values[i]));
            } else {
                most_lost = fmaxf(most_lost, fabsf(values[i]));
            }
        }
        assert_int_equal(kept, (size_t)ceil(0.05 * (double)(end - first)));
        assert_true(least_kept >= most_lost);
    }
    /* the first of equal ones */
    for (size_t i = 0; i < 100; i++) {
        values[i] = i % 2 ? 1 : -1;
    }
    assert_null(pass(&some, values, 100, back));
    for (size_t i = 0; i < 100; i++) {
        assert_true(back[i] == (i < 5 ? values[i] : 0));
    }
}

/* Any bytes are refused or give finite values. */
static void bytes_are_checked(void **state) {
    const rp_delta some = topk(0.02);
    uint8_t bytes[BYTES_MOST];
    float values[MOST];
    float back[MOST];
    float scale;
    uint32_t refused = 0;
    (void)state;
    fill(values, 300, 3);
    rp_delta_encode(&int8, values, 300, bytes);
    bytes[3 * sizeof scale + 7] = 0x80;
    assert_non_null(strstr(rp_delta_decode(&int8, bytes, 300, back), "-128"));
    bytes[3 * sizeof scale + 7] = 0;
    assert_null(rp_delta_decode(&int8, bytes, 300, back));
    const float wrong[] = {NAN, INFINITY, -1, -0.0f};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(bytes + 2 * sizeof scale, &wrong[i], sizeof scale);
        assert_non_null(rp_delta_decode(&int8, bytes, 300, back));
    }
    rp_delta_encode(&some, values, 300, bytes);
    assert_null(rp_delta_decode(&some, bytes, 300, back));
    const uint8_t first = bytes[0];
    bytes[0] = bytes[1];
    assert_non_null(rp_delta_decode(&some, bytes, 300, back)); /* not ascending */
    bytes[0] = first;
    const size_t last = 6 * 5; /* of the block of 44: one value is kept */
    bytes[last] = 44;
    assert_non_null(strstr(rp_delta_decode(&some, bytes, 300, back), "outside"));
    bytes[last] = 43;
    assert_null(rp_delta_decode(&some, bytes, 300, back));
    memcpy(bytes + last + 1, &wrong[0], sizeof(float));
    assert_non_null(strstr(rp_delta_decode(&some, bytes, 300, back), "finite"));
    for (uint32_t seed = 0; seed < 2000; seed++) {
        uint32_t draw = seed;
        for (size_t i = 0; i < rp_delta_bytes(&some, 300); i++) {
            draw = draw * 1664525u + 1013904223u;
            bytes[i] = (uint8_t)(draw >> 24);
        }
        const bool is_refused = rp_delta_decode(seed % 2 ? &some : &int8, bytes, 30, back) != NULL;
        refused += is_refused;
        for (size_t i = 0; i < 30 && !is_refused; i++) {
            assert_true(isfinite(back[i]));
        }
    }
    assert_true(refused > 0 && refused < 2000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(sizes),
        cmocka_unit_test(int8_loses_half_a_step),
        cmocka_unit_test(topk_keeps_the_largest),
        cmocka_unit_test(bytes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
