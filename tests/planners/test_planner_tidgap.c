/* Arrays change nothing but the time that a search takes: its trace is dgap's. And on rings too
 * large for brute force it is as good as long annealing. */
#include "planners/asked.h"

enum { TRACE_MAX = 4096, MOVES = 60000 };

typedef struct {
    rp_planner_trace row[TRACE_MAX];
    uint32_t count;
} traced;

static void note(void *context, const rp_planner_trace *trace) {
    traced *t = context;
    assert_true(t->count < TRACE_MAX);
    t->row[t->count++] = *trace;
}

static void the_trace_is_that_of_dgap(void **state) {
    (void)state;
    static traced one;
    static traced many;
    rp_rng rng = rp_rng_named(12, "test/tidgap");
    for (uint32_t trial = 0; trial < trials(30, 6); trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 1, 16, trial % 5 ? 32 : 96, trial % 2, &p);
        if (trial % 3 == 0) {
            draw_costs(&p, &rng);
        }
        one.count = many.count = 0;
        rp_planner_ask ask = {
            .problem = &p, .seed = trial, .rounds = 2, .trace = note, .context = &one};
        const rp_planner_answer a = asked_with("dgap", &ask);
        ask.context = &many;
        const rp_planner_answer b = asked_with("tidgap", &ask);
        assert_int_equal(one.count, many.count);
        assert_true(one.count > 300);
        for (uint32_t i = 0; i < one.count; i++) {
            assert_int_equal(one.row[i].round, many.row[i].round);
            assert_int_equal(one.row[i].generation, many.row[i].generation);
            expect_close(one.row[i].best, many.row[i].best, 1e-12, 0);
            expect_close(one.row[i].mean, many.row[i].mean, 1e-12, 0);
        }
        assert_int_equal(a.evaluations, b.evaluations);
        assert_memory_equal(&a.genome, &b.genome, sizeof a.genome);
        rp_arena_finish(&arena);
    }
}

/* ---- annealing ------------------------------------------------------------------------------- */

/* From the best even size, one gene at a time; the temperature falls from 5 % of the step to
 * 0.005 %. */
static double anneal(const rp_problem *p, uint64_t seed) {
    rp_rng rng = rp_rng_named(seed, "test/anneal");
    begun_search begun;
    rp_search *search = &begun.search;
    begin_search(&begun, p);
    rp_genome now = rp_simple_even(search);
    double step_s = begun.answer.step_s;
    double best = step_s;
    for (uint32_t move = 0; move < MOVES; move++) {
        const double heat = 0.05 * pow(1e-3, (double)move / MOVES);
        const uint32_t stage = rp_rng_below(&rng, p->stages);
        const uint32_t way = rp_rng_below(&rng, 2);
        rp_genome other = now;
        other.gene[way][stage] = (uint8_t)rp_rng_below(&rng, p->size_count);
        const double other_s = rp_recurrence_makespan(&search->tables, &other, &search->room);
        const double worse = (other_s - step_s) / step_s;
        if (worse <= 0 || (double)rp_rng_uniform(&rng) < exp(-worse / heat)) {
            now = other;
            step_s = other_s;
            best = fmin(best, step_s);
        }
    }
    rp_arena_finish(&search->arena);
    return best;
}

static void it_is_as_good_as_long_annealing(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(13, "test/tidgap");
    const uint32_t count = trials(20, 2);
    uint32_t near = 0;
    for (uint32_t trial = 0; trial < count; trial++) {
        rp_arena arena;
        rp_problem p;
        double best = (double)INFINITY;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 5, 16, trial % 4 ? 32 : 128, trial % 2, &p);
        for (uint32_t seed = 0; seed < 3; seed++) {
            best = fmin(best, anneal(&p, seed));
        }
        const rp_planner_ask ask = {.problem = &p, .seed = 1, .rounds = 4};
        const double found = asked_with("tidgap", &ask).step_s;
        print_message("%2u stages: %.4f of annealing\n", p.stages, found / best);
        near += found <= 1.01 * best;
        rp_arena_finish(&arena);
    }
    assert_true(near + 1 >= count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_trace_is_that_of_dgap),
        cmocka_unit_test(it_is_as_good_as_long_annealing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
