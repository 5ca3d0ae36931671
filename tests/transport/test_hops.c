/* Which profile a wire has: layers over one of all, each way by itself. */
#include "base/log.h"
#include "expect.h"
#include "transport/hops.h"

static rp_arena arena;

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static const char *const names[] = {"left", "right", "third"};

static rp_err read_link(const char *text, const rp_link_ends *ends, rp_link_profile *all,
                        rp_link_hops *hops) {
    rp_node *root;
    *all = (rp_link_profile){0};
    *hops = (rp_link_hops){0};
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &root));
    return rp_link_hops_parse(rp_node_find(root, "link"), ends, all, hops);
}

/* "RATE/DELAY/LOSS" of some wires. */
static void check_wires(const rp_link_profile *all, const rp_link_hops *hops) {
    const struct {
        uint32_t from, to;
        double rate, delay, loss;
    } want[] = {
        {0, 1, 5, 20, 0},              /* between */
        {1, 0, 5, 20, 0},              /* .. both ways */
        {1, 2, 10, 20, 0.1},           /* one way */
        {2, 1, 10, 20, 0},             /* .. and not the other */
        {RP_LINK_HOST, 0, 100, 20, 0}, /* from the host to any */
        {2, RP_LINK_HOST, 10, 7, 0},   /* to the host */
        {0, 2, 10, 20, 0},             /* as all */
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const rp_link_profile got = rp_link_profile_of(all, hops, want[i].from, want[i].to);
        expect_close_at(got.rate_mbit, want[i].rate, 0, 0, "rate", i, __FILE__, __LINE__);
        expect_close_at(got.delay_ms, want[i].delay, 0, 0, "delay", i, __FILE__, __LINE__);
        expect_close_at(got.loss, want[i].loss, 0, 0, "loss", i, __FILE__, __LINE__);
    }
}

static void each_way_has_its_own_profile(void **state) {
    (void)state;
    rp_link_profile all;
    rp_link_hops hops;
    char *lines;
    char *text;
    const rp_link_ends ends = {.boards = 3, .name = names, .reader = rp_link_reader_plain(&arena)};
    const rp_link_ends numbers = {.boards = 3, .reader = rp_link_reader_plain(&arena)};
    expect_ok(read_link("link:\n"
                        "  rate_mbit: 10\n"
                        "  delay_ms: 20\n"
                        "  loss: 0.05\n"
                        "  hops:\n"
                        "    - {from: any, to: any, loss: 0}\n"
                        "    - {between: [0, right], rate_mbit: 5}\n"
                        "    - {from: 1, to: third, loss: 0.1}\n"
                        "    - {from: host, rate_mbit: 100}\n"
                        "    - {to: host, delay_ms: 7}\n",
                        &ends, &all, &hops));
    check_wires(&all, &hops);
    /* what the boards are sent says the same, a zero over another value included */
    expect_ok(rp_link_hops_text(&arena, &all, &hops, "  ", &lines));
    expect_ok(rp_arena_printf(&arena, &text, "link:\n%s", lines));
    expect_ok(read_link(text, &numbers, &all, &hops));
    check_wires(&all, &hops);
}

static void wires_that_share_have_one_medium(void **state) {
    (void)state;
    rp_link_profile all;
    rp_link_hops hops;
    char *lines;
    char *text;
    const rp_link_ends ends = {.boards = 3, .name = names, .reader = rp_link_reader_plain(&arena)};
    expect_ok(read_link("link:\n"
                        "  shared: air\n"
                        "  hops:\n"
                        "    - {between: [0, 1], shared: pair}\n"
                        "    - {from: 2, to: 0, shared: none}\n"
                        "    - {from: host, shared: other_1}\n",
                        &ends, &all, &hops));
    for (int turn = 0; turn < 2; turn++) {
        const uint64_t air = rp_link_profile_of(&all, &hops, 0, 2).medium;
        const uint64_t pair = rp_link_profile_of(&all, &hops, 0, 1).medium;
        const uint64_t host = rp_link_profile_of(&all, &hops, RP_LINK_HOST, 1).medium;
        assert_true(air && pair && host && air != pair && air != host && pair != host);
        assert_int_equal(rp_link_profile_of(&all, &hops, 1, 2).medium, air);
        assert_int_equal(rp_link_profile_of(&all, &hops, 2, RP_LINK_HOST).medium, air);
        assert_int_equal(rp_link_profile_of(&all, &hops, 1, 0).medium, pair);
        assert_int_equal(rp_link_profile_of(&all, &hops, 2, 0).medium, 0);
        assert_int_equal(rp_link_profile_of(&all, &hops, RP_LINK_HOST, 2).medium, host);
        expect_ok(rp_link_hops_text(&arena, &all, &hops, "  ", &lines));
        expect_ok(rp_arena_printf(&arena, &text, "link:\n%s", lines));
        expect_ok(read_link(text, &ends, &all, &hops));
    }
    expect_err(read_link("link: {shared: \"a b\"}", &ends, &all, &hops), RP_ERR_USAGE);
    expect_err(read_link("link: {shared: a2345678901234567890123456789012}", &ends, &all, &hops),
               RP_ERR_USAGE);
}

static void the_time_of_lines_goes_on(void **state) {
    (void)state;
    const rp_link_profile all = {.delay_ms = 1};
    const rp_link_hops hops = {.since_s = 12.5};
    expect_close(rp_link_profile_of(&all, &hops, 0, 1).since_s, 12.5, 0, 0);
}

static void outages_are_read_and_written(void **state) {
    (void)state;
    rp_link_profile all;
    rp_link_hops hops;
    char *lines;
    char *text;
    const rp_link_ends ends = {.boards = 2, .reader = rp_link_reader_plain(&arena)};
    expect_ok(read_link("link:\n"
                        "  outage: [\"at 10s for 3s\", \"every 60s for 5s\", \"at 40s for 1.5s\"]\n"
                        "  hops: [{from: 0, outage: none}]\n",
                        &ends, &all, &hops));
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(all.outages, 2);
        expect_close(all.away[0].at_s, 10, 0, 0);
        expect_close(all.away[1].for_s, 1.5, 0, 0);
        expect_close(all.outage.every_s, 60, 0, 0);
        expect_close(rp_link_profile_held_s(&all), 8, 0, 0);
        const rp_link_profile none = rp_link_profile_of(&all, &hops, 0, 1);
        assert_int_equal(none.outages, 0);
        assert_false(rp_link_profile_has_line(&none));
        expect_ok(rp_link_hops_text(&arena, &all, &hops, "  ", &lines));
        expect_ok(rp_arena_printf(&arena, &text, "link:\n%s", lines));
        expect_ok(read_link(text, &ends, &all, &hops));
    }
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    const struct {
        const char *text, *says;
    } cases[] = {
        {"link: {hops: 5}", "run.yaml:1: link.hops: expected a list of hops"},
        {"link: {hops: [5]}", "expected {between: [0, 1], ..} for both directions"},
        {"link: {hops: [{rate_mbit: 5}]}", "expected {between: [0, 1], ..} for both directions"},
        {"link: {hops: [{between: [0], loss: 0}]}", "expected {between: [0, 1], ..}"},
        {"link: {hops: [{between: [0, 1], to: 1}]}", "expected {between: [0, 1], ..}"},
        {"link: {hops: [{from: 3}]}", "place in the ring from 0 to 2, its name, `host` or `any`"},
        {"link: {hops: [{from: nobody}]}", "found 'nobody'"},
        {"link: {hops: [{from: 1, to: right}]}", "expected two different ends"},
        {"link: {hops: [{from: 1, rate: 5}]}", "rate"},
        {"link: {hops: [{from: 1, rate_mbit: -5}]}", "rate_mbit"},
        {"link: {since_s: 5}", "since_s"},
        {"link: {outage: \"at 10s\"}", "found 'at 10s'"},
        {"link: {outage: [\"at 10s for 3s\", \"at 11s for 3s\"]}",
         "after the end of the previous one"},
        {"link: {outage: [\"every 9s for 3s\", \"every 9s for 2s\"]}", "once"},
        {"link: {outage: \"at nans for 3s\"}", "found 'at nans for 3s'"},
        {"link: {outage: {at: 5}}", "found 'a list or a map'"},
    };
    const rp_link_ends ends = {.boards = 3, .name = names, .reader = rp_link_reader_plain(&arena)};
    rp_link_profile all;
    rp_link_hops hops;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_err(read_link(cases[i].text, &ends, &all, &hops), RP_ERR_USAGE);
        if (!strstr(rp_err_message(), cases[i].says)) {
            fail_msg("%s: '%s' does not say '%s'", cases[i].text, rp_err_message(), cases[i].says);
        }
    }
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_way_has_its_own_profile, setup, teardown),
        cmocka_unit_test_setup_teardown(wires_that_share_have_one_medium, setup, teardown),
        cmocka_unit_test_setup_teardown(the_time_of_lines_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(outages_are_read_and_written, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_named, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
