/* `ringpipe boards warm` without a board: rounds of spares in places, the deadline, faults. */
#include "expect.h"

#include <string.h>

#include "base/arena.h"
#include "warm/warm.h"

enum { PLACES = 3, SPARES_MOST = 7, WITHIN_S = 100 };

static rp_arena arena;
static rp_roster_entry roster[PLACES + SPARES_MOST];
static rp_board_state board[PLACES];
static rp_runfile run;
static rp_ring ring;
static char text[4096];
static FILE *result;
static rp_warm *warm;
static char names[PLACES + SPARES_MOST][8];

static void open_warm(uint32_t spares, bool as_json) {
    memset(board, 0, sizeof board);
    memset(text, 0, sizeof text);
    for (uint32_t i = 0; i < PLACES + spares; i++) {
        (void)snprintf(names[i], sizeof names[i], "b%u", i);
        roster[i] = (rp_roster_entry){.name = names[i], .place = i};
    }
    for (uint32_t k = 0; k < PLACES; k++) {
        board[k] = (rp_board_state){.name = names[k]};
    }
    run = (rp_runfile){.boards = PLACES, .spares = spares, .roster = roster};
    ring = (rp_ring){.run = &run, .board = board, .count = PLACES, .now_ns = 5 * RP_NS_PER_S};
    result = fmemopen(text, sizeof text, "w");
    assert_non_null(result);
    expect_ok(rp_warm_open(
        &arena,
        &(rp_warm_needs){
            .run = &run, .ring = &ring, .within_s = WITHIN_S, .result = result, .as_json = as_json},
        &warm));
}

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return fclose(result);
}

/* All boards of the round are ready: as the controller does, those that come next are placed. */
static rp_warm_outcome end_round(void) {
    rp_warm_outcome outcome;
    for (uint32_t k = 0; k < PLACES; k++) {
        board[k].build.before.ready += 10;
        board[k].build.before.built += 4;
    }
    expect_ok(rp_warm_end_round(warm, &outcome));
    return outcome;
}

static void place_boards(void) {
    for (uint32_t k = 0; k < PLACES; k++) {
        const rp_warm_place place = rp_warm_place_of(warm, k);
        board[k].name = place.name;
        board[k].build.before = place.built;
        board[k].hello = board[k].ready = rp_warm_rests(warm, k);
    }
}

static const char *shown(rp_err *incomplete) {
    expect_ok(rp_warm_finish(warm, incomplete));
    assert_int_equal(fflush(result), 0);
    return text;
}

/* Whatever their number: in a round a spare stands in one place, over all rounds in each of them.
 */
static void every_spare_builds_for_every_place_once(void **state) {
    (void)state;
    rp_err incomplete;
    for (uint32_t spares = 0; spares <= SPARES_MOST; spares++) {
        uint32_t stood[SPARES_MOST][PLACES] = {{0}};
        open_warm(spares, false);
        uint32_t rounds = 0;
        while (end_round() == RP_WARM_ROUND) {
            place_boards();
            uint32_t at_work = 0;
            for (uint32_t k = 0; k < PLACES; k++) {
                const rp_warm_place place = rp_warm_place_of(warm, k);
                assert_true(rp_warm_rests(warm, k) == !place.instead_of);
                if (place.instead_of) {
                    assert_string_equal(place.instead_of, names[k]);
                    stood[(uint32_t)(place.name[1] - '0') - PLACES][k]++;
                    at_work++;
                }
            }
            assert_true(at_work > 0);
            rounds++;
        }
        assert_int_equal(rounds, (spares + PLACES - 1) / PLACES * PLACES);
        for (uint32_t i = 0; i < spares * PLACES; i++) {
            assert_int_equal(stood[i / PLACES][i % PLACES], 1);
        }
        (void)shown(&incomplete);
        assert_int_equal(incomplete, RP_OK);
        assert_null(strstr(text, "not for"));
        assert_int_equal(fclose(result), 0);
    }
    result = tmpfile();
}

static void what_is_built_is_counted_on(void **state) {
    (void)state;
    rp_err incomplete;
    open_warm(1, true);
    while (end_round() == RP_WARM_ROUND) {
        place_boards();
    }
    (void)shown(&incomplete);
    assert_non_null(strstr(text, "\"status\": \"finished\""));
    assert_non_null(strstr(text, "\"for\": [\"b0\", \"b1\", \"b2\"]"));
    assert_non_null(strstr(text, "\"built\": 12")); /* the spare's: 4 a round */
}

static void the_time_begins_once(void **state) {
    (void)state;
    open_warm(0, false);
    assert_int_equal(rp_warm_begin_ns(NULL), 0);
    assert_int_equal(rp_warm_order_s(NULL), 0);
    assert_int_equal(rp_warm_patience_ns(NULL), 0);
    assert_false(rp_warm_rests(NULL, 0));
    const int64_t all_ns = rp_warm_begin_ns(warm);
    assert_int_equal(all_ns, WITHIN_S * RP_NS_PER_S + RP_RING_HELLO_NS);
    assert_int_equal(rp_warm_order_s(warm), WITHIN_S);
    ring.now_ns += 60 * RP_NS_PER_S;
    assert_int_equal(rp_warm_begin_ns(warm), all_ns - 60 * RP_NS_PER_S);
    assert_int_equal(rp_warm_order_s(warm), WITHIN_S - 60);
    ring.now_ns += 600 * RP_NS_PER_S; /* over: a board still gets a moment to say so */
    assert_int_equal(rp_warm_begin_ns(warm), RP_RING_HELLO_NS);
    assert_int_equal(rp_warm_order_s(warm), 1);
}

static rp_warm_fault lost(uint32_t k) {
    return (rp_warm_fault){.err = RP_ERR_FAULT, .text = "it is away", .board = k, .is_lost = true};
}

static void a_lost_board_is_waited_for_while_there_is_time(void **state) {
    (void)state;
    open_warm(0, false);
    rp_warm_fault fault = lost(1);
    assert_false(rp_warm_may_wait(warm, &fault)); /* the time has not begun */
    (void)rp_warm_begin_ns(warm);
    assert_true(rp_warm_may_wait(warm, &fault));
    assert_int_equal(rp_warm_patience_ns(warm), 0);
    rp_warm_wait(warm, &fault);
    ring.greeted_ns = ring.now_ns;
    ring.now_ns += 10 * RP_NS_PER_S;
    assert_int_equal(rp_warm_patience_ns(warm), WITHIN_S * RP_NS_PER_S);
    fault.interrupted = true;
    assert_false(rp_warm_may_wait(warm, &fault));
    fault = lost(RP_NO_BOARD);
    assert_false(rp_warm_may_wait(warm, &fault));
    fault = lost(1);
    fault.is_lost = false; /* it said so itself, and would again */
    assert_false(rp_warm_may_wait(warm, &fault));
    fault = lost(1);
    ring.now_ns += (WITHIN_S - 11) * RP_NS_PER_S; /* a second is left */
    assert_false(rp_warm_may_wait(warm, &fault));
}

/* Spare b3 fails in place 1: it is left out, b4 goes on, and the ring is warm all the same. */
static void a_spare_that_fails_costs_its_own_part(void **state) {
    (void)state;
    rp_warm_outcome outcome;
    rp_err incomplete;
    open_warm(2, false);
    rp_warm_fault fault = lost(0);
    assert_false(rp_warm_may_leave(warm, &fault)); /* the ring's own boards are at work */
    assert_int_equal(end_round(), RP_WARM_ROUND);
    place_boards();
    assert_int_equal(end_round(), RP_WARM_ROUND);
    place_boards();
    for (uint32_t k = 0; k < PLACES; k++) {
        fault.board = strcmp(board[k].name, "b3") == 0 ? k : fault.board;
    }
    assert_true(rp_warm_may_leave(warm, &fault));
    expect_ok(rp_warm_leave(warm, &fault, &outcome));
    assert_int_equal(outcome, RP_WARM_ROUND);
    place_boards();
    for (uint32_t k = 0; k < PLACES; k++) {
        assert_string_not_equal(rp_warm_place_of(warm, k).name, "b3");
    }
    while (end_round() == RP_WARM_ROUND) {
        place_boards();
    }
    (void)shown(&incomplete);
    assert_int_equal(incomplete, RP_ERR_FAULT);
    assert_non_null(strstr(rp_err_message(), "the spare board b3 is not: it is away"));
    assert_non_null(strstr(text, ", as a spare for b0, not for b1, b2: it is away"));
    assert_non_null(strstr(text, ", as a spare for b0, b1, b2\n"));
}

/* A time-out is of no board in particular: those that are not done are left out. */
static void a_time_out_costs_those_that_are_not_done(void **state) {
    (void)state;
    rp_warm_outcome outcome;
    rp_err incomplete;
    open_warm(3, false);
    assert_int_equal(end_round(), RP_WARM_ROUND);
    place_boards();
    board[0].ready = board[2].ready = true;
    const char *late = board[1].name;
    rp_warm_fault fault = {.err = RP_ERR_TIMEOUT, .text = "no ready", .board = RP_NO_BOARD};
    expect_ok(rp_warm_leave(warm, &fault, &outcome));
    place_boards();
    for (uint32_t k = 0; k < PLACES; k++) {
        assert_string_not_equal(rp_warm_place_of(warm, k).name, late);
    }
    while (end_round() == RP_WARM_ROUND) {
        place_boards();
    }
    (void)shown(&incomplete);
    assert_int_equal(incomplete, RP_ERR_FAULT);
    assert_non_null(strstr(rp_err_message(), late));
    assert_non_null(strstr(text, "no ready"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_spare_builds_for_every_place_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_built_is_counted_on, setup, teardown),
        cmocka_unit_test_setup_teardown(the_time_begins_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lost_board_is_waited_for_while_there_is_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_spare_that_fails_costs_its_own_part, setup, teardown),
        cmocka_unit_test_setup_teardown(a_time_out_costs_those_that_are_not_done, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
