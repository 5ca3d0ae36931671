/* Stages whose forward and backward are on two boards: the cut, how long a step takes, how far
 * forwards run ahead. */
#include "open_run.h"

#include "planning/cost.h"
#include "planning/halves.h"
#include "planning/planfile.h"
#include "planning/predict.h"

/* Layer i of a board takes (i + 1) ms a microbatch forward and twice that backward, `slow[k]` times
 * as long on board k. */
static void prepare(const double slow[4], const char *set, rp_profile *profile) {
    const char *const sets[] = {"ring.boards=4", "train.epochs=200", set};
    const char *path = write_run("schedule: pipefb\noptimizer: {kind: sgd, lr: 0.1}\n");
    expect_ok(rp_runfile_read(&arena, path, sets, set ? 3 : 2, &run));
    expect_ok(rp_profile_open(&arena, &run, 4, profile));
    for (uint32_t k = 0; k < 4; k++) {
        const size_t layers = profile->layer_count;
        const size_t count = rp_measured_count(layers, profile->size_count);
        double *values;
        expect_ok(RP_ARENA_NEW(&arena, count, &values));
        for (size_t s = 0; s < profile->size_count; s++) {
            for (size_t i = 0; i < layers * RP_MEASURED_PASSES; i++) {
                const double part = i % RP_MEASURED_PASSES == RP_MEASURED_FORWARD ? 1 : 2;
                double *at = &values[rp_measured_at(layers, s, i / RP_MEASURED_PASSES,
                                                    i % RP_MEASURED_PASSES)];
                at[0] = slow[k] * part * (double)(i / RP_MEASURED_PASSES + 1) * 1e-3 *
                        profile->sizes[s] / run.micro;
                at[1] = 0.01;
            }
        }
        for (size_t i = 0; i < RP_MEASURED_COPIES; i++) {
            values[rp_measured_copy_at(layers, profile->size_count, i)] = 0;
        }
        profile->board[k].memory_bytes = 1u << 30;
        expect_ok(rp_profile_take(&arena, profile, k, values, count));
    }
}

static void slow_halves_have_fewer_layers(void **state) {
    (void)state;
    static const struct {
        double slow[4];
        uint32_t first;
    } cases[] = {
        {{1, 1, 1, 1}, 2}, /* layers cost 1, 2, 3: backwards 6 and 6, and not 2 and 10 */
        {{1, 1, 1, 3}, 1}, /* the backward of stage 0: 6 and 10, and not 18 and 6 */
        {{1, 1, 3, 1}, 2}, /* .. of stage 1 */
        {{3, 1, 1, 1}, 2}, /* a forward: 9, and not 10 */
        {{5, 1, 1, 1}, 1}, /* 10, and not 15 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_profile profile;
        rp_cut cut;
        prepare(cases[i].slow, NULL, &profile);
        expect_ok(rp_halves_cut(&arena, &run, &profile, &cut, NULL));
        assert_int_equal(cut.stage_count, 2);
        assert_int_equal(cut.first[1], cases[i].first);
        rp_runfile_close(&run);
    }
    read_run(&run, GPIPE);
}

/* Each stage keeps as many versions as its own forwards are ahead: of stage 1, layers of 162
 * weights, two, and gradients, and of one microbatch of 8 samples what its two layers saw. */
static void memory_of_each_stage(void **state) {
    (void)state;
    static const double slow[4] = {1, 1, 1, 3};
    static const struct {
        uint64_t bytes;
        uint32_t first;
    } cases[] = {{3 * 4 * 162 + 4 * 16 * 8, 1}, {3 * 4 * 162 + 4 * 16 * 8 - 1, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_profile profile;
        rp_cut cut;
        prepare(slow, NULL, &profile);
        profile.board[2].memory_bytes = cases[i].bytes;
        expect_ok(rp_halves_cut(&arena, &run, &profile, &cut, NULL));
        assert_int_equal(cut.first[1], cases[i].first);
        rp_runfile_close(&run);
    }
    read_run(&run, GPIPE);
}

static double predict(const rp_profile *profile, const rp_cut *cut, const uint16_t *ahead) {
    static const char *const names[] = {"0", "1", "2", "3"};
    const rp_planfile chosen = {.run = &run, .cut = cut, .board = names};
    rp_prediction found;
    rp_plan *plan;
    run.method.ahead_count = 2;
    run.method.ahead[0] = ahead[0];
    run.method.ahead[1] = ahead[1];
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
    expect_ok(rp_predict(&arena, &run, profile, plan, 0, &found));
    return found.step_s;
}

/* The fewest steps ahead with which the replay of the plan takes no longer than its slowest board
 * or wire; with one less on either stage it does. `link` makes a stash take long on its wire. */
static void the_fewest_steps_ahead(void **state) {
    (void)state;
    static const char *const links[] = {"ring.link={delay_ms: 0}", "ring.link={delay_ms: 40}",
                                        "ring.link={rate_mbit: 1, delay_ms: 7}"};
    static const double slow[4] = {1, 2, 1, 1.5};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        rp_profile profile;
        rp_cut cut;
        rp_split_times times;
        uint16_t ahead[RP_SPLIT_STAGES_MAX];
        prepare(slow, links[i], &profile);
        run.micro = run.batch = profile.micro = 8; /* a minibatch, as in METHODS 12.2 */
        expect_ok(rp_halves_cut(&arena, &run, &profile, &cut, NULL));
        expect_ok(rp_halves_times(&arena, &run, &profile, &cut, 0, &times));
        rp_sched_split_ahead(&times, RP_AHEAD_MAX, ahead);
        const double period = rp_sched_split_period(&times);
        assert_true(ahead[0] >= ahead[1] && ahead[1] >= 1);
        expect_close(predict(&profile, &cut, ahead), period, 1e-9, 2e-3);
        for (uint32_t k = 0; k < 2; k++) {
            uint16_t fewer[2] = {ahead[0], ahead[1]};
            fewer[k]--;
            fewer[1] = fewer[1] > fewer[0] ? fewer[0] : fewer[1];
            if (fewer[k] > 0) {
                assert_true(predict(&profile, &cut, fewer) > 1.01 * period);
            }
        }
        rp_runfile_close(&run);
    }
    read_run(&run, GPIPE);
}

/* What goes between the two boards of a stage. */
static void bytes_between_halves(void **state) {
    (void)state;
    static const double slow[4] = {1, 1, 1, 1};
    static const uint32_t first[] = {0, 1, 3};
    const rp_cut cut = {.stage_count = 2, .first = first};
    rp_profile profile;
    double stash;
    double weights;
    prepare(slow, NULL, &profile);
    expect_ok(rp_halves_bytes(&run, &cut, 1, &stash, &weights));
    expect_close(weights, 4.0 * (8 * 8 + 8 + 8 * 10 + 10), 0, 0);
    assert_true(stash >= 4.0 * run.micro * (8 + 8)); /* inputs of fc2 and of fc3 */
    expect_ok(rp_halves_bytes(&run, &cut, 0, &stash, &weights));
    assert_true(stash >= 4.0 * run.micro * 144);
}

/* Forwards encode what goes up and decode what comes from below; backwards the gradients the other
 * way, on their own boards. */
static void codecs_take_time_in_both_halves(void **state) {
    (void)state;
    static const double slow[4] = {1, 1, 1, 1};
    static const char *const names[] = {"0", "1", "2", "3"};
    static const uint32_t first[] = {0, 1, 3};
    const rp_cut cut = {.stage_count = 2, .first = first};
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names};
    rp_profile profile;
    rp_plan *plan;
    rp_prediction plain;
    rp_prediction found;
    rp_split_times times[2];
    rp_cut best;
    prepare(slow, "links.codec=int8", &profile);
    expect_ok(rp_halves_cut(&arena, &run, &profile, &best, NULL));
    assert_int_equal(best.first[1], 2); /* as without codecs, which took no time */
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
    for (uint32_t turn = 0; turn < 2; turn++) {
        expect_ok(rp_predict(&arena, &run, &profile, plan, 0, turn == 0 ? &plain : &found));
        expect_ok(rp_halves_times(&arena, &run, &profile, &cut, 0, &times[turn]));
        for (uint32_t k = 0; k < 4; k++) {
            rp_profile_board *board = &profile.board[k];
            board->has_besides = true;
            for (uint32_t i = 0; i < 4; i++) { /* two sizes, the same for both */
                board->besides_s[rp_besides_codec(RP_CODEC_INT8, i / 2, i % 2)] =
                    (i / 2 ? 0.1 : 0.01) * (k + 1);
            }
        }
    }
    const double micros = (double)run.batch / run.micro;
    const double more[2][2] = {{0.01 * 1, 0.1 * 4}, {0.1 * 2, 0.01 * 3}};
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t back = 0; back < 2; back++) {
            const rp_op_kind kind = back ? RP_OP_BACKWARD : RP_OP_FORWARD;
            const double *before = back ? times[0].backward : times[0].forward;
            const double *after = back ? times[1].backward : times[1].forward;
            const uint32_t hold = back ? 3 - k : k;
            expect_close(found.op_s[hold][kind] - plain.op_s[hold][kind], more[k][back], 0, 1e-9);
            expect_close(after[k] - before[k], micros * more[k][back], 0, 1e-9);
        }
    }
}

static const char some[] = "schedule={kind: pipefb, split: [false, true, false]}";

/* A whole stage that computes forwards again takes as much longer for its backwards. */
static void whole_stages_that_compute_again(void **state) {
    (void)state;
    static const double slow[4] = {1, 1, 1, 1};
    static const uint32_t first[] = {0, 1, 2, 3};
    static const char *const recompute[] = {"none", "[2]", "[fc1]"};
    const rp_cut cut = {.stage_count = 3, .first = first};
    rp_profile profile;
    rp_split_times times[3];
    prepare(slow, some, &profile);
    for (uint32_t i = 0; i < 3; i++) {
        char set[40];
        (void)snprintf(set, sizeof set, "recompute=%s", recompute[i]);
        expect_ok(rp_config_set(&arena, run.root, set));
        expect_ok(rp_halves_times(&arena, &run, &profile, &cut, 0, &times[i]));
        for (uint32_t k = 0; k < 3; k++) {
            const double again = (i == 1 && k == 2) || (i == 2 && k == 0) ? times[0].forward[k] : 0;
            assert_true(times[0].forward[k] > 0);
            expect_close(times[i].backward[k], times[0].backward[k] + again, 1e-12, 0);
        }
    }
}

/* .. and needs no memory for what its forwards under way have left. */
static void memory_of_whole_stages(void **state) {
    (void)state;
    static const double slow[4] = {1, 1, 1, 1};
    static const struct {
        const char *recompute, *offload;
        uint32_t stashes; /* of 4 steps ahead, two microbatches each, of 144 floats a sample */
    } cases[] = {
        {"none", "none", 8}, {"none", "host", 3}, {"none", "auto", 3}, {"auto", "none", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint64_t less = 0; less < 2; less++) {
            rp_profile profile;
            rp_cut cut;
            char set[40];
            prepare(slow, some, &profile);
            (void)snprintf(set, sizeof set, "offload=%s", cases[i].offload);
            expect_ok(rp_config_set(&arena, run.root, set));
            run.recompute_auto = strcmp(cases[i].recompute, "auto") == 0;
            /* versions of four steps and gradients, of 145 * 8 weights */
            profile.board[0].memory_bytes =
                4 * (5 * 145 * 8 + cases[i].stashes * 144 * (uint64_t)run.micro) - less;
            const rp_err err = rp_halves_cut(&arena, &run, &profile, &cut, NULL);
            assert_int_equal(err, less > 0 ? RP_ERR_USAGE : RP_OK); /* no cut fits */
            rp_runfile_close(&run);
        }
    }
    read_run(&run, GPIPE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slow_halves_have_fewer_layers, setup, close_run),
        cmocka_unit_test_setup_teardown(memory_of_each_stage, setup, close_run),
        cmocka_unit_test_setup_teardown(the_fewest_steps_ahead, setup, close_run),
        cmocka_unit_test_setup_teardown(bytes_between_halves, setup, close_run),
        cmocka_unit_test_setup_teardown(codecs_take_time_in_both_halves, setup, close_run),
        cmocka_unit_test_setup_teardown(whole_stages_that_compute_again, setup, close_run),
        cmocka_unit_test_setup_teardown(memory_of_whole_stages, setup, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
