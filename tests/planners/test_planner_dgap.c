/* Two chromosomes: within 1 % of brute force, never worse than what the first population holds, in
 * time, and with what memory allows. */
#include "planners/asked.h"

static void it_is_near_brute_force(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(9, "test/dgap");
    for (uint32_t trial = 0; trial < 60; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 1, 4, trial % 3 ? 32 : 24, trial % 2, &p);
        thin_sizes(&p, 4);
        const double best = asked("brute", &p).step_s;
        const double found = asked("dgap", &p).step_s;
        assert_true(found <= 1.01 * best && found >= best * (1 - 1e-9));
        rp_arena_finish(&arena);
    }
}

static void it_is_never_worse_than_where_it_begins(void **state) {
    (void)state;
    static const char *const simple[] = {"even", "greedy", "dp-sizes"};
    rp_rng rng = rp_rng_named(10, "test/dgap");
    for (uint32_t trial = 0; trial < 60; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 4, 16, 32, trial % 2, &p);
        const rp_planner_ask ask = {
            .problem = &p, .seed = trial, .rounds = 1, .population = trial % 3 ? 0 : 4};
        const double found = asked_with("dgap", &ask).step_s;
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(found <= asked(simple[i], &p).step_s * (1 + 1e-9));
        }
        rp_arena_finish(&arena);
    }
}

static int64_t late(const rp_clock *clock) {
    (void)clock;
    static int64_t now;
    return now += RP_NS_PER_MS; /* every look takes a millisecond */
}

/* Any time: when time is over after so many looks, the best until then is the answer. */
static void time_ends_it(void **state) {
    (void)state;
    const rp_clock clock = {.now = late};
    rp_rng rng = rp_rng_named(11, "test/dgap");
    rp_arena arena;
    rp_problem p;
    rp_arena_init(&arena, "test", 0);
    draw_ring(&arena, &rng, 8, 8, 32, false, &p);
    const double even = asked("even", &p).step_s;
    double before = even;
    for (int64_t limit = 1; limit <= 1 << 12; limit *= 8) {
        const rp_planner_ask ask = {
            .problem = &p, .seed = 3, .clock = &clock, .limit_ns = limit * RP_NS_PER_MS};
        const rp_planner_answer a = asked_with("dgap", &ask);
        assert_false(a.is_complete);
        assert_true(a.generations <= (uint64_t)limit);
        assert_true(a.took_s >= (double)limit / 1000);
        assert_true(a.step_s <= before * (1 + 1e-9)); /* the same search, further */
        before = a.step_s;
    }
    assert_true(before < even);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_near_brute_force),
        cmocka_unit_test(it_is_never_worse_than_where_it_begins),
        cmocka_unit_test(time_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
