/* The cut for boards that differ: as brute force finds it, and as the old one for boards alike. */
#include <math.h>

#include "base/rng.h"
#include "expect.h"
#include "planning/balance.h"

enum { LAYERS = 9, STAGES = 4 };

typedef struct {
    double layer[LAYERS];
    double speed[STAGES];
    double boundary[LAYERS];
} ring;

static double cost(const void *context, uint32_t stage, uint32_t first, uint32_t end) {
    const ring *r = context;
    /* Nothing else is asked: a cost may look at the stage below. */
    assert_true(stage == 0 ? first == 0 : first >= stage);
    assert_true(stage + 1 == STAGES ? end == LAYERS : end < LAYERS);
    double sum = r->boundary[first] + (end < LAYERS ? r->boundary[end] : 0);
    for (uint32_t i = first; i < end; i++) {
        sum += r->layer[i] / r->speed[stage];
    }
    return sum;
}

static double slowest(const ring *r, const uint32_t *first) {
    double most = 0;
    for (uint32_t k = 0; k < STAGES; k++) {
        most = fmax(most, cost(r, k, first[k], first[k + 1]));
    }
    return most;
}

static double by_brute_force(const ring *r) {
    double best = (double)INFINITY;
    for (uint32_t a = 1; a < LAYERS; a++) {
        for (uint32_t b = a + 1; b < LAYERS; b++) {
            for (uint32_t c = b + 1; c < LAYERS; c++) {
                best = fmin(best, slowest(r, (const uint32_t[]){0, a, b, c, LAYERS}));
            }
        }
    }
    return best;
}

static void it_is_the_best(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(3, "test/balance");
    for (uint32_t trial = 0; trial < 500; trial++) {
        ring r = {.boundary = {0}};
        rp_arena arena;
        rp_cut cut;
        rp_arena_init(&arena, "test", 0);
        for (uint32_t i = 0; i < LAYERS; i++) {
            r.layer[i] = rp_rng_uniform(&rng);
            r.boundary[i] = i > 0 && trial % 2 ? 0.3 * rp_rng_uniform(&rng) : 0;
        }
        for (uint32_t k = 0; k < STAGES; k++) {
            r.speed[k] = 0.2 + rp_rng_uniform(&rng);
        }
        expect_ok(rp_balance(&arena, cost, &r, LAYERS, STAGES, &cut));
        assert_int_equal(cut.stage_count, STAGES);
        assert_int_equal(cut.first[STAGES], LAYERS);
        expect_close(slowest(&r, cut.first), by_brute_force(&r), 1e-12, 0);
        rp_arena_finish(&arena);
    }
}

static void boards_alike_have_the_cut_of_before(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(4, "test/balance");
    for (uint32_t trial = 0; trial < 500; trial++) {
        ring r = {.speed = {1, 1, 1, 1}};
        rp_arena arena;
        rp_cut cut;
        rp_cut before;
        rp_arena_init(&arena, "test", 0);
        for (uint32_t i = 0; i < LAYERS; i++) {
            r.layer[i] = rp_rng_below(&rng, 5); /* with ties */
            r.boundary[i] = i > 0 ? rp_rng_below(&rng, 2) : 0;
        }
        expect_ok(rp_balance(&arena, cost, &r, LAYERS, STAGES, &cut));
        expect_ok(rp_cut_balance(&arena, r.layer, r.boundary, LAYERS, STAGES, &before));
        for (uint32_t k = 0; k <= STAGES; k++) {
            assert_int_equal(cut.first[k], before.first[k]);
        }
        rp_arena_finish(&arena);
    }
}

static double never(const void *context, uint32_t stage, uint32_t first, uint32_t end) {
    (void)context;
    (void)first;
    (void)end;
    return stage == 1 ? (double)INFINITY : 1;
}

static void what_can_not_be_cut_is_refused(void **state) {
    (void)state;
    rp_arena arena;
    rp_cut cut;
    rp_arena_init(&arena, "test", 0);
    expect_err(rp_balance(&arena, never, NULL, 5, 2, &cut), RP_ERR_USAGE);
    expect_err(rp_balance(&arena, never, NULL, 1, 2, &cut), RP_ERR_USAGE);
    expect_err(rp_balance(&arena, never, NULL, 5, 0, &cut), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_best),
        cmocka_unit_test(boards_alike_have_the_cut_of_before),
        cmocka_unit_test(what_can_not_be_cut_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
