/* A ring of three boards of a roster with one spare, each a process of its own. */
#ifndef RP_TESTS_RING_BOARDS_H
#define RP_TESTS_RING_BOARDS_H

#include "far.h"

#include "ring/kept_out.h"
#include "ring/rejoin.h"

enum { BOARDS = 3, SPARES = 1, ENTRIES = BOARDS + SPARES, WAIT_S = 20 };

static rp_model model;
static rp_roster_entry roster[ENTRIES];
static rp_runfile run;
static const char *const names[ENTRIES] = {"one", "two", "three", "four"};

/* Rounds of so long each, with heartbeats; the first error ends them. */
static inline rp_err pass(uint32_t rounds, int64_t each_ns) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < rounds && err == RP_OK; i++) {
        begin_round(each_ns);
        const bool ping = rp_ring_ping_is_due(&ring);
        for (uint32_t k = 0; k < ring.count && err == RP_OK; k++) {
            err = rp_ring_step(&ring, k);
            err = err == RP_OK ? rp_ring_watch(&ring, k, ping, false) : err;
        }
        step_boards();
    }
    return err;
}

static inline void open_ring(bool dials) {
    open_host(true);
    for (uint32_t k = 0; k < ENTRIES; k++) {
        open_process(&arena, &test_clock, hub, true, &far[k].own);
        roster[k] = (rp_roster_entry){.name = names[k],
                                      .endpoint = dials ? "" : far[k].endpoint,
                                      .dials = dials,
                                      .public_text = far[k].own.keys.public_text,
                                      .place = k};
    }
    model = (rp_model){.param_count = 3, .layer_count = 3};
    run = (rp_runfile){.boards = BOARDS,
                       .spares = SPARES,
                       .roster = roster,
                       .model = &model,
                       .listen = "tcp://host:7100",
                       .safety.wait_s = WAIT_S};
    open_ring_of(&run);
    rp_ring_begin_greeting(&ring, false);
}

/* All boards of the ring are there, and are heard. */
static inline void open_connected(void) {
    open_ring(false);
    for (uint32_t k = 0; k < BOARDS; k++) {
        open_control(k, NULL);
    }
    expect_ok(rp_ring_connect(&ring, host.links, false));
    expect_ok(pass(20, 100 * RP_NS_PER_MS));
}

static inline int close_ring(void **state) {
    rp_rejoin_close(&ring);
    rp_ring_disconnect(&ring);
    close_host(); /* disconnecting once more does nothing */
    return teardown(state);
}

#define RING_TEST(name) cmocka_unit_test_setup_teardown(name, setup, close_ring)

#endif
