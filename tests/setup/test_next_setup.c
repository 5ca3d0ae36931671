/* What-if questions: a run file, made-up measurements and a setup, and the setup that comes next.
 */
#include "folder.h"

#include <string.h>

#include "setup/next_setup.h"

enum { BOARDS = 4, LAYERS = 6 };

static const char *const names[BOARDS] = {"north", "east", "south", "west"};
static rp_runfile wish;
static rp_profile profile;
static rp_setup_facts facts;
static rp_setup_why why;
static rp_setup now, next;

static int close_run(void **state) {
    rp_runfile_close(&wish);
    (void)unlink(in_folder("model.yaml"));
    (void)unlink(in_folder("run.yaml"));
    (void)unlink(in_folder("roster.yaml"));
    return teardown(state);
}

static void write_roster(void) {
    char text[600];
    size_t used = (size_t)snprintf(text, sizeof text, "boards:\n");
    for (uint32_t k = 0; k < BOARDS; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "  - {name: %s, address: \"tcp://%s.example:7000\", key: "
                                 "\"%05uabcdeabcdeabcdeabcdeabcdeabcdeabcde\"}\n",
                                 names[k], names[k], k);
    }
    append("roster.yaml", text, used);
}

/* A board that needs `ms` for a sample of any layer, and `first_ms` of the first one, forward;
 * twice that backward. */
static void measure_layers(uint32_t board, double first_ms, double ms) {
    const size_t count = rp_measured_count(LAYERS, profile.size_count);
    double *values;
    expect_ok(RP_ARENA_NEW(&arena, count, &values));
    for (size_t s = 0; s < profile.size_count; s++) {
        for (size_t i = 0; i < LAYERS; i++) {
            for (size_t p = 0; p < RP_MEASURED_PASSES; p++) {
                double *at = &values[rp_measured_at(LAYERS, s, i, p)];
                at[0] = 1e-3 * (i == 0 ? first_ms : ms) * profile.sizes[s] * (p == 1 ? 2 : 1);
                at[1] = 0.01;
            }
        }
    }
    expect_ok(rp_profile_take(&arena, &profile, board, values, count));
}

static void measure_board(uint32_t board, double ms) {
    measure_layers(board, ms, ms);
}

static void measure_wires(double bytes_per_s) {
    const rp_curve_point trips[] = {{64, 1e-5, 0.1}, {1 << 20, (1 << 20) / bytes_per_s, 0.1}};
    for (uint32_t i = 0; i < BOARDS * BOARDS; i++) {
        if (i / BOARDS != i % BOARDS) {
            expect_ok(rp_profile_take_wire(&profile, i / BOARDS, i % BOARDS, trips, 2));
        }
    }
}

/* Alike boards of a roster, on wires that hardly count; `more`: lines of the run file. */
static void open_run(const char *more) {
    char text[1024];
    size_t used = (size_t)snprintf(text, sizeof text, "input: data\nlayers:\n");
    for (uint32_t i = 0; i < LAYERS; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "  - {name: fc%u, kind: dense, out: %s}\n", i,
                                 i + 1 < LAYERS ? "16" : "classes");
    }
    append("model.yaml", text, used);
    write_roster();
    used = (size_t)snprintf(text, sizeof text,
                            "model: %s/model.yaml\n"
                            "data: {set: glyphs, train: 64, test: 24, size: 12}\n"
                            "ring: {roster: %s/roster.yaml}\n"
                            "loss: cross-entropy\n"
                            "optimizer: {kind: sgd, lr: 0.1}\n"
                            "%s",
                            folder, folder, more);
    append("run.yaml", text, used);
    (void)snprintf(text, sizeof text, "%s/run.yaml", folder);
    expect_ok(rp_runfile_read(&arena, text, NULL, 0, &wish));
    expect_ok(rp_profile_open(&arena, &wish, BOARDS, &profile));
    for (uint32_t k = 0; k < BOARDS; k++) {
        profile.board[k].name = profile.board[k].like = names[k];
        profile.board[k].device = "a CPU";
        profile.board[k].memory_bytes = 1u << 30;
        measure_board(k, 1);
    }
    measure_wires(1e9);
    facts = (rp_setup_facts){.name = names, .profile = &profile};
    now = rp_setup_of(&wish);
}

#define TRAIN "train: {epochs: 2, batch: 16, microbatch: 4, seed: 1}\n"
#define SEARCH "seconds: 0"

static void choose(void) {
    expect_ok(rp_setup_next(&wish, &facts, &now, &arena, &next, &why));
}

static void expect_cut(const rp_setup *setup, const char *wanted) {
    char text[64] = "";
    size_t used = 0;
    for (uint32_t k = 1; k < setup->cut.stage_count; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", k > 1 ? " " : "",
                                 setup->cut.first[k]);
    }
    assert_string_equal(text, wanted);
}

static const rp_run_event *event(rp_event_kind kind) {
    uint32_t i = 0;
    while (i < why.count && why.event[i].kind != kind) {
        i++;
    }
    assert_true(i < why.count);
    return &why.event[i];
}

/* ---- what is chosen -------------------------------------------------------------------------- */

static void what_is_said_stays(void **state) {
    (void)state;
    open_run(TRAIN "schedule: gpipe\ncut: [fc1, fc3, fc5]\nplan: {" SEARCH "}\n");
    assert_false(rp_setup_needs_profile(&wish, &facts, &now));
    choose();
    assert_true(rp_setup_equal(&now, &next));
    assert_int_equal(why.count, 0);
    facts.profile = NULL; /* nothing has to be measured for that */
    choose();
    expect_cut(&next, "1 3 5");
}

static void the_cut_follows_the_speeds_of_boards(void **state) {
    (void)state;
    open_run(TRAIN "schedule: gpipe\ncut: auto\nplan: {" SEARCH "}\n");
    assert_true(rp_setup_needs_profile(&wish, &facts, &now));
    measure_board(1, 0.2); /* the second board is fast: it gets the layers of others */
    choose();
    assert_true(next.cut.first[2] - next.cut.first[1] >= 3);
    assert_int_equal(now.cut.stage_count, 0); /* the question is as it was */
    const rp_cut then = next.cut;
    facts.then = &then; /* a checkpoint has it: nothing is measured again */
    measure_board(1, 5);
    assert_false(rp_setup_needs_profile(&wish, &facts, &now));
    choose();
    assert_int_equal(next.cut.first[1], then.first[1]);
}

static void a_slow_board_becomes_a_spare(void **state) {
    (void)state;
    open_run(TRAIN "schedule: gpipe\ncut: auto\nplan: {boards: auto, " SEARCH "}\n");
    measure_board(2, 1000);
    choose();
    assert_false(next.boards_auto);
    assert_int_equal(next.boards, BOARDS - 1);
    assert_int_equal(next.spares, 1);
    assert_string_equal(next.roster[BOARDS - 1].name, "south");
    assert_int_equal(next.stages, BOARDS - 1);
    const rp_run_event *said = event(RP_EVENT_BOARDS);
    assert_true(said->board_count == 3 && said->boards_before == 4 && said->spares == 1);
    assert_true(said->step_s < said->step_before_s);
    assert_non_null(why.boards);
    assert_string_equal(now.roster[2].name, "south"); /* the question is as it was */
    assert_int_equal(now.boards, BOARDS);
    facts.has_begun = true; /* boards that have been loaded stay */
    choose();
    assert_int_equal(next.boards, BOARDS);
}

static void stages_that_boards_share_are_in_the_setup(void **state) {
    (void)state;
    open_run(TRAIN "schedule: gpipe\ncut: auto\nplan: {share: 3, " SEARCH "}\n");
    for (uint32_t k = 0; k < BOARDS; k++) {
        measure_layers(k, 20, 1); /* in a row of boards the others would wait for the first */
    }
    choose();
    assert_non_null(next.group);
    assert_true(next.stages < BOARDS && next.group[next.stages] == BOARDS);
    assert_int_equal(next.cut.stage_count, next.stages);
    for (uint32_t k = 0; k < next.stages; k++) {
        assert_true(next.share[next.group[k + 1] - 1] == 1);
    }
    assert_int_equal(event(RP_EVENT_BOARDS)->stages, next.stages);
    now = next; /* which is not chosen again */
    assert_false(rp_setup_needs_profile(&wish, &facts, &now));
    choose();
    assert_true(rp_setup_equal(&now, &next));
}

static void slow_wires_get_stronger_codecs(void **state) {
    (void)state;
    open_run(TRAIN "schedule: gpipe\ncut: [fc1, fc3, fc5]\nlinks: {codec: auto}\n");
    choose();
    assert_int_equal(next.codec_stages, BOARDS);
    assert_int_equal(next.codec[0][0], RP_CODEC_F32);
    measure_wires(1e3);
    choose();
    assert_true(next.codec[0][0] != RP_CODEC_F32);
    now = next;
    measure_wires(1e9);
    choose(); /* once for a number of stages */
    assert_true(rp_setup_equal(&now, &next));
}

static void sizes_microbatch_and_schedule_are_chosen_with_a_reason(void **state) {
    (void)state;
    open_run(TRAIN "schedule: {kind: umpipe, planner: auto}\ncut: auto\nplan: {" SEARCH "}\n");
    choose();
    assert_int_equal(next.size_stages, BOARDS);
    assert_true(event(RP_EVENT_SIZES)->step_s <= event(RP_EVENT_SIZES)->even_s);
    rp_runfile_close(&wish);
    (void)unlink(in_folder("model.yaml"));
    (void)unlink(in_folder("run.yaml"));
    (void)unlink(in_folder("roster.yaml"));
    open_run("train: {epochs: 2, batch: 16, microbatch: auto, seed: 1}\nschedule: gpipe\n"
             "cut: auto\nplan: {schedules: [1f1b], " SEARCH "}\n");
    choose();
    assert_false(next.micro_auto || next.schedule_auto);
    assert_true(next.micro < 16);
    assert_int_equal(event(RP_EVENT_MICRO_CHOSEN)->micro, next.micro);
    assert_non_null(why.schedule);
}

/* ---- a run that has begun -------------------------------------------------------------------- */

static void a_board_that_became_slow_loses_layers(void **state) {
    double before_s;
    double after_s;
    (void)state;
    open_run(TRAIN "schedule: gpipe\ncut: auto\nplan: {drift: 0.3, " SEARCH "}\n");
    choose();
    const uint32_t had = next.cut.first[1];
    now = next;
    expect_ok(rp_setup_follow(&wish, &facts, &now, &arena, &next, &why));
    assert_true(rp_setup_equal(&now, &next)); /* nothing has changed */
    measure_board(0, 5);
    expect_ok(rp_setup_follow(&wish, &facts, &now, &arena, &next, &why));
    assert_true(next.cut.first[1] < had || had == 1);
    assert_false(rp_setup_equal(&now, &next));
    expect_ok(rp_setup_price(&wish, &facts, &now, &arena, &before_s));
    expect_ok(rp_setup_price(&wish, &facts, &next, &arena, &after_s));
    assert_true(after_s > 0 && after_s <= before_s);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static rp_err ask_all(rp_arena *own) {
    double step_s;
    rp_err err;
    RP_TRY(rp_setup_next(&wish, &facts, &now, own, &next, &why));
    RP_TRY(rp_setup_follow(&wish, &facts, &next, own, &next, &why));
    RP_TRY(rp_setup_price(&wish, &facts, &next, own, &step_s));
fail:
    return err;
}

static void every_allocation_may_fail(void **state) {
    static const char *const runs[] = {
        TRAIN "schedule: gpipe\ncut: auto\nlinks: {codec: auto}\nplan: {boards: auto, " SEARCH
              "}\n",
        TRAIN "schedule: {kind: umpipe, planner: auto}\ncut: auto\nplan: {share: 2, " SEARCH "}\n"};
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        long count = 0;
        bool failed = true;
        open_run(runs[i]);
        measure_board(2, 1000);
        const rp_setup was = now;
        for (long n = 1; failed; n += 1 + n / 8) {
            rp_arena own;
            rp_arena_init(&own, "test", 0);
            rp_arena_fail_at(n);
            const rp_err err = ask_all(&own);
            failed = rp_arena_has_failed();
            rp_arena_fail_at(0);
            rp_arena_finish(&own);
            assert_true(err == (failed ? RP_ERR_MEMORY : RP_OK));
            assert_memory_equal(&was, &now, sizeof was);
            count++;
        }
        assert_true(count > 20);
        rp_runfile_close(&wish);
        (void)unlink(in_folder("model.yaml"));
        (void)unlink(in_folder("run.yaml"));
        (void)unlink(in_folder("roster.yaml"));
    }
    open_run(TRAIN "schedule: gpipe\ncut: auto\n"); /* for close_run() */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_said_stays, setup, close_run),
        cmocka_unit_test_setup_teardown(the_cut_follows_the_speeds_of_boards, setup, close_run),
        cmocka_unit_test_setup_teardown(a_slow_board_becomes_a_spare, setup, close_run),
        cmocka_unit_test_setup_teardown(stages_that_boards_share_are_in_the_setup, setup,
                                        close_run),
        cmocka_unit_test_setup_teardown(slow_wires_get_stronger_codecs, setup, close_run),
        cmocka_unit_test_setup_teardown(sizes_microbatch_and_schedule_are_chosen_with_a_reason,
                                        setup, close_run),
        cmocka_unit_test_setup_teardown(a_board_that_became_slow_loses_layers, setup, close_run),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
