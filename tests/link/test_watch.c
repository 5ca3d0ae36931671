/* Which peers of a link that is needed are silent, on a virtual clock. */
#include "pair.h"

#include "link/watch.h"

static const int64_t ROUND_NS = 50 * RP_NS_PER_MS;

static void open_pair(pair *p, const rp_link_options *options) {
    pair_begin(p, rp_clock_stepped(RP_NS_PER_S));
    bind_end(p, *options, "inproc://watch");
    connect_end(p, *options, "inproc://watch");
}

typedef struct {
    int64_t silent_ns, lost_ns; /* INT64_MAX: never */
    uint32_t reopened;
} seen;

/* Looks at its peer, which looks at the link once in peer_every_ns (0: never), until that is lost
 * or most_ns have gone by. */
static seen watch(pair *p, end *who, int64_t peer_every_ns, int64_t most_ns) {
    const end *peer = who == &p->a ? &p->b : &p->a;
    const int64_t begin_ns = rp_clock_now_ns(&p->clock);
    int64_t peer_ns = begin_ns;
    seen out = {INT64_MAX, INT64_MAX, 0};
    rp_link_watch own;
    rp_link_watch_begin(&own, who->link, begin_ns);
    for (int64_t now_ns = begin_ns; now_ns - begin_ns < most_ns && out.lost_ns == INT64_MAX;
         now_ns = rp_clock_now_ns(&p->clock)) {
        expect_ok(rp_link_step(who->link));
        rp_link_before_wait(who->link);
        if (peer_every_ns && now_ns - peer_ns >= peer_every_ns) {
            peer_ns = now_ns;
            expect_ok(rp_link_step(peer->link));
            rp_link_before_wait(peer->link);
        }
        const rp_watch_state watched = rp_link_look(&own, who->link, now_ns);
        assert_int_not_equal(watched, RP_WATCH_STUCK);
        if (watched != RP_WATCH_WELL && out.silent_ns == INT64_MAX) {
            out.silent_ns = now_ns - begin_ns;
        }
        out.lost_ns = watched == RP_WATCH_LOST ? now_ns - begin_ns : out.lost_ns;
        out.reopened = own.reopened > out.reopened ? own.reopened : out.reopened;
        p->clock.stepped_ns += ROUND_NS;
    }
    return out;
}

static void expect_well(const seen *got) {
    assert_true(got->silent_ns == INT64_MAX && got->lost_ns == INT64_MAX);
    assert_int_equal(got->reopened, 0);
}

static void who_answers_is_not_silent(void **state) {
    (void)state;
    const rp_link_options options = pair_options(4);
    pair p;
    open_pair(&p, &options);
    end *ends[] = {&p.a, &p.b};
    for (uint32_t i = 0; i < 2; i++) {
        const seen got = watch(&p, ends[i], ROUND_NS, 600 * RP_NS_PER_S);
        expect_well(&got);
    }
    pair_close(&p);
}

static void who_never_came_has_more_time(void **state) {
    (void)state;
    rp_link_options options = pair_options(4);
    options.part_bytes_max = 1000;
    pair p;
    open_pair(&p, &options);
    end *ends[] = {&p.a, &p.b};
    for (uint32_t i = 0; i < 2; i++) {
        const seen got = watch(&p, ends[i], 0, 600 * RP_NS_PER_S);
        assert_in_range(got.lost_ns, RP_LINK_MEET_NS, RP_LINK_MEET_NS + RP_NS_PER_S);
    }
    pair_close(&p);
}

static void who_does_not_answer_is_silent(void **state) {
    (void)state;
    rp_link_options options = pair_options(4);
    options.part_bytes_max = 1000;
    for (uint32_t i = 0; i < 2; i++) {
        pair p;
        open_pair(&p, &options);
        end *ends[] = {&p.a, &p.b};
        (void)watch(&p, ends[i], ROUND_NS, 10 * RP_NS_PER_S);
        const seen got = watch(&p, ends[i], 0, 600 * RP_NS_PER_S);
        assert_in_range(got.silent_ns, RP_LINK_SILENT_NS, RP_LINK_SILENT_NS + RP_NS_PER_S);
        assert_in_range(got.lost_ns, RP_LINK_LOST_NS, RP_LINK_LOST_NS + RP_NS_PER_S);
        assert_true(i == 0 ? got.reopened == 0 : got.reopened >= 2); /* who connects tries again */
        pair_close(&p);
    }
}

/* Its machine says that nobody listens there: sooner than silence would tell. */
static void who_has_ended_is_absent(void **state) {
    (void)state;
    const rp_link_options options = pair_options(4);
    pair p;
    open_pair(&p, &options);
    (void)watch(&p, &p.b, ROUND_NS, 10 * RP_NS_PER_S);
    assert_false(rp_link_health_of(p.b.link).absent);
    rp_link_close(&p.a.link);
    for (uint32_t i = 0; i < 10; i++) {
        expect_ok(rp_link_step(p.b.link));
        p.clock.stepped_ns += ROUND_NS;
    }
    assert_true(rp_link_health_of(p.b.link).absent);
    bind_end(&p, options, "inproc://watch");
    (void)watch(&p, &p.b, ROUND_NS, 1 * RP_NS_PER_S);
    assert_false(rp_link_health_of(p.b.link).absent);
    pair_close(&p);
}

/* What is lost in one direction is missed at both ends: the frames that come on, probes and pings
 * of the peer, answer nothing. */
static void one_direction_is_enough(void **state) {
    (void)state;
    static const rp_link_profile cut = {.cut = true};
    static const rp_link_profile none = {0};
    rp_link_options options = pair_options(4);
    options.part_bytes_max = 1000;
    pair p;
    open_pair(&p, &options);
    end *ends[] = {&p.a, &p.b};
    for (uint32_t i = 0; i < 4; i++) {
        (void)watch(&p, &p.b, ROUND_NS, 10 * RP_NS_PER_S);
        expect_ok(rp_link_emulate(ends[i / 2]->link, &cut));
        const seen got = watch(&p, ends[i % 2], ROUND_NS, 600 * RP_NS_PER_S);
        assert_in_range(got.silent_ns, RP_LINK_SILENT_NS, RP_LINK_SILENT_NS + RP_NS_PER_S);
        assert_in_range(got.lost_ns, RP_LINK_LOST_NS, RP_LINK_LOST_NS + RP_NS_PER_S);
        expect_ok(rp_link_emulate(ends[i / 2]->link, &none));
    }
    assert_false(stats_of(&p.a).peer_restarted || stats_of(&p.b).peer_restarted);
    pair_close(&p);
}

/* A peer that sits in one op for 8 s has said so once it has come out of the first. */
static void who_is_busy_has_more_time(void **state) {
    (void)state;
    rp_link_options options = pair_options(4);
    options.part_bytes_max = 1000;
    pair p;
    open_pair(&p, &options);
    (void)watch(&p, &p.b, ROUND_NS, 10 * RP_NS_PER_S);
    seen got = watch(&p, &p.b, 8 * RP_NS_PER_S, 20 * RP_NS_PER_S);
    assert_in_range(got.silent_ns, RP_LINK_SILENT_NS, RP_LINK_SILENT_NS + RP_NS_PER_S);
    assert_true(got.lost_ns == INT64_MAX);
    got = watch(&p, &p.b, 8 * RP_NS_PER_S, 200 * RP_NS_PER_S);
    expect_well(&got);
    got = watch(&p, &p.b, 0, 200 * RP_NS_PER_S); /* but not for ever */
    assert_in_range(got.lost_ns, 8 * RP_NS_PER_S, 8 * RP_NS_PER_S + 5 * RP_LINK_LOST_NS);
    pair_close(&p);
}

/* A satellite: an answer takes 2 s from the first one on. */
static void a_long_way_has_more_time(void **state) {
    (void)state;
    static const rp_link_profile far = {.delay_ms = 1000, .jitter_ms = 300};
    rp_link_options options = pair_options(4);
    options.part_bytes_max = 1000;
    options.emulate = far;
    pair p;
    open_pair(&p, &options);
    (void)watch(&p, &p.b, ROUND_NS, 10 * RP_NS_PER_S);
    for (uint32_t i = 0; i < 2; i++) {
        const seen got = watch(&p, i ? &p.a : &p.b, ROUND_NS, 600 * RP_NS_PER_S);
        expect_well(&got);
    }
    pair_close(&p);
}

/* A part of 1 MiB takes 8.4 s at 1 Mbit/s, 84 s at a tenth of it; an outage is no silence. Where
 * bytes on their way are seen, only the line that is emulated counts. */
static void a_slow_line_has_more_time(void **state) {
    (void)state;
    rp_link_options options = pair_options(4);
    pair p;
    open_pair(&p, &options);
    assert_in_range(rp_link_slow_ns(p.a.link, false), 8 * RP_NS_PER_S, 9 * RP_NS_PER_S);
    assert_int_equal(rp_link_slow_ns(p.a.link, true), 0);
    const rp_link_profile slow = {
        .rate_mbit = 0.1, .delay_ms = 500, .outage = {.every_s = 60, .for_s = 20}};
    expect_ok(rp_link_emulate(p.a.link, &slow));
    for (uint32_t known = 0; known < 2; known++) {
        assert_in_range(rp_link_slow_ns(p.a.link, known), 104 * RP_NS_PER_S, 106 * RP_NS_PER_S);
    }
    rp_link_close(&p.b.link);
    options.far = slow; /* the same of what the other end sends */
    connect_end(&p, options, "inproc://watch");
    assert_in_range(rp_link_slow_ns(p.b.link, true), 104 * RP_NS_PER_S, 106 * RP_NS_PER_S);
    const rp_link_profile fast = {.rate_mbit = 1000};
    expect_ok(rp_link_emulate(p.a.link, &fast));
    assert_in_range(rp_link_slow_ns(p.a.link, false), 8 * RP_NS_PER_S, 9 * RP_NS_PER_S);
    assert_in_range(rp_link_slow_ns(p.a.link, true), 8 * RP_NS_PER_MS, 9 * RP_NS_PER_MS);
    pair_close(&p);
}

/* What is sent and not acked has the time that it takes at 1 Mbit/s, while no rate is known. */
static void what_is_on_its_way_has_its_time(void **state) {
    (void)state;
    static const uint8_t bytes[125000];
    const rp_link_options options = pair_options(4);
    pair p;
    open_pair(&p, &options);
    (void)watch(&p, &p.b, ROUND_NS, 10 * RP_NS_PER_S);
    expect_ok(send_label(p.b.link, 1, bytes, sizeof bytes, true, NULL, NULL));
    assert_in_range(rp_link_slow_ns(p.b.link, true), 990 * RP_NS_PER_MS, 1010 * RP_NS_PER_MS);
    pair_close(&p);
}

static void a_clock_that_jumps_makes_nobody_silent(void **state) {
    (void)state;
    const rp_link_options options = pair_options(4);
    pair p;
    open_pair(&p, &options);
    (void)watch(&p, &p.b, ROUND_NS, 10 * RP_NS_PER_S);
    for (uint32_t i = 0; i < 10; i++) {
        p.clock.stepped_ns += 1000000 * RP_NS_PER_S; /* with a ping on its way */
        const seen got = watch(&p, &p.b, ROUND_NS, 5 * RP_NS_PER_S);
        expect_well(&got);
    }
    const seen got = watch(&p, &p.b, 0, 600 * RP_NS_PER_S);
    assert_in_range(got.lost_ns, RP_LINK_LOST_NS, 60 * RP_NS_PER_S);
    pair_close(&p);
}

static void pair_rounds(pair *p) {
    expect_ok(rp_link_step(p->a.link));
    rp_link_before_wait(p->a.link);
    expect_ok(rp_link_step(p->b.link));
    rp_link_before_wait(p->b.link);
    p->clock.stepped_ns += ROUND_NS;
}

/* The peer answers, and what it is sent comes damaged each time, or not at all. */
static void who_gets_nothing_whole_is_stuck(void **state) {
    (void)state;
    static const uint8_t bytes[4000];
    static const rp_link_profile bad = {.mtu_bytes = 2000};
    static const rp_link_profile none = {0};
    const rp_link_options options = pair_options(4);
    rp_link_watch own;
    pair p;
    open_pair(&p, &options);
    (void)watch(&p, &p.b, ROUND_NS, 10 * RP_NS_PER_S);
    expect_ok(rp_link_emulate(p.b.link, &bad));
    expect_ok(send_label(p.b.link, 1, bytes, sizeof bytes, true, NULL, NULL));
    rp_link_watch_begin(&own, p.b.link, p.clock.stepped_ns);
    rp_watch_state watched = RP_WATCH_WELL;
    const int64_t until_ns = p.clock.stepped_ns + 60 * RP_NS_PER_S;
    while (watched == RP_WATCH_WELL && p.clock.stepped_ns < until_ns) {
        pair_rounds(&p);
        watched = rp_link_look(&own, p.b.link, p.clock.stepped_ns);
    }
    assert_int_equal(watched, RP_WATCH_STUCK);
    expect_ok(rp_link_emulate(p.b.link, &none));
    for (uint32_t i = 0; i < 200; i++) {
        pair_rounds(&p);
    }
    const seen got = watch(&p, &p.b, ROUND_NS, 10 * RP_NS_PER_S);
    expect_well(&got);
    assert_false(rp_link_health_of(p.b.link).stuck);
    assert_int_equal(stats_of(&p.b).unacked, 0);
    pair_close(&p);
}

int main(void) {
    pair_inproc = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_answers_is_not_silent),
        cmocka_unit_test(who_does_not_answer_is_silent),
        cmocka_unit_test(who_never_came_has_more_time),
        cmocka_unit_test(one_direction_is_enough),
        cmocka_unit_test(who_is_busy_has_more_time),
        cmocka_unit_test(a_long_way_has_more_time),
        cmocka_unit_test(a_slow_line_has_more_time),
        cmocka_unit_test(what_is_on_its_way_has_its_time),
        cmocka_unit_test(who_gets_nothing_whole_is_stuck),
        cmocka_unit_test(who_has_ended_is_absent),
        cmocka_unit_test(a_clock_that_jumps_makes_nobody_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
