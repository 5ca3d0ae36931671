/* What is chosen from a profile: the same numbers give the same choice, and it is the best one. */
#include "open_run.h"

#include <math.h>

#include "planning/cost.h"

static void a_slow_link_makes_a_cut_dear(void **state) {
    (void)state;
    read_run(&run, GPIPE);
    /* 8 floats a sample, 8 samples a microbatch, both ways, at 200 MB/s; at 1 Mbit/s */
    expect_close(rp_cost_boundary_s(&run, NULL, 1), 2.0 * 8 * 4 * 8 / 200e6, 1e-12, 0);
    run.link.rate_mbit = 1;
    expect_close(rp_cost_boundary_s(&run, NULL, 1), 2.0 * 8 * 4 * 8 / 125e3, 1e-12, 0);
    run.link.rate_mbit = 1e6; /* no faster than one core encrypts */
    expect_close(rp_cost_boundary_s(&run, NULL, 1), 2.0 * 8 * 4 * 8 / 200e6, 1e-12, 0);
}

/* Each way at its own rate; the slowest hop counts where the cut is not known yet. */
static void hops_have_their_own_rates(void **state) {
    (void)state;
    rp_link_layer there = {.from = 0, .to = 1, .set = 1, .profile = {.rate_mbit = 1}};
    read_run(&run, GPIPE);
    run.emulate = true;
    run.link = (rp_link_profile){.rate_mbit = 10, .delay_ms = 5, .jitter_ms = 1};
    run.hops = (rp_link_hops){.count = 1, .layer = &there};
    expect_close(rp_cost_boundary_s(&run, NULL, 1), 8.0 * 4 * 8 * (1 / 125e3 + 1 / 1250e3), 1e-12,
                 0);
    run.link = (rp_link_profile){.rate_mbit = 10, .delay_ms = 5, .jitter_ms = 1, .shared = "air"};
    expect_close(rp_cost_boundary_s(&run, NULL, 1), 16.0 * 4 * 8 * (1 / 125e3 + 1 / 1250e3), 1e-12,
                 0);
    expect_close(rp_cost_link_delay_s(&run), 6e-3, 1e-12, 0);
    there.set = 2; /* the delay */
    there.profile.delay_ms = 30;
    expect_close(rp_cost_link_delay_s(&run), 31e-3, 1e-12, 0);
    there.to = 7; /* no hop of this ring */
    expect_close(rp_cost_link_delay_s(&run), 6e-3, 1e-12, 0);
}

static void copies_cost_two_percent(void **state) {
    (void)state;
    static const struct {
        double step_s, copy_s;
        uint32_t steps;
    } cases[] = {{0.1, 0.02, 10},
                 {0.1, 0.0201, 11},
                 {0.1, 0.001, 1},
                 {10, 0, 1},
                 {0.03, 4, 6667},
                 {1e-9, 30, RP_COPY_STEPS_MAX},
                 {0, 1, RP_COPY_STEPS_MAX}, /* nothing is known of steps */
                 {0, 0, 1},
                 {0.1, (double)NAN, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t steps = rp_cost_choose_copy_steps(cases[i].step_s, cases[i].copy_s);
        assert_int_equal(steps, cases[i].steps);
        if (cases[i].step_s > 0 && cases[i].copy_s > 0 && steps < RP_COPY_STEPS_MAX) {
            assert_true(cases[i].copy_s <= 0.0200001 * steps * cases[i].step_s);
        }
    }
}

/* 8 int8 and their scale, f16 the other way; the dearest boundary where they differ. */
static void codecs_make_it_cheaper(void **state) {
    (void)state;
    static const rp_codec codec[2][2] = {{RP_CODEC_INT8, RP_CODEC_F16}, {RP_CODEC_F32}};
    read_run(&run, GPIPE "links: {codec: {activations: int8, gradients: f16}}\n");
    run.emulate = true;
    run.link = (rp_link_profile){.rate_mbit = 1};
    expect_close(rp_cost_boundary_s(&run, NULL, 1), (12.0 + 16) * 8 / 125e3, 1e-12, 0);
    run.codec = codec;
    run.boards = run.stages = 3;
    expect_close(rp_cost_boundary_s(&run, NULL, 1), 2.0 * 8 * 4 * 8 / 125e3, 1e-12, 0);
}

/* What the wire from board 0 has to be, so that 8 x 8 floats take as long as the slower stage. */
static void wires_decide_on_the_codecs(void **state) {
    (void)state;
    static const struct {
        double rate_mbit, forward_ms;
        rp_codec want;
    } cases[] = {{0.4, 0, RP_CODEC_F32},  {0.2, 0, RP_CODEC_F16},   {0.15, 0, RP_CODEC_INT8},
                 {0.1, 0, RP_CODEC_INT4}, {0.01, 0, RP_CODEC_INT4}, {0.1, 40, RP_CODEC_F32}};
    const double seconds[] = {1e-3, 2e-3, 1e-3, 2e-3, 1e-3, 2e-3};
    const rp_cut cut = {.stage_count = 2, .first = (const uint32_t[]){0, 2, 3}};
    rp_link_layer there = {.from = 0, .to = 1, .set = 1};
    rp_codec out[1][2];
    read_run(
        &run,
        "schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\nlinks: {codec: auto, max_error: 0.1}\n");
    run.emulate = true;
    run.hops = (rp_link_hops){.count = 1, .layer = &there};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        there.profile.rate_mbit = cases[i].rate_mbit;
        run.throttle.all.forward_ms = cases[i].forward_ms;
        expect_ok(rp_cost_choose_codecs(&run, &cut, seconds, NULL, out));
        assert_int_equal(out[0][0], cases[i].want);
        assert_int_equal(out[0][1], RP_CODEC_F32);
    }
    there.profile.rate_mbit = 0.1; /* what keeps to 5 % */
    run.throttle.all.forward_ms = 0;
    run.codec_max_error = 0.05;
    expect_ok(rp_cost_choose_codecs(&run, &cut, seconds, NULL, out));
    assert_int_equal(out[0][0], RP_CODEC_INT8);
    run.codec_max_error = 0.1;
    there.from = 1; /* gradients, which an f16 may have no number for */
    there.to = 0;
    there.profile.rate_mbit = 0.2;
    run.throttle.all.forward_ms = 0;
    expect_ok(rp_cost_choose_codecs(&run, &cut, seconds, NULL, out));
    assert_int_equal(out[0][0], RP_CODEC_F32);
    assert_int_equal(out[0][1], RP_CODEC_BF16);
    const double measured[] = {0, 12.5e3, 0, 0}; /* bytes a second, from board 0 to 1 */
    expect_ok(rp_cost_choose_codecs(&run, &cut, seconds, measured, out));
    assert_int_equal(out[0][0], RP_CODEC_INT4);
    assert_int_equal(out[0][1], RP_CODEC_BF16);
    run.hops.count = 0; /* the wire of the inputs is as slow: nothing is won */
    run.link.rate_mbit = 0.01;
    expect_ok(rp_cost_choose_codecs(&run, &cut, seconds, NULL, out));
    assert_int_equal(out[0][0], RP_CODEC_F32);
}

/* Two boundaries each way on the wire between two boards: each may have a half. */
static void boundaries_share_a_wire(void **state) {
    (void)state;
    const double seconds[] = {1e-3, 2e-3, 1e-3, 2e-3, 1e-3, 2e-3};
    const rp_cut cut = {.stage_count = 3, .first = (const uint32_t[]){0, 1, 2, 3}};
    rp_link_layer there = {.from = 0, .to = 1, .set = 1, .profile = {.rate_mbit = 0.4}};
    rp_codec out[2][2];
    read_run(
        &run,
        "schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\nlinks: {codec: auto, max_error: 0.1}\n");
    run.emulate = true;
    run.hops = (rp_link_hops){.count = 1, .layer = &there};
    run.stages = 3; /* board 0 has the first and the last */
    expect_ok(rp_cost_choose_codecs(&run, &cut, seconds, NULL, out));
    assert_int_equal(out[0][0], RP_CODEC_F16);  /* up from board 0 .. */
    assert_int_equal(out[1][1], RP_CODEC_BF16); /* .. and down, from the last stage */
    assert_int_equal(out[0][1], RP_CODEC_F32);
    assert_int_equal(out[1][0], RP_CODEC_F32);
}

/* All wires are one: with less and less of a rate one after the other gets a codec, where equal
 * parts of it would give one to several at once. */
static void what_takes_turns_counts_together(void **state) {
    (void)state;
    const double seconds[] = {1e-3, 2e-3, 1e-3, 2e-3, 1e-3, 2e-3};
    const rp_cut cut = {.stage_count = 3, .first = (const uint32_t[]){0, 1, 2, 3}};
    rp_link_layer host = {.from = RP_LINK_HOST, .to = 0, .set = 1, .profile = {.rate_mbit = 1e6}};
    rp_codec out[2][2];
    uint32_t coded = 0;
    uint32_t before = 4;
    read_run(
        &run,
        "schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\nlinks: {codec: auto, max_error: 0.1}\n");
    run.emulate = true;
    run.boards = run.stages = 3;
    (void)snprintf(run.link.shared, sizeof run.link.shared, "air");
    run.hops = (rp_link_hops){.count = 1, .layer = &host}; /* inputs hold nothing up */
    uint32_t rates[5] = {0};                               /* with so many that are coded */
    for (uint32_t i = 0; i < 60; i++) {
        run.link.rate_mbit = 0.1 * pow(1.1, i);
        expect_ok(rp_cost_choose_codecs(&run, &cut, seconds, NULL, out));
        coded = 0;
        for (uint32_t slot = 0; slot < 4; slot++) {
            coded += out[slot / 2][slot % 2] != RP_CODEC_F32;
        }
        assert_true(coded <= before);
        rates[coded]++;
        before = coded;
    }
    assert_true(rates[0] > 0 && rates[4] > 0);            /* none, all .. */
    assert_true(rates[1] > 0 && rates[2] + rates[3] > 0); /* .. one after the other between */
}

/* Boards 0 and 2 are no neighbours; what leaves board 0 is slow. */
static void a_wire_that_was_not_measured(void **state) {
    (void)state;
    const rp_curve_point slow[] = {{64, 1e-5, 0.1}, {1 << 20, 0.5, 0.1}};
    const rp_curve_point fast[] = {{64, 1e-5, 0.1}, {1 << 20, 0.01, 0.1}};
    const double bytes = 1 << 20;
    rp_profile profile;
    read_run(&run, GPIPE);
    expect_ok(rp_profile_open(&arena, &run, 3, &profile));
    assert_true(rp_cost_wire_s(&run, &profile, 0, 2, bytes) == bytes / 200e6);
    expect_ok(rp_profile_take_wire(&profile, 0, 1, slow, 2));
    expect_ok(rp_profile_take_wire(&profile, 1, 0, fast, 2));
    expect_ok(rp_profile_take_wire(&profile, 1, 2, fast, 2));
    expect_ok(rp_profile_take_wire(&profile, 2, 1, fast, 2));
    const double there = rp_cost_wire_s(&run, &profile, 0, 2, bytes);
    const double back = rp_cost_wire_s(&run, &profile, 2, 0, bytes);
    assert_true(there == rp_cost_wire_s(&run, &profile, 0, 1, bytes));
    assert_true(back == rp_cost_wire_s(&run, &profile, 1, 0, bytes));
    assert_true(there > 40 * back);
}

static void milder_ones_lose_less(void **state) {
    (void)state;
    static const rp_codec steps[][2] = {{RP_CODEC_INT4, RP_CODEC_INT4},
                                        {RP_CODEC_INT8, RP_CODEC_INT8},
                                        {RP_CODEC_F16, RP_CODEC_BF16},
                                        {RP_CODEC_F32, RP_CODEC_F32},
                                        {RP_CODEC_F32, RP_CODEC_F32}};
    for (size_t i = 0; i + 1 < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(rp_cost_milder(steps[i][0], false), steps[i + 1][0]);
        assert_int_equal(rp_cost_milder(steps[i][1], true), steps[i + 1][1]);
    }
}

static void the_slowest_stage_is_fastest(void **state) {
    (void)state;
    const double last[] = {1, 1, 1, 1, 5, 5};
    const double first[] = {5, 5, 1, 1, 1, 1};
    rp_cut cut;
    read_run(&run, GPIPE);
    expect_ok(rp_cost_choose_cut(&arena, &run, last, &cut));
    assert_int_equal(cut.stage_count, 2);
    assert_int_equal(cut.first[1], 2);
    expect_ok(rp_cost_choose_cut(&arena, &run, first, &cut));
    assert_int_equal(cut.first[1], 1);
}

/* Slower links need more forwards in flight, up to what boards have memory for. */
static void links_decide_on_the_advance(void **state) {
    (void)state;
    const double seconds[] = {1e-3, 2e-3, 1e-3, 2e-3, 1e-3, 2e-3};
    const rp_cut cut = {.stage_count = 2, .first = (const uint32_t[]){0, 2, 3}};
    rp_advance_choice near;
    rp_advance_choice far;
    rp_advance_choice bounded;
    read_run(&run, "schedule: {kind: pipedream, advance: auto}\noptimizer: {kind: sgd, lr: 0.1}\n");
    expect_ok(rp_cost_choose_advance(&run, &cut, seconds, 0, NULL, RP_ADVANCE_AUTO, &near));
    expect_ok(rp_cost_choose_advance(&run, &cut, seconds, 20e-3, NULL, RP_ADVANCE_AUTO, &far));
    assert_true(near.advance < far.advance);
    assert_true(far.busy[far.advance] > far.busy[near.advance]);
    expect_ok(rp_cost_choose_advance(&run, &cut, seconds, 20e-3, NULL, 1, &bounded));
    assert_int_equal(bounded.advance, 1);
}

/* Wires that have been seen to be slow need more in flight, too. */
static void measured_rates_decide_on_the_advance(void **state) {
    (void)state;
    const double seconds[] = {1e-3, 2e-3, 1e-3, 2e-3, 1e-3, 2e-3};
    const double rate[] = {0, 1e4, 1e4, 0}; /* bytes a second */
    const rp_cut cut = {.stage_count = 2, .first = (const uint32_t[]){0, 2, 3}};
    rp_advance_choice fast;
    rp_advance_choice slow;
    read_run(&run, "schedule: {kind: pipedream, advance: auto}\noptimizer: {kind: sgd, lr: 0.1}\n");
    expect_ok(rp_cost_choose_advance(&run, &cut, seconds, 0, NULL, RP_ADVANCE_AUTO, &fast));
    expect_ok(rp_cost_choose_advance(&run, &cut, seconds, 0, rate, RP_ADVANCE_AUTO, &slow));
    assert_true(fast.advance < slow.advance);
    expect_close(slow.slowest, 8.0 * 4 * 8 / 1e4, 1e-12, 0); /* else a board's 6 ms */
}

static void more_microbatches_keep_boards_busy(void **state) {
    (void)state;
    uint32_t micro;
    double busy;
    double better;
    read_run(&run, GPIPE);
    run.micro = run.batch;
    expect_ok(rp_cost_compare_micro(&run, &micro, &busy, &better));
    assert_int_equal(micro, 8);
    expect_close(busy, 0.5, 1e-9, 0); /* one of two boards works at a time */
    assert_true(better > busy + 0.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_slow_link_makes_a_cut_dear, setup, close_run),
        cmocka_unit_test_setup_teardown(hops_have_their_own_rates, setup, close_run),
        cmocka_unit_test_setup_teardown(copies_cost_two_percent, setup, close_run),
        cmocka_unit_test_setup_teardown(codecs_make_it_cheaper, setup, close_run),
        cmocka_unit_test_setup_teardown(wires_decide_on_the_codecs, setup, close_run),
        cmocka_unit_test_setup_teardown(boundaries_share_a_wire, setup, close_run),
        cmocka_unit_test_setup_teardown(what_takes_turns_counts_together, setup, close_run),
        cmocka_unit_test_setup_teardown(a_wire_that_was_not_measured, setup, close_run),
        cmocka_unit_test(milder_ones_lose_less),
        cmocka_unit_test_setup_teardown(the_slowest_stage_is_fastest, setup, close_run),
        cmocka_unit_test_setup_teardown(links_decide_on_the_advance, setup, close_run),
        cmocka_unit_test_setup_teardown(measured_rates_decide_on_the_advance, setup, close_run),
        cmocka_unit_test_setup_teardown(more_microbatches_keep_boards_busy, setup, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
