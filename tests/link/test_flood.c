/* What a peer may send that brings nothing. */
#include "link/flood.h"

#include "base/clock.h"
#include "expect.h"

enum { AT_ONCE = 32768, A_SECOND = 4096 };

static uint32_t admitted_of(rp_flood *flood, uint32_t count, size_t bytes, int64_t now_ns) {
    uint32_t admitted = 0;
    for (uint32_t i = 0; i < count; i++) {
        admitted += rp_flood_admits(flood, bytes, now_ns);
    }
    return admitted;
}

static void a_flood_is_cut_to_its_rate(void **state) {
    (void)state;
    rp_flood flood = {0};
    const int64_t begin_ns = 5 * RP_NS_PER_S;
    assert_in_range(admitted_of(&flood, 100000, 100, begin_ns), AT_ONCE, AT_ONCE + 1);
    for (int second = 1; second < 5; second++) {
        const int64_t now_ns = begin_ns + second * RP_NS_PER_S;
        assert_in_range(admitted_of(&flood, 100000, 100, now_ns), A_SECOND - 2, A_SECOND + 2);
    }
    assert_in_range(flood.dropped, 5 * 100000 - AT_ONCE - 4 * A_SECOND - 16,
                    5 * 100000 - AT_ONCE - 4 * A_SECOND + 16);
    const int64_t later_ns = begin_ns + 60 * RP_NS_PER_S; /* full again, and no fuller */
    assert_in_range(admitted_of(&flood, 100000, 100, later_ns), AT_ONCE, AT_ONCE + 1);
}

static void bytes_count(void **state) {
    (void)state;
    rp_flood flood = {0};
    assert_in_range(admitted_of(&flood, 1000, 64 << 20, RP_NS_PER_S), 32,
                    33); /* 1,025 units each */
}

/* Four of five packets bring nothing, as fast as they come: a bad line, and not a flood. */
static void who_gets_on_is_not_held_up(void **state) {
    (void)state;
    rp_flood flood = {0};
    for (uint32_t i = 0; i < 1000000; i++) {
        assert_true(rp_flood_admits(&flood, 1000, RP_NS_PER_S));
        if (i % 5 == 4) {
            rp_flood_pay(&flood, 1000);
        }
    }
    assert_int_equal(flood.dropped, 0);
    /* What was paid is not kept for later. */
    flood = (rp_flood){0};
    for (uint32_t i = 0; i < 1000000; i++) {
        assert_true(rp_flood_admits(&flood, 1000, RP_NS_PER_S));
        rp_flood_pay(&flood, 1000);
    }
    assert_in_range(admitted_of(&flood, 100000, 100, RP_NS_PER_S), AT_ONCE, AT_ONCE + 1);
}

static void it_is_told_now_and_then(void **state) {
    (void)state;
    rp_flood flood = {0};
    assert_false(rp_flood_is_news(&flood, RP_NS_PER_S));
    (void)admitted_of(&flood, 2 * AT_ONCE, 1, RP_NS_PER_S);
    assert_true(rp_flood_is_news(&flood, RP_NS_PER_S));
    assert_false(rp_flood_is_news(&flood, 10 * RP_NS_PER_S));
    assert_true(rp_flood_is_news(&flood, 11 * RP_NS_PER_S));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_is_cut_to_its_rate),
        cmocka_unit_test(bytes_count),
        cmocka_unit_test(who_gets_on_is_not_held_up),
        cmocka_unit_test(it_is_told_now_and_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
