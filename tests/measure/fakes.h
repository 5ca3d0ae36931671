/* Boards that answer over inproc links, stepped by the test: pings and TRIALs, by a script. */
#ifndef RP_TESTS_MEASURE_FAKES_H
#define RP_TESTS_MEASURE_FAKES_H

#include "measured.h"

#include "transport/inproc.h"

enum { FAKES_MAX = 4 };

typedef struct {
    rp_link *control;
    bool is_deaf;       /* it does not step its link */
    bool is_mute;       /* it does not answer TRIALs */
    double rate;        /* bytes a second that its wire carries; 0: no message comes through */
    double latency_s;   /* of one way */
    double both_slower; /* by which factor, when both directions are in use */
    char refuses[40];   /* why it does not listen; "": it does */
} fake_board;

static struct {
    rp_hub *hub;
    rp_transport *transport;
    rp_links *links;
    rp_keypair keys;
    fake_board board[FAKES_MAX];
    char trail[512]; /* TRIALs in order: board and what it has to do */
} fakes;

static inline void open_fakes(void) {
    memset(&fakes, 0, sizeof fakes);
    expect_ok(rp_keys_make(&fakes.keys));
    expect_ok(rp_hub_new(&arena, 0, &fakes.hub));
    const rp_transport_options inproc = {.clock = &test_clock, .hub = fakes.hub};
    expect_ok(rp_transport_start(&arena, "inproc", &inproc, &fakes.transport));
    const rp_links_options links = {.clock = &test_clock, .transport = fakes.transport};
    expect_ok(rp_links_open(&arena, &links, &fakes.links));
    for (uint32_t k = 0; k < ring.count; k++) {
        const rp_link_options control = {.name = "control",
                                         .bind = ring.board[k].address.endpoint,
                                         .window = 1,
                                         .send_window = 1,
                                         .part_bytes_max = 1 << 20};
        (void)snprintf(ring.board[k].address.public_text, sizeof ring.board[k].address.public_text,
                       "%s", fakes.keys.public_text);
        expect_ok(rp_link_open(fakes.links, &control, &fakes.board[k].control));
        fakes.board[k].rate = 1e6;
        fakes.board[k].latency_s = 1e-3;
        fakes.board[k].both_slower = 1;
    }
    expect_ok(rp_ring_connect(&ring, fakes.links, false));
}

static inline int close_fakes(void **state) {
    for (uint32_t k = 0; k < ring.count; k++) {
        rp_link_close(&fakes.board[k].control);
    }
    rp_ring_disconnect(&ring);
    rp_measure_close(measure);
    rp_links_close(&fakes.links);
    rp_transport_finish(&fakes.transport);
    rp_hub_finish(&fakes.hub);
    return close_measure(state);
}

static inline void note_trial(uint32_t k, const char *what) {
    const size_t used = strlen(fakes.trail);
    (void)snprintf(fakes.trail + used, sizeof fakes.trail - used, "%s%u %s", used ? ", " : "", k,
                   what);
}

static inline void take_trial(uint32_t k, const rp_Trial *trial) {
    const fake_board *own = &fakes.board[k];
    rp_TrialDone done = {.outcome = RP_TRIAL_MEASURED};
    note_trial(k, trial->endpoint[0]        ? "dials"
                  : trial->public_key[0]    ? "listens"
                  : trial->row              ? "both"
                  : trial->bytes_count == 0 ? "ends"
                                            : "measures");
    if (own->is_mute || (!trial->public_key[0] && trial->bytes_count == 0)) {
        return;
    }
    if (!trial->endpoint[0] && trial->public_key[0]) {
        done.outcome = own->refuses[0] ? RP_TRIAL_FAILED : RP_TRIAL_LISTENS;
        done.port = 7;
        (void)snprintf(done.text, sizeof done.text, "%s", own->refuses);
    }
    for (uint32_t i = 0; i < trial->bytes_count && own->rate > 0; i++) {
        const double alone_s = trial->bytes[i] / own->rate;
        done.seconds[done.seconds_count++] =
            trial->row ? own->both_slower * alone_s : alone_s + 2 * own->latency_s;
        done.spread[done.spread_count++] = 0.01;
    }
    rp_measure_take_trial(measure, k, &done);
}

/* A ms goes by, and all boards and the host look at their links. */
static inline void step_fakes(void) {
    test_clock.stepped_ns += RP_NS_PER_MS;
    rp_ring_begin_round(&ring, rp_clock_now_ns(&test_clock));
    for (uint32_t k = 0; k < ring.count; k++) {
        rp_message *message;
        expect_ok(rp_ring_step(&ring, k));
        if (fakes.board[k].is_deaf) {
            continue;
        }
        expect_ok(rp_link_step(fakes.board[k].control));
        while (rp_link_recv(fakes.board[k].control, &message) == RP_OK) {
            const rp_Frame frame = message->frame;
            rp_link_release(fakes.board[k].control, &message);
            if (rp_frame_kind(&frame) == RP_KIND_TRIAL) {
                take_trial(k, &frame.body.trial);
            }
        }
    }
}

#endif
