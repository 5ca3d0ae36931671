#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "link/head.h"
#include "link/watch.h"
#include "pair.h"
#include "transport/callers.h"

/* A client whose key is not on the list: told so, and nothing of it arrives. */
static void a_wrong_client_key_is_refused(void **state) {
    (void)state;
    pair p;
    rp_keypair other;
    rp_link_options options = pair_options(2);
    pair_begin(&p, rp_clock_real());
    expect_ok(rp_keys_make(&other));
    options.bind = "tcp://127.0.0.1:*";
    options.peer_public = other.public_text;
    expect_ok(rp_link_open(p.a.links, &options, &p.a.link));
    options.bind = NULL;
    connect_end(&p, options, rp_link_endpoint(p.a.link));
    step_until(&p, stats_of(&p.b).auth_failed, 20);
    assert_int_equal(stats_of(&p.a).last_heard_ns, 0);
    assert_int_equal(stats_of(&p.a).bytes_received, 0);
    assert_false(rp_link_can_send(p.b.link));
    expect_ok(
        rp_link_allow(p.a.link, p.b.keys.public_text)); /* trusted now: it gets in by itself */
    step_until(&p, rp_link_can_send(p.b.link), 20);
    assert_false(stats_of(&p.b).auth_failed);
    pair_close(&p);
}

/* At "tcp://127.0.0.1:PORT", as a process whose loop stands still. */
static int listen_without_reading(const char *endpoint) {
    const unsigned long port = strtoul(strrchr(endpoint, ':') + 1, NULL, 10);
    const int one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 64), 0);
    return fd;
}

/* The server is not who we think: we end, it learns nothing. */
static void a_wrong_server_key_is_refused(void **state) {
    (void)state;
    pair p;
    rp_keypair other;
    rp_link_options options = pair_options(2);
    pair_begin(&p, rp_clock_real());
    expect_ok(rp_keys_make(&other));
    bind_end(&p, options, "tcp://127.0.0.1:*");
    options.connect = rp_link_endpoint(p.a.link);
    options.peer_public = other.public_text;
    expect_ok(rp_link_open(p.b.links, &options, &p.b.link));
    step_until(&p, stats_of(&p.b).auth_failed, 20);
    assert_int_equal(stats_of(&p.a).last_heard_ns, 0);
    pair_close(&p);
}

/* A server that we have met has gone, and one with another key has its address. That is found on
 * any link to it, also on one that is opened anew, and it is over when the right one is back. */
static void another_key_at_a_known_address_is_noticed(void **state) {
    (void)state;
    pair p;
    char endpoint[RP_PORT_ENDPOINT_BYTES];
    rp_link_options options = pair_options(2);
    pair_open(&p, &options);
    (void)snprintf(endpoint, sizeof endpoint, "%s", rp_link_endpoint(p.a.link));
    step_until(&p, rp_link_can_send(p.b.link), 20);
    const rp_keypair right = p.a.keys;
    end_close(&p.a);
    end_open(&p, &p.a, NULL);
    bind_end(&p, options, endpoint);
    step_until(&p, rp_link_health_of(p.b.link).broken_off, 60);
    rp_link_close(&p.b.link);
    options.connect = endpoint;
    options.peer_public = right.public_text;
    expect_ok(rp_link_open(p.b.links, &options, &p.b.link));
    assert_false(rp_link_health_of(p.b.link).broken_off);
    step_until(&p, rp_link_health_of(p.b.link).broken_off, 60);
    assert_false(stats_of(&p.b).auth_failed);
    end_close(&p.a);
    end_open(&p, &p.a, &right);
    options.connect = NULL;
    bind_end(&p, options, endpoint);
    step_until(&p, rp_link_can_send(p.b.link), 60);
    assert_false(rp_link_health_of(p.b.link).broken_off);
    pair_close(&p);
}

/* A process that is stopped: its machine takes the connection and nobody answers. That is told
 * apart from another key, and over as soon as it goes on. */
static void a_stopped_server_is_no_other_one(void **state) {
    (void)state;
    pair p;
    rp_link_options options = pair_options(2);
    pair_open(&p, &options);
    char endpoint[RP_PORT_ENDPOINT_BYTES];
    (void)snprintf(endpoint, sizeof endpoint, "%s", rp_link_endpoint(p.a.link));
    step_until(&p, rp_link_can_send(p.b.link), 20);
    assert_false(rp_link_health_of(p.b.link).unanswered);
    const rp_keypair right = p.a.keys;
    end_close(&p.a);
    const int stopped = listen_without_reading(endpoint);
    const int64_t until_ns = now_ns() + 30 * RP_NS_PER_S; /* several handshakes */
    bool unanswered = false;
    while (!unanswered && now_ns() < until_ns) {
        expect_ok(rp_link_step(p.b.link));
        expect_ok(rp_link_wait(&p.b.link, 1, NULL, 0, 20 * RP_NS_PER_MS));
        unanswered |= rp_link_health_of(p.b.link).unanswered;
        assert_false(rp_link_health_of(p.b.link).broken_off);
    }
    assert_true(unanswered);
    (void)close(stopped);
    end_open(&p, &p.a, &right);
    bind_end(&p, options, endpoint);
    step_until(&p, rp_link_can_send(p.b.link), 60);
    step_until(&p, !rp_link_health_of(p.b.link).unanswered, 20);
    pair_close(&p);
}

/* Nobody listens: that is no refusal. */
static void an_absent_server_is_no_refusal(void **state) {
    (void)state;
    pair p;
    rp_link_options options = pair_options(2);
    pair_open(&p, &options);
    step_until(&p, rp_link_can_send(p.b.link), 20);
    rp_link_close(&p.a.link);
    int64_t until_ns = now_ns() + RP_NS_PER_S;
    rp_Frame hello = {.which_body = RP_KIND_HELLO};
    expect_ok(rp_link_send(p.b.link, &hello, NULL, 0, false, NULL, NULL));
    uint32_t rounds = 0;
    for (; now_ns() < until_ns; rounds++) {
        expect_ok(rp_link_step(p.b.link));
        expect_ok(rp_link_wait(&p.b.link, 1, NULL, 0, 5 * RP_NS_PER_MS));
    }
    assert_in_range(rounds, 10, 400); /* it sleeps meanwhile, also with something to send */
    assert_false(stats_of(&p.b).auth_failed);
    pair_close(&p);
}

/* A raw ZeroMQ client with the keys of the other end. */
typedef struct {
    void *context, *socket;
} stranger;

static void stranger_open(stranger *s, const char *endpoint, const rp_keypair *keys,
                          const char *server_key) {
    int zero = 0;
    s->context = zmq_ctx_new();
    s->socket = zmq_socket(s->context, ZMQ_DEALER);
    assert_int_equal(zmq_setsockopt(s->socket, ZMQ_LINGER, &zero, sizeof zero), 0);
    if (keys) {
        assert_int_equal(zmq_setsockopt(s->socket, ZMQ_CURVE_PUBLICKEY, keys->public_text, 40), 0);
        assert_int_equal(zmq_setsockopt(s->socket, ZMQ_CURVE_SECRETKEY, keys->secret_text, 40), 0);
        assert_int_equal(zmq_setsockopt(s->socket, ZMQ_CURVE_SERVERKEY, server_key, 40), 0);
    }
    assert_int_equal(zmq_connect(s->socket, endpoint), 0);
}

static void stranger_close(stranger *s) {
    (void)zmq_close(s->socket);
    (void)zmq_ctx_term(s->context);
}

static void stranger_send(stranger *s, const void *header, size_t bytes, const void *part,
                          size_t part_bytes, uint32_t part_count) {
    (void)zmq_send(s->socket, header, bytes, part_count ? ZMQ_SNDMORE : 0);
    for (uint32_t i = 0; i < part_count; i++) {
        (void)zmq_send(s->socket, part, part_bytes, i + 1 < part_count ? ZMQ_SNDMORE : 0);
    }
}

static size_t encode_frame(rp_Frame frame, const void *part, size_t part_bytes, uint32_t part_count,
                           uint8_t *out) {
    rp_part parts[RP_PARTS_MAX];
    size_t bytes;
    for (uint32_t i = 0; i < part_count; i++) {
        parts[i] = rp_part_of_text(part);
        parts[i].bytes = part_bytes;
    }
    expect_ok(rp_frame_encode(&frame, parts, part_count, out, &bytes));
    return rp_head_seal(out, bytes);
}

/* Well encrypted nonsense from somebody who has a key of the list. */
static void send_nonsense(stranger *s, uint32_t i, const pair *p) {
    static uint8_t large[PAIR_PART_BYTES_MAX + 4096];
    uint8_t header[RP_HEAD_BYTES_MAX];
    uint8_t bytes[64];
    size_t size;
    rp_Frame claim = {.which_body = RP_KIND_PROFILE, .seq = 1 + i, .session = 77};
    memset(bytes, (int)(i * 37), sizeof bytes);
    bytes[sizeof bytes - 1] = 0;
    switch (i % 7) {
    case 0: /* no header at all */
        stranger_send(s, bytes, sizeof bytes, NULL, 0, 0);
        break;
    case 1: /* a header larger than any */
        stranger_send(s, large, RP_HEAD_BYTES_MAX + 1, NULL, 0, 0);
        break;
    case 2: /* more parts than any message has */
        stranger_send(s, bytes, 10, bytes, 3, 20);
        break;
    case 3: /* a sound message of another session */
        size = encode_frame(claim, bytes, 8, 2, header);
        stranger_send(s, header, size, bytes, 8, 2);
        break;
    case 4: /* in the name of the session, with the wrong part */
        claim.session = stats_of(&p->a).peer_session;
        claim.peer = stats_of(&p->b).peer_session;
        size = encode_frame(claim, bytes, 8, 2, header);
        stranger_send(s, header, size, bytes, 9, 2);
        break;
    case 5: /* acks what was never sent */
        claim.session = stats_of(&p->a).peer_session;
        claim.peer = stats_of(&p->b).peer_session;
        claim.ack = UINT64_MAX;
        claim.which_body = RP_KIND_SAVE;
        size = encode_frame(claim, NULL, 0, 0, header);
        stranger_send(s, header, size, NULL, 0, 0);
        break;
    default: /* larger than a part may be: ends this connection only */
        if (i == 174) {
            stranger_send(s, large, sizeof large, NULL, 0, 0);
        }
        break;
    }
}

static void bad_frames_do_not_hurt(void **state) {
    (void)state;
    pair p;
    flow there;
    flow back;
    stranger known;
    stranger unknown;
    stranger plain;
    rp_keypair keys;
    rp_link_options options = pair_options(3);
    pair_open(&p, &options);
    expect_ok(rp_keys_make(&keys));
    stranger_open(&known, rp_link_endpoint(p.a.link), &p.b.keys, p.a.keys.public_text);
    stranger_open(&unknown, rp_link_endpoint(p.a.link), &keys, p.a.keys.public_text);
    stranger_open(&plain, rp_link_endpoint(p.a.link), NULL, NULL);
    flow_open(&there, &p.a.link, &p.b.link, 1000, 2000);
    flow_open(&back, &p.b.link, &p.a.link, 1000, 2000);
    int64_t until_ns = now_ns() + 60 * RP_NS_PER_S;
    /* Who names both sessions is answered, and so draws our end's messages to its own connection:
     * the true peer, which has nothing to say, asks when it hears nothing. */
    rp_link_watch watch;
    rp_link_watch_begin(&watch, p.b.link, now_ns());
    uint32_t i = 0;
    for (uint32_t round = 0; !flow_complete(&there) || !flow_complete(&back) || i < 350; round++) {
        if (now_ns() > until_ns) {
            fail_msg("%u nonsense frames sent; there %u of %u received, back %u of %u", i,
                     there.received, there.total, back.received, back.total);
        }
        if (there.received > 20 && i < 350 && round % 4 == 0) {
            send_nonsense(&known, i, &p);
            (void)zmq_send(unknown.socket, "hello", 5, ZMQ_DONTWAIT);
            (void)zmq_send(plain.socket, "hello", 5, ZMQ_DONTWAIT);
            i++;
        }
        flow_send(&there);
        flow_send(&back);
        pair_step(&p);
        flow_recv(&there, 1);
        flow_recv(&back, 1);
        assert_int_not_equal(rp_link_look(&watch, p.b.link, now_ns()), RP_WATCH_LOST);
    }
    printf("refused %llu frames\n", (unsigned long long)stats_of(&p.a).refused);
    assert_true(stats_of(&p.a).refused > 100);
    assert_int_equal(stats_of(&p.b).refused, 0);
    assert_false(stats_of(&p.a).peer_restarted || stats_of(&p.b).peer_restarted);
    assert_false(stats_of(&p.b).auth_failed);
    stranger_close(&known);
    stranger_close(&unknown);
    stranger_close(&plain);
    flow_close(&there);
    flow_close(&back);
    pair_close(&p);
}

/* Parcels of another run are acked, so that the stream goes on, and dropped; not so the word that
 * begins one. */
static void other_runs_are_dropped(void **state) {
    (void)state;
    pair p;
    rp_link_options options = pair_options(2);
    options.run = (rp_run_identity){5, 2};
    pair_open(&p, &options);
    step_until(&p, rp_link_can_send(p.b.link), 20);
    rp_link_set_run(p.b.link, (rp_run_identity){5, 1}); /* an older term */
    const uint8_t byte = 1;
    for (int i = 0; i < 5; i++) { /* more than the window: a dropped parcel gives its credit back */
        step_until(&p, rp_link_can_send(p.b.link), 20);
        expect_ok(send_label(p.b.link, 8, &byte, 1, true, NULL, NULL));
    }
    rp_link_set_run(p.b.link, (rp_run_identity){4, 2});
    rp_Frame hello = {.which_body = RP_KIND_HELLO};
    expect_ok(rp_link_send(p.b.link, &hello, NULL, 0, false, NULL, NULL));
    step_until(&p, stats_of(&p.b).unacked == 0, 5);
    rp_link_set_run(p.b.link, options.run);
    step_until(&p, rp_link_can_send(p.b.link), 20);
    expect_ok(send_label(p.b.link, 9, &byte, 1, true, NULL, NULL));
    step_until(&p, stats_of(&p.b).unacked == 0, 5);
    rp_message *message;
    expect_ok(rp_link_recv(p.a.link, &message));
    assert_int_equal(rp_frame_kind(&message->frame), RP_KIND_HELLO);
    assert_int_equal(message->frame.run_id, 4);
    rp_link_release(p.a.link, &message);
    expect_ok(rp_link_recv(p.a.link, &message));
    assert_int_equal(rp_frame_parcel(&message->frame)->step, 9);
    assert_true(rp_frame_is_of_run(&message->frame, options.run));
    rp_link_release(p.a.link, &message);
    assert_int_equal(stats_of(&p.a).refused, 5);
    pair_close(&p);
}

/* Two clients with keys of the list: the first is served until it is gone. */
static void one_peer_at_a_time(void **state) {
    (void)state;
    pair p;
    end other;
    rp_link_options options = pair_options(2);
    pair_open(&p, &options);
    end_open(&p, &other, NULL);
    expect_ok(rp_link_allow(p.a.link, other.keys.public_text));
    step_until(&p, rp_link_can_send(p.b.link), 20);
    uint64_t session = stats_of(&p.a).peer_session;
    options.connect = rp_link_endpoint(p.a.link);
    options.peer_public = p.a.keys.public_text;
    expect_ok(rp_link_open(other.links, &options, &other.link));
    int64_t until_ns = now_ns() + RP_NS_PER_S;
    while (now_ns() < until_ns) {
        pair_step(&p);
        rp_err err = rp_link_ping(p.b.link);
        assert_true(err == RP_OK || err == RP_ERR_AGAIN); /* a slow machine's queue fills */
        expect_ok(rp_link_step(other.link));
    }
    assert_int_equal(stats_of(&p.a).peer_session, session);
    assert_false(rp_link_can_send(other.link));
    rp_link_close(&p.b.link);
    until_ns = now_ns() + 5 * RP_NS_PER_S;
    while (!rp_link_can_send(other.link)) {
        assert_true(now_ns() < until_ns);
        expect_ok(rp_link_step(p.a.link));
        expect_ok(rp_link_step(other.link));
        expect_ok(rp_link_wait(&p.a.link, 1, NULL, 0, RP_NS_PER_MS));
    }
    assert_true(stats_of(&p.a).peer_restarted);
    end_close(&other);
    pair_close(&p);
}

/* A packet of 64 KiB that nobody asked for. */
static bool post_flood(rp_port *port) {
    rp_packet packet = {.count = 1};
    void *memory;
    expect_ok(rp_buffer_new(1 << 16, &packet.frame[0], &memory));
    memset(memory, 0x5a, 1 << 16);
    const rp_err err = port->kind->post(port, &packet);
    rp_packet_drop(&packet);
    return err == RP_OK;
}

/* A key of the list that sends as fast as it can: cut to its rate, while the peer that is served
 * gets on, and who takes all messages that there are comes to an end. The clock stands still. */
static void a_flood_is_dropped(void **state) {
    (void)state;
    pair p;
    end other;
    flow there;
    rp_port *raw;
    rp_link_options options = pair_options(4);
    pair_begin(&p, rp_clock_stepped(RP_NS_PER_S));
    bind_end(&p, options, "inproc://flooded");
    connect_end(&p, options, rp_link_endpoint(p.a.link));
    end_open(&p, &other, &p.b.keys);
    const rp_port_options port = {.name = "flood",
                                  .connect = rp_link_endpoint(p.a.link),
                                  .peer_public = p.a.keys.public_text,
                                  .queue = 100,
                                  .frame_bytes_max = 1 << 20};
    expect_ok(rp_port_open(other.transport, &port, &raw));
    flow_open(&there, &p.b.link, &p.a.link, 12000, 64);
    uint64_t posted = 0;
    for (uint32_t round = 0; round < 100000 && !flow_complete(&there); round++) {
        rp_port_event event;
        while (raw->kind->step(raw, &event)) {
        }
        while (there.received > 0 && post_flood(raw)) {
            posted++;
        }
        flow_send(&there);
        pair_step(&p);
        flow_recv(&there, 10);
    }
    assert_true(flow_complete(&there));
    const rp_link_stats stats = stats_of(&p.a);
    assert_true(posted > 40000);
    assert_in_range(posted - stats.flooded, 16000,
                    17000); /* a packet of 64 KiB costs 2 of 32,768 */
    assert_int_equal(stats.parcels_received, 12000);
    rp_port_close(&raw);
    flow_close(&there);
    end_close(&other);
    pair_close(&p);
}

/* One who connects again and again with the right key has so many connections and no more; and when
 * they have ended the key gets in as ever. */
static void a_key_has_a_bounded_number_of_connections(void **state) {
    (void)state;
    enum { MANY = RP_CALLER_CONNECTIONS + 16 };
    pair p;
    stranger many[MANY];
    rp_link_options options = pair_options(2);
    pair_begin(&p, rp_clock_real());
    options.bind = "tcp://127.0.0.1:*";
    options.peer_public = p.b.keys.public_text;
    expect_ok(rp_link_open(p.a.links, &options, &p.a.link));
    for (uint32_t i = 0; i < MANY; i++) {
        stranger_open(&many[i], rp_link_endpoint(p.a.link), &p.b.keys, p.a.keys.public_text);
        (void)zmq_send(many[i].socket, "hello", 5, 0); /* goes when it is let in */
    }
    const int64_t begin_ns = now_ns();
    int64_t full_ns = 0; /* the others try again behind it */
    while (full_ns == 0 || now_ns() < full_ns + 2 * RP_NS_PER_S) {
        assert_true(now_ns() < begin_ns + 60 * RP_NS_PER_S);
        expect_ok(rp_link_step(p.a.link));
        expect_ok(rp_link_wait(&p.a.link, 1, NULL, 0, 5 * RP_NS_PER_MS));
        const bool full = stats_of(&p.a).refused >= RP_CALLER_CONNECTIONS;
        full_ns = full && full_ns == 0 ? now_ns() : full_ns;
    }
    assert_int_equal(stats_of(&p.a).refused, RP_CALLER_CONNECTIONS);
    assert_int_equal(stats_of(&p.a).strangers, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        stranger_close(&many[i]);
    }
    options.bind = NULL;
    options.peer_public = NULL;
    connect_end(&p, options, rp_link_endpoint(p.a.link));
    step_until(&p, rp_link_can_send(p.b.link), 60);
    pair_close(&p);
}

int main(void) {
    const struct CMUnitTest zmq[] = {
        cmocka_unit_test(a_key_has_a_bounded_number_of_connections),
        cmocka_unit_test(bad_frames_do_not_hurt),
        cmocka_unit_test(another_key_at_a_known_address_is_noticed),
        cmocka_unit_test(a_stopped_server_is_no_other_one),
    };
    const struct CMUnitTest both[] = {
        cmocka_unit_test(a_wrong_client_key_is_refused),
        cmocka_unit_test(a_wrong_server_key_is_refused),
        cmocka_unit_test(an_absent_server_is_no_refusal),
        cmocka_unit_test(other_runs_are_dropped),
        cmocka_unit_test(one_peer_at_a_time),
    };
    int failed = cmocka_run_group_tests(zmq, NULL, NULL);
    failed += cmocka_run_group_tests(both, NULL, NULL);
    pair_inproc = true;
    const struct CMUnitTest inproc[] = {cmocka_unit_test(a_flood_is_dropped)};
    failed += cmocka_run_group_tests(inproc, NULL, NULL);
    return failed + cmocka_run_group_tests(both, NULL, NULL);
}
