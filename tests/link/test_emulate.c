#include "pair.h"

/* Both ends on a stepped clock; only b -> a is a slow line. */
static void open_stepped(pair *p, const rp_link_profile *profile) {
    rp_link_options options = pair_options(60);
    pair_begin(p, rp_clock_stepped(RP_NS_PER_S));
    bind_end(p, options, "tcp://127.0.0.1:*");
    options.emulate = *profile;
    connect_end(p, options, rp_link_endpoint(p->a.link));
}

/* Lets a millisecond pass: on our clock, and enough of a real one for ZeroMQ to carry things. */
static void pass_ms(pair *p) {
    p->clock.stepped_ns += RP_NS_PER_MS;
    for (int i = 0; i < 2; i++) {
        pair_step(p);
    }
}

static void wait_for_credit(pair *p) {
    for (int i = 0; !rp_link_can_send(p->b.link); i++) {
        assert_true(i < 5000);
        pass_ms(p);
    }
}

static void rate_and_delay_hold(void **state) {
    (void)state;
    pair p;
    flow f;
    rp_link_profile profile = {.rate_mbit = 8, .delay_ms = 30, .jitter_ms = 10};
    open_stepped(&p, &profile);
    wait_for_credit(&p);
    flow_open(&f, &p.b.link, &p.a.link, 40, 10000);
    int64_t began_ns = p.clock.stepped_ns;
    int64_t first_ns = 0;
    while (f.received < f.total) {
        flow_send(&f);
        pass_ms(&p);
        flow_recv(&f, 60);
        if (f.received && !first_ns) {
            first_ns = p.clock.stepped_ns - began_ns;
        }
        assert_true(p.clock.stepped_ns - began_ns < 5 * RP_NS_PER_S);
    }
    double first_ms = (double)first_ns / 1e6;
    double all_ms = (double)(p.clock.stepped_ns - began_ns) / 1e6;
    printf("first after %.0f ms, all after %.0f ms, busy %.3f s\n", first_ms, all_ms,
           stats_of(&p.b).busy_s);
    assert_true(first_ms >= 30 && first_ms <= 60);     /* 10 on the line, 30 +- 10 on the way */
    assert_true(all_ms >= 420 && all_ms <= 520);       /* 40 x 10 on the line, then the way */
    expect_close(stats_of(&p.b).busy_s, 0.4, 0.05, 0); /* headers and probes are small */
    assert_int_equal(stats_of(&p.b).resent, 0);        /* slowness is no loss */
    pair_close(&p); /* the last acks are still on the way: done() comes at close */
    assert_int_equal(f.done, f.total);
    flow_close(&f);
}

/* Steps until `count` parcels are there; gives the milliseconds. */
static double step_until_arrived(pair *p, flow *f, uint32_t count) {
    const int64_t began_ns = p->clock.stepped_ns;
    f->total = count;
    while (f->received < count) {
        assert_true(p->clock.stepped_ns - began_ns < 5 * RP_NS_PER_S);
        flow_send(f);
        pass_ms(p);
        flow_recv(f, 60);
    }
    return (double)(p->clock.stepped_ns - began_ns) / 1e6;
}

/* The line of a link that is in use changes: order is kept, which flow_recv() checks. */
static void a_line_comes_and_goes(void **state) {
    (void)state;
    pair p;
    flow f;
    const rp_link_profile none = {0};
    const rp_link_profile slow = {.delay_ms = 500, .control = true};
    open_stepped(&p, &none);
    wait_for_credit(&p);
    flow_open(&f, &p.b.link, &p.a.link, 0, 100);
    assert_true(step_until_arrived(&p, &f, 5) < 490);
    expect_ok(rp_link_emulate(p.b.link, &slow));
    assert_true(step_until_arrived(&p, &f, 10) >= 500);
    f.total = 15;
    flow_send(&f); /* still on their way */
    expect_ok(rp_link_emulate(p.b.link, &none));
    assert_true(step_until_arrived(&p, &f, 20) >= 490);
    assert_true(step_until_arrived(&p, &f, 25) < 490);
    pair_close(&p);
    assert_int_equal(f.done, f.total);
    flow_close(&f);
}

static void outages_hold_everything_back(void **state) {
    (void)state;
    pair p;
    flow f;
    rp_link_profile profile = {.outage = {0.5, 0.2}};
    open_stepped(&p, &profile);
    int64_t opened_ns = p.clock.stepped_ns;
    wait_for_credit(&p);
    flow_open(&f, &p.b.link, &p.a.link, 1000000, 100);
    uint32_t within = 0;
    uint32_t between = 0;
    while (p.clock.stepped_ns - opened_ns < 1200 * RP_NS_PER_MS) {
        flow_send(&f);
        pass_ms(&p);
        uint32_t before = f.received;
        flow_recv(&f, 60);
        int64_t at_ms = (p.clock.stepped_ns - opened_ns) / RP_NS_PER_MS;
        if (at_ms >= 505 && at_ms < 700) { /* a few may still be in ZeroMQ's hands */
            within += f.received - before;
        }
        between += at_ms >= 700 && at_ms < 1000 ? f.received - before : 0;
    }
    printf("received %u, %u of them within an outage\n", f.received, within);
    assert_int_equal(within, 0);
    assert_true(between > 100 && f.received > between + 100);
    f.total = f.sent;
    for (int i = 0; !flow_complete(&f); i++) {
        assert_true(i < 5000);
        pass_ms(&p);
        flow_recv(&f, 60);
    }
    flow_close(&f);
    pair_close(&p);
}

/* A fifth of everything, acks and credit too, vanishes both ways; each parcel arrives once. */
static void lose_packets(uint32_t window, uint32_t total) {
    pair p;
    flow there;
    flow back;
    rp_link_options options = pair_options(window);
    options.emulate = (rp_link_profile){.loss = 0.2};
    pair_open(&p, &options);
    flow_open(&there, &p.a.link, &p.b.link, total, 1000);
    flow_open(&back, &p.b.link, &p.a.link, total, 1000);
    int64_t until_ns = now_ns() + 25 * RP_NS_PER_S;
    while (!flow_complete(&there) || !flow_complete(&back)) {
        assert_true(now_ns() < until_ns);
        flow_send(&there);
        flow_send(&back);
        pair_step(&p);
        flow_recv(&there, 4);
        flow_recv(&back, 4);
    }
    assert_true(stats_of(&p.a).resent + stats_of(&p.b).resent > 0);
    printf("window %u: %u parcels, %llu sent again\n", window, 2 * total,
           (unsigned long long)(stats_of(&p.a).resent + stats_of(&p.b).resent));
    flow_close(&there);
    flow_close(&back);
    pair_close(&p);
}

static void loss_is_repaired(void **state) {
    (void)state;
    lose_packets(6, 150);
    lose_packets(1, 20);
}

int main(void) {
    const struct CMUnitTest zmq[] = {cmocka_unit_test(loss_is_repaired)};
    const struct CMUnitTest inproc[] = {
        cmocka_unit_test(rate_and_delay_hold),
        cmocka_unit_test(outages_hold_everything_back),
        cmocka_unit_test(a_line_comes_and_goes),
    };
    int failed = cmocka_run_group_tests(zmq, NULL, NULL);
    pair_inproc = true;
    return failed + cmocka_run_group_tests(inproc, NULL, NULL);
}
