/* The setup of a ring of three boards of a roster and a spare, without links. */
#ifndef RP_TESTS_SETUP_ARRANGED_H
#define RP_TESTS_SETUP_ARRANGED_H

#include "folder.h"

#include "run_of.h"
#include "setup/arrangement.h"

enum { BOARDS = 3 };

static rp_clock test_clock;
static rp_ring ring;
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
    (void)unlink(in_folder("roster.yaml"));
    append("roster.yaml", text, used);
}

/* Three boards of a roster and a spare, b3; three layers. */
static inline void open_ring(const char *more, const char *cut) {
    rp_runfile plain;
    char roster[300];
    const char *sets[3] = {roster, "train.microbatch=auto", cut};
    write_roster();
    read_run(&plain, more);
    rp_runfile_close(&plain);
    (void)snprintf(roster, sizeof roster, "ring={roster: %s/roster.yaml, spare: [b3]}", folder);
    test_clock = rp_clock_stepped(RP_NS_PER_S);
    ring = (rp_ring){0};
    position = (rp_position){0};
    expect_ok(rp_folder_open(&arena, &run_folder));
    const rp_arrangement_needs needs = {
        .ring = &ring, .folder = run_folder, .position = &position, .trains = true};
    expect_ok(rp_arrangement_open(&arena, &needs, &setup_of_run));
    run = rp_arrangement_run(setup_of_run);
    expect_ok(rp_arrangement_read(setup_of_run, in_folder("run.yaml"), sets, cut ? 3 : 1));
    expect_ok(rp_ring_open(&arena, &(rp_ring_needs){.run = run, .clock = &test_clock}, &ring));
    const rp_measure_needs asked = {.run = run, .ring = &ring, .clock = &test_clock};
    expect_ok(rp_measure_open(&arena, &asked, &measure));
    rp_arrangement_use_measure(setup_of_run, measure);
}

static inline int close_ring(void **state) {
    rp_measure_close(measure);
    rp_arrangement_release(setup_of_run);
    rp_arrangement_close(setup_of_run);
    (void)unlink(in_folder("model.yaml"));
    (void)unlink(in_folder("run.yaml"));
    (void)unlink(in_folder("roster.yaml"));
    return teardown(state);
}

#endif
