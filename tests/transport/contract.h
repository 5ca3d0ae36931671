/* What every kind of transport keeps: one set of cases, run by the test of each kind.
 *
 * A test gives a `contract_kind`; the cases open a binding port `a` and connecting ports. */
#ifndef RP_TESTS_TRANSPORT_CONTRACT_H
#define RP_TESTS_TRANSPORT_CONTRACT_H

#include "base/log.h"
#include "expect.h"
#include "transport/inproc.h"

enum { CONTRACT_QUEUE = 8, CONTRACT_FRAME_MAX = 1 << 17 };

typedef struct {
    const char *name;
    bool real; /* real sockets and the real clock; else a hub and a stepped clock */
    const rp_link_profile *profile; /* not NULL: an emulated line over it */
} contract_kind;

/* Set by the test's main(). */
static contract_kind contract;

typedef struct {
    rp_arena arena;
    rp_clock clock;
    rp_loop loop;
    rp_hub *hub;
    rp_keypair keys[3];
    rp_transport *base[3], *transport[3];
    rp_port *port[3];   /* 0 binds, 1 and 2 connect */
    rp_port *beside;    /* binds the same address as 0, or NULL */
    const char *why[3]; /* refused */
    uint32_t connected[3], lost[3], refused[3], absent[3];
} contract_set;

static inline void contract_open(contract_set *s) {
    memset(s, 0, sizeof *s);
    rp_arena_init(&s->arena, "contract", 0);
    s->clock = contract.real ? rp_clock_real() : rp_clock_stepped(RP_NS_PER_S);
    s->loop = contract.real ? rp_loop_poll(&s->clock) : rp_loop_virtual(&s->clock);
    expect_ok(rp_hub_new(&s->arena, 0, &s->hub));
    for (int i = 0; i < 3; i++) {
        expect_ok(rp_keys_make(&s->keys[i]));
        rp_transport_options options = {
            .clock = &s->clock, .keys = &s->keys[i], .hub = s->hub, .profile = contract.profile};
        const char *kind = contract.real ? "zmq" : "inproc";
        expect_ok(rp_transport_start(&s->arena, kind, &options, &s->base[i]));
        s->transport[i] = s->base[i];
        if (contract.profile) {
            options.inner = s->base[i];
            expect_ok(rp_transport_start(&s->arena, "emulate", &options, &s->transport[i]));
        }
    }
}

static inline void contract_close(contract_set *s) {
    rp_port_close(&s->beside);
    for (int i = 0; i < 3; i++) {
        rp_port_close(&s->port[i]);
    }
    for (int i = 0; i < 3; i++) {
        if (s->transport[i] != s->base[i]) {
            rp_transport_finish(&s->transport[i]);
        }
        rp_transport_finish(&s->base[i]);
    }
    rp_hub_finish(&s->hub);
    rp_arena_finish(&s->arena);
}

static inline void contract_bind(contract_set *s, const char *endpoint) {
    rp_port_options options = {.name = "bound",
                               .bind = endpoint,
                               .queue = CONTRACT_QUEUE,
                               .frame_bytes_max = CONTRACT_FRAME_MAX};
    expect_ok(rp_port_open(s->transport[0], &options, &s->port[0]));
}

static inline void contract_connect(contract_set *s, int i, const char *endpoint) {
    rp_port_options options = {.name = "connecting",
                               .connect = endpoint,
                               .peer_public = s->keys[0].public_text,
                               .queue = CONTRACT_QUEUE,
                               .frame_bytes_max = CONTRACT_FRAME_MAX};
    expect_ok(rp_port_open(s->transport[i], &options, &s->port[i]));
}

static inline void contract_step(contract_set *s) {
    for (int i = 0; i < 3; i++) {
        rp_port *port = s->port[i];
        rp_port_event event;
        while (port && port->kind->step(port, &event)) {
            s->why[i] = event.kind == RP_PORT_REFUSED ? event.why : s->why[i];
            s->connected[i] += event.kind == RP_PORT_CONNECTED;
            s->lost[i] += event.kind == RP_PORT_LOST;
            s->refused[i] += event.kind == RP_PORT_REFUSED;
            s->absent[i] += event.kind == RP_PORT_ABSENT;
        }
    }
    for (rp_port_event event; s->beside && s->beside->kind->step(s->beside, &event);) {
    }
}

/* 5 ms at most. */
static inline void contract_wait(contract_set *s) {
    rp_handle handle[4 * RP_PORT_HANDLES_MAX];
    uint32_t count = 0;
    int64_t now = rp_loop_now_ns(&s->loop);
    int64_t until = now + 5 * RP_NS_PER_MS;
    for (int i = 0; i < 4; i++) {
        rp_port *port = i < 3 ? s->port[i] : s->beside;
        if (port) {
            int64_t at = port->kind->deadline_ns(port, now);
            until = at < until ? at : until;
            count += port->kind->handles(port, handle + count);
        }
    }
    if (!contract.real && until == now) {
        until = now + RP_NS_PER_MS / 10; /* a packet that this test leaves there stops no clock */
    }
    expect_ok(s->loop.wait(&s->loop, until, handle, count));
}

/* All ports are stepped, then the loop waits. */
static inline void contract_round(contract_set *s) {
    contract_step(s);
    contract_wait(s);
}

#define contract_until(s, condition)                                                               \
    do {                                                                                           \
        int64_t contract_end = rp_loop_now_ns(&(s)->loop) + 20 * RP_NS_PER_S;                      \
        while (!(condition)) {                                                                     \
            if (rp_loop_now_ns(&(s)->loop) > contract_end) {                                       \
                fail_msg("waited 20 s for %s", #condition);                                        \
            }                                                                                      \
            contract_round(s);                                                                     \
        }                                                                                          \
    } while (0)

/* A packet of `frames` frames; frame i has `bytes` x i bytes that depend on `number` and i; frame 0
 * has the number alone. */
static inline uint8_t contract_byte(uint32_t number, uint32_t frame, size_t at) {
    return (uint8_t)(number * 31 + frame * 7 + at);
}

static inline rp_packet contract_packet(uint32_t number, uint32_t frames, size_t bytes) {
    rp_packet packet = {.count = frames};
    for (uint32_t i = 0; i < frames; i++) {
        void *memory;
        const size_t size = i == 0 ? sizeof number : i * bytes;
        expect_ok(rp_buffer_new(size, &packet.frame[i], &memory));
        for (size_t at = 0; at < size; at++) {
            ((uint8_t *)memory)[at] = contract_byte(number, i, at);
        }
        if (i == 0) {
            memcpy(memory, &number, sizeof number);
        }
    }
    return packet;
}

static inline uint32_t contract_check(const rp_packet *packet, uint32_t frames, size_t bytes) {
    uint32_t number;
    assert_int_equal(packet->count, frames);
    assert_int_equal(packet->frame[0]->bytes, sizeof number);
    memcpy(&number, packet->frame[0]->data, sizeof number);
    for (uint32_t i = 1; i < frames; i++) {
        assert_int_equal(packet->frame[i]->bytes, i * bytes);
        assert_int_equal((uintptr_t)packet->frame[i]->data % 8, 0);
        for (size_t at = 0; at < i * bytes; at++) {
            assert_int_equal(((const uint8_t *)packet->frame[i]->data)[at],
                             contract_byte(number, i, at));
        }
    }
    return number;
}

static inline rp_err contract_post(contract_set *s, int from, uint64_t peer, rp_packet packet) {
    packet.peer = peer;
    rp_err err = s->port[from]->kind->post(s->port[from], &packet);
    rp_packet_drop(&packet);
    return err;
}

static inline rp_err contract_take(contract_set *s, int at, rp_packet *out) {
    return s->port[at]->kind->take(s->port[at], out);
}

/* Opens 0 and 1 and lets 1 say a word; gives the number of its connection. */
static inline uint64_t contract_join(contract_set *s) {
    rp_packet packet;
    contract_open(s);
    contract_bind(s, "tcp://127.0.0.1:*");
    expect_ok(rp_port_allow(s->port[0], s->keys[1].public_text));
    contract_connect(s, 1, s->port[0]->endpoint);
    contract_until(s, contract_post(s, 1, 0, contract_packet(7, 1, 0)) == RP_OK);
    contract_until(s, contract_take(s, 0, &packet) == RP_OK);
    const uint64_t peer = packet.peer;
    assert_true(peer != 0);
    rp_packet_drop(&packet);
    return peer;
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Both ways, all sizes, all counts of frames. Kinds that reorder or lose do not run this. */
static void packets_arrive_whole_and_in_order(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 5, 24, 500, 1024, 1025, 9000};
    contract_set s;
    const uint64_t peer = contract_join(&s);
    for (int from = 0; from < 2; from++) {
        uint32_t sent = 0;
        uint32_t received = 0;
        const uint32_t total = 8 * RP_PACKET_FRAMES_MAX;
        const int64_t end = rp_loop_now_ns(&s.loop) + 20 * RP_NS_PER_S;
        while (received < total) {
            assert_true(rp_loop_now_ns(&s.loop) < end);
            while (sent < total &&
                   contract_post(&s, from, from ? 0 : peer,
                                 contract_packet(sent, 1 + sent % RP_PACKET_FRAMES_MAX,
                                                 sizes[sent / RP_PACKET_FRAMES_MAX])) == RP_OK) {
                sent++;
            }
            contract_round(&s);
            rp_packet packet;
            while (contract_take(&s, !from, &packet) == RP_OK) {
                assert_int_equal(packet.peer, from ? peer : 0);
                assert_int_equal(contract_check(&packet, 1 + received % RP_PACKET_FRAMES_MAX,
                                                sizes[received / RP_PACKET_FRAMES_MAX]),
                                 received);
                rp_packet_drop(&packet);
                received++;
            }
        }
    }
    assert_int_equal(rp_port_refused(s.port[0]) + rp_port_refused(s.port[1]), 0);
    contract_close(&s);
}

/* Nobody takes: post() says AGAIN before long, takes nothing then, and what was taken arrives. */
static void queues_are_bounded(void **state) {
    (void)state;
    contract_set s;
    (void)contract_join(&s);
    uint32_t sent = 0;
    for (int tries = 0; tries < 300; tries++) {
        rp_packet packet = contract_packet(sent, 2, 100000);
        rp_buffer *frame = packet.frame[1];
        const bool ok = s.port[1]->kind->post(s.port[1], &packet) == RP_OK;
        assert_true(ok || !rp_buffer_is_lent(frame));
        sent += ok;
        rp_packet_drop(&packet);
        contract_round(&s);
    }
    assert_in_range(sent, 1, 200);
    for (uint32_t received = 0; received < sent; received++) {
        rp_packet packet;
        contract_until(&s, contract_take(&s, 0, &packet) == RP_OK);
        assert_int_equal(contract_check(&packet, 2, 100000), received);
        rp_packet_drop(&packet);
    }
    contract_until(&s, contract_post(&s, 1, 0, contract_packet(0, 1, 0)) == RP_OK);
    contract_close(&s);
}

/* A packet that comes while there is no room to send is taken, though the way out stays full. It is
 * there before the port is asked for its deadline, which must not lose sight of it. */
static void a_full_port_still_takes(void **state) {
    (void)state;
    const struct timespec nap = {.tv_nsec = contract.real ? 50 * RP_NS_PER_MS : 0};
    contract_set s;
    rp_packet packet;
    const uint64_t peer = contract_join(&s);
    for (int refused = 0; refused < 10;) {
        refused += contract_post(&s, 1, 0, contract_packet(1, 2, 100000)) != RP_OK;
        contract_round(&s);
    }
    contract_step(&s);
    contract_step(&s); /* without a wait: port 1 looks whether something has come */
    while (contract_post(&s, 1, 0, contract_packet(1, 2, 100000)) == RP_OK) {
    }
    assert_int_equal(contract_take(&s, 1, &packet), RP_ERR_AGAIN);
    expect_ok(contract_post(&s, 0, peer, contract_packet(5, 1, 0)));
    (void)nanosleep(&nap, NULL);
    rp_err err = RP_ERR_AGAIN;
    for (int round = 0; err == RP_ERR_AGAIN && round < 200; round++) {
        contract_wait(&s);
        contract_step(&s);
        err = contract_take(&s, 1, &packet);
    }
    expect_ok(err);
    assert_int_equal(contract_check(&packet, 1, 0), 5);
    rp_packet_drop(&packet);
    contract_close(&s);
}

/* Memory of the caller comes back: after delivery, and after close when nothing was delivered. */
static void lent_memory_comes_back(void **state) {
    (void)state;
    static uint8_t memory[2][1 << 16];
    for (int deliver = 0; deliver < 2; deliver++) {
        contract_set s;
        (void)contract_join(&s);
        rp_buffer lent[2];
        rp_packet packet = contract_packet(1, 1, 0);
        for (uint32_t i = 0; i < 2; i++) {
            memset(memory[i], (int)i + 1, sizeof memory[i]);
            rp_buffer_borrow(&lent[i], memory[i], sizeof memory[i]);
            packet.frame[packet.count++] = rp_buffer_keep(&lent[i]);
        }
        expect_ok(s.port[1]->kind->post(s.port[1], &packet));
        rp_packet_drop(&packet);
        if (deliver) {
            contract_until(&s, contract_take(&s, 0, &packet) == RP_OK);
            assert_int_equal(packet.count, 3);
            contract_until(&s, !rp_buffer_is_lent(&lent[0]) && !rp_buffer_is_lent(&lent[1]));
            memset(memory, 0xee, sizeof memory);
        }
        rp_port_close(&s.port[1]); /* first and alone: see TRAPS.md, ZeroMQ */
        for (int i = 0; rp_buffer_is_lent(&lent[0]) || rp_buffer_is_lent(&lent[1]); i++) {
            assert_true(i < 2000); /* zmq's thread lets go within moments */
            const struct timespec nap = {.tv_nsec = 1000000};
            (void)nanosleep(&nap, NULL);
        }
        contract_close(&s);
        if (deliver) { /* what was taken outlives both ends and the memory that was lent */
            for (uint32_t i = 0; i < 2; i++) {
                const uint8_t *bytes = packet.frame[1 + i]->data;
                assert_int_equal(bytes[0], i + 1);
                assert_int_equal(bytes[sizeof memory[i] - 1], i + 1);
            }
            rp_packet_drop(&packet);
        }
    }
}

static void nobody_is_there(void **state) {
    (void)state;
    contract_set s;
    rp_packet packet;
    contract_open(&s);
    contract_bind(&s, "tcp://127.0.0.1:*");
    expect_err(contract_post(&s, 0, 0, contract_packet(1, 2, 9)), RP_ERR_PEER);
    expect_err(contract_take(&s, 0, &packet), RP_ERR_AGAIN);
    char endpoint[RP_PORT_ENDPOINT_BYTES];
    memcpy(endpoint, s.port[0]->endpoint, sizeof endpoint);
    rp_port_close(&s.port[0]);
    assert_null(s.port[0]);
    contract_connect(&s, 1, endpoint);
    for (int i = 0; i < 20; i++) {
        expect_err(contract_post(&s, 1, 0, contract_packet(1, 2, 9)), RP_ERR_AGAIN);
        expect_err(contract_take(&s, 1, &packet), RP_ERR_AGAIN);
        contract_round(&s);
    }
    assert_int_equal(s.connected[1], 0);
    contract_close(&s);
}

/* Once its connection has ended a port says that nobody listens there, until somebody does. */
static void an_end_that_has_ended_is_absent(void **state) {
    (void)state;
    contract_set s;
    char endpoint[RP_PORT_ENDPOINT_BYTES];
    (void)contract_join(&s);
    contract_until(&s, s.connected[1] == 1);
    memcpy(endpoint, s.port[0]->endpoint, sizeof endpoint);
    assert_int_equal(s.absent[1], 0);
    rp_port_close(&s.port[0]);
    contract_bind(&s, "tcp://127.0.0.1:*"); /* stepped: the old connection ends */
    contract_until(&s, s.absent[1] >= 2);
    assert_int_equal(s.lost[1], 1);
    assert_int_equal(s.connected[1], 1);
    rp_port_close(&s.port[0]);
    contract_bind(&s, endpoint);
    expect_ok(rp_port_allow(s.port[0], s.keys[1].public_text));
    contract_until(&s, s.connected[1] == 2);
    s.absent[1] = 0;
    for (int i = 0; i < 100; i++) {
        contract_round(&s);
    }
    assert_int_equal(s.absent[1], 0);
    contract_close(&s);
}

/* Posts a packet until it comes, as a link asks again: a new connection may lose what it carries.
 */
static inline void contract_ask(contract_set *s, int from, int to, uint32_t number,
                                rp_packet *out) {
    uint32_t round = 0;
    for (bool taken = false; !taken; round++) {
        if (round % 256 == 0) {
            contract_until(s, contract_post(s, from, 0, contract_packet(number, 2, 9)) == RP_OK);
        }
        assert_true(round < 100 * 256);
        contract_round(s);
        taken = contract_take(s, to, out) == RP_OK;
        if (taken && contract_check(out, 2, 9) < number) { /* asked for once more before */
            rp_packet_drop(out);
            taken = false;
        }
    }
}

/* A connecting port that is told to gets another connection, with another number; the old one ends.
 * A port that knows what its connection carries says so, from zero again. */
static void a_connection_is_made_anew(void **state) {
    (void)state;
    contract_set s;
    rp_packet packet;
    rp_port_traffic traffic;
    uint64_t peer = contract_join(&s);
    for (uint32_t i = 1; i <= 3; i++) {
        const uint32_t before = s.connected[1];
        assert_int_equal(s.port[1]->kind->traffic(s.port[1], &traffic), contract.real);
        assert_true(!contract.real || traffic.sent > 0);
        s.port[1]->kind->reopen(s.port[1]);
        assert_false(rp_port_is_connected(s.port[1]));
        contract_until(&s, s.connected[1] > before);
        contract_ask(&s, 1, 0, i, &packet);
        assert_int_equal(contract_check(&packet, 2, 9), i);
        assert_true(packet.peer != peer);
        rp_packet_drop(&packet);
        if (!contract.real) { /* ZeroMQ may learn of the old one's end late */
            contract_until(&s, contract_post(&s, 0, peer, contract_packet(1, 1, 0)) == RP_ERR_PEER);
        }
        peer = packet.peer;
        contract_until(&s, contract_post(&s, 0, peer, contract_packet(5, 1, 0)) == RP_OK);
        contract_until(&s, contract_take(&s, 1, &packet) == RP_OK);
        assert_int_equal(contract_check(&packet, 1, 0), 5);
        rp_packet_drop(&packet);
    }
    assert_int_equal(s.refused[1], 0);
    contract_close(&s);
}

/* A binding port tells its connections apart, answers each, and says when one has ended. */
static void peers_are_told_apart(void **state) {
    (void)state;
    contract_set s;
    rp_packet packet;
    const uint64_t first = contract_join(&s);
    expect_ok(rp_port_allow(s.port[0], s.keys[2].public_text));
    contract_connect(&s, 2, s.port[0]->endpoint);
    contract_until(&s, contract_post(&s, 2, 0, contract_packet(8, 1, 0)) == RP_OK);
    contract_until(&s, contract_take(&s, 0, &packet) == RP_OK);
    const uint64_t second = packet.peer;
    rp_packet_drop(&packet);
    assert_true(second != 0 && second != first);
    contract_until(&s, contract_post(&s, 0, second, contract_packet(2, 1, 0)) == RP_OK);
    contract_until(&s, contract_take(&s, 2, &packet) == RP_OK);
    assert_int_equal(contract_check(&packet, 1, 0), 2);
    rp_packet_drop(&packet);
    expect_err(contract_take(&s, 1, &packet), RP_ERR_AGAIN);
    rp_port_close(&s.port[2]);
    contract_until(&s, contract_post(&s, 0, second, contract_packet(3, 1, 0)) == RP_ERR_PEER);
    contract_until(&s, contract_post(&s, 0, first, contract_packet(4, 1, 0)) == RP_OK);
    contract_until(&s, contract_take(&s, 1, &packet) == RP_OK);
    rp_packet_drop(&packet);
    contract_close(&s);
}

/* Opens 0 and the one beside it at one address, for the keys of 1 and 2, who connect there. */
static inline void contract_share(contract_set *s, char endpoint[RP_PORT_ENDPOINT_BYTES]) {
    rp_port_options options = {.name = "shared",
                               .bind = "tcp://127.0.0.1:*",
                               .peer_public = s->keys[1].public_text,
                               .queue = CONTRACT_QUEUE,
                               .frame_bytes_max = CONTRACT_FRAME_MAX};
    contract_open(s);
    expect_ok(rp_port_open(s->transport[0], &options, &s->port[0]));
    memcpy(endpoint, s->port[0]->endpoint, RP_PORT_ENDPOINT_BYTES);
    options.bind = endpoint;
    options.peer_public = s->keys[2].public_text;
    expect_ok(rp_port_open(s->transport[0], &options, &s->beside));
    assert_string_equal(s->beside->endpoint, endpoint);
    contract_connect(s, 1, endpoint);
    contract_connect(s, 2, endpoint);
}

/* Two ports at one address: a connection is that of the port which has its key, and each answers
 * its own. Who is not taken from keeps nobody else's packets back. */
static void an_address_is_shared(void **state) {
    (void)state;
    contract_set s;
    rp_packet packet;
    char endpoint[RP_PORT_ENDPOINT_BYTES];
    contract_share(&s, endpoint);
    for (uint32_t i = 1; i < 3;
         i++) { /* 2 first: its packets are met by who looks for those of 1 */
        contract_until(&s, contract_post(&s, (int)(3 - i), 0, contract_packet(i, 1, 0)) == RP_OK);
    }
    contract_until(&s, contract_take(&s, 0, &packet) == RP_OK);
    assert_int_equal(contract_check(&packet, 1, 0), 2);
    const uint64_t first = packet.peer;
    rp_packet_drop(&packet);
    contract_until(&s, s.beside->kind->take(s.beside, &packet) == RP_OK);
    assert_int_equal(contract_check(&packet, 1, 0), 1);
    assert_true(packet.peer != 0 && (!contract.real || packet.peer != first));
    contract_until(&s, s.beside->kind->post(s.beside, &packet) == RP_OK);
    rp_packet_drop(&packet);
    contract_until(&s, contract_take(&s, 2, &packet) == RP_OK);
    rp_packet_drop(&packet);
    uint32_t sent = 0;
    for (uint32_t i = 0; i < 400 || sent < CONTRACT_QUEUE; i++) { /* more than there is room for */
        sent += contract_post(&s, 2, 0, contract_packet(sent, 1, 0)) == RP_OK;
        contract_round(&s);
        assert_int_equal(contract_take(&s, 0, &packet), RP_ERR_AGAIN);
    }
    uint32_t taken = 0;
    contract_until(&s, contract_post(&s, 1, 0, contract_packet(77, 1, 0)) == RP_OK);
    for (rp_err err = RP_ERR_AGAIN; err != RP_OK || taken < sent;) {
        contract_round(&s);
        err = err == RP_OK ? err : contract_take(&s, 0, &packet);
        for (rp_packet other; s.beside->kind->take(s.beside, &other) == RP_OK; taken++) {
            assert_int_equal(contract_check(&other, 1, 0), taken); /* in order, none is lost */
            rp_packet_drop(&other);
        }
    }
    assert_int_equal(contract_check(&packet, 1, 0), 77);
    assert_int_equal(packet.peer, first);
    rp_packet_drop(&packet);
    contract_close(&s);
}

/* Whose port is closed is refused from then on, and the other one goes on; the address is free when
 * both are. Another key, another size or none is not let in beside. */
static void a_shared_address_is_left(void **state) {
    (void)state;
    contract_set s;
    rp_packet packet;
    rp_port *third = NULL;
    char endpoint[RP_PORT_ENDPOINT_BYTES];
    contract_share(&s, endpoint);
    rp_port_options options = {
        .name = "third", .bind = endpoint, .queue = 1, .frame_bytes_max = CONTRACT_FRAME_MAX};
    expect_err(rp_port_open(s.transport[0], &options, &third), RP_ERR_IO);
    options.peer_public = s.keys[0].public_text;
    options.bind = "tcp://127.0.0.1:*"; /* any other: as port 0 was told */
    expect_ok(rp_port_open(s.transport[0], &options, &third));
    assert_string_not_equal(third->endpoint, endpoint);
    rp_port_close(&third);
    options.bind = endpoint;
    if (contract.real) {
        options.frame_bytes_max = CONTRACT_FRAME_MAX - 1;
        expect_err(rp_port_open(s.transport[0], &options, &third), RP_ERR_USAGE);
    }
    contract_until(&s, s.connected[1] > 0 && s.connected[2] > 0);
    assert_int_equal(rp_port_strangers(s.port[0]), 0);
    rp_port_close(&s.port[0]); /* which was there first */
    for (uint32_t i = 0; i < 3; i++) {
        (void)contract_post(&s, 1, 0, contract_packet(i, 1, 0)); /* nobody's */
        contract_until(&s, contract_post(&s, 2, 0, contract_packet(i, 1, 0)) == RP_OK);
        contract_until(&s, s.beside->kind->take(s.beside, &packet) == RP_OK);
        assert_int_equal(contract_check(&packet, 1, 0), i);
        rp_packet_drop(&packet);
    }
    rp_port_close(&s.port[1]);
    contract_connect(&s, 1, endpoint);
    contract_until(&s, s.refused[1] > 0);
    assert_int_equal(rp_port_strangers(s.beside), s.refused[1]);
    rp_port_close(&s.beside);
    contract_bind(&s, endpoint);
    contract_close(&s);
}

/* The binding end goes and comes again: the connecting end says so and finds it by itself. */
static void connections_come_again(void **state) {
    (void)state;
    contract_set s;
    rp_packet packet;
    char endpoint[RP_PORT_ENDPOINT_BYTES];
    const uint64_t first = contract_join(&s);
    contract_until(&s, s.connected[1] > 0); /* a packet may be there before the news of it */
    assert_int_equal(s.connected[1], 1);
    memcpy(endpoint, s.port[0]->endpoint, sizeof endpoint);
    rp_port_close(&s.port[0]);
    contract_bind(&s, endpoint);
    expect_ok(rp_port_allow(s.port[0], s.keys[1].public_text));
    contract_until(&s, s.lost[1] > 0);
    contract_until(&s, s.connected[1] > 1);
    contract_until(&s, contract_post(&s, 1, 0, contract_packet(9, 3, 33)) == RP_OK);
    contract_until(&s, contract_take(&s, 0, &packet) == RP_OK);
    assert_int_equal(contract_check(&packet, 3, 33), 9);
    assert_true(contract.real || packet.peer != first);
    rp_packet_drop(&packet);
    contract_close(&s);
}

/* A key that is not on the list, then put on it. */
static void strangers_are_refused(void **state) {
    (void)state;
    contract_set s;
    rp_packet packet;
    contract_open(&s);
    contract_bind(&s, "tcp://127.0.0.1:*");
    expect_ok(rp_port_allow(s.port[0], s.keys[2].public_text));
    contract_connect(&s, 1, s.port[0]->endpoint);
    contract_until(&s, s.refused[1] > 0);
    assert_non_null(s.why[1]);
    assert_int_equal(s.connected[1], 0);
    expect_err(contract_post(&s, 1, 0, contract_packet(1, 1, 0)), RP_ERR_AGAIN);
    expect_err(contract_take(&s, 0, &packet), RP_ERR_AGAIN);
    expect_ok(rp_port_allow(s.port[0], s.keys[1].public_text));
    contract_until(&s, contract_post(&s, 1, 0, contract_packet(5, 1, 0)) == RP_OK);
    contract_until(&s, contract_take(&s, 0, &packet) == RP_OK);
    rp_packet_drop(&packet);
    contract_close(&s);
}

/* The server is another one than we were told: we do not talk to it. */
static void a_wrong_server_is_refused(void **state) {
    (void)state;
    contract_set s;
    contract_open(&s);
    contract_bind(&s, "tcp://127.0.0.1:*");
    expect_ok(rp_port_allow(s.port[0], s.keys[1].public_text));
    rp_keypair real = s.keys[0];
    s.keys[0] = s.keys[2];
    contract_connect(&s, 1, s.port[0]->endpoint);
    contract_until(&s, s.refused[1] > 0);
    assert_int_equal(s.connected[1], 0);
    s.keys[0] = real;
    contract_close(&s);
}

/* A frame larger than the receiver takes never arrives; what comes later does. */
static void large_frames_are_refused(void **state) {
    (void)state;
    contract_set s;
    rp_packet packet;
    (void)contract_join(&s);
    contract_until(&s, contract_post(&s, 1, 0, contract_packet(1, 2, CONTRACT_FRAME_MAX + 4096)) ==
                           RP_OK);
    for (int i = 0; i < 50; i++) {
        contract_round(&s);
        expect_err(contract_take(&s, 0, &packet), RP_ERR_AGAIN);
    }
    bool came = false; /* the connection may end with it, and take some of these along */
    const int64_t end = rp_loop_now_ns(&s.loop) + 20 * RP_NS_PER_S;
    while (!came) {
        assert_true(rp_loop_now_ns(&s.loop) < end);
        (void)!contract_post(&s, 1, 0, contract_packet(2, 1, 0));
        contract_round(&s);
        while (contract_take(&s, 0, &packet) == RP_OK) {
            came = true;
            assert_int_equal(contract_check(&packet, 1, 0), 2);
            rp_packet_drop(&packet);
        }
    }
    contract_close(&s);
}

static void wrong_options_are_told(void **state) {
    (void)state;
    contract_set s;
    rp_port *port;
    contract_open(&s);
    contract_bind(&s, "tcp://127.0.0.1:*");
    assert_true(strncmp(s.port[0]->endpoint, "tcp://127.0.0.1:", 16) == 0);
    assert_null(strchr(s.port[0]->endpoint, '*'));
    rp_port_options options = {
        .name = "other", .bind = s.port[0]->endpoint, .queue = 1, .frame_bytes_max = 1};
    expect_err(rp_port_open(s.transport[1], &options, &port), RP_ERR_IO); /* in use */
    assert_null(port);
    options.bind = NULL;
    options.connect = s.port[0]->endpoint;
    options.peer_public = "short";
    expect_err(rp_port_open(s.transport[1], &options, &port), RP_ERR_FORMAT);
    expect_err(rp_port_allow(s.port[0], "short"), RP_ERR_FORMAT);
    for (int i = 0; i < RP_PORT_KEYS_MAX; i++) {
        expect_ok(rp_port_allow(s.port[0], s.keys[1].public_text));
    }
    expect_err(rp_port_allow(s.port[0], s.keys[1].public_text), RP_ERR_LIMIT);
    rp_transport *none;
    expect_err(rp_transport_start(&s.arena, "pigeon", &(rp_transport_options){0}, &none),
               RP_ERR_USAGE);
    contract_close(&s);
}

#define CONTRACT_CASES                                                                             \
    cmocka_unit_test(packets_arrive_whole_and_in_order), cmocka_unit_test(queues_are_bounded),     \
        cmocka_unit_test(a_full_port_still_takes), cmocka_unit_test(lent_memory_comes_back),       \
        cmocka_unit_test(nobody_is_there), cmocka_unit_test(an_end_that_has_ended_is_absent),      \
        cmocka_unit_test(a_connection_is_made_anew), cmocka_unit_test(peers_are_told_apart),       \
        cmocka_unit_test(an_address_is_shared), cmocka_unit_test(a_shared_address_is_left),        \
        cmocka_unit_test(connections_come_again), cmocka_unit_test(strangers_are_refused),         \
        cmocka_unit_test(a_wrong_server_is_refused), cmocka_unit_test(large_frames_are_refused),   \
        cmocka_unit_test(wrong_options_are_told)

#endif
