/* Trusted keys that connect again and again. */
#include "transport/callers.h"

#include "base/clock.h"
#include "expect.h"

static const uint8_t key[RP_KEY_BYTES] = {1}, other[RP_KEY_BYTES] = {2};

typedef struct {
    uint32_t there, asked;
} end;

static end at; /* where they connect */

static uint32_t count_there(const void *context) {
    assert_ptr_equal(context, &at);
    at.asked++;
    return at.there;
}

static bool admit(rp_callers *callers, const uint8_t *who, int64_t now_ns) {
    const bool admitted = rp_callers_admit(callers, who, now_ns, count_there, &at);
    at.there += admitted;
    return admitted;
}

static void a_key_has_so_many_connections(void **state) {
    (void)state;
    rp_callers callers = {0};
    at = (end){0};
    for (int64_t s = 0; s < 1000; s++) { /* slowly */
        assert_int_equal(admit(&callers, key, s * RP_NS_PER_S), s < RP_CALLER_CONNECTIONS);
    }
    assert_int_equal(at.there, RP_CALLER_CONNECTIONS);
    assert_int_equal(callers.refused, 1000 - RP_CALLER_CONNECTIONS);
    assert_true(admit(&callers, other, 1000 * RP_NS_PER_S)); /* nobody is kept out by it */
    at.there -= 10;
    for (int64_t s = 1000; s < 1100; s++) {
        (void)admit(&callers, key, s * RP_NS_PER_S);
    }
    assert_int_equal(at.there, RP_CALLER_CONNECTIONS); /* one of them is the other's */
}

/* One whose connections end is not held up, and it is hardly ever asked how many there are. */
static void who_comes_and_goes_gets_in(void **state) {
    (void)state;
    rp_callers callers = {0};
    at = (end){.there = 1};
    for (int64_t s = 0; s < 1000; s++) {
        assert_true(admit(&callers, key, s * RP_NS_PER_S));
        at.there--;
    }
    assert_in_range(at.asked, 1, 1000 / (RP_CALLER_CONNECTIONS - 2));
}

static void handshakes_are_cut_to_their_rate(void **state) {
    (void)state;
    rp_callers callers = {0};
    uint32_t admitted = 0;
    at = (end){0};
    for (uint32_t i = 0; i < 10000; i++) {
        admitted += admit(&callers, key, RP_NS_PER_S);
        at.there = 0;
    }
    assert_int_equal(admitted, RP_CALLER_AT_ONCE);
    assert_true(admit(&callers, other, RP_NS_PER_S));
    for (int64_t i = 0; i < 1000; i++) { /* ten seconds */
        admitted += admit(&callers, key, RP_NS_PER_S + i * 10 * RP_NS_PER_MS);
        at.there = 0;
    }
    assert_in_range(admitted, RP_CALLER_AT_ONCE + 10 * RP_CALLER_A_SECOND - 1,
                    RP_CALLER_AT_ONCE + 10 * RP_CALLER_A_SECOND + 1);
}

static void it_is_told_now_and_then(void **state) {
    (void)state;
    rp_callers callers = {0};
    assert_false(rp_callers_is_news(&callers, key, RP_NS_PER_S)); /* who is that? */
    assert_true(admit(&callers, key, RP_NS_PER_S));
    assert_true(rp_callers_is_news(&callers, key, RP_NS_PER_S));
    assert_false(rp_callers_is_news(&callers, key, 10 * RP_NS_PER_S));
    assert_true(rp_callers_is_news(&callers, key, 11 * RP_NS_PER_S));
}

/* More keys than are remembered: memory is bounded, and nobody is kept out. */
static void many_keys_are_let_in(void **state) {
    (void)state;
    rp_callers callers = {0};
    at = (end){0};
    for (uint32_t i = 0; i < 4 * RP_CALLERS_MAX; i++) {
        const uint8_t who[RP_KEY_BYTES] = {3, (uint8_t)i, (uint8_t)(i >> 8)};
        assert_true(admit(&callers, who, RP_NS_PER_S));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_so_many_connections),
        cmocka_unit_test(who_comes_and_goes_gets_in),
        cmocka_unit_test(handshakes_are_cut_to_their_rate),
        cmocka_unit_test(it_is_told_now_and_then),
        cmocka_unit_test(many_keys_are_let_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
