#include "base/log.h"
#include "expect.h"
#include "transport/profile.h"

static rp_err parse_profile(const char *text, rp_link_profile *profile) {
    rp_arena arena;
    rp_node *root;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &root));
    const rp_link_reader reader = rp_link_reader_plain(&arena);
    memset(profile, 0, sizeof *profile);
    rp_err err = rp_link_profile_parse(profile, rp_node_find(root, "link"), &reader, NULL);
    rp_arena_finish(&arena);
    return err;
}

static void profiles_are_read(void **state) {
    (void)state;
    rp_link_profile profile;
    expect_ok(parse_profile("link: {rate_mbit: 10, delay_ms: 20, jitter_ms: 5, loss: 0.01, "
                            "outage: \"every 60s for 5.5s\", control: true}",
                            &profile));
    expect_close(profile.rate_mbit, 10, 0, 0);
    expect_close(profile.delay_ms, 20, 0, 0);
    expect_close(profile.jitter_ms, 5, 0, 0);
    expect_close(profile.loss, 0.01, 0, 0);
    expect_close(profile.outage.every_s, 60, 0, 0);
    expect_close(profile.outage.for_s, 5.5, 0, 0);
    assert_true(profile.control);
    assert_true(rp_link_profile_has_line(&profile));
    expect_ok(parse_profile("link: {loss: 0.01}", &profile));
    assert_false(profile.control);
    expect_ok(parse_profile("link: {control: true, shared: air}", &profile));
    assert_false(rp_link_profile_has_line(&profile));
    expect_err(parse_profile("link: {control: maybe}", &profile), RP_ERR_USAGE);
    expect_err(parse_profile("link: {loss: 1.0}", &profile), RP_ERR_USAGE);
    expect_err(parse_profile("link: {loss: -0.1}", &profile), RP_ERR_USAGE);
    expect_err(parse_profile("link: {rate: 10}", &profile), RP_ERR_USAGE);
    expect_err(parse_profile("link: {outage: \"every 5s for 60s\"}", &profile), RP_ERR_USAGE);
    expect_err(parse_profile("link: {outage: \"often\"}", &profile), RP_ERR_USAGE);
    expect_err(parse_profile("link: {outage: \"every nans for 1s\"}", &profile), RP_ERR_USAGE);
    expect_err(parse_profile("link: {corrupt: 0.1}", &profile), RP_ERR_USAGE); /* for simulations */
}

/* What one process writes the other reads: the host sends its profile to the boards. */
static void text_is_read_back(void **state) {
    (void)state;
    const rp_link_profile want = {.rate_mbit = 12.5,
                                  .delay_ms = 1.0 / 3,
                                  .jitter_ms = 2,
                                  .loss = 0.01,
                                  .outage = {60, 5.5},
                                  .control = true};
    const rp_link_profile none = {.control = false};
    const rp_link_profile *const cases[] = {&want, &none};
    for (size_t i = 0; i < 2; i++) {
        rp_arena arena;
        rp_link_profile got;
        char *lines;
        char *text;
        rp_arena_init(&arena, "test", 0);
        expect_ok(rp_link_profile_text(cases[i], 0, &arena, "  ", &lines));
        expect_ok(rp_arena_printf(&arena, &text, "link:\n%s", lines));
        expect_ok(parse_profile(text, &got));
        const double numbers[][2] = {{got.rate_mbit, cases[i]->rate_mbit},
                                     {got.delay_ms, cases[i]->delay_ms},
                                     {got.jitter_ms, cases[i]->jitter_ms},
                                     {got.loss, cases[i]->loss},
                                     {got.outage.every_s, cases[i]->outage.every_s},
                                     {got.outage.for_s, cases[i]->outage.for_s}};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            expect_close_at(numbers[k][0], numbers[k][1], 0, 0, "number", k, __FILE__, __LINE__);
        }
        assert_int_equal(got.control, cases[i]->control);
        rp_arena_finish(&arena);
    }
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_are_read),
        cmocka_unit_test(text_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
