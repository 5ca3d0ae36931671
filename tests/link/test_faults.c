#include "base/rng.h"
#include "link/watch.h"
#include "pair.h"
#include "proxy.h"

static proxy line;

static void open_through_proxy(pair *p, const rp_link_options *options) {
    char endpoint[64];
    pair_begin(p, rp_clock_real());
    bind_end(p, *options, "tcp://127.0.0.1:*");
    proxy_open(&line, rp_link_endpoint(p->a.link));
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", line.port);
    connect_end(p, *options, endpoint);
}

static void flows_step(pair *p, flow *there, flow *back) {
    flow_send(there);
    flow_send(back);
    pair_step(p);
    flow_recv(there, 2);
    flow_recv(back, 2);
}

/* The connection is reset at seeded points: nothing is lost, repeated or out of order (flow_recv
 * checks each parcel), and done() comes once each (flow_done checks it). */
static void resets_lose_nothing(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        pair p;
        flow there;
        flow back;
        rp_rng rng = rp_rng_named(seed, "cuts");
        rp_link_options options = pair_options((uint32_t)(1 + 2 * seed));
        open_through_proxy(&p, &options);
        flow_open(&there, &p.a.link, &p.b.link, 1200, seed == 2 ? FLOW_BYTES_MAX : 4000);
        flow_open(&back, &p.b.link, &p.a.link, 1200, 4000);
        uint32_t next_cut = 100;
        int64_t until_ns = now_ns() + 30 * RP_NS_PER_S;
        while (!flow_complete(&there) || !flow_complete(&back)) {
            if (now_ns() > until_ns) {
                fail_msg("seed %u: stuck at %u and %u", (unsigned)seed, there.received,
                         back.received);
            }
            flows_step(&p, &there, &back);
            if (there.received + back.received >= next_cut) {
                atomic_store(&line.cut, true);
                next_cut += 60 + rp_rng_below(&rng, 300);
            }
        }
        rp_link_stats a = stats_of(&p.a);
        rp_link_stats b = stats_of(&p.b);
        printf("seed %u: %u cuts, %llu sent again, %llu dropped as duplicates\n", (unsigned)seed,
               atomic_load(&line.cuts), (unsigned long long)(a.resent + b.resent),
               (unsigned long long)(a.duplicates + b.duplicates));
        assert_true(atomic_load(&line.cuts) >= 5);
        assert_false(a.peer_restarted || b.peer_restarted);
        assert_int_equal(a.refused + b.refused, 0);
        flow_close(&there);
        flow_close(&back);
        pair_close(&p);
        proxy_close(&line);
    }
}

/* Nothing passes for a while and no connection ends: it goes on by itself. */
static void black_hole_resumes(void **state) {
    (void)state;
    pair p;
    flow there;
    flow back;
    rp_link_options options = pair_options(4);
    open_through_proxy(&p, &options);
    flow_open(&there, &p.a.link, &p.b.link, 100000, 2000);
    flow_open(&back, &p.b.link, &p.a.link, 100000, 2000);
    int64_t until_ns = now_ns() + 10 * RP_NS_PER_S;
    while (there.received < 200) {
        assert_true(now_ns() < until_ns);
        flows_step(&p, &there, &back);
    }
    atomic_store(&line.hold, true);
    int64_t held_until_ns = now_ns() + 1500 * RP_NS_PER_MS;
    while (now_ns() < held_until_ns) {
        flows_step(&p, &there, &back);
    }
    uint32_t there_held = there.received;
    atomic_store(&line.hold, false);
    while (there.received < there_held + 200 || back.received < 200) {
        assert_true(now_ns() < held_until_ns + 5 * RP_NS_PER_S);
        flows_step(&p, &there, &back);
    }
    printf("resumed, 200 parcels within %lld ms\n",
           (long long)((now_ns() - held_until_ns) / RP_NS_PER_MS));
    assert_true(now_ns() - held_until_ns < 1500 * RP_NS_PER_MS);
    there.total = there.sent; /* let it run out */
    back.total = back.sent;
    while (!flow_complete(&there) || !flow_complete(&back)) {
        assert_true(now_ns() < held_until_ns + 10 * RP_NS_PER_S);
        flows_step(&p, &there, &back);
    }
    flow_close(&there);
    flow_close(&back);
    pair_close(&p);
    proxy_close(&line);
}

/* As an agent watches its neighbours. */
typedef struct {
    rp_link_watch a, b;
} watches;

static watches watch_both(const pair *p) {
    watches out;
    rp_link_watch_begin(&out.a, p->a.link, now_ns());
    rp_link_watch_begin(&out.b, p->b.link, now_ns());
    return out;
}

static void expect_not_lost(watches *own, const pair *p) {
    assert_int_not_equal(rp_link_look(&own->a, p->a.link, now_ns()), RP_WATCH_LOST);
    assert_int_not_equal(rp_link_look(&own->b, p->b.link, now_ns()), RP_WATCH_LOST);
}

/* A proxy that keeps the connection and forwards nothing: another one is made, through the same
 * proxy, and it goes on. */
static void a_stuck_connection_is_opened_anew(void **state) {
    (void)state;
    pair p;
    flow there;
    flow back;
    rp_link_options options = pair_options(4);
    open_through_proxy(&p, &options);
    flow_open(&there, &p.a.link, &p.b.link, 100000, 2000);
    flow_open(&back, &p.b.link, &p.a.link, 100000, 2000);
    watches own = watch_both(&p);
    const int64_t until_ns = now_ns() + 60 * RP_NS_PER_S;
    bool stuck = false;
    uint32_t there_stuck = 0;
    while (!stuck || there.received < there_stuck + 200) {
        assert_true(now_ns() < until_ns);
        flows_step(&p, &there, &back);
        expect_not_lost(&own, &p);
        if (!stuck && there.received >= 200 && stats_of(&p.b).round_trips > 0) {
            stuck = true;
            there_stuck = there.received + 8; /* those that are taken in already */
            atomic_store(&line.stick, true);
        }
        if (!stuck && there.received >= 200) {
            (void)!rp_link_ping(p.b.link); /* a busy link is not asked */
        }
    }
    assert_true(stats_of(&p.a).resets >= 1 && stats_of(&p.b).resets >= 1);
    assert_false(stats_of(&p.a).peer_restarted || stats_of(&p.b).peer_restarted);
    there.total = there.sent; /* let it run out */
    back.total = back.sent;
    while (!flow_complete(&there) || !flow_complete(&back)) {
        assert_true(now_ns() < until_ns);
        flows_step(&p, &there, &back);
    }
    flow_close(&there);
    flow_close(&back);
    pair_close(&p);
    proxy_close(&line);
}

/* A part of 1 MiB at 250 KB/s takes longer than silence would: bytes that move are seen, in both
 * directions, and no connection is given up. */
static void a_slow_connection_is_kept(void **state) {
    (void)state;
    static uint8_t bytes[PAIR_PART_BYTES_MAX];
    pair p;
    rp_link_options options = pair_options(4);
    open_through_proxy(&p, &options);
    step_until(&p, rp_link_can_send(p.a.link) && rp_link_can_send(p.b.link), 20);
    expect_ok(rp_link_ping(p.b.link));
    step_until(&p, stats_of(&p.b).round_trips > 0, 20);
    atomic_store(&line.trickle, 250);
    expect_ok(send_label(p.a.link, 1, bytes, sizeof bytes, true, NULL, NULL));
    expect_ok(send_label(p.b.link, 1, bytes, sizeof bytes, true, NULL, NULL));
    watches own = watch_both(&p);
    const int64_t until_ns = now_ns() + 120 * RP_NS_PER_S;
    while (stats_of(&p.a).unacked || stats_of(&p.b).unacked) {
        assert_true(now_ns() < until_ns);
        pair_step(&p);
        assert_int_equal(rp_link_look(&own.a, p.a.link, now_ns()), RP_WATCH_WELL);
        assert_int_equal(rp_link_look(&own.b, p.b.link, now_ns()), RP_WATCH_WELL);
    }
    assert_int_equal(stats_of(&p.a).resets + stats_of(&p.b).resets, 0);
    assert_int_equal(stats_of(&p.a).resent + stats_of(&p.b).resent, 0);
    pair_close(&p);
    proxy_close(&line);
}

/* A bit that flips on the way ends the connection, in whose encryption it is found, and no more:
 * nothing is lost, and nobody is taken for a stranger. So from the first handshake on, and with a
 * link that is opened later. */
static void flipped_bits_are_healed(void **state) {
    (void)state;
    pair p;
    flow there;
    flow back;
    rp_rng rng = rp_rng_named(11, "flips");
    rp_link_options options = pair_options(4);
    open_through_proxy(&p, &options);
    atomic_store(&line.flip, 1 + 8 * 40); /* of the greeting */
    flow_open(&there, &p.a.link, &p.b.link, 1500, 3000);
    flow_open(&back, &p.b.link, &p.a.link, 1500, 3000);
    watches own = watch_both(&p);
    uint32_t next = 100;
    uint32_t flips = 1;
    const int64_t until_ns = now_ns() + 100 * RP_NS_PER_S;
    while (!flow_complete(&there) || !flow_complete(&back)) {
        if (now_ns() > until_ns) {
            fail_msg("stuck at %u and %u after %u flips", there.received, back.received, flips);
        }
        flows_step(&p, &there, &back);
        expect_not_lost(&own, &p);
        assert_false(stats_of(&p.b).auth_failed);
        if (there.received + back.received >= next) {
            atomic_store(flips++ % 2 ? &line.flip : &line.flip_back,
                         1 + rp_rng_below(&rng, 100000));
            next += 250;
        }
    }
    assert_true(stats_of(&p.b).resets >= 5);
    assert_false(stats_of(&p.a).peer_restarted || stats_of(&p.b).peer_restarted);
    printf("%u flips, %llu connections after the first\n", flips,
           (unsigned long long)stats_of(&p.b).resets);
    flow_close(&there);
    flow_close(&back);
    pair_close(&p);
    proxy_close(&line);
}

/* One end is closed in the middle and opened again: the other end tells, and both begin anew. */
static void restart_end(bool connecting_end, uint32_t cycle) {
    pair p;
    flow there;
    char endpoint[256];
    rp_link_options options = pair_options(4);
    pair_open(&p, &options);
    snprintf(endpoint, sizeof endpoint, "%s", rp_link_endpoint(p.a.link));
    end *ends[2] = {&p.a, &p.b};
    end *again = ends[connecting_end];
    end *stays = ends[!connecting_end];
    for (uint32_t i = 0; i < cycle; i++) {
        flow_open(&there, &stays->link, &again->link, 50 + i, 800);
        int64_t until_ns = now_ns() + 15 * RP_NS_PER_S;
        while (there.received < 40) {
            assert_true(now_ns() < until_ns);
            flow_send(&there);
            pair_step(&p);
            flow_recv(&there, 1);
        }
        uint64_t session = stats_of(stays).peer_session;
        assert_true(rp_link_use_of(stays->link, 0).bytes > 40 * 800);
        rp_link_close(&again->link);
        if (connecting_end) {
            connect_end(&p, options, endpoint);
        } else {
            bind_end(&p, options, endpoint);
        }
        step_until(&p, stats_of(stays).peer_session != session, 10);
        assert_true(stats_of(stays).peer_restarted);
        assert_false(stats_of(again).peer_restarted);
        assert_true(rp_link_use_of(stays->link, 0).bytes < 40 * 800); /* of this peer's life */
        step_until(&p, there.done == there.sent, 5);                  /* given up, once each */
        flow_close(&there);
        flow_open(&there, &again->link, &stays->link, 100, 800);
        flow back;
        flow_open(&back, &stays->link, &again->link, 100, 800);
        while (!flow_complete(&there) || !flow_complete(&back)) {
            assert_true(now_ns() < until_ns);
            flows_step(&p, &there, &back);
        }
        flow_close(&there);
        flow_close(&back);
    }
    pair_close(&p);
}

static void restart_of_the_connecting_end(void **state) {
    (void)state;
    restart_end(true, 3);
}

static void restart_of_the_binding_end(void **state) {
    (void)state;
    restart_end(false, 3);
}

/* What was numbered for the old peer must not be taken for the new one's, even if it had acked
 * nothing: the same numbers are used again. */
static void numbers_of_the_old_peer_stay_dead(void **state) {
    (void)state;
    pair p;
    char endpoint[256];
    rp_link_options options = pair_options(4);
    pair_open(&p, &options);
    snprintf(endpoint, sizeof endpoint, "%s", rp_link_endpoint(p.a.link));
    step_until(&p, stats_of(&p.b).peer_session && stats_of(&p.a).peer_session, 5);
    uint64_t session = stats_of(&p.b).peer_session;
    rp_link_close(&p.a.link); /* before b's messages can be acked */
    rp_Frame frame = {.which_body = RP_KIND_FAULT, .body.fault = {.err = 1}};
    for (int i = 0; i < 3; i++) {
        expect_ok(rp_link_send(p.b.link, &frame, NULL, 0, false, NULL, NULL));
    }
    bind_end(&p, options, endpoint);
    step_until(&p, stats_of(&p.b).peer_session != session, 10);
    frame.body.fault.err = 2;
    expect_ok(rp_link_send(p.b.link, &frame, NULL, 0, false, NULL, NULL));
    step_until(&p, stats_of(&p.b).unacked == 0, 5);
    rp_message *message;
    expect_ok(rp_link_recv(p.a.link, &message));
    assert_int_equal(message->frame.body.fault.err, 2);
    rp_link_release(p.a.link, &message);
    expect_err(rp_link_recv(p.a.link, &message), RP_ERR_AGAIN);
    pair_close(&p);
}

int main(void) {
    rp_log_setup(RP_LOG_WARN, "test");
    const struct CMUnitTest zmq[] = {
        cmocka_unit_test(resets_lose_nothing),
        cmocka_unit_test(black_hole_resumes),
        cmocka_unit_test(a_stuck_connection_is_opened_anew),
        cmocka_unit_test(a_slow_connection_is_kept),
        cmocka_unit_test(flipped_bits_are_healed),
    };
    const struct CMUnitTest both[] = {
        cmocka_unit_test(restart_of_the_connecting_end),
        cmocka_unit_test(restart_of_the_binding_end),
        cmocka_unit_test(numbers_of_the_old_peer_stay_dead),
    };
    int failed = cmocka_run_group_tests(zmq, NULL, NULL);
    failed += cmocka_run_group_tests(both, NULL, NULL);
    pair_inproc = true;
    return failed + cmocka_run_group_tests(both, NULL, NULL);
}
