#include "enrol/addresses.h"
#include "expect.h"

static void expect_addresses(const char *listen, const char *only) {
    const char *address[RP_ENROL_ADDRESSES_MAX];
    uint32_t count = 0;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_enrol_addresses(&arena, listen, address, &count));
    assert_true(count >= 1 && count <= RP_ENROL_ADDRESSES_MAX);
    if (only) {
        assert_int_equal(count, 1);
        assert_string_equal(address[0], only);
    }
    for (uint32_t i = 0; i < count; i++) { /* real ones, each once, with the port */
        assert_null(strstr(address[i], "0.0.0.0"));
        assert_null(strstr(address[i], "HOST"));
        assert_string_equal(strrchr(address[i], ':'), strrchr(listen, ':'));
        for (uint32_t k = 0; k < i; k++) {
            assert_string_not_equal(address[i], address[k]);
        }
    }
    rp_arena_finish(&arena);
}

static void each_way_to_listen_gives_addresses(void **state) {
    (void)state;
    expect_addresses("tcp://10.0.0.2:7900", "10.0.0.2:7900");
    expect_addresses("tcp://desk.local:81", "desk.local:81");
    expect_addresses("tcp://lo:7900", "127.0.0.1:7900");
    expect_addresses("tcp://0.0.0.0:7900", NULL);
    expect_addresses("tcp://*:7900", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_way_to_listen_gives_addresses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
