/* The setup of a ring of three boards of a roster and a spare, without links. */
#ifndef RP_TESTS_SETUP_ARRANGED_H
#define RP_TESTS_SETUP_ARRANGED_H

#include "far.h"

#include "run_of.h"
#include "setup/arrangement.h"

enum { BOARDS = 3 };

static rp_folder *run_folder;
static rp_position position;
static rp_measure *measure;
static rp_arrangement *setup_of_run;
static const rp_runfile *run;

static inline void write_roster(void) {
    char text[600];
    size_t used = (size_t)snprintf(text, sizeof text, "boards:\n");
    for (uint32_t k = 0; k <= BOARDS; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "  - {name: b%u, address: \"tcp://b%u.example:7000\", key: "
                                 "\"%05uabcdeabcdeabcdeabcdeabcdeabcdeabcde\"}\n",
                                 k, k, k);
    }
    write_file("roster.yaml", text, used);
}

/* Three boards of a roster and a spare, b3; three layers. */
static inline void open_ring(const char *more, const char *cut) {
    char roster[300];
    const char *sets[3] = {roster, "train.microbatch=auto", cut};
    write_roster();
    const char *path = write_run(more);
    (void)snprintf(roster, sizeof roster, "ring={roster: %s/roster.yaml, spare: [b3]}", folder);
    open_host(false);
    position = (rp_position){0};
    expect_ok(rp_folder_open(&arena, &run_folder));
    const rp_arrangement_needs needs = {
        .ring = &ring, .folder = run_folder, .position = &position, .trains = true};
    expect_ok(rp_arrangement_open(&arena, &needs, &setup_of_run));
    run = rp_arrangement_run(setup_of_run);
    expect_ok(rp_arrangement_read(setup_of_run, path, sets, cut ? 3 : 1));
    open_ring_of(run);
    const rp_measure_needs asked = {.run = run, .ring = &ring, .clock = &test_clock};
    expect_ok(rp_measure_open(&arena, &asked, &measure));
    rp_arrangement_use_measure(setup_of_run, measure);
}

static inline int close_ring(void **state) {
    rp_measure_close(measure);
    rp_arrangement_release(setup_of_run);
    rp_arrangement_close(setup_of_run);
    close_host();
    return teardown(state);
}

#endif
