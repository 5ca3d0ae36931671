/* Which peers of a link that is needed are silent, on a virtual clock. */
#include "pair.h"

#include "link/watch.h"

static const int64_t ROUND_NS = 50 * RP_NS_PER_MS;

static void open_pair(pair *p, const rp_link_options *options) {
    pair_begin(p, rp_clock_stepped(RP_NS_PER_S));
    bind_end(p, *options, "inproc://watch");
    connect_end(p, *options, "inproc://watch");
}

/* Rounds until `end` has a silent peer, or `most_ns` have gone by. */
static int64_t watch(pair *p, end *who, bool is_cut, int64_t most_ns) {
    const end *peer = who == &p->a ? &p->b : &p->a;
    const int64_t begin_ns = rp_clock_now_ns(&p->clock);
    rp_link_watch own;
    rp_link_watch_begin(&own, who->link, begin_ns);
    for (;;) {
        const int64_t now_ns = rp_clock_now_ns(&p->clock);
        expect_ok(rp_link_step(who->link));
        rp_link_before_wait(who->link);
        if (!is_cut) {
            expect_ok(rp_link_step(peer->link));
            rp_link_before_wait(peer->link);
        }
        if (rp_link_is_silent(&own, who->link, now_ns) || now_ns - begin_ns >= most_ns) {
            return now_ns - begin_ns;
        }
        p->clock.stepped_ns += ROUND_NS;
    }
}

static void who_answers_is_not_silent(void **state) {
    (void)state;
    const rp_link_options options = pair_options(4);
    pair p;
    open_pair(&p, &options);
    assert_int_equal(watch(&p, &p.a, false, 600 * RP_NS_PER_S), 600 * RP_NS_PER_S);
    assert_int_equal(watch(&p, &p.b, false, 600 * RP_NS_PER_S), 600 * RP_NS_PER_S);
    pair_close(&p);
}

/* Before a first contact, and behind it. */
static void who_does_not_answer_is_silent(void **state) {
    (void)state;
    rp_link_options options = pair_options(4);
    options.part_bytes_max = 1000;
    for (uint32_t met = 0; met < 2; met++) {
        pair p;
        open_pair(&p, &options);
        if (met) {
            (void)watch(&p, &p.a, false, 10 * RP_NS_PER_S);
        }
        end *ends[] = {&p.a, &p.b};
        for (uint32_t i = 0; i < 2; i++) {
            assert_in_range(watch(&p, ends[i], true, 600 * RP_NS_PER_S), RP_LINK_SILENT_NS,
                            RP_LINK_SILENT_NS + 4 * RP_NS_PER_S);
        }
        pair_close(&p);
    }
}

/* A part of 1 MiB takes 8.4 s at 1 Mbit/s, 84 s at a tenth of it; an outage is no silence. */
static void a_slow_line_has_more_time(void **state) {
    (void)state;
    rp_link_options options = pair_options(4);
    pair p;
    open_pair(&p, &options);
    assert_in_range(rp_link_slow_ns(p.a.link), 8 * RP_NS_PER_S, 9 * RP_NS_PER_S);
    const rp_link_profile slow = {
        .rate_mbit = 0.1, .delay_ms = 500, .outage = {.every_s = 60, .for_s = 20}};
    expect_ok(rp_link_emulate(p.a.link, &slow));
    assert_in_range(rp_link_slow_ns(p.a.link), 104 * RP_NS_PER_S, 106 * RP_NS_PER_S);
    const rp_link_profile fast = {.rate_mbit = 1000};
    expect_ok(rp_link_emulate(p.a.link, &fast));
    assert_in_range(rp_link_slow_ns(p.a.link), 8 * RP_NS_PER_S, 9 * RP_NS_PER_S);
    pair_close(&p);
}

static void a_clock_that_jumps_makes_nobody_silent(void **state) {
    (void)state;
    const rp_link_options options = pair_options(4);
    rp_link_watch own;
    pair p;
    open_pair(&p, &options);
    rp_link_watch_begin(&own, p.a.link, rp_clock_now_ns(&p.clock));
    p.clock.stepped_ns += 1000000 * RP_NS_PER_S;
    assert_false(rp_link_is_silent(&own, p.a.link, rp_clock_now_ns(&p.clock)));
    pair_close(&p);
}

int main(void) {
    pair_inproc = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_answers_is_not_silent),
        cmocka_unit_test(who_does_not_answer_is_silent),
        cmocka_unit_test(a_slow_line_has_more_time),
        cmocka_unit_test(a_clock_that_jumps_makes_nobody_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
