/* Cuts that are tried: which are, which is next, which is kept, and their text. */
#include <math.h>
#include <string.h>

#include "expect.h"
#include "planning/trial.h"

enum { LAYERS = 9, STAGES = 3 };
static rp_arena arena;
static rp_joint_answer answer; /* large */

static int open_arena(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 0);
    answer = (rp_joint_answer){.is_known = true};
    return 0;
}

static int close_arena(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static void add(uint32_t a, uint32_t b, double step_s) {
    rp_joint_plan *plan = &answer.plan[answer.count++];
    *plan = (rp_joint_plan){.count = STAGES, .step_s = step_s, .place = {0, 1, 2}};
    plan->first[1] = a;
    plan->first[2] = b;
    plan->first[3] = LAYERS;
}

static void the_best_cuts_of_one_ring_are_tried(void **state) {
    (void)state;
    rp_trial trial;
    add(2, 4, 1);
    rp_trial_open(&trial, &answer.plan[0], &answer);
    assert_int_equal(trial.count, 0); /* there is no other */
    add(2, 4, 1);                     /* the same */
    add(3, 4, 1.5);
    answer.plan[2].place[0] = 1; /* another order */
    answer.plan[2].place[1] = 0;
    add(3, 5, 2);
    answer.plan[3].count = 2; /* another number of boards */
    rp_trial_open(&trial, &answer.plan[0], &answer);
    assert_int_equal(trial.count, 0);
    add(3, 5, 3);
    add(3, 6, 4);
    add(3, 7, 5);
    rp_trial_open(&trial, &answer.plan[0], &answer);
    assert_int_equal(trial.count, RP_TRIAL_PLANS_MAX);
    const rp_trial_plan third = {.stages = STAGES, .first = {0, 3, 6, LAYERS}};
    const rp_trial_plan none = {.stages = STAGES, .first = {0, 3, 7, LAYERS}};
    const rp_trial_plan fewer = {.stages = 2, .first = {0, 3, 6}};
    assert_int_equal(rp_trial_find(&trial, STAGES, &third), 2);
    assert_int_equal(rp_trial_find(&trial, STAGES, &none), trial.count);
    assert_int_equal(rp_trial_find(&trial, STAGES, &fewer), trial.count);
    assert_int_equal(rp_trial_find(&trial, STAGES + 1, &third), trial.count);
    answer.is_known = false;
    rp_trial_open(&trial, &answer.plan[0], &answer);
    assert_int_equal(trial.count, 0);
}

static void all_are_measured_and_the_fastest_is_kept(void **state) {
    (void)state;
    static const struct {
        double measured[3];
        uint32_t next;
        bool all;
    } cases[] = {
        {{(double)NAN, (double)NAN, (double)NAN}, 0, false},
        {{1, (double)NAN, (double)NAN}, 1, false},
        {{(double)NAN, 1, 2}, 0, false},
        {{2, 1, (double)NAN}, 2, false},
        {{2, 1, 3}, 1, true},
        {{2, 3, 1}, 2, true},
        {{1, 1, 1}, 0, true},
        {{(double)INFINITY, 7, (double)INFINITY}, 1, true}, /* of which no step was seen */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_trial trial = {.count = 3, .boards = STAGES};
        for (uint32_t k = 0; k < 3; k++) {
            trial.plan[k].measured_s = cases[i].measured[k];
        }
        assert_int_equal(rp_trial_next(&trial), cases[i].next);
        assert_true(rp_trial_is_measured(&trial) == cases[i].all);
    }
    double odd[] = {3, 1, 100};
    double even[] = {4, 1, 100, 2};
    expect_close(rp_trial_median(odd, 3), 3, 0, 0);
    expect_close(rp_trial_median(even, 4), 3, 0, 0);
    expect_close(rp_trial_median(odd, 1), 1, 0, 0);
}

static void the_text_is_read_back(void **state) {
    (void)state;
    rp_trial trial;
    rp_trial again;
    char *text;
    expect_ok(rp_trial_text(&arena, &(rp_trial){.count = 0}, &text));
    assert_string_equal(text, "");
    assert_true(rp_trial_read(text, LAYERS, &again));
    assert_int_equal(again.count, 0);
    add(2, 4, 0.125);
    add(3, 5, 0.25);
    add(3, 6, 0.5);
    rp_trial_open(&trial, &answer.plan[0], &answer);
    trial.plan[0].measured_s = 0.75;
    trial.plan[2].measured_s = (double)INFINITY;
    expect_ok(rp_trial_text(&arena, &trial, &text));
    assert_string_equal(text, "0.125/0.75/2,4;0.25/-/3,5;0.5/inf/3,6");
    assert_true(rp_trial_read(text, LAYERS, &again));
    assert_int_equal(again.count, 3);
    assert_int_equal(again.boards, STAGES);
    for (uint32_t i = 0; i < 3; i++) {
        const rp_trial_plan *plan = &again.plan[i];
        assert_memory_equal(plan->first, trial.plan[i].first, 4 * sizeof *plan->first);
        assert_true(plan->predicted_s == trial.plan[i].predicted_s);
    }
    assert_true(again.plan[0].measured_s == 0.75 && isnan(again.plan[1].measured_s) &&
                isinf(again.plan[2].measured_s));
}

/* Three boards: as they are, two of them on one stage, and all of them on one. */
static void add_shared(uint32_t stages, uint32_t first, uint32_t begin, double share) {
    rp_joint_plan *plan = &answer.plan[answer.count++];
    *plan = (rp_joint_plan){
        .count = STAGES, .stages = stages, .step_s = 1, .place = {0, 1, 2}, .plain_s = 2};
    plan->first[1] = stages > 1 ? first : LAYERS;
    plan->first[stages] = LAYERS;
    plan->group[1] = stages > 1 ? begin : STAGES;
    plan->group[stages] = STAGES;
    for (uint32_t k = 0; k < STAGES; k++) {
        plan->share[k] = k + 1 == plan->group[1] || k + 1 == STAGES ? 1 : share * (k + 1);
        plan->codec[k][0] = RP_CODEC_INT8;
    }
}

static void stages_may_be_shared_in_some(void **state) {
    (void)state;
    static const char expected[] = "1/-/4/g2/s0.25,1,1/cint8:f32;0.5/-/2,4;1/-//g/s0.25,0.5,1/c";
    rp_trial trial;
    rp_trial again;
    char *text;
    add_shared(2, 4, 2, 0.25);
    add(2, 4, 0.5);
    add_shared(2, 4, 2, 0.25); /* the same */
    add_shared(1, 0, 0, 0.25);
    rp_trial_open(&trial, &answer.plan[0], &answer);
    assert_int_equal(trial.count, 3);
    assert_true(trial.plan[0].is_shared && !trial.plan[1].is_shared && trial.plan[2].is_shared);
    expect_ok(rp_trial_text(&arena, &trial, &text));
    assert_string_equal(text, expected);
    assert_true(rp_trial_read(text, LAYERS, &again));
    assert_int_equal(again.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(rp_trial_find(&again, STAGES, &trial.plan[i]), i);
        assert_int_equal(again.plan[i].has_codecs, trial.plan[i].has_codecs);
    }
    assert_int_equal(again.plan[0].codec[0][0], RP_CODEC_INT8);
    assert_int_equal(again.plan[0].codec[0][1], RP_CODEC_F32);
    trial.plan[0].share[0] = 0.5; /* another part of the samples */
    assert_int_equal(rp_trial_find(&again, STAGES, &trial.plan[0]), 3);
    trial.plan[0].share[0] = 0.25;
    trial.plan[0].group[1] = 1; /* other boards share a stage */
    assert_int_equal(rp_trial_find(&again, STAGES, &trial.plan[0]), 3);
}

static void what_is_no_such_text_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "1/1/2,4",         /* one is no choice */
        "1/1/2,4;",        /* ends early */
        "1/1/2,4;1/1/3",   /* another number of stages */
        "1/1/2,4;1/1/3,9", /* the model has no such layer */
        "1/1/2,4;1/1/0,3",
        "1/1/2,4;1/1/4,4", /* an empty stage */
        "1/1/2,4;1/1/-3,4",
        "1/1/2,4;1/1/3,4 ",
        "1/1/2,4;-/1/3,4",
        "1/1/2,4;nan/1/3,4",
        "1/1/2,4;1/nan/3,4",
        "1/1/2,4;1/-1/3,4",
        "1/1/2,4;1e999/1/3,4",
        "1/1/2,4;1/1e999/3,4",
        "1/1/2,4;1/1/3,4x",
        "1/1/2,4;1/1/99999999999999999999,4",
        "x",
        "1/1/2,4;1/1/4/g2/s0.5,1",                  /* of two boards, which do not share */
        "1/1/2,4;1/1/4/g2/s0.5,1,1,1",              /* four boards */
        "1/1/2,4;1/1/4/g2/s0.5,0.9,1",              /* the first stage's samples have an end */
        "1/1/2,4;1/1/4/g2/s1,1,1",                  /* the first board's, too early */
        "1/1/2,4;1/1/4/g2/s0,1,1",                  /* none */
        "1/1/2,4;1/1/4/g3/s0.3,0.6,1",              /* no board for the second stage */
        "1/1/2,4;1/1/4/g1,2/s1,1,1",                /* more stages than the cut has */
        "1/1/2,4;1/1/4/g/s0.3,0.6,1",               /* fewer */
        "1/1/2,4;1/1/4/g2/snan,1,1",                /* no number */
        "1/1/2,4;1/1/4/g2",                         /* without shares */
        "1/1/2,4;1/1/4/s0.5,1,1",                   /* without groups */
        "1/1/2,4;1/1/4/g2/s0.5,1,1/cint8",          /* one direction */
        "1/1/2,4;1/1/4/g2/s0.5,1,1/cint8:none",     /* no codec */
        "1/1/2,4;1/1/4/g2/s0.5,1,1/cint8:f32,",     /* one boundary too many */
        "1/1/2,4/cint8:f32;1/1/4/g2/s0.5,1,1",      /* one too few */
        "1/1/2,4;1/1/4/g2/s0.5,1,1/cint8:f32/cf32", /* twice */
        "1/1/2,4;1/1/3,4;1/1/3,5;1/1/3,6",          /* too many */
    };
    rp_trial trial;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        trial.count = 7;
        if (rp_trial_read(bad[i], LAYERS, &trial)) {
            fail_msg("%s is taken", bad[i]);
        }
        assert_int_equal(trial.count, 0);
    }
    assert_true(rp_trial_read("1/1/2,4;1/1/3,5", LAYERS, &trial));
    assert_true(rp_trial_read(NULL, LAYERS, &trial));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_cuts_of_one_ring_are_tried, open_arena,
                                        close_arena),
        cmocka_unit_test(all_are_measured_and_the_fastest_is_kept),
        cmocka_unit_test_setup_teardown(the_text_is_read_back, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(stages_may_be_shared_in_some, open_arena, close_arena),
        cmocka_unit_test(what_is_no_such_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
