#include "expect.h"

#include <string.h>

#include "predict/bleu.h"

/* What sacrebleu 2.6 says: Tokenizer13a, and corpus_bleu(translations, [references]).score. */

static void words_are_those_of_13a(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"Hello, world!", "Hello , world !"},
        {"It costs $3.50, not 3,500.", "It costs $ 3.50 , not 3,500 ."},
        {"A--B \042quoted\042 &quot;x&quot; &amp; <skipped> y",
         "A--B \042 quoted \042 \042 x \042 & y"},
        {"e.g. this...and that,,x", "e . g . this . . . and that , , x"},
        {"1990-2000 well-known 5-", "1990 - 2000 well-known 5 -"},
        {"Zwei M\303\244nner, die (in K\303\266ln) \303\274ber 1.000 km fahren.",
         "Zwei M\303\244nner , die ( in K\303\266ln ) \303\274ber 1.000 km fahren ."},
        {"na\303\257ve caf\303\251. \342\200\234Ja\342\200\235, sagte er\342\200\246",
         "na\303\257ve caf\303\251 . \342\200\234Ja\342\200\235 , sagte er\342\200\246"},
        {"tab\011and\302\240nbsp  \342\200\203wide", "tab and nbsp wide"},
        {"a/b {c} [d] ~e `f` @g #h %i ^j _k |l",
         "a / b { c } [ d ] ~ e ` f ` @ g # h % i ^ j _ k | l"},
        {".5 , 7. ,8 9,", ". 5 , 7 . , 8 9 ,"},
        {"", ""},
        {"'s don't isn't", "'s don't isn't"},
        {"\346\227\245\346\234\254\343\200\202\350\252\236, text.",
         "\346\227\245\346\234\254\343\200\202\350\252\236 , text ."},
        {"x.y.z 1.2.3 a.1 1.a", "x . y . z 1.2.3 a . 1 1 . a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_text *words;
        uint32_t count;
        char got[200] = "";
        size_t used = 0;
        rp_arena_init(&arena, "bleu", 0);
        expect_ok(
            rp_bleu_words(&arena, &(rp_text){cases[i][0], strlen(cases[i][0])}, &words, &count));
        for (uint32_t k = 0; k < count; k++) {
            used += (size_t)snprintf(got + used, sizeof got - used, "%s%.*s", k > 0 ? " " : "",
                                     (int)words[k].bytes, words[k].at);
        }
        assert_string_equal(got, cases[i][1]);
        rp_arena_finish(&arena);
    }
}

static void add_pair(rp_bleu *bleu, const char *translation, const char *reference) {
    expect_ok(rp_bleu_add(bleu, &(rp_text){translation, strlen(translation)},
                          &(rp_text){reference, strlen(reference)}));
}

static void scores_are_those_of_sacrebleu(void **state) {
    (void)state;
    static const struct {
        const char *translation[3], *reference[3];
        double score;
    } cases[] = {
        {{"the cat sat on the mat", "a man is riding a horse in the field .", "two dogs"},
         {"the cat is on the mat", "a man rides a horse across a field .", "two dogs play in snow"},
         17.322543243972465},
        {{"A small test .", "something else entirely here"},
         {"A small test .", "completely different words appear now"},
         44.12484512922977},
        {{"x y z"}, {"a b c d"}, 0.0},
        {{"ein Mann mit einem Hut.", "zwei Frauen gehen, und 3.5 Kinder laufen!"},
         {"ein Mann mit Hut.", "zwei Frauen gehen und 3.5 Kinder laufen!"},
         49.616830003403614},
        {{"the the the the the the the"}, {"the cat is on the mat"}, 7.809849842300637},
        {{"a b"}, {"a b"}, 0.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_bleu bleu = {0};
        for (size_t k = 0; k < 3 && cases[i].translation[k]; k++) {
            add_pair(&bleu, cases[i].translation[k], cases[i].reference[k]);
        }
        expect_close(rp_bleu_score(&bleu), cases[i].score, 1e-12, 0);
    }
    const rp_bleu nothing = {0};
    assert_true(rp_bleu_score(&nothing) == 0);
}

/* As Python's split() does, a zero is a character of a word. */
static void zeros_are_bytes_of_words(void **state) {
    (void)state;
    static const rp_text line = {"a\0b c\0 \0d", 9};
    rp_arena arena;
    rp_text *words;
    uint32_t count;
    rp_bleu bleu = {0};
    rp_arena_init(&arena, "bleu", 0);
    expect_ok(rp_bleu_words(&arena, &line, &words, &count));
    assert_int_equal(count, 3);
    assert_true(words[0].bytes == 3 && words[1].bytes == 2 && words[2].bytes == 2);
    assert_memory_equal(words[0].at, "a\0b", 3);
    assert_memory_equal(words[2].at, "\0d", 2);
    rp_arena_finish(&arena);
    expect_ok(rp_bleu_add(&bleu, &line, &(rp_text){"a c d", 5}));
    assert_true(bleu.match[0] == 0 && bleu.words == 3);
    expect_ok(rp_bleu_add(&bleu, &line, &line));
    assert_true(bleu.match[0] == 3 && bleu.match[2] == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_those_of_13a),
        cmocka_unit_test(scores_are_those_of_sacrebleu),
        cmocka_unit_test(zeros_are_bytes_of_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
