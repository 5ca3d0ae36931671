#include <unistd.h>

#include "pair.h"

static void exchange_messages(uint32_t window, uint32_t total, uint32_t bytes) {
    pair p;
    flow there;
    flow back;
    rp_link_options options = pair_options(window);
    pair_open(&p, &options);
    flow_open(&there, &p.a.link, &p.b.link, total, bytes);
    flow_open(&back, &p.b.link, &p.a.link, total, bytes);
    int64_t until_ns = now_ns() + 30 * RP_NS_PER_S;
    while (!flow_complete(&there) || !flow_complete(&back)) {
        assert_true(now_ns() < until_ns);
        flow_send(&there);
        flow_send(&back);
        pair_step(&p);
        flow_recv(&there, 4);
        flow_recv(&back, 4);
    }
    assert_int_equal(stats_of(&p.a).resent, 0);
    assert_int_equal(stats_of(&p.a).refused, 0);
    assert_int_equal(stats_of(&p.a).parcels_sent, total);
    assert_int_equal(stats_of(&p.b).parcels_received, total);
    assert_int_equal(stats_of(&p.b).unacked, 0);
    assert_false(stats_of(&p.b).peer_restarted);
    flow_close(&there);
    flow_close(&back);
    pair_close(&p);
}

static void messages_cross_in_order(void **state) {
    (void)state;
    for (uint32_t window = 1; window <= 8; window *= 2) {
        exchange_messages(window, 1500, 400);
    }
    exchange_messages(3, 200, FLOW_BYTES_MAX);
}

/* Nobody releases: the sender runs out of credit, and not before the window is full. */
static void credit_bounds_the_sender(void **state) {
    (void)state;
    pair p;
    rp_link_options options = pair_options(5);
    options.send_window = 9;
    pair_open(&p, &options);
    step_until(&p, rp_link_can_send(p.b.link), 5);
    rp_message *held[5];
    uint32_t sent = 0;
    uint32_t received = 0;
    uint8_t byte = 1;
    for (int round = 0; round < 200; round++) {
        rp_err err = send_label(p.b.link, 0, &byte, 1, true, NULL, NULL);
        assert_true(err == (sent < 5 ? RP_OK : RP_ERR_AGAIN));
        sent += err == RP_OK;
        pair_step(&p);
        rp_message *message;
        if (rp_link_recv(p.a.link, &message) == RP_OK) {
            held[received++] = message;
        }
    }
    assert_int_equal(received, 5);
    assert_int_equal(stats_of(&p.b).unacked, 0); /* acked, but no new credit */
    rp_Frame frame = {.which_body = RP_KIND_STOP, .body.stop = {.step = 4}};
    expect_ok(rp_link_send(p.b.link, &frame, NULL, 0, false, NULL, NULL)); /* needs no credit */
    rp_link_release(p.a.link, &held[0]);
    assert_null(held[0]);
    step_until(&p, rp_link_can_send(p.b.link), 5);
    rp_message *message;
    step_until(&p, rp_link_recv(p.a.link, &message) == RP_OK, 5); /* it may be behind the credit */
    assert_int_equal(rp_frame_kind(&message->frame), RP_KIND_STOP);
    rp_link_release(p.a.link, &message);
    pair_close(&p); /* four messages are still held: close takes them back */
}

/* Control is bounded by itself; a receiver that does not read loses nothing. */
static void control_is_bounded(void **state) {
    (void)state;
    pair p;
    rp_link_options options = pair_options(2);
    pair_open(&p, &options);
    uint32_t sent = 0;
    uint32_t total = 3 * RP_LINK_CONTROL_MAX;
    int64_t stop_ns = now_ns() + RP_NS_PER_S / 2;
    while (now_ns() < stop_ns) { /* the other end takes what its pool holds, then refuses */
        rp_Frame frame = {.which_body = RP_KIND_NORMS, .body.norms = {.step = sent}};
        rp_err err = rp_link_send(p.b.link, &frame, NULL, 0, false, NULL, NULL);
        assert_true(err == RP_OK || err == RP_ERR_AGAIN);
        sent += err == RP_OK;
        pair_step(&p);
    }
    assert_in_range(sent, RP_LINK_CONTROL_MAX, 2 * RP_LINK_CONTROL_MAX + 2);
    uint32_t received = 0;
    stop_ns = now_ns() + 20 * RP_NS_PER_S;
    while (received < total) {
        assert_true(now_ns() < stop_ns);
        rp_Frame frame = {.which_body = RP_KIND_NORMS, .body.norms = {.step = sent}};
        if (sent < total) {
            sent += rp_link_send(p.b.link, &frame, NULL, 0, false, NULL, NULL) == RP_OK;
        }
        pair_step(&p);
        rp_message *message;
        while (rp_link_recv(p.a.link, &message) == RP_OK) {
            assert_int_equal(message->frame.body.norms.step, received++);
            rp_link_release(p.a.link, &message);
        }
    }
    pair_close(&p);
}

static void ping_measures(void **state) {
    (void)state;
    pair p;
    rp_link_options options = pair_options(1);
    pair_open(&p, &options);
    expect_err(rp_link_ping(p.a.link), RP_ERR_AGAIN); /* nobody there yet */
    step_until(&p, stats_of(&p.a).last_heard_ns && stats_of(&p.b).last_heard_ns, 5);
    expect_ok(rp_link_ping(p.b.link));
    expect_ok(rp_link_ping(p.a.link));
    step_until(&p, stats_of(&p.a).round_trip_ns && stats_of(&p.b).round_trip_ns, 5);
    assert_true(stats_of(&p.a).round_trip_ns < RP_NS_PER_S);
    assert_int_equal(stats_of(&p.a).round_trips, 1);
    expect_ok(rp_link_ping(p.a.link));
    step_until(&p, stats_of(&p.a).round_trips == 2, 5);
    pair_close(&p);
}

static void count_done(void *context) {
    ++*(uint32_t *)context;
}

/* done() comes once for each message, at close for those that were never acked. */
static void close_gives_memory_back(void **state) {
    (void)state;
    static uint8_t memory[8][1 << 20];
    for (int rounds = 0; rounds < 12; rounds++) {
        pair p;
        uint32_t done = 0;
        rp_link_options options = pair_options(8);
        pair_open(&p, &options);
        step_until(&p, rp_link_can_send(p.b.link), 5);
        for (uint32_t i = 0; i < 8; i++) {
            expect_ok(
                send_label(p.b.link, 0, memory[i], sizeof memory[i], false, count_done, &done));
        }
        assert_int_equal(done, 0);
        for (int i = 0; i < rounds; i++) {
            pair_step(&p);
        }
        if (rounds % 2) {
            end_close(&p.a); /* the receiver first */
            memset(memory, rounds, sizeof memory);
        }
        int64_t began_ns = now_ns();
        end_close(&p.b);
        assert_int_equal(done, 8);
        memset(memory, rounds, sizeof memory);
        assert_true(now_ns() - began_ns < RP_NS_PER_S);
        pair_close(&p);
    }
}

static void wrong_options_are_told(void **state) {
    (void)state;
    pair p;
    rp_link *link;
    pair_begin(&p, rp_clock_real());
    rp_link_options options = pair_options(1);
    expect_err(rp_link_open(p.a.links, &options, &link), RP_ERR_USAGE); /* neither end */
    options.connect = "tcp://127.0.0.1:9";
    expect_err(rp_link_open(p.a.links, &options, &link), RP_ERR_USAGE); /* no server key */
    options.peer_public = "short";
    expect_err(rp_link_open(p.a.links, &options, &link), RP_ERR_FORMAT);
    options.connect = NULL;
    options.bind = "tcp://nowhere.invalid:1";
    options.peer_public = NULL;
    expect_err(rp_link_open(p.a.links, &options, &link), RP_ERR_USAGE); /* unknown name */
    options.window = 0;
    expect_err(rp_link_open(p.a.links, &options, &link), RP_ERR_USAGE);
    assert_null(link);
    options = pair_options(1);
    options.bind = "tcp://127.0.0.1:*";
    expect_ok(rp_link_open(p.a.links, &options, &link));
    for (int i = 0; i < 64; i++) {
        expect_ok(rp_link_allow(link, p.a.keys.public_text));
    }
    expect_err(rp_link_allow(link, p.a.keys.public_text), RP_ERR_LIMIT);
    rp_Frame frame = {.which_body = RP_KIND_ACK_ONLY};
    expect_err(rp_link_send(link, &frame, NULL, 0, false, NULL, NULL), RP_ERR_FORMAT);
    pair_close(&p);
}

/* A descriptor wakes the wait. */
static void wait_sees_descriptors(void **state) {
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    pair p;
    rp_link_options options = pair_options(1);
    pair_open(&p, &options);
    step_until(&p, rp_link_can_send(p.b.link), 5);
    for (int i = 0; i < 50; i++) {
        pair_step(&p);
    }
    int64_t began_ns = now_ns();
    expect_ok(rp_link_wait(&p.b.link, 1, fds, 1, 5 * RP_NS_PER_S));
    expect_ok(rp_link_wait(NULL, 0, fds, 1, 5 * RP_NS_PER_S));
    assert_true(now_ns() - began_ns < 2 * RP_NS_PER_S);
    began_ns = now_ns();
    expect_ok(rp_link_wait(&p.b.link, 1, NULL, 0, 50 * RP_NS_PER_MS));
    assert_in_range(now_ns() - began_ns, 40 * RP_NS_PER_MS, RP_NS_PER_S); /* it does sleep */
    (void)close(fds[0]);
    (void)close(fds[1]);
    pair_close(&p);
}

int main(void) {
    const struct CMUnitTest zmq[] = {cmocka_unit_test(wrong_options_are_told)};
    const struct CMUnitTest both[] = {
        cmocka_unit_test(messages_cross_in_order), cmocka_unit_test(credit_bounds_the_sender),
        cmocka_unit_test(control_is_bounded),      cmocka_unit_test(ping_measures),
        cmocka_unit_test(close_gives_memory_back), cmocka_unit_test(wait_sees_descriptors),
    };
    int failed = cmocka_run_group_tests(zmq, NULL, NULL);
    failed += cmocka_run_group_tests(both, NULL, NULL);
    pair_inproc = true;
    return failed + cmocka_run_group_tests(both, NULL, NULL);
}
