/* Whether a run goes on with fewer boards: what the run file says of places in the ring, and how
 * many groups of microbatches an interleaved schedule needs. */
#include "expect.h"

#include "control/controller_own.h"

enum { BOARDS = 6, SPARES = 2 };

static rp_board_state boards[BOARDS];
static rp_roster_entry roster[BOARDS + SPARES];
static rp_controller c; /* large for a stack */

/* Boards of a roster, of which the last `absent` have not come: `micros` microbatches a step,
 * `chunks` stages a board. */
static void prepare(uint32_t count, uint32_t absent, uint32_t chunks, uint32_t micros) {
    memset(&c, 0, sizeof c);
    memset(boards, 0, sizeof boards);
    memset(roster, 0, sizeof roster);
    c.ring.board = boards;
    c.ring.count = c.run.boards = count;
    c.run.roster = roster;
    c.run.stages = count * chunks;
    c.run.method.kind = rp_sched_find("1f1b");
    c.run.method.chunks = chunks;
    c.run.batch = 4 * micros;
    c.run.micro = 4;
    c.run.cut_auto = c.run.codec_auto = true;
    c.verify.wrong = RP_FAULT_NO_BOARD;
    for (uint32_t k = 0; k + absent < count; k++) {
        boards[k].hello = true;
    }
}

/* Groups of one microbatch a board have to come out even for the boards that are left. */
static void chunks_divide_the_microbatches(void **state) {
    (void)state;
    for (uint32_t count = 2; count <= BOARDS; count++) {
        for (uint32_t absent = 1; absent <= count; absent++) {
            for (uint32_t micros = 1; micros <= 12; micros++) {
                const uint32_t left = count - absent;
                prepare(count, absent, 2, micros);
                assert_int_equal(rp_absent_may_leave(&c), left > 0 && micros % left == 0);
                prepare(count, absent, 1, micros);
                assert_true(rp_absent_may_leave(&c));
            }
        }
    }
}

/* Two boards a stage: one that is too many is left out, too, and a pair has to be left. */
static void halves_of_stages_need_pairs(void **state) {
    (void)state;
    for (uint32_t count = 2; count <= BOARDS; count += 2) {
        for (uint32_t absent = 1; absent <= count; absent++) {
            const uint32_t pairs = (count - absent) / 2;
            prepare(count, absent, 1, 3);
            c.run.method.kind = rp_sched_find("pipefb");
            assert_int_equal(rp_absent_may_leave(&c), pairs > 0);
            c.run.at_least = 4;
            assert_int_equal(rp_absent_may_leave(&c), pairs > 1);
        }
    }
    prepare(6, 2, 1, 3);
    c.run.method.kind = rp_sched_find("pipefb");
    c.run.method.ahead_count = 3; /* a number a stage, said by a person */
    assert_false(rp_absent_may_leave(&c));
}

/* A last microbatch that is smaller counts as one. */
static void a_small_microbatch_counts(void **state) {
    (void)state;
    prepare(4, 1, 2, 6);
    c.run.batch = 21; /* of 4: five and one of a single sample */
    assert_true(rp_absent_may_leave(&c));
    c.run.batch = 17; /* five */
    assert_false(rp_absent_may_leave(&c));
}

/* Places that spares take stay. */
static void spares_count_as_boards(void **state) {
    (void)state;
    prepare(4, 2, 2, 4);
    assert_true(rp_absent_may_leave(&c)); /* two are left */
    c.run.spares = 1;
    assert_false(rp_absent_may_leave(&c)); /* three */
    c.run.spares = 2;
    assert_true(rp_absent_may_leave(&c)); /* four */
    c.recovery.spares_taken = 1;
    assert_false(rp_absent_may_leave(&c)); /* one of them was tried and has not come either */
    prepare(4, 2, 2, 3);
    c.run.spares = 2;
    roster[4].dials = true;               /* can not be dialled where another one was */
    assert_true(rp_absent_may_leave(&c)); /* three */
}

/* A board that computes wrong is the only one that goes. */
static void one_that_is_wrong_leaves_alone(void **state) {
    (void)state;
    prepare(4, 2, 2, 3);
    assert_false(rp_absent_may_leave(&c)); /* two are left */
    c.verify.wrong = 0;
    assert_true(rp_absent_may_leave(&c)); /* three */
}

static void places_that_a_person_has_named_stay(void **state) {
    (void)state;
    prepare(4, 2, 2, 4);
    c.run.cut_auto = false;
    assert_false(rp_absent_may_leave(&c));
    prepare(4, 2, 2, 4);
    c.run.hops.count = 1;
    assert_false(rp_absent_may_leave(&c));
    prepare(4, 2, 2, 4);
    c.run.local = true;
    assert_false(rp_absent_may_leave(&c));
    prepare(4, 2, 2, 4);
    c.run.codec_auto = false;
    rp_codec codec[2 * BOARDS][2] = {{RP_CODEC_F32}};
    c.run.codec = (const rp_codec(*)[2])codec;
    codec[1][0] = RP_CODEC_F16;
    assert_false(rp_absent_may_leave(&c));
    for (uint32_t s = 0; s < c.run.stages; s++) {
        codec[s][0] = RP_CODEC_F16;
    }
    assert_true(rp_absent_may_leave(&c));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_divide_the_microbatches),
        cmocka_unit_test(halves_of_stages_need_pairs),
        cmocka_unit_test(a_small_microbatch_counts),
        cmocka_unit_test(spares_count_as_boards),
        cmocka_unit_test(one_that_is_wrong_leaves_alone),
        cmocka_unit_test(places_that_a_person_has_named_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
