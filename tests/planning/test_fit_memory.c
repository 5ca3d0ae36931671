/* What does not fit into a board's memory computes forwards again, where that helps. */
#include "open_run.h"

#include "planning/fit_memory.h"
#include "planning/planfile.h"

static const char model[] = "input: data\n"
                            "layers:\n"
                            "  - {name: c1, kind: conv2d, out: 8, kernel: 3, pad: 1}\n"
                            "  - {name: t1, kind: tanh}\n"
                            "  - {name: c2, kind: conv2d, out: 8, kernel: 3, pad: 1}\n"
                            "  - {name: t2, kind: tanh}\n"
                            "  - {name: c3, kind: conv2d, out: 8, kernel: 3, pad: 1}\n"
                            "  - {name: t3, kind: tanh}\n"
                            "  - {name: flat, kind: flatten}\n"
                            "  - {name: fc, kind: dense, out: classes}\n";

static void read_limited(const char *schedule, const char *more, const char *memory_mb) {
    char text[1024];
    write_text("model.yaml", model);
    (void)snprintf(text, sizeof text,
                   "model: %s/model.yaml\n"
                   "data: {set: glyphs, train: 64, test: 24, size: 12}\n"
                   "ring: {boards: 2, memory_mb: %s}\n"
                   "train: {epochs: 2, batch: 32, microbatch: 2, seed: 1}\n"
                   "loss: cross-entropy\nschedule: %s\n"
                   "optimizer: {kind: sgd, lr: 0.1}\n%s",
                   folder, memory_mb, schedule, more);
    expect_ok(rp_runfile_read(&arena, write_text("run.yaml", text), NULL, 0, &run));
}

static rp_profile profile; /* of both boards */

static rp_err make_by(const rp_profile *known, rp_plan **out) {
    static const char *const names[] = {"0", "1"};
    const uint32_t first[] = {0, 6, 8};
    const rp_cut cut = {.stage_count = 2, .first = first};
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names, .profile = known};
    return rp_planfile_make(&arena, &chosen, out);
}

static rp_err make(rp_plan **out) {
    return make_by(NULL, out);
}

/* A layer takes a millisecond forwards and two backwards; a copy to the device or from it `bus`
 * bytes a second, and flash as many as `flash`. 0: nobody has measured. */
static void know(rp_device_memory memory, double bus, double flash) {
    double values[2 * 8];
    expect_ok(rp_profile_open(&arena, &run, 2, &profile));
    for (uint32_t i = 0; i < 16; i++) {
        values[i] = i % 2 ? 2e-3 : 1e-3;
    }
    for (uint32_t k = 0; k < 2; k++) {
        rp_profile_board *board = &profile.board[k];
        board->name = k ? "1" : "0";
        expect_ok(rp_profile_take(&arena, &profile, k, values, 16));
        rp_profile_take_flash(&profile, k, flash, flash);
        board->device_memory = memory;
        for (uint32_t i = 0; i < 4 && bus > 0; i++) {
            board->copy_s[i / 2][i % 2] = (double)RP_MEASURED_COPY_BYTES[i % 2] / bus;
        }
    }
}

/* 16 slots of three tensors of 8 x 12 x 12 floats and 2 samples take 0.44 MB. */
static void what_fits_keeps_all(void **state) {
    (void)state;
    rp_plan *plan;
    read_limited("gpipe", "", "2");
    expect_ok(make(&plan));
    assert_false(plan->stage[0].recompute || plan->stage[1].recompute);
    assert_null(plan->stage[0].memory_why);
}

static void what_does_not_is_computed_again(void **state) {
    (void)state;
    rp_plan *plan;
    rp_plan *read;
    char *text;
    read_limited("gpipe", "", "[0.3, 0]");
    expect_ok(make(&plan));
    assert_true(plan->stage[0].recompute);
    assert_false(plan->stage[1].recompute); /* its board has no limit */
    assert_non_null(strstr(plan->stage[0].memory_why, "MiB instead of"));
    assert_int_equal(plan->node[0].memory_bytes, 300000);
    expect_ok(rp_plan_check(plan, run.model));
    expect_ok(rp_plan_text(&arena, plan, &text));
    expect_ok(rp_plan_parse(&arena, text, strlen(text), "plan.json", &read));
    assert_true(rp_plan_same(plan, read));
}

static void what_the_file_says_counts(void **state) {
    (void)state;
    rp_plan *plan;
    read_limited("gpipe", "recompute: [t1, 1]\n", "0");
    expect_ok(make(&plan));
    assert_true(plan->stage[0].recompute && plan->stage[1].recompute);
    assert_int_equal(plan->stage[0].group_count, 1);
    assert_string_equal(plan->stage[0].group[0], "t1");
    assert_int_equal(plan->stage[1].group_count, 0);
    rp_runfile_close(&run);
    read_limited("gpipe", "offload: [0]\n", "[0.3, 0]"); /* three stashes fit */
    expect_ok(make(&plan));
    assert_string_equal(plan->stage[0].offload, "host");
    assert_string_equal(plan->stage[1].offload, "none");
    assert_false(plan->stage[0].recompute);
    expect_ok(rp_plan_check(plan, run.model));
    rp_runfile_close(&run);
    read_limited("gpipe", "recompute: none\n", "0.3"); /* the board will refuse it */
    expect_ok(make(&plan));
    assert_false(plan->stage[0].recompute);
}

static void expect_why(const rp_plan *plan, const char *text) {
    const char *why = plan->stage[0].memory_why;
    assert_non_null(why);
    if (!strstr(why, text)) {
        fail_msg("'%s' is not in '%s'", text, why);
    }
}

/* A plan that is read knows what it writes and keeps, too. */
static void expect_given(const rp_plan *plan) {
    rp_plan *read;
    char *text;
    const char *path = in_folder("plan.json");
    expect_ok(rp_plan_text(&arena, plan, &text));
    (void)unlink(path);
    append("plan.json", text, strlen(text));
    expect_ok(rp_planfile_read(&arena, path, &run, "opencl", &read));
    assert_true(rp_plan_same(plan, read));
    assert_int_equal(read->stage[0].leave_tensors, plan->stage[0].leave_tensors);
    assert_int_equal(read->stage[0].offload_bytes, plan->stage[0].offload_bytes);
    assert_int_equal(read->stage[0].stay_bytes, plan->stage[0].stay_bytes);
    (void)unlink(path);
}

/* 6 ms of forwards again, against flash beside 18 ms of ops. */
static void the_cheaper_one_is_chosen(void **state) {
    (void)state;
    rp_plan *plan;
    read_limited("gpipe", "", "[0.3, 0]");
    know(RP_DEVICE_MEMORY_SHARED, 0, 100e6); /* 0.6 ms: hidden */
    expect_ok(make_by(&profile, &plan));
    assert_string_equal(plan->stage[0].offload, "flash");
    assert_string_equal(plan->stage[1].offload, "none");
    assert_false(plan->stage[0].recompute);
    expect_why(plan, "MiB instead of 0.");
    expect_why(plan, ", for 0 ms a microbatch; computing forwards again would cost 6 ms; the "
                     "host's memory is the device's, so nothing is saved there");
    /* 16 microbatches a step, of three tensors of 8 x 12 x 12 floats and 2 samples, and the input:
     * two of the three are enough */
    assert_int_equal(plan->stage[0].leave_tensors, 3);
    assert_int_equal(plan->stage[0].offload_bytes % 16, 0);
    const uint64_t a_stash = plan->stage[0].offload_bytes / 16;
    assert_true(a_stash >= 2 * 9216 && a_stash < 3 * 9216);
    assert_int_equal(plan->stage[0].stay_bytes, 9216);
    expect_ok(rp_plan_check(plan, run.model));
    expect_given(plan);
    know(RP_DEVICE_MEMORY_SHARED, 0, 1e6); /* 39 ms and more */
    expect_ok(make_by(&profile, &plan));
    assert_string_equal(plan->stage[0].offload, "none");
    assert_true(plan->stage[0].recompute);
    assert_int_equal(plan->stage[0].offload_bytes, 0);
    expect_why(plan, ", for 6 ms a microbatch; offload to flash would cost ");
    know(RP_DEVICE_MEMORY_SHARED, 5e6, 100e6); /* 6 ms each way, of the processor that computes */
    expect_ok(make_by(&profile, &plan));
    assert_true(plan->stage[0].recompute);
}

static void memory_of_its_own_goes_to_the_host(void **state) {
    (void)state;
    rp_plan *plan;
    read_limited("gpipe", "", "[0.3, 0]");
    know(RP_DEVICE_MEMORY_OWN, 5e6, 100e6); /* a bus beside the ops, 6 ms each way */
    expect_ok(make_by(&profile, &plan));
    assert_string_equal(plan->stage[0].offload, "host");
    assert_null(strstr(plan->stage[0].memory_why, "nothing is saved"));
    know(RP_DEVICE_MEMORY_OWN, 5e5, 0); /* 39 ms beside 18 */
    expect_ok(make_by(&profile, &plan));
    assert_string_equal(plan->stage[0].offload, "none");
    assert_true(plan->stage[0].recompute);
    know(RP_DEVICE_MEMORY_UNKNOWN, 5e6, 100e6); /* of an older agent */
    expect_ok(make_by(&profile, &plan));
    assert_string_equal(plan->stage[0].offload, "none");
    assert_true(plan->stage[0].recompute);
}

/* Without times it is what needs no rates; where that may not be, or is not enough, the other. */
static void without_times_it_still_fits(void **state) {
    (void)state;
    rp_plan *plan;
    read_limited("gpipe", "", "[0.3, 0]");
    know(RP_DEVICE_MEMORY_SHARED, 0, 0);
    expect_ok(make_by(&profile, &plan));
    assert_true(plan->stage[0].recompute);
    assert_string_equal(plan->stage[0].offload, "none");
    rp_runfile_close(&run);
    read_limited("gpipe", "recompute: none\n", "[0.3, 0]");
    expect_ok(make_by(&profile, &plan));
    assert_false(plan->stage[0].recompute);
    assert_string_equal(plan->stage[0].offload, "flash");
    expect_why(plan, "computing forwards again is not allowed");
    rp_runfile_close(&run);
    read_limited("gpipe", "offload: none\nrecompute: none\n", "[0.3, 0]");
    expect_ok(make_by(&profile, &plan)); /* the board will refuse it */
    assert_string_equal(plan->stage[0].offload, "none");
    rp_runfile_close(&run);
    read_limited("gpipe", "offload: {0: flash}\n", "0");
    expect_ok(make(&plan));
    assert_string_equal(plan->stage[0].offload, "flash");
    assert_int_equal(plan->stage[0].leave_tensors, 0); /* all, as it was said */
    assert_int_equal(plan->stage[0].stay_bytes, 0);
    assert_true(plan->stage[0].offload_bytes / 16 >= 3 * 9216);
    assert_null(plan->stage[0].memory_why);
}

static void what_never_fits_is_refused_with_numbers(void **state) {
    (void)state;
    rp_plan *plan;
    read_limited("gpipe", "", "0.05");
    expect_err(make(&plan), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "board 0 needs"));
    assert_non_null(strstr(rp_err_message(), "with forwards computed again, and may use 0.05"));
    rp_runfile_close(&run);
    read_limited("pipeoptim", "", "0.05");
    expect_err(make(&plan), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "recompute is not for schedule pipeoptim"));
}

/* Each board counts its own samples: half of them fit where all do not, and what one board needs is
 * done by both, on whose place nothing depends. */
static void boards_of_a_stage_count_their_own_samples(void **state) {
    (void)state;
    static const uint32_t first[] = {0, 8};
    static const uint32_t group[] = {0, 2};
    static const char *const names[] = {"0", "1"};
    static const struct {
        double share;
        const char *memory_mb;
        bool again;
    } cases[] = {
        {0.5, "0.6", false},      /* 8 of 16 slots */
        {0.9, "[0.6, 0]", true},  /* 15 of them */
        {0.1, "[0, 0.6]", true},  /* .. on the other board */
        {0.1, "[0.6, 0]", false}, /* .. which has no limit */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_cut cut = {.stage_count = 1, .first = first};
        const double share[] = {cases[i].share, 1};
        rp_plan *plan;
        uint64_t needs[2];
        read_limited("gpipe", "", cases[i].memory_mb);
        run.stages = 1;
        const rp_planfile chosen = {
            .run = &run, .cut = &cut, .board = names, .group = group, .share = share};
        expect_ok(rp_planfile_make(&arena, &chosen, &plan));
        assert_int_equal(plan->stage[0].recompute, cases[i].again);
        expect_ok(rp_plan_check(plan, run.model));
        expect_ok(rp_fit_memory_needs(&run, &cut, plan, needs));
        assert_true(cases[i].share == 0.5 ? needs[0] == needs[1]
                                          : (needs[0] > needs[1]) == (cases[i].share > 0.5));
        for (uint32_t k = 0; k < 2; k++) {
            const uint64_t limit = plan->node[k].memory_bytes;
            assert_true(limit == 0 || needs[k] <= limit);
        }
        rp_runfile_close(&run);
    }
    read_limited("gpipe", "", "[0.05, 0]");
    run.stages = 1;
    const rp_cut cut = {.stage_count = 1, .first = first};
    const double share[] = {0.5, 1};
    const rp_planfile chosen = {
        .run = &run, .cut = &cut, .board = names, .group = group, .share = share};
    rp_plan *plan;
    expect_err(rp_planfile_make(&arena, &chosen, &plan), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "board 0 needs"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_fits_keeps_all, setup, close_run),
        cmocka_unit_test_setup_teardown(what_does_not_is_computed_again, setup, close_run),
        cmocka_unit_test_setup_teardown(what_the_file_says_counts, setup, close_run),
        cmocka_unit_test_setup_teardown(the_cheaper_one_is_chosen, setup, close_run),
        cmocka_unit_test_setup_teardown(memory_of_its_own_goes_to_the_host, setup, close_run),
        cmocka_unit_test_setup_teardown(without_times_it_still_fits, setup, close_run),
        cmocka_unit_test_setup_teardown(boards_of_a_stage_count_their_own_samples, setup,
                                        close_run),
        cmocka_unit_test_setup_teardown(what_never_fits_is_refused_with_numbers, setup, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
