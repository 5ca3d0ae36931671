/* A ring of three boards of a roster with one spare, over links in this process. The test holds the
 * boards' ends and steps the time; a board does only what the test says. */
#ifndef RP_TESTS_RING_BOARDS_H
#define RP_TESTS_RING_BOARDS_H

#include "folder.h"

#include "ring/away.h"
#include "ring/kept_out.h"
#include "ring/ring.h"
#include "transport/inproc.h"

enum { BOARDS = 3, SPARES = 1, ENTRIES = BOARDS + SPARES, WAIT_S = 20 };

typedef struct {
    rp_keypair keys;
    rp_transport *transport;
    rp_links *links;
    rp_link *control;
    char endpoint[64];
    uint32_t orders[64]; /* by kind */
    uint64_t last_stop;  /* step of its last STOP */
    rp_Connect connect;  /* its last CONNECT */
    bool is_silent;      /* it does not step its link */
} far_board;

static rp_clock test_clock;
static rp_hub *hub;
static far_board host; /* its links are lent to the ring; nothing is bound here */
static far_board far[ENTRIES];
static rp_model model;
static rp_roster_entry roster[ENTRIES];
static rp_runfile run;
static rp_ring ring;
static const char *const names[ENTRIES] = {"one", "two", "three", "four"};

/* keys_of NULL: it has its own. */
static inline void open_process(far_board *process, const rp_keypair *keys_of) {
    if (keys_of) {
        process->keys = *keys_of;
    } else {
        expect_ok(rp_keys_make(&process->keys));
    }
    const rp_transport_options inproc = {.clock = &test_clock, .hub = hub, .keys = &process->keys};
    expect_ok(rp_transport_start(&arena, "inproc", &inproc, &process->transport));
    const rp_links_options options = {.clock = &test_clock, .transport = process->transport};
    expect_ok(rp_links_open(&arena, &options, &process->links));
}

/* As a process that begins. `dials`: it connects to this endpoint of the host. */
static inline void board_begin(uint32_t k, const char *dials) {
    const rp_link_options options = {.name = "control",
                                     .bind = dials ? NULL : far[k].endpoint,
                                     .connect = dials,
                                     .peer_public = host.keys.public_text,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = 1 << 20};
    rp_link_close(&far[k].control);
    expect_ok(rp_link_open(far[k].links, &options, &far[k].control));
}

static inline void take_orders(far_board *board) {
    rp_message *message;
    while (rp_link_recv(board->control, &message) == RP_OK) {
        const rp_kind kind = rp_frame_kind(&message->frame);
        board->orders[kind]++;
        board->last_stop = kind == RP_KIND_STOP ? message->frame.body.stop.step : board->last_stop;
        board->connect = kind == RP_KIND_CONNECT ? message->frame.body.connect : board->connect;
        rp_link_release(board->control, &message);
    }
}

static inline void step_boards(void) {
    for (uint32_t k = 0; k < ENTRIES; k++) {
        if (far[k].control && !far[k].is_silent) {
            expect_ok(rp_link_step(far[k].control));
            take_orders(&far[k]);
        }
    }
}

/* Rounds of so long each, with heartbeats; the first error ends them. */
static inline rp_err pass(uint32_t rounds, int64_t each_ns) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < rounds && err == RP_OK; i++) {
        test_clock.stepped_ns += each_ns;
        rp_ring_begin_round(&ring, rp_clock_now_ns(&test_clock));
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
    memset(far, 0, sizeof far);
    memset(&host, 0, sizeof host);
    test_clock = rp_clock_stepped(RP_NS_PER_S);
    expect_ok(rp_hub_new(&arena, 0, &hub));
    open_process(&host, NULL);
    for (uint32_t k = 0; k < ENTRIES; k++) {
        open_process(&far[k], NULL);
        (void)snprintf(far[k].endpoint, sizeof far[k].endpoint, "tcp://board%u:1", k);
        roster[k] = (rp_roster_entry){.name = names[k],
                                      .endpoint = dials ? "" : far[k].endpoint,
                                      .dials = dials,
                                      .public_text = far[k].keys.public_text,
                                      .place = k};
    }
    model = (rp_model){.param_count = 3, .layer_count = 3};
    run = (rp_runfile){.boards = BOARDS,
                       .spares = SPARES,
                       .roster = roster,
                       .model = &model,
                       .listen = "tcp://host:7100",
                       .safety.wait_s = WAIT_S};
    ring = (rp_ring){.now_ns = rp_clock_now_ns(&test_clock)};
    expect_ok(rp_ring_open(&arena, &(rp_ring_needs){.run = &run, .clock = &test_clock}, &ring));
    rp_ring_begin_greeting(&ring, false);
}

/* All boards of the ring are there, and are heard. */
static inline void open_connected(void) {
    open_ring(false);
    for (uint32_t k = 0; k < BOARDS; k++) {
        board_begin(k, NULL);
    }
    expect_ok(rp_ring_connect(&ring, host.links, false));
    expect_ok(pass(20, 100 * RP_NS_PER_MS));
}

static inline int close_ring(void **state) {
    rp_away_close(&ring);
    rp_ring_disconnect(&ring);
    rp_ring_disconnect(&ring); /* once more does nothing */
    for (uint32_t k = 0; k < ENTRIES; k++) {
        rp_link_close(&far[k].control);
        rp_links_close(&far[k].links);
        rp_transport_finish(&far[k].transport);
    }
    rp_links_close(&host.links);
    rp_transport_finish(&host.transport);
    rp_hub_finish(&hub);
    return teardown(state);
}

#define RING_TEST(name) cmocka_unit_test_setup_teardown(name, setup, close_ring)

#endif
