/* Cut, boards of a stage and boards left out: as brute force finds them. */
#include "planning/dp_cut.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "expect.h"

enum { LAYERS = 6, BOARDS = 4 };

/* A board of a share takes its part by its speed, and a fixed time; what a stage keeps grows with
 * the stages behind it. */
typedef struct {
    rp_dp_ask ask;
    double layer[LAYERS], bytes[LAYERS];
    double speed[BOARDS], memory[BOARDS];
    double rate[BOARDS][BOARDS];
} ring;

static double stage_s(const void *context, rp_dp_group group, uint32_t first, uint32_t end,
                      uint32_t behind) {
    const ring *r = context;
    double work = 0;
    double speed = 0;
    for (uint32_t i = first; i < end; i++) {
        work += r->layer[i];
    }
    for (uint32_t k = group.first; k < group.first + group.count; k++) {
        speed += r->speed[k];
        if ((end - first) * (1 + 0.2 * behind) > r->memory[k]) {
            return (double)INFINITY;
        }
    }
    return 0.05 + work / speed;
}

static double wire_s(const void *context, rp_dp_group from, rp_dp_group to, uint32_t layer) {
    const ring *r = context;
    return r->bytes[layer] / r->rate[from.first][to.first] / (from.count + to.count);
}

/* What is left to choose, and what has been. */
typedef struct {
    const ring *ring;
    rp_dp_group group[BOARDS];
    uint32_t first[BOARDS + 1];
    uint32_t count;
    double best;
} brute;

static double cost_of(const brute *b) {
    const rp_dp_ask *ask = &b->ring->ask;
    double slowest = 0;
    double sum = 0;
    double turns = 0;
    for (uint32_t k = 0; k < b->count; k++) {
        const double own =
            stage_s(b->ring, b->group[k], b->first[k], b->first[k + 1], b->count - 1 - k);
        const double wire = k > 0 ? wire_s(b->ring, b->group[k - 1], b->group[k], b->first[k]) : 0;
        slowest = fmax(slowest, fmax(own, wire));
        sum += own + wire;
        turns += ask->turns_s ? wire : 0;
    }
    slowest = fmax(slowest, turns);
    return ask->steady * slowest + (ask->fill > 0 ? ask->fill * sum : 0);
}

static void try_all(brute *b, uint32_t layer, uint32_t board) {
    const rp_dp_ask *ask = &b->ring->ask;
    if (layer == LAYERS) {
        if (ask->boards - board <= ask->skip_most) {
            b->first[b->count] = LAYERS;
            b->best = fmin(b->best, cost_of(b));
        }
        return;
    }
    for (uint32_t at = board; at <= board + ask->skip_most && b->count < ask->stages_most; at++) {
        for (uint32_t n = 1; n <= ask->share_most && at + n <= ask->boards; n++) {
            for (uint32_t end = layer + 1; end <= LAYERS; end++) {
                b->first[b->count] = layer;
                b->group[b->count++] = (rp_dp_group){at, n};
                try_all(b, end, at + n);
                b->count--;
            }
        }
    }
}

static ring draw(rp_rng *rng, uint32_t trial) {
    ring r = {.ask = {.layers = LAYERS,
                      .boards = BOARDS,
                      .stages_most = 1 + rp_rng_below(rng, BOARDS),
                      .share_most = 1 + rp_rng_below(rng, 3),
                      .skip_most = rp_rng_below(rng, BOARDS),
                      .steady = 1 + rp_rng_below(rng, 8),
                      .fill = trial % 3 ? 1 : 0,
                      .stage_s = stage_s,
                      .wire_s = wire_s}};
    for (uint32_t i = 0; i < LAYERS; i++) {
        r.layer[i] = rp_rng_uniform(rng);
        r.bytes[i] = trial % 2 ? rp_rng_uniform(rng) : 0;
    }
    for (uint32_t k = 0; k < BOARDS; k++) {
        r.speed[k] = 0.2 + rp_rng_uniform(rng);
        r.memory[k] = trial % 4 ? 10 : 1 + 4 * rp_rng_uniform(rng);
        for (uint32_t to = 0; to < BOARDS; to++) {
            r.rate[k][to] = 0.2 + rp_rng_uniform(rng);
        }
    }
    return r;
}

/* The answer is what it says: its cut costs so much, in layers and boards that follow each other.
 */
static void expect_sound(const ring *r, const rp_dp_answer *answer) {
    brute b = {.ring = r, .count = answer->stage_count};
    uint32_t board = 0;
    for (uint32_t k = 0; k < b.count; k++) {
        b.group[k] = answer->group[k];
        b.first[k] = answer->first[k];
        assert_true(answer->first[k] < answer->first[k + 1]);
        assert_true(answer->group[k].first >= board);
        board = answer->group[k].first + answer->group[k].count;
    }
    assert_true(board <= BOARDS);
    assert_int_equal(answer->first[0], 0);
    assert_int_equal(answer->first[b.count], LAYERS);
    b.first[b.count] = LAYERS;
    expect_close(cost_of(&b), answer->cost, 1e-12, 0);
}

static void it_is_the_best(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(5, "test/dp_cut");
    uint32_t refused = 0;
    uint32_t shared = 0;
    uint32_t left_out = 0;
    for (uint32_t trial = 0; trial < 1000; trial++) {
        ring r = draw(&rng, trial);
        rp_dp_answer answer;
        brute b = {.ring = &r, .best = (double)INFINITY};
        r.ask.context = &r;
        try_all(&b, 0, 0);
        expect_ok(rp_dp_cut(&r.ask, &answer));
        if (isinf(b.best)) {
            assert_int_equal(answer.stage_count, 0);
            refused++;
            continue;
        }
        assert_true(answer.is_exact);
        expect_close(answer.cost, b.best, 1e-12, 0);
        expect_sound(&r, &answer);
        uint32_t used = 0;
        for (uint32_t k = 0; k < answer.stage_count; k++) {
            used += answer.group[k].count;
            shared += answer.group[k].count > 1;
        }
        left_out += used < BOARDS;
    }
    assert_true(refused > 10 && refused < 500 && shared > 10 && left_out > 10);
}

/* All wires are one: its time in all counts, and the cut is the best, or nearly so. Each part of a
 * rate for itself would give a worse one. */
static void wires_may_take_turns(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(8, "test/dp_cut");
    uint32_t best = 0;
    uint32_t better = 0;
    for (uint32_t trial = 1; trial < 800; trial += 2) {
        ring r = draw(&rng, trial);
        rp_dp_answer answer;
        rp_dp_answer apart;
        brute b = {.ring = &r, .best = (double)INFINITY};
        brute other = {.ring = &r};
        r.ask.context = &r;
        r.ask.stages_most = BOARDS;
        for (uint32_t i = 0; i < LAYERS; i++) {
            r.bytes[i] *= 4;
        }
        expect_ok(rp_dp_cut(&r.ask, &apart));
        r.ask.turns_s = wire_s;
        try_all(&b, 0, 0);
        expect_ok(rp_dp_cut(&r.ask, &answer));
        if (isinf(b.best)) {
            assert_int_equal(answer.stage_count, 0);
            continue;
        }
        expect_sound(&r, &answer);
        assert_true(answer.cost >= b.best * (1 - 1e-12) && answer.cost < 1.1 * b.best);
        assert_true(!answer.is_exact || answer.cost < b.best * (1 + 1e-12));
        best += answer.cost < b.best * (1 + 1e-12);
        other.count = apart.stage_count;
        memcpy(other.group, apart.group, sizeof other.group);
        memcpy(other.first, apart.first, sizeof other.first);
        assert_true(answer.cost <= cost_of(&other) * (1 + 1e-12));
        better += answer.cost < 0.98 * cost_of(&other);
    }
    assert_true(best > 380 && better > 20);
}

/* What is cut off by rounds is an answer, too, and never better than the best. */
static void rounds_end_it(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(6, "test/dp_cut");
    uint32_t ended = 0;
    for (uint32_t trial = 0; trial < 200; trial++) {
        ring r = draw(&rng, 1);
        rp_dp_answer all;
        rp_dp_answer some;
        r.ask.context = &r;
        r.ask.skip_most = BOARDS;
        expect_ok(rp_dp_cut(&r.ask, &all));
        r.ask.rounds = 2;
        expect_ok(rp_dp_cut(&r.ask, &some));
        expect_sound(&r, &some);
        assert_true(some.cost >= all.cost);
        ended += !some.is_exact;
    }
    assert_true(ended > 0);
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(7, "test/dp_cut");
    const ring good = draw(&rng, 1);
    ring r = good;
    rp_dp_answer answer;
    r.ask.context = &r;
    r.ask.steady = (double)NAN;
    assert_int_equal(rp_dp_cut(&r.ask, &answer), RP_ERR_USAGE);
    r.ask.steady = 1;
    r.ask.boards = 0;
    assert_int_equal(rp_dp_cut(&r.ask, &answer), RP_ERR_USAGE);
    r.ask.boards = RP_DP_BOARDS_MAX + 1;
    assert_int_equal(rp_dp_cut(&r.ask, &answer), RP_ERR_USAGE);
    r.ask.boards = BOARDS;
    r.ask.share_most = 0;
    assert_int_equal(rp_dp_cut(&r.ask, &answer), RP_ERR_USAGE);
    r.ask.share_most = 1;
    r.speed[0] = r.speed[1] = r.speed[2] = r.speed[3] = (double)NAN;
    expect_ok(rp_dp_cut(&r.ask, &answer));
    assert_int_equal(answer.stage_count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_best),
        cmocka_unit_test(wires_may_take_turns),
        cmocka_unit_test(rounds_end_it),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
