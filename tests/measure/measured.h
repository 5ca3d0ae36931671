/* A ring of boards that are not there, and what is measured of it. Time is stepped. */
#ifndef RP_TESTS_MEASURE_MEASURED_H
#define RP_TESTS_MEASURE_MEASURED_H

#include "far.h"
#include "open_run.h"

#include <math.h>

#include "measure/drift.h"
#include "measure/losses.h"
#include "measure/measure.h"
#include "planning/planfile.h"

enum { LAYERS = 3 };

static rp_measure *measure;
static rp_plan *plan;

/* Boards at an address each, with all features. `set`: changes of run.yaml, or NULL; what else is
 * needed is in `more`. */
static inline void open_measure(const char *set, rp_measure_needs more) {
    more.run = &run;
    more.ring = &ring;
    more.clock = &test_clock;
    read_gpipe(&set, set != NULL);
    open_host(false);
    open_ring_of(&run);
    ring.features = RP_WIRE_FEATURES;
    for (uint32_t k = 0; k < ring.count; k++) {
        rp_board_state *board = &ring.board[k];
        rp_ring_set_address(&ring, k, far[k].endpoint, host.keys.public_text);
        (void)snprintf(board->hardware.kind, sizeof board->hardware.kind, "kind %u", k);
        (void)snprintf(board->device_text, sizeof board->device_text, "test device");
        board->device = board->device_text;
    }
    expect_ok(rp_measure_open(&arena, &more, &measure));
}

static inline void open_plain(void) {
    open_measure(NULL, (rp_measure_needs){0});
}

static inline int close_measure(void **state) {
    close_host();
    rp_measure_close(measure);
    rp_measure_close(measure); /* once more does nothing */
    measure = NULL;
    plan = NULL;
    return close_run(state);
}

/* The answer to an order, as agents make it: every pass of every layer takes so long, with each
 * size. A probe of so few layers names them all. An order without sizes is one
 * to an old board, which only answers forward and backward. */
static inline double *make_answer(const rp_Profile *order, double pass_s, size_t *count) {
    const size_t passes = order->samples_count * (size_t)LAYERS * RP_MEASURED_PASSES;
    double *values;
    if (passes == 0) {
        *count = 2 * (size_t)LAYERS;
        expect_ok(RP_ARENA_NEW(&arena, *count, &values));
        for (size_t i = 0; i < *count; i++) {
            values[i] = pass_s;
        }
        return values;
    }
    *count = rp_measured_count(LAYERS, order->samples_count);
    expect_ok(RP_ARENA_NEW(&arena, *count, &values));
    for (size_t i = 0; i < passes; i++) {
        values[2 * i] = pass_s;
        values[2 * i + 1] = 0.01; /* spread */
    }
    return values;
}

static inline rp_err give_answer(uint32_t board, const double *values, size_t count,
                                 rp_measure_answer *out) {
    const rp_ProfileDone done = {0};
    const rp_part part = rp_part_of_array(RP_DTYPE_F64, values, count);
    return rp_measure_take(measure, board, &done, &part, out);
}

/* All that are to be measured, but not their wires: a pass takes a ms on the first board, 2 on the
 * second .. */
static inline void measure_boards(void) {
    expect_ok(rp_measure_begin(measure, 0));
    for (uint32_t k = 0; k < ring.count; k++) {
        rp_Profile order = {0};
        rp_measure_answer said;
        size_t count;
        if (rp_measure_wants(measure, k)) {
            expect_ok(rp_measure_order(measure, k, &order));
            const double *values = make_answer(&order, 1e-3 * (k + 1), &count);
            expect_ok(give_answer(k, values, count, &said));
            assert_false(said.again);
        }
    }
}

static inline void measure_all(void) {
    bool all = false;
    measure_boards();
    expect_ok(rp_measure_step_wires(measure, &all));
    assert_true(all);
    rp_measure_end(measure);
}

/* The plan in force: two stages, of one and two layers. */
static inline void take_plan(void) {
    static const uint32_t first[] = {0, 1, LAYERS};
    static const char *const names[] = {"0", "1"};
    const rp_prediction *predicted;
    const rp_cut cut = {.stage_count = 2, .first = first};
    const rp_planfile chosen = {
        .run = &run,
        .cut = &cut,
        .board = names,
        .profile = rp_measure_has_profile(measure) ? rp_measure_profile(measure) : NULL};
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
    rp_drift_begin_plan(measure);
    expect_ok(rp_drift_open(measure, plan, &predicted));
    assert_ptr_equal(predicted, rp_drift_prediction(measure));
    expect_ok(rp_losses_open(measure, plan));
}

#endif
