/* For tests of rooms that talk to boards: a ring over links in this process. The test holds the
 * boards' ends and steps the time; a board does only what the test says. */
#ifndef RP_TESTS_FAR_H
#define RP_TESTS_FAR_H

#include "folder.h"

#include "process.h"
#include "ring/ring.h"

enum { FAR_MAX = 4 };

/* The end of a board: the orders that it has got. */
typedef struct {
    far_process own;         /* no links: it has the host's, and its keys */
    rp_link *control, *feed; /* NULL: not open */
    char endpoint[64];
    uint32_t orders[64]; /* by kind */
    rp_Frame last[64];   /* the newest, by kind */
    double part[8];      /* floats of the newest message that had a part */
    uint64_t floats;     /* of tensors */
    uint64_t inputs, labels;
    bool is_deaf; /* it does not step its control link */
    bool is_cut;  /* it does not step its feed link */
} far_board;

static rp_clock test_clock;
static rp_hub *hub;
static far_process host;
static far_board far[FAR_MAX];
static rp_ring ring;
/* What else a board does with an order; NULL: nothing. */
static void (*far_takes)(uint32_t board, const rp_Frame *order);

/* The host's links, and where boards are. */
static inline void open_host(bool knows_peers) {
    memset(far, 0, sizeof far);
    memset(&host, 0, sizeof host);
    far_takes = NULL;
    test_clock = rp_clock_stepped(RP_NS_PER_S);
    expect_ok(rp_hub_new(&arena, 0, &hub));
    open_process(&arena, &test_clock, hub, knows_peers, &host);
    for (uint32_t k = 0; k < FAR_MAX; k++) {
        (void)snprintf(far[k].endpoint, sizeof far[k].endpoint, "tcp://board%u:1", k);
    }
}

/* A board's control link. `dials`: it connects to this endpoint of the host. */
static inline void open_control(uint32_t k, const char *dials) {
    const rp_link_options options = {.name = "control",
                                     .bind = dials ? NULL : far[k].endpoint,
                                     .connect = dials,
                                     .peer_public = host.keys.public_text,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = 1 << 20};
    rp_links *links = far[k].own.links ? far[k].own.links : host.links;
    rp_link_close(&far[k].control);
    expect_ok(rp_link_open(links, &options, &far[k].control));
}

static inline void open_ring_of(const rp_runfile *of) {
    ring = (rp_ring){.now_ns = rp_clock_now_ns(&test_clock)};
    expect_ok(rp_ring_open(&arena, &(rp_ring_needs){.run = of, .clock = &test_clock}, &ring));
}

/* All boards of the ring listen, with the host's keys. */
static inline void connect_ring(void) {
    for (uint32_t k = 0; k < ring.count; k++) {
        open_control(k, NULL);
        rp_ring_set_address(&ring, k, far[k].endpoint, host.keys.public_text);
    }
    expect_ok(rp_ring_connect(&ring, host.links, false));
}

static inline void close_host(void) {
    rp_ring_disconnect(&ring);
    for (uint32_t k = 0; k < FAR_MAX; k++) {
        rp_link_close(&far[k].control);
        rp_link_close(&far[k].feed);
        close_process(&far[k].own);
    }
    close_process(&host);
    rp_hub_finish(&hub);
}

static inline void take_order(uint32_t k, const rp_message *message) {
    far_board *board = &far[k];
    const rp_kind kind = rp_frame_kind(&message->frame);
    assert_true(kind < sizeof board->orders / sizeof *board->orders);
    board->orders[kind]++;
    board->last[kind] = message->frame;
    if (message->part_count > 0) {
        const size_t bytes = message->part[0].bytes;
        memcpy(board->part, message->part[0].data,
               bytes < sizeof board->part ? bytes : sizeof board->part);
        board->floats += kind == RP_KIND_TENSOR ? bytes / sizeof(float) : 0;
    }
    if (far_takes) {
        far_takes(k, &message->frame);
    }
}

/* Each board looks at its links once. */
static inline void step_boards(void) {
    rp_message *message;
    for (uint32_t k = 0; k < FAR_MAX; k++) {
        far_board *board = &far[k];
        if (board->control && !board->is_deaf) {
            expect_ok(rp_link_step(board->control));
            while (rp_link_recv(board->control, &message) == RP_OK) {
                take_order(k, message);
                rp_link_release(board->control, &message);
            }
        }
        if (board->feed && !board->is_cut) {
            expect_ok(rp_link_step(board->feed));
            while (rp_link_recv(board->feed, &message) == RP_OK) {
                board->inputs += rp_frame_kind(&message->frame) == RP_KIND_INPUT;
                board->labels += rp_frame_kind(&message->frame) == RP_KIND_LABEL;
                rp_link_release(board->feed, &message);
            }
        }
    }
}

static inline void begin_round(int64_t after_ns) {
    test_clock.stepped_ns += after_ns;
    rp_ring_begin_round(&ring, rp_clock_now_ns(&test_clock));
}

/* Rounds of a millisecond, in which links move; the room does nothing. */
static inline void pass_ms(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        begin_round(0);
        for (uint32_t k = 0; k < ring.count; k++) {
            expect_ok(rp_ring_step(&ring, k));
        }
        step_boards();
        begin_round(RP_NS_PER_MS);
    }
}

/* Rounds of a second, in which nothing moves. */
static inline void pass_s(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        begin_round(RP_NS_PER_S);
    }
}

#endif
