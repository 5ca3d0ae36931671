/* What a ring runs with as one value: the run file made of it, and its text. */
#include "open_run.h"

#include "base/rng.h"
#include "run/setup.h"

enum { BOARDS = 3, SPARES = 2, ALL = BOARDS + SPARES, ROUNDS = 300 };

static rp_roster_entry roster[ALL];

/* Three layers, 16 samples a step; boards of a roster, some with odd names. */
static int open_run(void **state) {
    static const char *const names[ALL] = {"a", "b 2", "c,=%", "d", "e/1"};
    const int failed = setup(state);
    read_run(&run, "optimizer: {kind: sgd, lr: 0.1}\n"
                   "schedule: {kind: ea-pipe, advance: auto}\n"
                   "plan: {schedules: [gpipe, 1f1b]}\n");
    memset(roster, 0, sizeof roster);
    for (uint32_t k = 0; k < ALL; k++) {
        roster[k] = (rp_roster_entry){.name = names[k], .place = k};
    }
    run.local = false;
    run.roster = roster;
    run.boards = run.stages = BOARDS;
    run.spares = SPARES;
    return failed;
}

/* ---- the run file with it -------------------------------------------------------------------- */

static void a_run_file_is_as_its_own_setup_says(void **state) {
    rp_runfile out;
    (void)state;
    const rp_setup own = rp_setup_of(&run);
    assert_null(rp_setup_check(&own, &run));
    rp_setup_run(&run, &own, &out);
    assert_memory_equal(&out, &run, sizeof run);
}

static void boards_codecs_and_sizes_are_those_of_the_setup(void **state) {
    static const rp_codec codec[2][2] = {{RP_CODEC_F16, RP_CODEC_INT8}};
    static const uint32_t size[2][2] = {{3, 5}, {16, 1}};
    rp_roster_entry order[ALL] = {roster[2], roster[0], roster[1], roster[3], roster[4]};
    rp_runfile out;
    (void)state;
    rp_setup other = rp_setup_of(&run);
    other.boards = other.stages = 2;
    other.spares = ALL - 2;
    other.roster = order;
    other.codec = codec;
    other.size = size;
    other.codec_stages = other.size_stages = 2;
    other.micro = 4;
    other.micro_auto = other.boards_auto = true;
    other.input_codec = RP_CODEC_F32;
    other.step_first = 7;
    other.lines_s = 1.5;
    rp_setup_run(&run, &other, &out);
    assert_int_equal(out.boards, 2);
    assert_int_equal(out.stages, 2);
    assert_int_equal(out.spares, ALL - 2);
    assert_string_equal(out.roster[0].name, "c,=%");
    assert_ptr_equal(out.codec, codec);
    assert_ptr_equal(out.sizes.at, size);
    assert_int_equal(out.micro, 4);
    assert_true(out.micro_auto && out.boards_auto);
    assert_int_equal(out.input_codec, RP_CODEC_F32);
    assert_non_null(out.inputs_why); /* glyphs are bytes, which a board did not know */
    assert_int_equal(out.step_first, 7);
    assert_true(out.hops.since_s == 1.5);
    assert_int_equal(run.boards, BOARDS); /* what was read is as it was */
    assert_ptr_equal(run.roster, roster);
}

/* As rp_runfile_take_schedule() and rp_method_set_advance() by themselves, in this order. */
static void schedule_and_advance_are_as_if_they_were_set(void **state) {
    (void)state;
    for (uint32_t index = 0; index < 3; index++) {
        for (uint32_t advance = 0; advance <= 3; advance++) {
            rp_runfile wanted = run;
            rp_runfile out;
            rp_setup other = rp_setup_of(&run);
            other.schedule_auto = wanted.schedule_auto = false;
            if (index > 0) {
                rp_runfile_take_schedule(&wanted, index);
            }
            rp_method_set_advance(&wanted.method, 2, advance);
            rp_setup_take_schedule(&other, &run, index);
            other.stages = 2;
            rp_setup_take_advance(&other, advance);
            other.stages = wanted.stages; /* replicas stay those of two stages */
            rp_setup_run(&run, &other, &out);
            assert_memory_equal(&out, &wanted, sizeof out);
            rp_setup_run(&out, &other, &wanted);
            assert_memory_equal(&out, &wanted, sizeof out); /* the same once more */
        }
    }
}

static void splits_and_steps_ahead_are_those_of_the_setup(void **state) {
    rp_runfile out;
    (void)state;
    rp_setup other = rp_setup_of(&run);
    other.split_count = 3;
    other.whole = 1u << 1;
    other.ahead_count = 2;
    other.ahead[0] = 5;
    other.ahead[1] = 2;
    other.ahead_auto = true;
    rp_setup_run(&run, &other, &out);
    assert_int_equal(out.method.split_count, 3);
    assert_int_equal(out.method.whole, 1u << 1);
    assert_int_equal(out.method.ahead_count, 2);
    assert_int_equal(out.method.ahead[0], 5);
    assert_int_equal(out.method.ahead[1], 2);
    assert_true(out.method.ahead_measured);
}

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct {
    rp_roster_entry roster[ALL];
    uint32_t first[BOARDS + 1], group[BOARDS + 1], size[BOARDS][2];
    double share[ALL];
    rp_codec codec[BOARDS][2];
} arrays;

static rp_codec draw_codec(rp_rng *rng) {
    static const rp_codec all[] = {RP_CODEC_F32, RP_CODEC_F16, RP_CODEC_BF16, RP_CODEC_INT8,
                                   RP_CODEC_INT4};
    return all[rp_rng_below(rng, sizeof all / sizeof *all)];
}

static void draw_stages(rp_rng *rng, arrays *at, rp_setup *out) {
    const uint32_t count = rp_rng_below(rng, BOARDS + 1); /* 0: no cut */
    out->stages = 1 + rp_rng_below(rng, BOARDS);
    for (uint32_t k = 1; k < count; k++) {
        at->first[k] = k;
    }
    at->first[0] = 0;
    at->first[count] = 3;
    out->cut = count > 0 ? (rp_cut){.stage_count = count, .first = at->first} : (rp_cut){0};
    if (count > 0 && count < out->boards && rp_rng_below(rng, 2)) {
        for (uint32_t k = 0; k < count; k++) {
            at->group[k] = k;
        }
        at->group[count] = out->boards;
        for (uint32_t k = 0; k < out->boards; k++) {
            at->share[k] = (double)rp_rng_below(rng, 1000) / 999;
        }
        out->group = at->group;
        out->share = at->share;
    }
}

static void draw_links(rp_rng *rng, arrays *at, rp_setup *out) {
    for (uint32_t k = 0; k < 2 * BOARDS; k++) {
        at->codec[k / 2][k % 2] = draw_codec(rng);
        at->size[k / 2][k % 2] = 1 + rp_rng_below(rng, 16);
    }
    out->codec_stages = rp_rng_below(rng, 2) ? 2 + rp_rng_below(rng, BOARDS - 1) : 0;
    out->codec = out->codec_stages > 0 ? (const rp_codec(*)[2])at->codec : NULL;
    out->size_stages = rp_rng_below(rng, BOARDS + 1);
    out->size = out->size_stages > 0 ? (const uint32_t(*)[2])at->size : NULL;
    out->micro = 1 + rp_rng_below(rng, 16);
    out->input_codec = draw_codec(rng);
}

static rp_setup draw_setup(rp_rng *rng, arrays *at) {
    rp_setup out = rp_setup_of(&run);
    for (uint32_t k = 0; k < ALL; k++) {
        at->roster[k] = roster[k];
    }
    for (uint32_t k = ALL; k-- > 1;) {
        const uint32_t other = rp_rng_below(rng, k + 1);
        const rp_roster_entry entry = at->roster[k];
        at->roster[k] = at->roster[other];
        at->roster[other] = entry;
    }
    out.roster = at->roster;
    out.boards = 1 + rp_rng_below(rng, ALL);
    out.spares = ALL - out.boards;
    draw_stages(rng, at, &out);
    draw_links(rng, at, &out);
    rp_setup_take_schedule(&out, &run, rp_rng_below(rng, 3));
    out.split_count = out.said_count = rp_rng_below(rng, RP_SPLIT_STAGES_MAX + 1);
    out.whole = rp_rng_u32(rng);
    out.said_whole = rp_rng_u32(rng);
    if (rp_rng_below(rng, 2)) {
        rp_setup_take_advance(&out, rp_rng_below(rng, RP_ADVANCE_MAX + 1));
    }
    out.ahead_count = rp_rng_below(rng, RP_SPLIT_STAGES_MAX + 1);
    for (uint32_t k = 0; k < out.ahead_count; k++) {
        out.ahead[k] = (uint16_t)(1 + rp_rng_below(rng, RP_AHEAD_MAX));
    }
    out.micro_auto = rp_rng_below(rng, 2);
    out.boards_auto = rp_rng_below(rng, 2);
    out.schedule_auto = rp_rng_below(rng, 2);
    out.ahead_auto = rp_rng_below(rng, 2);
    return out;
}

static void a_text_is_read_back(void **state) {
    rp_rng rng = rp_rng_named(5, "setup");
    (void)state;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        arrays at;
        char *text;
        char *again;
        rp_setup read;
        const rp_setup was = draw_setup(&rng, &at);
        assert_null(rp_setup_check(&was, &run));
        expect_ok(rp_setup_text(&arena, &was, &run, &text));
        expect_ok(rp_setup_read(&arena, text, &run, "file", &read));
        assert_true(rp_setup_equal(&was, &read));
        expect_ok(rp_setup_text(&arena, &read, &run, &again));
        assert_string_equal(text, again);
    }
}

/* Each field counts. */
static void others_are_not_equal(void **state) {
    rp_rng rng = rp_rng_named(6, "setup");
    arrays at;
    uint32_t equal = 0;
    (void)state;
    const rp_setup was = draw_setup(&rng, &at);
    rp_setup other = was;
    assert_true(rp_setup_equal(&was, &other));
    other.step_first++;
    other.lines_s++;
    assert_true(rp_setup_equal(&was, &other));
#define CHANGE(field, value)                                                                       \
    do {                                                                                           \
        other = was;                                                                               \
        other.field = value;                                                                       \
        equal += rp_setup_equal(&was, &other);                                                     \
    } while (0)
    CHANGE(boards, was.boards + 1);
    CHANGE(stages, was.stages + 1);
    CHANGE(micro, was.micro + 1);
    CHANGE(input_codec, (was.input_codec + 1) % RP_CODEC_UINT8);
    CHANGE(schedule, was.schedule + 1);
    CHANGE(split_count, was.split_count + 1);
    CHANGE(whole, was.whole + 1);
    CHANGE(said_whole, was.said_whole + 1);
    CHANGE(advance, was.advance + 1);
    CHANGE(advance_stages, was.advance_stages + 1);
    CHANGE(ahead_count, was.ahead_count + 1);
    CHANGE(codec_stages, was.codec_stages + 1);
    CHANGE(size_stages, was.size_stages + 1);
    CHANGE(micro_auto, !was.micro_auto);
    CHANGE(boards_auto, !was.boards_auto);
    CHANGE(schedule_auto, !was.schedule_auto);
    CHANGE(ahead_auto, !was.ahead_auto);
#undef CHANGE
    assert_int_equal(equal, 0);
}

/* A byte that is another one: refused, or another valid setup, which has a text of its own. */
static void damaged_texts_are_refused(void **state) {
    rp_rng rng = rp_rng_named(7, "setup");
    uint32_t refused = 0;
    (void)state;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        arrays at;
        char *text;
        rp_setup read;
        const rp_setup was = draw_setup(&rng, &at);
        expect_ok(rp_setup_text(&arena, &was, &run, &text));
        const size_t length = strlen(text);
        if (i % 3 == 0) {
            text[rp_rng_below(&rng, (uint32_t)length)] = '\0';
        } else {
            text[rp_rng_below(&rng, (uint32_t)length)] = (char)(' ' + (int)rp_rng_below(&rng, 95));
        }
        const rp_err err = rp_setup_read(&arena, text, &run, "file", &read);
        assert_true(err == RP_OK || err == RP_ERR_FORMAT);
        refused += err != RP_OK;
        if (err == RP_OK) {
            assert_null(rp_setup_check(&read, &run));
        }
    }
    assert_true(refused > ROUNDS / 3);
}

static void wrong_words_are_named(void **state) {
    static const char good[] = "version=2 boards=a,d stages=2 cut=fc1,fc3 codec=f16/int8 micro=4 "
                               "inputs=f32 schedule=0 split=0,0,0,0 advance=1,2 auto=0,0,0,0";
    static const struct {
        const char *word, *other;
    } cases[] = {{"version=2", "version=3"},
                 {"boards=a,d", "boards="},
                 {"boards=a,d", "boards=%4"},
                 {"stages=2", "stages=0"},
                 {"stages=2", "stage=2"},
                 {"codec=f16/int8", "codec=uint8/int8"},
                 {"codec=f16/int8", "codec=f16"},
                 {"codec=f16/int8", "codec=topk-0.1/f16"},
                 {"micro=4", "micro=0"},
                 {"micro=4", "micro=-1"},
                 {"inputs=f32", "inputs=f33"},
                 {"schedule=0", "schedule=9"},
                 {"split=0,0,0,0", "split=33,0,0,0"},
                 {"split=0,0,0,0", "split=0,0,0"},
                 {"advance=1,2", "advance=65,2"},
                 {"auto=0,0,0,0", "auto=0,0,0,2"},
                 {" micro=4", ""},
                 {"micro=4", "micro=4 micro=4"}};
    rp_setup read;
    (void)state;
    expect_ok(rp_setup_read(&arena, good, &run, "file", &read));
    assert_int_equal(read.cut.stage_count, 2);
    assert_int_equal(read.boards, 2);
    assert_string_equal(read.roster[1].name, "d");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        const char *at = strstr(good, cases[i].word);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, cases[i].other,
                       at + strlen(cases[i].word));
        assert_int_equal(rp_setup_read(&arena, text, &run, "file", &read), RP_ERR_FORMAT);
        assert_non_null(strstr(rp_err_message(), "file: `setup` "));
    }
}

/* Of another model, other boards, another batch, a run file with fewer schedules: as the run says.
 */
static void what_another_run_said_is_left_out(void **state) {
    static const char text[] = "version=2 boards=a,z stages=2 cut=conv1,fc3 micro=17 inputs=f32 "
                               "schedule=7 split=0,0,0,0 advance=0,0 auto=0,0,0,0";
    rp_setup read;
    (void)state;
    expect_ok(rp_setup_read(&arena, text, &run, "file", &read));
    assert_int_equal(read.cut.stage_count, 0);
    assert_int_equal(read.boards, BOARDS);
    assert_ptr_equal(read.roster, roster);
    assert_int_equal(read.schedule, 0);
    assert_int_equal(read.micro, run.micro);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_file_is_as_its_own_setup_says, open_run, close_run),
        cmocka_unit_test_setup_teardown(boards_codecs_and_sizes_are_those_of_the_setup, open_run,
                                        close_run),
        cmocka_unit_test_setup_teardown(schedule_and_advance_are_as_if_they_were_set, open_run,
                                        close_run),
        cmocka_unit_test_setup_teardown(splits_and_steps_ahead_are_those_of_the_setup, open_run,
                                        close_run),
        cmocka_unit_test_setup_teardown(a_text_is_read_back, open_run, close_run),
        cmocka_unit_test_setup_teardown(others_are_not_equal, open_run, close_run),
        cmocka_unit_test_setup_teardown(damaged_texts_are_refused, open_run, close_run),
        cmocka_unit_test_setup_teardown(wrong_words_are_named, open_run, close_run),
        cmocka_unit_test_setup_teardown(what_another_run_said_is_left_out, open_run, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
