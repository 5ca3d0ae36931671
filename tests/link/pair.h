/* Two ends, each with its own transport and keys, stepped by one thread: over loopback with ZeroMQ,
 * or in this process. */
#ifndef RP_TESTS_LINK_PAIR_H
#define RP_TESTS_LINK_PAIR_H

#include "base/clock.h"
#include "base/log.h"
#include "expect.h"
#include "link/link.h"
#include "transport/inproc.h"

/* The kind of transport under the pairs that are opened from now on; main() may set it. */
static bool pair_inproc;

enum { PAIR_PART_BYTES_MAX = 1 << 20 };

typedef struct {
    rp_arena arena;
    rp_keypair keys;
    rp_transport *transport;
    rp_links *links;
    rp_link *link;
} end;

typedef struct {
    rp_arena arena;
    rp_clock clock;
    rp_hub *hub; /* NULL: ZeroMQ */
    end a;       /* binds */
    end b;       /* connects */
} pair;

static inline void end_open(const pair *p, end *e, const rp_keypair *keys) {
    rp_arena_init(&e->arena, "test", 0);
    if (keys) {
        e->keys = *keys;
    } else {
        expect_ok(rp_keys_make(&e->keys));
    }
    const rp_transport_options transport = {.clock = &p->clock, .keys = &e->keys, .hub = p->hub};
    expect_ok(rp_transport_start(&e->arena, p->hub ? "inproc" : "zmq", &transport, &e->transport));
    const rp_links_options options = {.clock = &p->clock, .seed = 7, .transport = e->transport};
    expect_ok(rp_links_open(&e->arena, &options, &e->links));
}

static inline void end_close(end *e) {
    rp_links_close(&e->links);
    rp_transport_finish(&e->transport);
    rp_arena_finish(&e->arena);
    e->link = NULL;
}

static inline rp_link_options pair_options(uint32_t window) {
    return (rp_link_options){.name = "hop",
                             .window = window,
                             .send_window = window,
                             .part_bytes_max = PAIR_PART_BYTES_MAX};
}

static inline void bind_end(pair *p, rp_link_options options, const char *endpoint) {
    options.bind = endpoint;
    options.peer_public = p->b.keys.public_text;
    expect_ok(rp_link_open(p->a.links, &options, &p->a.link));
}

static inline void connect_end(pair *p, rp_link_options options, const char *endpoint) {
    options.connect = endpoint;
    options.peer_public = p->a.keys.public_text;
    expect_ok(rp_link_open(p->b.links, &options, &p->b.link));
}

/* Both ends without links. */
static inline void pair_begin(pair *p, rp_clock clock) {
    memset(p, 0, sizeof *p);
    rp_arena_init(&p->arena, "pair", 0);
    p->clock = clock;
    if (pair_inproc) {
        expect_ok(rp_hub_new(&p->arena, 0, &p->hub));
    }
    end_open(p, &p->a, NULL);
    end_open(p, &p->b, NULL);
}

static inline void pair_open(pair *p, const rp_link_options *options) {
    pair_begin(p, rp_clock_real());
    bind_end(p, *options, "tcp://127.0.0.1:*");
    connect_end(p, *options, rp_link_endpoint(p->a.link));
}

static inline void pair_close(pair *p) {
    end_close(&p->a);
    end_close(&p->b);
    rp_hub_finish(&p->hub);
    rp_arena_finish(&p->arena);
}

static inline rp_link_stats stats_of(const end *e) {
    rp_link_stats stats;
    rp_link_stats_of(e->link, &stats);
    return stats;
}

/* One round of both ends; sleeps at most 1 ms when nothing comes. */
static inline void pair_step(pair *p) {
    expect_ok(rp_link_step(p->a.link));
    expect_ok(rp_link_step(p->b.link));
    rp_link *one[1] = {p->a.link};
    expect_ok(rp_link_wait(one, 1, NULL, 0, 0));
    one[0] = p->b.link;
    expect_ok(rp_link_wait(one, 1, NULL, 0, p->hub ? 0 : RP_NS_PER_MS / 2));
}

static inline int64_t now_ns(void) {
    rp_clock clock = rp_clock_real();
    return rp_clock_now_ns(&clock);
}

/* Steps until `condition` holds; fails after `seconds`. */
#define step_until(p, condition, seconds)                                                          \
    do {                                                                                           \
        int64_t step_until_ns = now_ns() + (int64_t)(seconds)*RP_NS_PER_S;                         \
        while (!(condition)) {                                                                     \
            if (now_ns() > step_until_ns) {                                                        \
                fail_msg("waited %d s for %s", (int)(seconds), #condition);                        \
            }                                                                                      \
            pair_step(p);                                                                          \
        }                                                                                          \
    } while (0)

/* A data parcel of one part, U8. */
static inline rp_err send_label(rp_link *link, uint64_t step, const void *data, uint32_t bytes,
                                bool copy, void (*done)(void *context), void *context) {
    const rp_Parcel parcel = {.step = step, .count = bytes};
    rp_Frame frame = rp_frame_of_parcel(RP_KIND_LABEL, &parcel);
    const rp_part part = rp_part_of_array(RP_DTYPE_U8, data, bytes);
    return rp_link_send(link, &frame, &part, 1, copy, done, context);
}

/* A stream of data parcels with a counter inside, whose bytes depend on it, one way. */
enum { FLOW_SLOTS = 64, FLOW_BYTES_MAX = 1 << 16 };

typedef struct {
    rp_link **from, **to; /* the links may be replaced */
    uint32_t total, sent, received, done;
    uint32_t bytes; /* of a parcel, a multiple of 4 */
    uint8_t *memory;
    struct flow_slot {
        void *flow;
        bool busy;
        uint32_t value;
    } slot[FLOW_SLOTS];
} flow;

static inline void flow_done(void *context) {
    struct flow_slot *slot = context;
    flow *f = slot->flow;
    assert_true(slot->busy);
    slot->busy = false;
    f->done++;
    memset(f->memory + (size_t)(slot - f->slot) * FLOW_BYTES_MAX, 0xee, f->bytes);
}

static inline void flow_open(flow *f, rp_link **from, rp_link **to, uint32_t total,
                             uint32_t bytes) {
    memset(f, 0, sizeof *f);
    f->from = from;
    f->to = to;
    f->total = total;
    f->bytes = bytes;
    f->memory = calloc(FLOW_SLOTS, FLOW_BYTES_MAX);
    assert_non_null(f->memory);
    for (uint32_t i = 0; i < FLOW_SLOTS; i++) {
        f->slot[i].flow = f;
    }
}

static inline void flow_close(flow *f) {
    free(f->memory);
}

static inline struct flow_slot *flow_free_slot(flow *f) {
    for (uint32_t i = 0; i < FLOW_SLOTS; i++) {
        if (!f->slot[i].busy) {
            return &f->slot[i];
        }
    }
    return NULL;
}

/* Sends what the window takes; every third parcel is copied. */
static inline void flow_send(flow *f) {
    while (f->sent < f->total && rp_link_can_send(*f->from)) {
        struct flow_slot *slot = flow_free_slot(f);
        assert_non_null(slot);
        uint32_t *words =
            (uint32_t *)(void *)(f->memory + (size_t)(slot - f->slot) * FLOW_BYTES_MAX);
        for (uint32_t i = 0; i < f->bytes / 4; i++) {
            words[i] = f->sent * 2654435761u + i;
        }
        const rp_Parcel parcel = {.step = f->sent, .count = f->bytes / 4};
        rp_Frame frame = rp_frame_of_parcel(RP_KIND_ACTIVATION, &parcel);
        const rp_part part = rp_part_of_array(RP_DTYPE_F32, words, parcel.count);
        slot->busy = true;
        slot->value = f->sent;
        expect_ok(rp_link_send(*f->from, &frame, &part, 1, f->sent % 3 == 0, flow_done, slot));
        f->sent++;
    }
}

/* Takes up to `most` parcels and checks number and bytes. */
static inline void flow_recv(flow *f, uint32_t most) {
    rp_message *message;
    while (most-- && rp_link_recv(*f->to, &message) == RP_OK) {
        assert_int_equal(rp_frame_parcel(&message->frame)->step, f->received);
        assert_int_equal(message->part_count, 1);
        assert_int_equal(message->part[0].bytes, f->bytes);
        const uint32_t *words = message->part[0].data;
        for (uint32_t i = 0; i < f->bytes / 4; i++) {
            assert_int_equal(words[i], f->received * 2654435761u + i);
        }
        rp_link_release(*f->to, &message);
        f->received++;
    }
}

static inline bool flow_complete(const flow *f) {
    return f->received == f->total && f->done == f->total;
}

#endif
