/* Beam search over nets that are tables: what follows each prefix is known. */
#include "expect.h"

#include <math.h>
#include <string.h>

#include "data/vocab.h"
#include "predict/beam.h"

enum { END = RP_TOKEN_END, A, B, C, TOKENS };

/* Probabilities of <end>, A, B and C after a prefix; the last row is for all further prefixes. */
typedef struct {
    const char *after; /* "AB" */
    float p[4];
} row;

static void fill_outputs(const row *rows, const int32_t *target, uint32_t length, float *y,
                         uint32_t outputs) {
    char prefix[16] = "";
    for (uint32_t i = 0; i < length; i++) {
        prefix[i] = (char)('A' + target[i] - A);
    }
    while (rows->after && strcmp(rows->after, prefix) != 0) {
        rows++;
    }
    for (uint32_t i = 0; i < outputs; i++) {
        y[i] = -30.0f;
    }
    for (uint32_t i = 0; i < 4; i++) {
        y[END + i] = logf(rows->p[i]);
    }
}

/* The best sentence as letters; `outputs` may exceed the tokens. */
static const char *search(const row *rows, uint32_t width, uint32_t time, uint32_t outputs) {
    static char text[16];
    float y[RP_BEAM_MAX * 16];
    rp_arena arena;
    rp_beam *beam;
    uint32_t length;
    uint32_t rounds = 0;
    rp_arena_init(&arena, "beam", 0);
    expect_ok(rp_beam_open(&arena, width, time, TOKENS, outputs, &beam));
    rp_beam_begin(beam);
    for (; rp_beam_live(beam) > 0; rounds++) {
        assert_true(rounds < time && rp_beam_live(beam) <= width);
        for (uint32_t i = 0; i < rp_beam_live(beam); i++) {
            const int32_t *target = rp_beam_target(beam, i, &length);
            assert_int_equal(length, rounds);
            fill_outputs(rows, target, length, y + (size_t)i * outputs, outputs);
        }
        expect_ok(rp_beam_advance(beam, y));
    }
    const int32_t *best = rp_beam_best(beam, &length);
    assert_true(length <= time);
    for (uint32_t i = 0; i < length; i++) {
        text[i] = (char)('A' + best[i] - A);
    }
    text[length] = '\0';
    rp_arena_finish(&arena);
    return text;
}

/* The likeliest first token leads to a sentence that is less likely than another. */
static void a_beam_finds_what_is_likelier(void **state) {
    (void)state;
    static const row rows[] = {{"", {0.01f, 0.59f, 0.39f, 0.01f}},
                               {"A", {0.1f, 0.02f, 0.48f, 0.4f}},
                               {"B", {0.9f, 0.04f, 0.03f, 0.03f}},
                               {NULL, {0.9f, 0.04f, 0.03f, 0.03f}}};
    assert_string_equal(search(rows, 1, 8, TOKENS), "AB");
    assert_string_equal(search(rows, 2, 8, TOKENS), "B");
    assert_string_equal(search(rows, 3, 8, TOKENS), "B");
    assert_string_equal(search(rows, RP_BEAM_MAX, 8, TOKENS), "B"); /* more than there are tokens */
}

/* log 0.3 = -1.20 for the empty sentence; log (0.6 * 0.49) = -1.22, divided by (7/6)^0.6 -1.12. */
static void longer_sentences_are_not_punished(void **state) {
    (void)state;
    static const row rows[] = {{"", {0.3f, 0.6f, 0.05f, 0.05f}},
                               {NULL, {0.49f, 0.17f, 0.17f, 0.17f}}};
    assert_string_equal(search(rows, 2, 8, TOKENS), "A");
    static const row shorter[] = {{"", {0.35f, 0.5f, 0.1f, 0.05f}},
                                  {NULL, {0.49f, 0.17f, 0.17f, 0.17f}}};
    assert_string_equal(search(shorter, 2, 8, TOKENS), "");
}

/* <end> as the second likeliest token does not end the likeliest sentence. */
static void an_end_has_to_be_chosen(void **state) {
    (void)state;
    static const row rows[] = {{NULL, {0.4f, 0.5f, 0.06f, 0.04f}}};
    assert_string_equal(search(rows, 1, 5, TOKENS), "AAAAA"); /* as long as it may be */
    assert_string_equal(search(rows, 1, 1, TOKENS), "A");
}

/* Outputs without a token, and of padding, unknown and begin, are not chosen, however large. */
static void some_outputs_are_not_chosen(void **state) {
    (void)state;
    float y[10] = {800, 700, 600, 1, 2, 3, 4, 900, 5, 5};
    rp_arena arena;
    rp_beam *beam;
    uint32_t length;
    rp_arena_init(&arena, "beam", 0);
    expect_ok(rp_beam_open(&arena, 2, 1, TOKENS, 10, &beam));
    for (int again = 0; again < 2; again++) { /* a search begins anew */
        rp_beam_begin(beam);
        expect_ok(rp_beam_advance(beam, y));
        assert_int_equal(rp_beam_live(beam), 0);
        assert_int_equal(rp_beam_best(beam, &length)[0], C);
        assert_int_equal(length, 1);
    }
    y[9] = NAN;
    rp_beam_begin(beam);
    expect_err(rp_beam_advance(beam, y), RP_ERR_NUMERIC);
    expect_err(rp_beam_open(&arena, 1, 4, END, 10, &beam), RP_ERR_SHAPE);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_beam_finds_what_is_likelier),
        cmocka_unit_test(longer_sentences_are_not_punished),
        cmocka_unit_test(an_end_has_to_be_chosen),
        cmocka_unit_test(some_outputs_are_not_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
