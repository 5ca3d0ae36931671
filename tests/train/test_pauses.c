/* The steps at which a run pauses: a table of facts and answers, and what holds for all of them. */
#include "expect.h"

#include "train/pauses.h"

/* A run of 100 steps, with nothing else asked of it. */
#define RUN .end = 100

typedef struct {
    const char *why;
    rp_pauses facts;
    uint64_t copies; /* 0: never */
    uint64_t next;
} row;

static const row rows[] = {
    {"the end alone", {RUN}, 0, 100},
    {"an epoch", {RUN, .save_every = {30}}, 0, 30},
    {"at an epoch's end the next one", {RUN, .step = 30, .save_every = {30}}, 0, 60},
    {"the end before an epoch's", {RUN, .step = 90, .save_every = {30}}, 0, 100},
    {"the soonest of all", {RUN, .step = 41, .save_every = {30, 25, 0, 14, 44}}, 0, 42},
    {"copies", {RUN, .step = 3, .save_every = {30}}, 7, 7},
    {"copies after the epoch", {RUN, .step = 3, .save_every = {30}}, 40, 30},
    {"a first look at links", {RUN, .save_every = {30}, .look = 8}, 0, 8},
    {"a look is first alone", {RUN, .step = 1, .save_every = {30}, .look = 8}, 0, 30},
    {"half as far after a fault", {RUN, .step = 30, .save_every = {30}, .returns = 1}, 0, 45},
    {"an eighth after three", {RUN, .step = 30, .save_every = {30}, .returns = 3}, 0, 33},
    {"one step at least", {RUN, .step = 30, .save_every = {30}, .returns = 9}, 0, 31},
    {"however many faults", {RUN, .step = 30, .save_every = {30}, .returns = 64}, 0, 31},
};

static void a_segment_ends_where_something_is_due(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        const uint64_t next = rp_pauses_next(&r->facts, r->copies ? r->copies : UINT64_MAX);
        if (next != r->next) {
            fail_msg("%s: step %d", r->why, (int)next);
        }
    }
}

static void copies_suffice_where_nothing_is_saved(void **state) {
    (void)state;
    const rp_pauses facts = {RUN, .step = 20, .save_every = {30, 7, 0, 9, 11}};
    assert_true(rp_pauses_need_no_save(&facts));
    for (uint32_t i = 0; i < 5; i++) { /* each of the intervals counts */
        rp_pauses due = facts;
        due.save_every[i] = 10;
        assert_false(rp_pauses_need_no_save(&due));
    }
    rp_pauses must = facts;
    must.must_save = true;
    assert_false(rp_pauses_need_no_save(&must));
    rp_pauses last = facts;
    last.end = 20;
    assert_false(rp_pauses_need_no_save(&last));
}

static void an_evaluation_is_by_epochs_or_by_steps(void **state) {
    (void)state;
    rp_pauses facts = {RUN, .step = 20, .save_every = {2}};
    assert_int_equal(rp_pauses_next_score(&facts), 100);
    facts.score_every[0] = 60;
    assert_int_equal(rp_pauses_next_score(&facts), 60);
    facts.score_every[1] = 20;
    assert_int_equal(rp_pauses_next_score(&facts), 40);
}

/* A run without faults pauses at every checkpoint; with faults it pauses more often, never less. */
static void no_checkpoint_is_passed(void **state) {
    (void)state;
    for (uint32_t returns = 0; returns < 70; returns++) {
        uint32_t checkpoints = 0;
        rp_pauses facts = {RUN, .save_every = {30, 7}, .returns = returns};
        while (facts.step < facts.end) {
            const uint64_t next = rp_pauses_next(&facts, UINT64_MAX);
            assert_true(next > facts.step && next <= facts.end);
            facts.step = next;
            checkpoints += next % 7 == 0;
        }
        assert_int_equal(checkpoints, 14);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_ends_where_something_is_due),
        cmocka_unit_test(copies_suffice_where_nothing_is_saved),
        cmocka_unit_test(an_evaluation_is_by_epochs_or_by_steps),
        cmocka_unit_test(no_checkpoint_is_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
