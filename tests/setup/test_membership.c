/* Whether a run goes on with fewer boards: what the run file says of places in the ring, and how
 * many groups of microbatches an interleaved schedule needs. */
#include "folder.h"

#include "run_of.h"
#include "setup/membership.h"
#include "setup/setup_own.h"

enum { BOARDS = 6, SPARES = 2 };

static rp_board_state boards[BOARDS];
static rp_roster_entry roster[BOARDS + SPARES];
static rp_ring ring;
static uint32_t tried; /* spares */
static rp_measure *measure;
static uint32_t wrong;
static rp_arrangement arrangement;
static rp_setup_arrays arrays = {.roster = roster};
static rp_model model; /* of no layers */

/* What was put into the run by hand is what was read. */
static void open_setup(void) {
    arrangement.opened = arrangement.run;
    arrangement.now = rp_setup_of(&arrangement.opened);
}

static void have_boards(uint32_t count) {
    arrangement.now.boards = count;
    rp_arrangement_put(&arrangement, &arrangement.now);
}

/* Boards of a roster, of which the last `absent` have not come: `micros` microbatches a step,
 * `chunks` stages a board. */
static void prepare(uint32_t count, uint32_t absent, uint32_t chunks, uint32_t micros) {
    memset(&ring, 0, sizeof ring);
    tried = 0;
    memset(&arrangement, 0, sizeof arrangement);
    arrangement.arrays = &arrays;
    arrangement.run.model = &model;
    arrangement.ring = &ring;
    memset(boards, 0, sizeof boards);
    memset(roster, 0, sizeof roster);
    ring.board = boards;
    ring.count = arrangement.run.boards = count;
    arrangement.run.roster = roster;
    arrangement.run.stages = count * chunks;
    arrangement.run.method.kind = rp_sched_find("1f1b");
    arrangement.run.method.chunks = chunks;
    arrangement.run.batch = 4 * micros;
    arrangement.run.micro = 4;
    arrangement.run.cut_auto = arrangement.run.codec_auto = true;
    arrangement.run.safety.at_least = 1;
    wrong = RP_NO_BOARD;
    for (uint32_t k = 0; k + absent < count; k++) {
        boards[k].hello = true;
    }
}

static const char *why_stay(void) {
    const rp_lost_boards lost = {.wrong = wrong, .portless = RP_NO_BOARD};
    const uint32_t left = rp_membership_count_left(
        &arrangement.run, rp_lost_count(&lost, &ring),
        rp_spares_untried(roster, arrangement.run.boards, arrangement.run.spares, tried));
    return rp_membership_why_fixed(&arrangement, left);
}

/* Nothing is measured yet. */
static void open_measure(void) {
    static const rp_clock clock;
    static rp_model no_layers;
    const rp_measure_needs needs = {.run = &arrangement.run, .ring = &ring, .clock = &clock};
    arrangement.run.model = arrangement.run.model ? arrangement.run.model : &no_layers;
    expect_ok(rp_measure_open(&arena, &needs, &measure));
    arrangement.measure = measure;
}

/* Groups of one microbatch a board have to come out even for the boards that are left. */
static void chunks_divide_the_microbatches(void **state) {
    (void)state;
    for (uint32_t count = 2; count <= BOARDS; count++) {
        for (uint32_t absent = 1; absent <= count; absent++) {
            for (uint32_t micros = 1; micros <= 12; micros++) {
                const uint32_t left = count - absent;
                prepare(count, absent, 2, micros);
                assert_int_equal(!why_stay(), left > 0 && micros % left == 0);
                prepare(count, absent, 1, micros);
                assert_null(why_stay());
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
            arrangement.run.method.kind = rp_sched_find("pipefb");
            assert_int_equal(!why_stay(), pairs > 0);
            arrangement.run.safety.at_least = 4;
            assert_int_equal(!why_stay(), pairs > 1);
        }
    }
    prepare(6, 2, 1, 3);
    arrangement.run.method.kind = rp_sched_find("pipefb");
    arrangement.run.method.ahead_count = 3; /* a number a stage, said by a person */
    assert_string_equal(why_stay(), "schedule.ahead has a number for each stage");
}

/* One board has no update between a forward and its backward. */
static void replicas_that_predict_need_stages(void **state) {
    (void)state;
    for (uint32_t absent = 1; absent < 4; absent++) {
        prepare(4, absent, 1, 3);
        arrangement.run.method.kind = rp_sched_find("ea-pipe");
        arrangement.run.method.weights = RP_WEIGHTS_PIPEOPTIM;
        arrangement.run.method.replicas = 2;
        const char *why = why_stay();
        if (absent == 1) {
            assert_null(why);
        } else {
            assert_string_equal(why,
                                "schedule.weights needs more stages, or fewer schedule.replicas");
        }
    }
}

/* A list says which stages are split: as many stages as before as long as there are boards. */
static void listed_stages_become_whole(void **state) {
    static const struct {
        uint32_t boards, stages, whole;
    } cases[] = {{5, 3, 1u << 1}, {4, 3, 1u << 2 | 1u << 1}, {3, 3, 7}, {2, 2, 3}, {1, 1, 1}};
    char text[80];
    (void)state;
    for (uint32_t ahead_count = 0; ahead_count <= 3; ahead_count += 3) {
        prepare(5, 0, 1, 3);
        arrangement.run.method.kind = rp_sched_find("pipefb");
        arrangement.run.method.split_count = arrangement.run.stages = 3;
        arrangement.run.method.whole = 1u << 1;
        arrangement.run.method.ahead_count = ahead_count;
        for (uint32_t k = 0; k < ahead_count; k++) {
            arrangement.run.method.ahead[k] = 1;
        }
        open_setup();
        open_measure();
        for (uint32_t i = 0; i < 5; i++) {
            const bool may_be = ahead_count == 0 || cases[i].stages == 3;
            have_boards(5);
            for (uint32_t k = 0; k < 5; k++) {
                boards[k].hello = k < cases[i].boards;
            }
            assert_int_equal(!why_stay(), may_be);
            if (may_be) {
                have_boards(cases[i].boards);
                rp_split_count_stages(&arrangement, true);
                assert_int_equal(arrangement.run.stages, cases[i].stages);
                assert_int_equal(arrangement.run.method.split_count, cases[i].stages);
                assert_int_equal(arrangement.run.method.whole, cases[i].whole);
                assert_int_equal(rp_method_boards(&arrangement.run.method, arrangement.run.stages),
                                 cases[i].boards);
                assert_string_equal(rp_split_list_stages(&arrangement, text, sizeof text),
                                    i == 0   ? "0, 2"
                                    : i == 1 ? "0"
                                             : "none");
            }
        }
        have_boards(5); /* all have come back */
        rp_split_count_stages(&arrangement, true);
        assert_int_equal(arrangement.run.stages, 3);
        assert_int_equal(arrangement.run.method.whole, 1u << 1);
    }
}

/* Layer i takes i + 1 ms forward and twice that backward, on any board. Of five boards with the
 * first and the last of three stages split one leaves: the last stage is the one to be split. */
static void the_slowest_stage_stays_split(void **state) {
    static const char *const sets[] = {"ring.boards=5",
                                       "schedule={kind: pipefb, split: [true, false, true]}"};
    char path[256];
    double values[6];
    (void)state;
    prepare(5, 1, 1, 3);
    read_run(&arrangement.run, GPIPE);
    rp_runfile_close(&arrangement.run);
    (void)snprintf(path, sizeof path, "%s/run.yaml", folder);
    expect_ok(rp_runfile_read(&arena, path, sets, 2, &arrangement.run));
    for (uint32_t i = 0; i < 6; i++) {
        values[i] = 1e-3 * (i / 2 + 1) * (i % 2 + 1);
    }
    for (uint32_t k = 0; k < 5; k++) {
        char *name;
        expect_ok(rp_arena_printf(&arena, &name, "%u", k));
        boards[k].name = name;
        (void)snprintf(boards[k].address.endpoint, sizeof boards[k].address.endpoint, "tcp://%s:1",
                       name);
    }
    open_setup();
    open_measure();
    expect_ok(rp_measure_begin(measure, 0));
    for (uint32_t k = 0; k < 5; k++) {
        const rp_part part = {.data = values, .bytes = sizeof values};
        const rp_ProfileDone done = {0};
        rp_measure_answer answer;
        expect_ok(rp_measure_take(measure, k, &done, &part, &answer));
    }
    rp_measure_end(measure);
    have_boards(ring.count = 4);
    rp_measure_place(measure);
    rp_split_count_stages(&arrangement, false);
    assert_int_equal(arrangement.run.method.whole, 1u << 1 | 1u << 2); /* the first of the list */
    rp_split_count_stages(&arrangement, true);
    assert_int_equal(arrangement.run.method.whole, 1u << 0 | 1u << 1);
    assert_int_equal(arrangement.run.stages, 3);
    rp_measure_close(measure);
    rp_runfile_close(&arrangement.run);
}

/* A last microbatch that is smaller counts as one. */
static void a_small_microbatch_counts(void **state) {
    (void)state;
    prepare(4, 1, 2, 6);
    arrangement.run.batch = 21; /* of 4: five and one of a single sample */
    assert_null(why_stay());
    arrangement.run.batch = 17; /* five */
    assert_non_null(why_stay());
}

/* Places that spares take stay. */
static void spares_count_as_boards(void **state) {
    (void)state;
    prepare(4, 2, 2, 4);
    assert_null(why_stay()); /* two are left */
    arrangement.run.spares = 1;
    assert_non_null(why_stay()); /* three */
    arrangement.run.spares = 2;
    assert_null(why_stay()); /* four */
    tried = 1;
    assert_non_null(why_stay()); /* one of them was tried and has not come either */
    prepare(4, 2, 2, 3);
    arrangement.run.spares = 2;
    roster[4].dials = true;  /* can not be dialled where another one was */
    assert_null(why_stay()); /* three */
}

/* A board that computes wrong is the only one that goes. */
static void one_that_is_wrong_leaves_alone(void **state) {
    (void)state;
    prepare(4, 2, 2, 3);
    assert_non_null(why_stay()); /* two are left */
    wrong = 0;
    assert_null(why_stay()); /* three */
}

static void places_that_a_person_has_named_stay(void **state) {
    (void)state;
    prepare(4, 2, 2, 4);
    arrangement.run.cut_auto = false;
    assert_string_equal(why_stay(), "the cut is given");
    prepare(4, 2, 2, 4);
    arrangement.run.hops.count = 1;
    assert_string_equal(why_stay(), "ring.link has hops");
    prepare(4, 2, 2, 4);
    arrangement.run.local = true;
    assert_non_null(why_stay());
    prepare(4, 2, 2, 4);
    arrangement.run.codec_auto = false;
    rp_codec codec[2 * BOARDS][2] = {{RP_CODEC_F32}};
    arrangement.run.codec = (const rp_codec(*)[2])codec;
    codec[1][0] = RP_CODEC_F16;
    assert_string_equal(why_stay(), "links.codec is not the same for all links");
    for (uint32_t s = 0; s < arrangement.run.stages; s++) {
        codec[s][0] = RP_CODEC_F16;
    }
    assert_null(why_stay());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_divide_the_microbatches),
        cmocka_unit_test(halves_of_stages_need_pairs),
        cmocka_unit_test(replicas_that_predict_need_stages),
        cmocka_unit_test_setup_teardown(listed_stages_become_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(the_slowest_stage_stays_split, setup, teardown),
        cmocka_unit_test(a_small_microbatch_counts),
        cmocka_unit_test(spares_count_as_boards),
        cmocka_unit_test(one_that_is_wrong_leaves_alone),
        cmocka_unit_test(places_that_a_person_has_named_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
