#include "base/nearest.h"

#include "expect.h"

static void distances(void **state) {
    (void)state;
    assert_int_equal(rp_word_distance("", ""), 0);
    assert_int_equal(rp_word_distance("abc", ""), 3);
    assert_int_equal(rp_word_distance("", "abc"), 3);
    assert_int_equal(rp_word_distance("kitten", "sitting"), 3);
    assert_int_equal(rp_word_distance("trian", "train"), 1); /* neighbours swapped */
    assert_int_equal(rp_word_distance("ca", "abc"), 3);      /* optimal string alignment */
}

static void long_words_are_far(void **state) {
    (void)state;
    char word[65] = {0};
    memset(word, 'a', 64);
    assert_int_equal(rp_word_distance(word, word), UINT32_MAX);
    word[63] = '\0';
    assert_int_equal(rp_word_distance(word, word), 0);
}

static const char *find(const char *word) {
    static const char *const known[] = {"train", "eval", "plan", "profile", "doctor", "data"};
    rp_nearest nearest = {.word = word};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        rp_nearest_offer(&nearest, known[i]);
    }
    return nearest.best ? nearest.best : "nothing";
}

static void the_nearest_word_is_found(void **state) {
    (void)state;
    assert_string_equal(find("trian"), "train");
    assert_string_equal(find("doktor"), "doctor");
    assert_string_equal(find("prof"), "profile"); /* its beginning */
    assert_string_equal(find("pln"), "plan");
    assert_string_equal(find("xyzzy"), "nothing");
    assert_string_equal(find(""), "nothing");
    assert_string_equal(find("p"), "nothing");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),
        cmocka_unit_test(long_words_are_far),
        cmocka_unit_test(the_nearest_word_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
