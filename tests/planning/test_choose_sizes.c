/* Microbatch sizes by stage and direction, from a profile. */
#include "open_run.h"

#include "planning/choose_sizes.h"

enum { STAGES = 3 };
static const rp_cut cut = {.stage_count = STAGES, .first = (const uint32_t[]){0, 1, 2, 3}};

/* A pass of any layer takes op_s + sample_s n on a board. */
static void say(rp_profile *profile, uint32_t board, double op_s, double sample_s) {
    const size_t layers = profile->layer_count;
    const size_t count = rp_measured_count(layers, profile->size_count);
    double *values;
    expect_ok(RP_ARENA_NEW(&arena, count, &values));
    for (size_t s = 0; s < profile->size_count; s++) {
        for (size_t i = 0; i < layers * RP_MEASURED_PASSES; i++) {
            double *at =
                &values[rp_measured_at(layers, s, i / RP_MEASURED_PASSES, i % RP_MEASURED_PASSES)];
            at[0] = op_s + sample_s * profile->sizes[s];
            at[1] = 0.01;
        }
    }
    expect_ok(rp_profile_take(&arena, profile, board, values, count));
}

static void open_profile(rp_profile *out, const char *planner, const double (*costs)[2]) {
    static const char *const names[] = {"left", "middle", "right"};
    char text[160];
    (void)snprintf(text, sizeof text,
                   "schedule: {kind: umpipe, planner: %s}\noptimizer: {kind: sgd, lr: 0.1}\n",
                   planner);
    read_run(&run, text);
    run.boards = run.stages = STAGES;
    expect_ok(rp_profile_open(&arena, &run, STAGES, out));
    for (uint32_t k = 0; k < STAGES; k++) {
        out->board[k].name = out->board[k].like = names[k];
        out->board[k].device = "a CPU";
        say(out, k, costs[k][0], costs[k][1]);
    }
}

/* The first board takes 5 ms to begin an op, however few samples it has. */
static const double uneven[STAGES][2] = {{5e-3, 2e-5}, {4e-5, 4e-5}, {4e-5, 8e-5}};

/* Never worse than the best even size, and better where boards differ. */
static void boards_that_differ_have_sizes_that_do(void **state) {
    (void)state;
    rp_profile profile;
    uint32_t size[STAGES][2];
    uint32_t again[STAGES][2];
    rp_size_choice choice;
    rp_size_choice other;
    open_profile(&profile, "auto", uneven);
    assert_string_equal(run.sizes.planner->name, "tidgap");
    run.batch = 64;
    expect_ok(rp_choose_sizes(&run, &profile, &cut, size, &choice));
    assert_true(choice.step_s > 0 && choice.step_s < 0.9 * choice.even_step_s);
    assert_true(size[0][0] > size[2][0]);
    expect_ok(rp_choose_sizes(&run, &profile, &cut, again, &other));
    assert_memory_equal(size, again, sizeof size);
    assert_true(choice.step_s == other.step_s);
}

/* A wire that takes longer than the boards: what is sent early counts. */
static void wires_count(void **state) {
    (void)state;
    rp_profile profile;
    uint32_t size[STAGES][2];
    rp_size_choice fast, slow;
    open_profile(&profile, "auto", uneven);
    expect_ok(rp_choose_sizes(&run, &profile, &cut, size, &fast));
    run.emulate = true;
    run.link = (rp_link_profile){.rate_mbit = 0.1};
    expect_ok(rp_choose_sizes(&run, &profile, &cut, size, &slow));
    assert_true(slow.step_s > fast.step_s + 2 * 8 * 4 * 8 / 0.1e6); /* of one sample each way */
}

/* More samples a step than a planner takes; sizes so small that a stage would wait for more parcels
 * than a plan may have. */
static void there_are_limits(void **state) {
    (void)state;
    static const double alike[STAGES][2] = {{0, 1e-3}, {0, 1e-3}, {0, 1e-3}};
    rp_profile profile;
    uint32_t size[STAGES][2];
    rp_size_choice choice;
    open_profile(&profile, "auto", alike);
    run.batch = 256;
    expect_ok(rp_choose_sizes(&run, &profile, &cut, size, &choice));
    for (uint32_t i = 0; i < 2 * STAGES; i++) {
        assert_true(size[i / 2][i % 2] >= 4);
    }
    run.batch = 5000;
    expect_err(rp_choose_sizes(&run, &profile, &cut, size, &choice), RP_ERR_USAGE);
}

/* A board that is slow to begin an op wants all samples at once; there is no memory for that. What
 * one sample works with is the gradient of 8 floats. */
static void sizes_have_the_memory_that_there_is(void **state) {
    (void)state;
    static const uint64_t weights = 4 * (8 * 8 + 8) * 2; /* fc2, with its gradients */
    rp_profile profile;
    uint32_t size[STAGES][2];
    rp_size_choice choice;
    open_profile(&profile, "auto", (const double[][2]){{1e-4, 1e-5}, {5e-3, 1e-5}, {1e-4, 1e-5}});
    run.batch = 64;
    expect_ok(rp_choose_sizes(&run, &profile, &cut, size, &choice));
    assert_int_equal(size[1][0], 64);
    const uint64_t kept = 4 * 8 * 64; /* inputs of fc2 */
    profile.board[1].memory_bytes = weights + kept + 16 * 4 * 8;
    expect_ok(rp_choose_sizes(&run, &profile, &cut, size, &choice));
    assert_int_equal(size[1][0], 16);
    assert_true(size[1][1] <= 16 && choice.even <= 16);
    profile.board[1].memory_bytes--;
    expect_ok(rp_choose_sizes(&run, &profile, &cut, size, &choice));
    assert_true(size[1][0] < 16 && size[1][1] < 16);
    profile.board[1].memory_bytes = weights + kept;
    expect_err(rp_choose_sizes(&run, &profile, &cut, size, &choice), RP_ERR_LIMIT);
    assert_non_null(strstr(rp_err_message(), "stage 1 needs"));
    profile.board[1].memory_bytes = 0; /* nobody knows; the run allows enough */
    run.memory.all = 1 << 20;
    expect_ok(rp_choose_sizes(&run, &profile, &cut, size, &choice));
    assert_int_equal(size[1][0], 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(boards_that_differ_have_sizes_that_do, setup, close_run),
        cmocka_unit_test_setup_teardown(wires_count, setup, close_run),
        cmocka_unit_test_setup_teardown(there_are_limits, setup, close_run),
        cmocka_unit_test_setup_teardown(sizes_have_the_memory_that_there_is, setup, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
