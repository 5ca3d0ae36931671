/* A ring of two boards that are not there, and what is measured of it. Time is stepped. */
#ifndef RP_TESTS_MEASURE_MEASURED_H
#define RP_TESTS_MEASURE_MEASURED_H

#include "folder.h"

#include <math.h>

#include "measure/drift.h"
#include "measure/losses.h"
#include "measure/measure.h"
#include "planning/planfile.h"
#include "run_of.h"

enum { BOARDS = 2, LAYERS = 3 };

static rp_clock test_clock;
static rp_runfile run;
static rp_ring ring;
static rp_measure *measure;
static rp_plan *plan;

/* Boards at two addresses, with all features. `more`: lines of the run file. */
static inline void open_measure(const char *more, const char *profiles) {
    const rp_measure_needs needs = {
        .run = &run, .ring = &ring, .clock = &test_clock, .profiles = profiles};
    test_clock = rp_clock_stepped(RP_NS_PER_S);
    read_run(&run, more);
    expect_ok(rp_ring_open(&arena, &run, &test_clock, &ring));
    ring.features = RP_WIRE_FEATURES;
    ring.now_ns = RP_NS_PER_S;
    for (uint32_t k = 0; k < BOARDS; k++) {
        rp_board_state *board = &ring.board[k];
        (void)snprintf(board->endpoint, sizeof board->endpoint, "tcp://board%u:1", k);
        (void)snprintf(board->kind, sizeof board->kind, "test kind");
        (void)snprintf(board->device_text, sizeof board->device_text, "test device");
        board->device = board->device_text;
    }
    expect_ok(rp_measure_open(&arena, &needs, &measure));
}

static inline void open_plain(const char *profiles) {
    open_measure("schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\n", profiles);
}

static inline int close_measure(void **state) {
    rp_measure_close(measure);
    rp_measure_close(measure); /* once more does nothing */
    measure = NULL;
    plan = NULL;
    rp_runfile_close(&run);
    (void)unlink(in_folder("model.yaml"));
    (void)unlink(in_folder("run.yaml"));
    return teardown(state);
}

/* The answer of a board to an order: every pass of every layer takes so long, with each size. */
static inline rp_err answer(uint32_t board, const rp_Profile *order, double pass_s,
                            rp_measure_answer *out) {
    const size_t sizes = order->samples_count;
    const size_t count = rp_measured_count(LAYERS, sizes);
    const rp_ProfileDone done = {0};
    double *values;
    expect_ok(RP_ARENA_NEW(&arena, count, &values));
    for (size_t i = 0; i < sizes * LAYERS * RP_MEASURED_PASSES; i++) {
        values[2 * i] = pass_s;
        values[2 * i + 1] = 0.01; /* spread */
    }
    const rp_part part = rp_part_of_array(RP_DTYPE_F64, values, count);
    return rp_measure_take(measure, board, &done, &part, out);
}

/* All boards are measured: each pass of a layer takes a ms on the first one, 2 on the second. */
static inline void measure_boards(void) {
    bool all = false;
    expect_ok(rp_measure_begin(measure, 0));
    for (uint32_t k = 0; k < BOARDS; k++) {
        rp_Profile order = {0};
        rp_measure_answer said;
        assert_true(rp_measure_wants(measure, k));
        expect_ok(rp_measure_order(measure, k, &order));
        expect_ok(answer(k, &order, 1e-3 * (k + 1), &said));
        assert_false(said.again);
    }
    expect_ok(rp_measure_step_wires(measure, &all));
    assert_true(all);
    rp_measure_end(measure);
}

/* The plan in force: two stages, of one and two layers. */
static inline void take_plan(void) {
    static const uint32_t first[] = {0, 1, LAYERS};
    static const char *const names[] = {"0", "1"};
    const rp_cut cut = {.stage_count = 2, .first = first};
    const rp_planfile chosen = {
        .run = &run, .cut = &cut, .board = names, .profile = rp_measure_profile(measure)};
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
    rp_drift_begin_plan(measure);
    expect_ok(rp_losses_open(measure, plan));
}

#endif
