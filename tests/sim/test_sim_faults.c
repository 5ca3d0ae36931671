/* Faults of a simulated run: drawn from a seed, written, read again. */
#include "expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/faults.h"

enum { NODES = 4, LEAST = 5 };
static const int64_t PHASE_NS = 2 * RP_NS_PER_S;
static const int64_t EARLY_NS = RP_NS_PER_S / 2;
static const int64_t GONE_NS = 90 * RP_NS_PER_S;  /* until somebody has to notice */
static const int64_t BORNE_NS = 25 * RP_NS_PER_S; /* and nobody is given up */
static const int64_t HUNG_NS = 320 * RP_NS_PER_S; /* a device is given up after 300 s at most */
static const int64_t WAIT_NS = 30 * RP_NS_PER_S;
static const uint32_t edges[][2] = {{0, 1}, {1, 2}, {2, 3}, {RP_SIM_HOST, 0}};

static void draw_faults_of(uint64_t seed, uint32_t may_lose, rp_sim_faults *out) {
    rp_rng rng = rp_rng_named(seed, "sim/faults");
    const rp_sim_field field = {.nodes = NODES,
                                .edges = edges,
                                .edge_count = 4,
                                .early_ns = EARLY_NS,
                                .phase_ns = PHASE_NS,
                                .least = LEAST,
                                .may_lose = may_lose,
                                .is_verified = true};
    rp_sim_faults_draw(&rng, &field, out);
}

static void draw_faults(uint64_t seed, rp_sim_faults *out) {
    draw_faults_of(seed, 0, out);
}

static bool is_outage(const rp_sim_fault *f) {
    return f->kind == RP_SIM_FAULT_SUSPEND || f->kind == RP_SIM_FAULT_HOST_STILL ||
           f->kind == RP_SIM_FAULT_PARTITION || f->kind == RP_SIM_FAULT_CLOG ||
           f->kind == RP_SIM_FAULT_STALL;
}

static void draws_within_bounds(void **state) {
    (void)state;
    bool seen[RP_SIM_FAULT_KINDS] = {false};
    uint32_t all_kinds = 0;
    uint32_t none_stops = 0;
    uint32_t many = 0;
    uint32_t in_state = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        rp_sim_faults faults;
        bool here[RP_SIM_FAULT_KINDS] = {false};
        uint32_t kinds = 0;
        bool may_stop = false;
        draw_faults(seed, &faults);
        assert_true(faults.count >= LEAST && faults.count <= 4 * LEAST);
        many += faults.count > 2 * LEAST;
        for (uint32_t i = 0; i < faults.count; i++) {
            const rp_sim_fault *f = &faults.fault[i];
            assert_true(f->at_ns >= 0 && f->at_ns < PHASE_NS);
            assert_true(f->for_ns > 0 && (f->for_ns <= PHASE_NS / 2 || f->for_ns == GONE_NS ||
                                          (is_outage(f) && f->for_ns <= BORNE_NS) ||
                                          (f->kind == RP_SIM_FAULT_HANG && f->for_ns <= HUNG_NS)));
            assert_true(f->in == RP_CONTROL_STATES || f->in < RP_CONTROL_RECOVER);
            in_state += f->in != RP_CONTROL_STATES;
            assert_true(f->for_ns != GONE_NS || f->kind == RP_SIM_FAULT_CRASH ||
                        f->kind == RP_SIM_FAULT_MOVE);
            assert_true(i == 0 || faults.fault[i - 1].at_ns <= f->at_ns);
            assert_true(rp_sim_fault_target(f->kind) != RP_SIM_TARGET_NODE || f->from < NODES);
            kinds += !here[f->kind];
            may_stop |= rp_sim_fault_may_stop(f, WAIT_NS) || rp_sim_fault_loses_board(f, WAIT_NS);
            here[f->kind] = seen[f->kind] = true;
        }
        assert_true(faults.fault[LEAST - 1].at_ns < EARLY_NS);
        all_kinds += kinds == RP_SIM_FAULT_KINDS;
        none_stops += !may_stop;
    }
    for (uint32_t k = 0; k < RP_SIM_FAULT_KINDS; k++) {
        /* Over many seeds every kind is drawn, but for what only a scenario asks for. */
        assert_int_equal(seen[k], k != RP_SIM_FAULT_INTERRUPT);
    }
    assert_int_equal(all_kinds, 0); /* a seed has a subset */
    assert_true(none_stops > 250);  /* and many must get on without a stop */
    assert_true(many > 50 && in_state > 1000);
}

/* Of an outage; less what may pass until a board is greeted again. */
static bool is_borne(double for_s, double wait_s) {
    const rp_sim_fault away = {.kind = RP_SIM_FAULT_CRASH, .for_ns = (int64_t)(for_s * 1e9)};
    const rp_sim_fault cut = {.kind = RP_SIM_FAULT_PARTITION, .for_ns = away.for_ns};
    const int64_t wait_ns = (int64_t)(wait_s * 1e9);
    const bool loses = rp_sim_fault_loses_board(&away, wait_ns);
    assert_int_equal(rp_sim_fault_may_stop(&cut, wait_ns), loses);
    return !loses;
}

static void an_outage_is_borne_as_long_as_boards_are_waited_for(void **state) {
    (void)state;
    assert_true(is_borne(3.7, 5) && !is_borne(3.8, 5));     /* greeted every 1.25 s */
    assert_true(is_borne(24.9, 30) && !is_borne(25.1, 30)); /* every 5 s */
    assert_true(is_borne(84.9, 90) && !is_borne(85.1, 90));
    assert_true(is_borne(0.4, 1) && !is_borne(3.1, 1)); /* not again */
}

/* A frame of the last moment of a delay comes later by the delay. */
static void a_delay_lasts_as_long_as_its_frames(void **state) {
    (void)state;
    const int64_t wait_ns = 5 * RP_NS_PER_S; /* 3.75 s are borne */
    rp_sim_fault late = {.kind = RP_SIM_FAULT_DELAY, .for_ns = 3 * RP_NS_PER_S, .amount = 700};
    assert_false(rp_sim_fault_may_stop(&late, wait_ns));
    late.amount = 800;
    assert_true(rp_sim_fault_may_stop(&late, wait_ns));
    late.kind = RP_SIM_FAULT_LOSS; /* its amount is a share */
    assert_false(rp_sim_fault_may_stop(&late, wait_ns));
}

/* Where boards may be lost, no more of them are in a run that must get on. */
static void boards_are_lost_where_enough_are_left(void **state) {
    (void)state;
    uint32_t lose_two = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        rp_sim_faults faults;
        uint32_t lost = 0;
        bool stops = false;
        draw_faults_of(seed, 2, &faults);
        for (uint32_t i = 0; i < faults.count; i++) {
            lost += rp_sim_fault_loses_board(&faults.fault[i], WAIT_NS);
            stops |= rp_sim_fault_may_stop(&faults.fault[i], WAIT_NS);
        }
        lose_two += lost == 2 && !stops;
    }
    assert_true(lose_two > 50);
}

/* As the file says them; the caller frees it. */
static char *text_of(const rp_sim_faults *faults) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    rp_sim_faults_write(faults, file);
    assert_int_equal(fclose(file), 0);
    return text;
}

static char *text_of_seed(uint64_t seed) {
    rp_sim_faults faults;
    draw_faults(seed, &faults);
    return text_of(&faults);
}

/* Where a board that is missed may be back in time, each run has one. */
static void a_board_comes_back(void **state) {
    (void)state;
    const int64_t back_ns = 13 * RP_NS_PER_S;
    const rp_sim_field field = {.nodes = NODES,
                                .edges = edges,
                                .edge_count = 4,
                                .early_ns = EARLY_NS,
                                .phase_ns = PHASE_NS,
                                .least = LEAST,
                                .may_lose = 1,
                                .back_ns = back_ns};
    for (uint64_t seed = 0; seed < 100; seed++) {
        rp_rng rng = rp_rng_named(seed, "sim/faults");
        rp_sim_faults faults;
        uint32_t back = 0;
        rp_sim_faults_draw(&rng, &field, &faults);
        for (uint32_t i = 0; i < faults.count; i++) {
            const rp_sim_fault *f = &faults.fault[i];
            back += f->kind == RP_SIM_FAULT_CRASH && f->for_ns >= back_ns / 5 &&
                    f->for_ns <= 2 * back_ns && f->at_ns < EARLY_NS;
        }
        assert_int_equal(back, 1);
    }
}

static void the_same_seed_draws_the_same(void **state) {
    (void)state;
    char *a = text_of_seed(7);
    char *b = text_of_seed(7);
    char *c = text_of_seed(8);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    free(a);
    free(b);
    free(c);
}

static rp_err read_text(rp_arena *arena, const char *text, rp_sim_faults *out) {
    char path[] = "/tmp/ringpipe-faults-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    const rp_err err = rp_sim_faults_read(arena, path, NODES, out);
    assert_int_equal(unlink(path), 0);
    return err;
}

static void a_written_file_reads_back(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "faults", 0);
    for (uint64_t seed = 0; seed < 50; seed++) {
        char *text = text_of_seed(seed);
        rp_sim_faults read;
        expect_ok(read_text(&arena, text, &read));
        char *again = text_of(&read);
        assert_string_equal(text, again);
        free(again);
        free(text);
    }
    rp_arena_finish(&arena);
}

static void mistakes_are_named(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"faults: 3\n", "expected a list"},
        {"faults: [{kind: rain, at_s: 1}]\n", "kind"},
        {"faults: [{kind: crash, node: 4, at_s: 1}]\n", "node"},
        {"faults: [{kind: crash, node: 1, at_s: 1, in: bed}]\n", "one of: start adopt hello"},
        {"faults: [{kind: crash, node: 0}]\n", "at_s"},
        {"faults: [{kind: loss, from: 0, to: 1, at_s: 1, amount: 2}]\n", "amount"},
        {"faults: [{kind: loss, from: 0, at_s: 1, amount: 0.5}]\n", "to: expected"},
        {"faults: [{kind: crash, node: 0, at_s: 1, every: 2}]\n", "every"},
    };
    rp_arena arena;
    rp_arena_init(&arena, "faults", 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rp_sim_faults faults;
        assert_int_equal(read_text(&arena, texts[i][0], &faults), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), texts[i][1]));
    }
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_within_bounds),
        cmocka_unit_test(an_outage_is_borne_as_long_as_boards_are_waited_for),
        cmocka_unit_test(a_delay_lasts_as_long_as_its_frames),
        cmocka_unit_test(boards_are_lost_where_enough_are_left),
        cmocka_unit_test(a_board_comes_back),
        cmocka_unit_test(the_same_seed_draws_the_same),
        cmocka_unit_test(a_written_file_reads_back),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
