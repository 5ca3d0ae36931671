#include <time.h>

#include "contract.h"
#include "transport/emulate.h"

/* One way over a line, on a stepped clock: what arrives when. */
typedef struct {
    contract_set s;
    rp_port *line; /* of the connecting end */
    uint64_t peer; /* that end, at the binding one */
} wire;

static const rp_link_profile perfect = {.rate_mbit = 0};

static void wire_open(wire *w, const rp_link_profile *profile, uint64_t seed) {
    w->peer = contract_join(&w->s);
    expect_ok(rp_emulate_wrap(&w->s.port[1], profile, rp_rng_named(seed, "line"), NULL));
    w->line = w->s.port[1];
}

static int64_t now_of(const wire *w) {
    return w->s.clock.stepped_ns;
}

static void set_time(wire *w, int64_t at) {
    rp_port_event event;
    w->s.clock.stepped_ns = at;
    while (w->line->kind->step(w->line, &event)) {
    }
}

static rp_err post_to(wire *w, uint32_t number, size_t bytes) {
    return contract_post(&w->s, 1, 0, contract_packet(number, 2, bytes));
}

/* Jumps from deadline to deadline until `until`; writes who arrived when. */
typedef struct {
    uint32_t number;
    int64_t at_ns;
} arrival;

static uint32_t collect_packets(wire *w, int64_t until, arrival *out, uint32_t most) {
    uint32_t count = 0;
    for (;;) {
        rp_packet packet;
        while (contract_take(&w->s, 0, &packet) == RP_OK) {
            assert_true(count < most);
            uint32_t number;
            memcpy(&number, packet.frame[0]->data, sizeof number);
            out[count++] = (arrival){number, now_of(w)};
            rp_packet_drop(&packet);
        }
        const int64_t next = w->line->kind->deadline_ns(w->line, now_of(w));
        if (next > until) {
            set_time(w, until);
            return count;
        }
        set_time(w, next > now_of(w) ? next : now_of(w) + 1);
    }
}

/* 10,004 bytes at 8 Mbit/s take 10.004 ms on the line, then 30 ms. */
static void rate_and_delay_are_exact(void **state) {
    (void)state;
    wire w;
    arrival got[8];
    const rp_link_profile profile = {.rate_mbit = 8, .delay_ms = 30};
    wire_open(&w, &profile, 1);
    const int64_t began = now_of(&w);
    for (uint32_t i = 0; i < 4; i++) {
        expect_ok(post_to(&w, i, 10000));
    }
    assert_int_equal(collect_packets(&w, began + RP_NS_PER_S, got, 8), 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(got[i].number, i);
        assert_int_equal(got[i].at_ns - began, (i + 1) * 10004000 + 30000000);
    }
    expect_close(rp_emulate_busy_s(w.line), 4 * 0.010004, 1e-12, 0);
    contract_close(&w.s);
}

static void jitter_keeps_order_within_its_bounds(void **state) {
    (void)state;
    wire w;
    arrival got[200];
    const rp_link_profile profile = {.delay_ms = 30, .jitter_ms = 10};
    wire_open(&w, &profile, 1);
    bool early = false;
    bool late = false;
    for (uint32_t i = 0; i < 200; i++) {
        const int64_t began = now_of(&w);
        expect_ok(post_to(&w, i, 1));
        assert_int_equal(collect_packets(&w, began + 50 * RP_NS_PER_MS, got, 200), 1);
        const int64_t took = got[0].at_ns - began;
        assert_in_range(took, 20 * RP_NS_PER_MS, 40 * RP_NS_PER_MS);
        early = early || took < 25 * RP_NS_PER_MS;
        late = late || took > 35 * RP_NS_PER_MS;
    }
    assert_true(early && late);
    contract_close(&w.s);
}

/* Posts `total` packets a millisecond apart, a few bytes each. */
static uint32_t send_stream(wire *w, uint32_t total, arrival *got, uint32_t most) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < total; i++) {
        const int64_t at = now_of(w) + RP_NS_PER_MS;
        while (post_to(w, i, 1) == RP_ERR_AGAIN) {
            count += collect_packets(w, now_of(w) + RP_NS_PER_MS, got + count, most - count);
        }
        count += collect_packets(w, at, got + count, most - count);
    }
    return count + collect_packets(w, now_of(w) + 2 * RP_NS_PER_S, got + count, most - count);
}

enum { STREAM = 4000 };
static arrival first[2 * STREAM];
static arrival second[2 * STREAM];

static void loss_has_its_share(void **state) {
    (void)state;
    wire w;
    const rp_link_profile profile = {.loss = 0.2};
    wire_open(&w, &profile, 3);
    const uint32_t count = send_stream(&w, STREAM, first, 2 * STREAM);
    assert_in_range(count, STREAM * 77 / 100, STREAM * 83 / 100);
    for (uint32_t i = 1; i < count; i++) {
        assert_true(first[i].number > first[i - 1].number);
    }
    contract_close(&w.s);
}

static void duplicates_follow_their_first(void **state) {
    (void)state;
    wire w;
    const rp_link_profile profile = {.duplicate = 0.25};
    wire_open(&w, &profile, 3);
    const uint32_t count = send_stream(&w, STREAM, first, 2 * STREAM);
    assert_in_range(count, STREAM * 122 / 100, STREAM * 128 / 100);
    for (uint32_t i = 1; i < count; i++) {
        assert_in_range(first[i].number - first[i - 1].number, 0, 1);
    }
    assert_int_equal(first[count - 1].number, STREAM - 1);
    contract_close(&w.s);
}

/* Each arrives once; some later than ones behind it. */
static void reordering_loses_nothing(void **state) {
    (void)state;
    wire w;
    static uint8_t seen[STREAM];
    const rp_link_profile profile = {.reorder = 0.2, .delay_ms = 1};
    memset(seen, 0, sizeof seen);
    wire_open(&w, &profile, 3);
    const uint32_t count = send_stream(&w, STREAM, first, 2 * STREAM);
    assert_int_equal(count, STREAM);
    uint32_t overtaken = 0;
    for (uint32_t i = 0; i < count; i++) {
        seen[first[i].number]++;
        overtaken += i > 0 && first[i].number < first[i - 1].number;
    }
    for (uint32_t i = 0; i < STREAM; i++) {
        assert_int_equal(seen[i], 1);
    }
    assert_in_range(overtaken, STREAM / 50, STREAM / 4);
    contract_close(&w.s);
}

/* One bit in every packet; what the sender holds stays as it is. */
static void corruption_flips_one_bit(void **state) {
    (void)state;
    wire w;
    const rp_link_profile profile = {.corrupt = 0.9};
    wire_open(&w, &profile, 5);
    uint32_t damaged = 0;
    uint32_t heads = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        rp_packet sent = contract_packet(i, 3, 4);
        rp_packet came;
        expect_ok(w.line->kind->post(w.line, &sent));
        assert_int_equal(contract_check(&sent, 3, 4), i);
        expect_ok(contract_take(&w.s, 0, &came));
        assert_int_equal(came.count, 3);
        uint32_t flipped = 0;
        for (uint32_t k = 0; k < 3; k++) {
            assert_int_equal(came.frame[k]->bytes, sent.frame[k]->bytes);
            for (size_t at = 0; at < came.frame[k]->bytes; at++) {
                const uint8_t *a = came.frame[k]->data;
                const uint8_t *b = sent.frame[k]->data;
                const uint32_t bits = (uint32_t)__builtin_popcount(a[at] ^ b[at]);
                flipped += bits;
                heads += k == 0 ? bits : 0;
            }
        }
        assert_in_range(flipped, 0, 1);
        damaged += flipped;
        rp_packet_drop(&came);
        rp_packet_drop(&sent);
    }
    assert_in_range(damaged, 870, 930);
    assert_in_range(heads, damaged / 8, damaged / 2); /* 4 of 16 bytes */
    contract_close(&w.s);
}

/* every 0.5 s for 0.2 s, from 0.5 s on */
static bool is_within(int64_t since_ns) {
    const int64_t ms = since_ns / RP_NS_PER_MS;
    return ms >= 500 && ms % 500 < 200;
}

static void outages_hold_back(void **state) {
    (void)state;
    wire w;
    const rp_link_profile profile = {.outage = {0.5, 0.2}};
    wire_open(&w, &profile, 1);
    const int64_t began = now_of(&w);
    const uint32_t count = send_stream(&w, 1500, first, 2 * STREAM);
    assert_int_equal(count, 1500);
    uint32_t between = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(first[i].number, i);
        assert_false(is_within(first[i].at_ns - began));
        between += first[i].at_ns - began > 700 * RP_NS_PER_MS;
    }
    assert_true(between > 500);
    contract_close(&w.s);
}

/* The rate holds what waits for the end of an outage. */
static void outages_end_at_the_rate(void **state) {
    (void)state;
    wire w;
    arrival got[CONTRACT_QUEUE];
    const rp_link_profile profile = {.rate_mbit = 8, .outage = {1, 0.5}};
    wire_open(&w, &profile, 1);
    const int64_t began = now_of(&w);
    set_time(&w, began + RP_NS_PER_S);
    for (uint32_t i = 0; i < 5; i++) {
        expect_ok(post_to(&w, i, 996)); /* 1 ms each */
    }
    assert_int_equal(collect_packets(&w, began + 2 * RP_NS_PER_S, got, CONTRACT_QUEUE), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(got[i].number, i);
        assert_int_equal(got[i].at_ns - began, (1501 + i) * RP_NS_PER_MS);
    }
    contract_close(&w.s);
}

static void a_cut_loses_everything(void **state) {
    (void)state;
    wire w;
    const rp_link_profile profile = {.cut = true};
    wire_open(&w, &perfect, 1);
    rp_emulate_set(w.line, &profile, rp_rng_named(1, "line"));
    assert_int_equal(send_stream(&w, 100, first, 2 * STREAM), 0);
    rp_emulate_set(w.line, &perfect, rp_rng_named(1, "line"));
    assert_int_equal(send_stream(&w, 100, first, 2 * STREAM), 100);
    contract_close(&w.s);
}

/* Both ends send 4 x 10 ms at once: over one medium the last arrives after 80 ms, else after 40. */
static void two_ways_share_the_rate(void **state) {
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        wire w;
        rp_media *media;
        const rp_link_profile profile = {.rate_mbit = 8, .shared = "air", .medium = 5};
        w.peer = contract_join(&w.s);
        expect_ok(rp_media_new(&w.s.arena, &w.s.clock, &media));
        for (int i = 0; i < 2; i++) {
            expect_ok(rp_emulate_wrap(&w.s.port[i], &profile, rp_rng_named(1, "line"),
                                      shared ? media : NULL));
        }
        w.line = w.s.port[1];
        contract_round(&w.s); /* connections are told */
        const int64_t began = now_of(&w);
        for (uint32_t i = 0; i < 4; i++) {
            expect_ok(contract_post(&w.s, 1, 0, contract_packet(i, 2, 9996)));
            expect_ok(contract_post(&w.s, 0, w.peer, contract_packet(i, 2, 9996)));
        }
        const int64_t ends[2] = {w.s.port[0]->kind->deadline_ns(w.s.port[0], began),
                                 w.s.port[1]->kind->deadline_ns(w.s.port[1], began)};
        assert_int_equal(ends[1] - began, 10 * RP_NS_PER_MS);
        assert_int_equal(ends[0] - began, (shared ? 20 : 10) * RP_NS_PER_MS);
        uint32_t came = 0;
        int64_t last = 0;
        while (came < 8) {
            contract_round(&w.s);
            rp_packet packet;
            for (int i = 0; i < 2; i++) {
                while (contract_take(&w.s, i, &packet) == RP_OK) {
                    came++;
                    last = now_of(&w);
                    rp_packet_drop(&packet);
                }
            }
        }
        const int64_t want = (shared ? 80 : 40) * RP_NS_PER_MS;
        assert_in_range(last - began, want, want + RP_NS_PER_MS);
        if (!shared) { /* each end has counted what it took: the next one waits for it */
            const int64_t now = now_of(&w);
            expect_ok(contract_post(&w.s, 1, 0, contract_packet(9, 2, 9996)));
            const int64_t next = w.line->kind->deadline_ns(w.line, now);
            assert_in_range(next - now, 45 * RP_NS_PER_MS, 51 * RP_NS_PER_MS);
        }
        contract_close(&w.s);
    }
}

/* Each once, and the time may have begun before the line was set. */
static void outages_come_at_their_times(void **state) {
    (void)state;
    wire w;
    arrival got[8];
    const rp_link_profile profile = {.outages = 2, .away = {{0.5, 0.25}, {1, 1}}, .since_s = 0.125};
    wire_open(&w, &profile, 1);
    const int64_t began = now_of(&w) - 125 * RP_NS_PER_MS;
    const int64_t sent[] = {400, 600, 800, 1500, 2200};
    const int64_t came[] = {400, 750, 800, 2000, 2200};
    for (uint32_t i = 0; i < 5; i++) {
        set_time(&w, began + sent[i] * RP_NS_PER_MS);
        expect_ok(post_to(&w, i, 1));
        const int64_t until = began + (came[i] + 10) * RP_NS_PER_MS;
        assert_int_equal(collect_packets(&w, until, got, 8), 1);
        assert_int_equal(got[0].at_ns - began, came[i] * RP_NS_PER_MS);
    }
    rp_emulate_begin(w.line); /* and all of them again */
    const int64_t again = now_of(&w);
    set_time(&w, again + 600 * RP_NS_PER_MS);
    expect_ok(post_to(&w, 9, 1));
    assert_int_equal(collect_packets(&w, again + RP_NS_PER_S, got, 8), 1);
    assert_int_equal(got[0].at_ns - again, 750 * RP_NS_PER_MS);
    contract_close(&w.s);
}

/* 100 kB at 0.8 Mbit/s are a second: 0.5 s, a stop of 1 s, and what is left at twice the rate; it
 * is as late as the trace says when the last byte leaves. Later nothing arrives. */
static void a_line_follows_its_trace(void **state) {
    (void)state;
    static const rp_trace_point point[] = {
        {0, 0.8, 10, 0}, {1, 0, 20, 0}, {2, 1.6, 50, 0}, {4, 8, 5, 0.9}};
    const rp_link_trace trace = {.has_rate = true,
                                 .has_delay = true,
                                 .has_loss = true,
                                 .period_s = 1000,
                                 .count = 4,
                                 .point = point};
    wire w;
    arrival got[1000];
    const rp_link_profile profile = {.rate_mbit = 1, .delay_ms = 999, .trace = &trace};
    wire_open(&w, &profile, 1);
    const int64_t began = now_of(&w);
    set_time(&w, began + 500 * RP_NS_PER_MS);
    expect_ok(post_to(&w, 0, 99996)); /* with its number */
    assert_int_equal(collect_packets(&w, began + 3 * RP_NS_PER_S, got, 8), 1);
    assert_int_equal(got[0].at_ns - began, 2300 * RP_NS_PER_MS);
    expect_close(rp_emulate_busy_s(w.line), 1.75, 1e-9, 0);
    set_time(&w, began + 5 * RP_NS_PER_S);
    uint32_t came = 0;
    for (uint32_t i = 0; i < 500; i++) {
        expect_ok(post_to(&w, i, 1));
        came += collect_packets(&w, now_of(&w) + 10 * RP_NS_PER_MS, got, 1000);
    }
    assert_in_range(came, 20, 90);
    contract_close(&w.s);
}

/* The same seed: the same packets at the same times. Another seed: not. */
static void chance_is_the_seed(void **state) {
    (void)state;
    const rp_link_profile profile = {.rate_mbit = 8,
                                     .delay_ms = 3,
                                     .jitter_ms = 2,
                                     .loss = 0.1,
                                     .duplicate = 0.1,
                                     .reorder = 0.1,
                                     .corrupt = 0.1,
                                     .outage = {0.5, 0.1}};
    uint32_t count[3];
    for (uint64_t i = 0; i < 3; i++) {
        wire w;
        wire_open(&w, &profile, i == 2 ? 12 : 11);
        count[i] = send_stream(&w, STREAM, i ? second : first, 2 * STREAM);
        contract_close(&w.s);
        if (i) {
            const bool same =
                count[i] == count[0] && memcmp(first, second, count[0] * sizeof *first) == 0;
            assert_int_equal(same, i == 1);
        }
    }
}

/* What waits keeps its place when the profile changes. */
static void a_changed_line_keeps_order(void **state) {
    (void)state;
    wire w;
    arrival got[8];
    const rp_link_profile slow = {.delay_ms = 500};
    wire_open(&w, &perfect, 1);
    const int64_t began = now_of(&w);
    expect_ok(post_to(&w, 0, 1));
    rp_emulate_set(w.line, &slow, rp_rng_named(1, "line"));
    expect_ok(post_to(&w, 1, 1));
    rp_emulate_set(w.line, &perfect, rp_rng_named(1, "line"));
    expect_ok(post_to(&w, 2, 1));
    assert_int_equal(collect_packets(&w, began + RP_NS_PER_S, got, 8), 3);
    assert_int_equal(got[0].at_ns, began);
    assert_int_equal(got[1].at_ns - began, 500 * RP_NS_PER_MS);
    assert_int_equal(got[2].at_ns - began, 500 * RP_NS_PER_MS);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(got[i].number, i);
    }
    contract_close(&w.s);
}

/* A simulation sets the lines of a node's ports while they are open. */
static void ports_of_a_transport_are_found(void **state) {
    (void)state;
    contract_set s;
    rp_packet packet;
    const contract_kind saved = contract;
    contract.profile = &perfect;
    const uint64_t peer = contract_join(&s);
    contract = saved;
    rp_port *line = rp_emulate_next(s.transport[1], NULL);
    assert_ptr_equal(line, s.port[1]);
    assert_null(rp_emulate_next(s.transport[1], line));
    const rp_link_profile cut = {.cut = true};
    rp_emulate_set(line, &cut, rp_rng_named(1, "line"));
    assert_true(rp_emulate_profile(line)->cut);
    expect_ok(contract_post(&s, 1, 0, contract_packet(1, 1, 0)));
    expect_err(contract_take(&s, 0, &packet), RP_ERR_AGAIN);
    expect_ok(contract_post(&s, 0, peer, contract_packet(1, 1, 0)));
    expect_ok(contract_take(&s, 1, &packet));
    rp_packet_drop(&packet);
    contract_close(&s);
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    const rp_link_profile slow = {.rate_mbit = 500, .delay_ms = 3, .jitter_ms = 1};
    const struct CMUnitTest cases[] = {CONTRACT_CASES};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_and_delay_are_exact),
        cmocka_unit_test(jitter_keeps_order_within_its_bounds),
        cmocka_unit_test(loss_has_its_share),
        cmocka_unit_test(duplicates_follow_their_first),
        cmocka_unit_test(reordering_loses_nothing),
        cmocka_unit_test(corruption_flips_one_bit),
        cmocka_unit_test(outages_hold_back),
        cmocka_unit_test(outages_end_at_the_rate),
        cmocka_unit_test(a_cut_loses_everything),
        cmocka_unit_test(two_ways_share_the_rate),
        cmocka_unit_test(outages_come_at_their_times),
        cmocka_unit_test(a_line_follows_its_trace),
        cmocka_unit_test(chance_is_the_seed),
        cmocka_unit_test(a_changed_line_keeps_order),
        cmocka_unit_test(ports_of_a_transport_are_found),
    };
    contract = (contract_kind){.name = "perfect line over inproc", .profile = &perfect};
    int failed = cmocka_run_group_tests(cases, NULL, NULL);
    contract = (contract_kind){.name = "slow line over inproc", .profile = &slow};
    failed += cmocka_run_group_tests(cases, NULL, NULL);
    contract = (contract_kind){.name = "inproc"};
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
