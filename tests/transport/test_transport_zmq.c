#include <time.h>

#include "contract.h"

static rp_err bind_at(contract_set *s, const char *endpoint) {
    const rp_port_options options = {.name = "bound",
                                     .bind = endpoint,
                                     .queue = CONTRACT_QUEUE,
                                     .frame_bytes_max = CONTRACT_FRAME_MAX};
    return rp_port_open(s->transport[0], &options, &s->port[0]);
}

static void a_port_listens_at_a_name_of_this_machine(void **state) {
    (void)state;
    static const char *const names[] = {"tcp://localhost:*", "tcp://lo:*", "tcp://127.0.0.1:*"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        contract_set s;
        contract_open(&s);
        expect_ok(bind_at(&s, names[i]));
        assert_memory_equal(s.port[0]->endpoint, "tcp://127.0.0.1:", 16);
        contract_connect(&s, 1, s.port[0]->endpoint);
        contract_close(&s);
    }
}

static void a_port_says_where_it_can_listen(void **state) {
    (void)state;
    static const struct {
        const char *endpoint, *why;
    } cases[] = {
        {"tcp://[::1]:7000", "IPv6 is not supported: expected the IPv4 address"},
        {"tcp://fe80::1:7000", "IPv6 is not supported"},
        {"tcp://no-such-name.invalid:7000", "the name 'no-such-name.invalid' is unknown here"},
        {"tcp://7000", "expected the IPv4 address"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        contract_set s;
        contract_open(&s);
        expect_err(bind_at(&s, cases[i].endpoint), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), cases[i].why));
        assert_non_null(strstr(rp_err_message(), "0.0.0.0"));
        contract_close(&s);
    }
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    contract = (contract_kind){.name = "zmq", .real = true};
    const struct CMUnitTest tests[] = {
        CONTRACT_CASES,
        cmocka_unit_test(a_port_listens_at_a_name_of_this_machine),
        cmocka_unit_test(a_port_says_where_it_can_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
