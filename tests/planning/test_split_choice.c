/* Which boards have forwards and which have backwards, and whether that pays. */
#include "open_run.h"

#include <math.h>

#include "planning/split_choice.h"

enum { LAYERS = 32, BOARDS_MAX = 6 };

static rp_profile profile;

/* LAYERS dense layers that are alike, on glyphs. */
static void read_ring(const char *schedule, uint32_t boards, const char *more) {
    static char model[LAYERS * 64 + 64];
    char text[1024];
    size_t used = (size_t)snprintf(model, sizeof model, "input: data\nlayers:\n");
    for (uint32_t i = 0; i < LAYERS; i++) {
        used += (size_t)snprintf(model + used, sizeof model - used,
                                 "  - {name: fc%u, kind: dense, out: %s}\n", i,
                                 i + 1 < LAYERS ? "16" : "classes");
    }
    rp_runfile_close(&run);
    write_file("model.yaml", model, used);
    (void)snprintf(text, sizeof text,
                   "model: %s/model.yaml\n"
                   "data: {set: glyphs, train: 1600, test: 24, size: 12}\n"
                   "ring: {boards: %u}\n"
                   "train: {epochs: 8, batch: 8, microbatch: 8, seed: 1}\n"
                   "loss: cross-entropy\nschedule: %s\n"
                   "optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}\n%s",
                   folder, boards, schedule, more);
    expect_ok(rp_runfile_read(&arena, write_text("run.yaml", text), NULL, 0, &run));
}

/* Of the whole net, in milliseconds: [board][backward]. */
static void know(const double ms[][2], uint32_t boards) {
    double values[2 * LAYERS];
    expect_ok(rp_profile_open(&arena, &run, boards, &profile));
    for (uint32_t k = 0; k < boards; k++) {
        char *name;
        for (uint32_t i = 0; i < 2 * LAYERS; i++) {
            values[i] = 1e-3 * ms[k][i % 2] / LAYERS;
        }
        expect_ok(rp_arena_printf(&arena, &name, "%u", k));
        profile.board[k].name = name;
        expect_ok(rp_profile_take(&arena, &profile, k, values, 2 * LAYERS));
    }
}

static void choose(rp_split_answer *out) {
    const rp_split_ask ask = {.run = &run, .profile = &profile};
    expect_ok(rp_split_choose(&ask, out));
}

static bool has_forward(const rp_split_answer *answer, uint32_t place) {
    bool found = false;
    for (uint32_t k = 0; k < answer->stages; k++) {
        found = found || answer->place[k] == place;
    }
    return found;
}

static void expect_said(const rp_split_answer *answer, const char *words) {
    static const char *const names[] = {"0", "1", "2", "3", "4", "5"};
    char text[2048] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    rp_split_say(file, answer, names);
    (void)fclose(file);
    if (!strstr(text, words)) {
        fail_msg("'%s' is not in '%s'", words, text);
    }
}

/* The rings of host/lab/RESULTS.md: 80 ms forward and 160 backward on a whole board. */
static void uneven_boards(void **state) {
    (void)state;
    static const struct {
        double weak[2];
        double gain; /* 0: it does not pay */
    } cases[] = {
        {{160, 1e6}, 1.5},                               /* forwards only, at half the power */
        {{80, 1e6}, 1.5},                                /* .. at all of it */
        {{80 / 0.45, 1e6}, 1.35}, {{80 / 0.25, 1e6}, 0}, /* too weak for them all */
        {{80, 6 * 160}, 1.22},                           /* six times as long for backwards */
        {{80, 160}, 0},                                  /* equal */
        {{160, 320}, 0},                                 /* weak in both */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double *weak = cases[i].weak;
        const double ms[4][2] = {{80, 160}, {weak[0], weak[1]}, {80, 160}, {weak[0], weak[1]}};
        rp_split_answer answer;
        read_ring("pipedream", 4, "");
        know(ms, 4);
        choose(&answer);
        assert_true(answer.is_known && answer.is_allowed);
        const double gain = answer.without_s / answer.step_s;
        assert_int_equal(answer.pays, cases[i].gain > 0);
        if (answer.pays) {
            expect_close(gain, cases[i].gain, 0, 0.03);
            assert_int_equal(answer.stages, 2);
            assert_true(has_forward(&answer, 1) && has_forward(&answer, 3));
            expect_said(&answer, "(pipefb) pays: ");
            expect_said(&answer, ", because backwards take board ");
            expect_said(&answer, "Forward + backward of the stages, in order: ");
        } else {
            assert_true(gain < 1.05);
            expect_said(&answer, "(pipefb) does not pay: ");
        }
        assert_true(answer.now_s <= 0);
    }
}

/* What both take equally long for gains nothing either, whatever the schedule of the run. */
static void equal_boards_gain_nothing(void **state) {
    (void)state;
    static const char *const schedules[] = {"1f1b", "pipedream", "pipefb"};
    static const double ms[4][2] = {{100, 100}, {100, 100}, {100, 100}, {100, 100}};
    for (size_t i = 0; i < 3; i++) {
        rp_split_answer answer;
        read_ring(schedules[i], 4, "");
        know(ms, 4);
        choose(&answer);
        assert_true(answer.is_known && answer.is_allowed && !answer.pays);
        expect_close(answer.without_s, answer.step_s, 0, 0.03);
        assert_int_equal(answer.now_s > 0, i == 2);
    }
}

/* The ring as it stands has the wrong halves; the planner finds the right ones. */
static void a_split_ring_has_better_halves(void **state) {
    (void)state;
    static const double ms[4][2] = {{80, 160}, {80, 160}, {80, 2000}, {80, 2000}};
    rp_split_answer answer;
    read_ring("{kind: pipefb, weights: pipeoptim}", 4, "");
    know(ms, 4);
    choose(&answer);
    assert_true(answer.is_allowed && answer.pays && answer.now_s > 5 * answer.step_s);
    assert_true(has_forward(&answer, 2) && has_forward(&answer, 3));
    expect_said(&answer, "; in their present order ");
    for (uint32_t k = 0; k < 2; k++) {
        assert_true(answer.ahead[k] > 0);
    }
    assert_int_equal(answer.first[0], 0);
    assert_int_equal(answer.first[1], LAYERS / 2);
    assert_int_equal(answer.first[2], LAYERS);
}

/* Three boards, one of which can not do backwards: split everywhere a ring has two of them, split
 * nowhere it has the other two, and with one stage of two it has all. */
static void some_stages_are_split(void **state) {
    (void)state;
    static const double ms[3][2] = {{80, 160}, {80, 1e6}, {80, 160}};
    rp_split_answer answer;
    rp_split_answer all;
    read_ring("pipefb", 2, "");
    know(ms + 1, 2);
    choose(&all);
    expect_close(all.step_s, 0.16, 0.01, 0);
    assert_int_equal(all.whole, 0);
    read_ring("pipedream", 3, "");
    know(ms, 3);
    choose(&answer);
    assert_true(answer.is_allowed && answer.pays);
    assert_int_equal(answer.stages, 2);
    assert_int_equal(answer.count, 3);
    assert_true(answer.whole == 1 || answer.whole == 2);
    assert_int_equal(answer.place[answer.whole == 1], 1);
    expect_close(answer.without_s, 0.12, 0.01, 0);
    expect_close(answer.step_s, 0.0975, 0.01, 0); /* 19 layers' backwards, 13 layers' both */
    assert_true(1.2 * answer.step_s < answer.without_s && 1.6 * answer.step_s < all.step_s);
    expect_said(&answer, "one board where a stage is not split: ");
    expect_said(&answer, ", because backwards take board 1 ");
}

/* A person has said which: boards change their places, and that does not. */
static void a_given_split_stays(void **state) {
    (void)state;
    static const double ms[3][2] = {{80, 160}, {80, 160}, {80, 1e5}};
    rp_split_answer answer;
    read_ring("{kind: pipefb, split: [false, true]}", 3, "");
    know(ms, 3);
    choose(&answer);
    assert_true(answer.is_allowed && answer.pays && answer.now_s > 5 * answer.step_s);
    assert_int_equal(answer.whole, 1);
    assert_int_equal(answer.count, 3);
    assert_int_equal(answer.place[1], 2);
    expect_said(&answer, "; in their present order ");
}

/* The one that exchanges find is as good as the best of all orders. */
static void exchanges_find_the_best(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(5, "split");
    for (uint32_t draw = 0; draw < trials(12, 2); draw++) {
        double ms[4][2];
        double best_s = (double)INFINITY;
        rp_split_answer found;
        for (uint32_t k = 0; k < 8; k++) {
            ms[k / 2][k % 2] = 40 + 400 * rp_rng_uniform(&rng);
        }
        read_ring("pipefb", 4, "");
        know(ms, 4);
        choose(&found);
        for (uint32_t order = 0; order < 256; order++) {
            double in[4][2];
            uint32_t seen = 0;
            for (uint32_t k = 0; k < 4; k++) {
                const uint32_t from = order >> (2 * k) & 3;
                memcpy(in[k], ms[from], sizeof in[k]);
                seen |= 1u << from;
            }
            if (seen == 15) {
                rp_split_answer other;
                const rp_split_ask ask = {
                    .run = &run, .profile = &profile, .rounds = 1, .without_s = 1};
                know(in, 4);
                expect_ok(rp_split_choose(&ask, &other));
                best_s = fmin(best_s, other.now_s);
            }
        }
        assert_true(found.step_s <= 1.03 * best_s);
    }
}

/* A stash that holds up the ring is never taken; it is said, and nothing is refused. */
static void a_slow_stash_is_not_taken(void **state) {
    (void)state;
    static const double ms[2][2] = {{1, 1e4}, {1, 2}};
    rp_split_answer answer;
    read_ring("pipedream", 2, "");
    rp_runfile_close(&run);
    const char *const sets[] = {"ring.link={rate_mbit: 0.05}"};
    char path[256];
    (void)snprintf(path, sizeof path, "%s/run.yaml", folder);
    expect_ok(rp_runfile_read(&arena, path, sets, 1, &run));
    know(ms, 2);
    choose(&answer);
    assert_true(answer.is_known && !answer.is_allowed && !answer.pays);
    expect_said(&answer, "(pipefb) is not possible: the stash of stage 0 would occupy the wire ");
}

/* Two boards have room for a copy of the weights, and none for versions of them. */
static void little_memory_alone(void **state) {
    (void)state;
    static const double ms[4][2] = {{100, 100}, {100, 100}, {100, 100}, {100, 100}};
    rp_split_answer answer;
    read_ring("pipedream", 4, "");
    know(ms, 4);
    choose(&answer);
    assert_false(answer.pays);
    const double free_s = answer.without_s;
    rp_runfile_close(&run);
    const char *const sets[] = {"ring.memory_mb=[1, 0.06, 1, 0.06]"};
    char path[256];
    (void)snprintf(path, sizeof path, "%s/run.yaml", folder);
    expect_ok(rp_runfile_read(&arena, path, sets, 1, &run));
    know(ms, 4);
    choose(&answer);
    assert_true(answer.is_allowed && answer.without_s > 1.05 * free_s);
    assert_true(answer.pays);
    assert_true(has_forward(&answer, 1) && has_forward(&answer, 3));
    expect_said(&answer, "because a board with forwards only needs little memory");
}

static void what_is_not_asked(void **state) {
    (void)state;
    static const double ms[4][2] = {{80, 160}, {80, 1e6}, {80, 160}, {80, 1e6}};
    rp_split_answer answer;
    read_ring("pipedream", 4, "cut: [fc8, fc16, fc24]\n");
    know(ms, 4);
    choose(&answer);
    assert_false(answer.is_known); /* a cut that is given stays */
    read_ring("pipedream", 1, "");
    know(ms, 1);
    choose(&answer);
    assert_false(answer.is_known);
    const rp_split_ask ask = {.run = &run, .profile = &profile, .limit_ns = 1};
    read_ring("pipedream", 4, "");
    know(ms, 4);
    expect_err(rp_split_choose(&ask, &answer), RP_ERR_USAGE);
    expect_said(&(rp_split_answer){0}, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(uneven_boards, setup, close_run),
        cmocka_unit_test_setup_teardown(equal_boards_gain_nothing, setup, close_run),
        cmocka_unit_test_setup_teardown(a_split_ring_has_better_halves, setup, close_run),
        cmocka_unit_test_setup_teardown(some_stages_are_split, setup, close_run),
        cmocka_unit_test_setup_teardown(a_given_split_stays, setup, close_run),
        cmocka_unit_test_setup_teardown(exchanges_find_the_best, setup, close_run),
        cmocka_unit_test_setup_teardown(a_slow_stash_is_not_taken, setup, close_run),
        cmocka_unit_test_setup_teardown(little_memory_alone, setup, close_run),
        cmocka_unit_test_setup_teardown(what_is_not_asked, setup, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
