#include "expect.h"

#include "runs/story.h"

static rp_story read(const char *line) {
    rp_story story;
    rp_story_read(line, strlen(line), &story);
    return story;
}

static void lines_are_sentences(void **state) {
    (void)state;
    static const struct {
        const char *line, *text;
        rp_story_kind kind;
    } cases[] = {
        {"{\"step\":985,\"epoch\":2,\"loss\":0.43121,\"lr\":0.1,\"samples_per_s\":4901.2,"
         "\"time_s\":31.4}\n",
         "    0:31  step 985  epoch 3  loss 0.4312  4901 samples/s", RP_STORY_STEP},
        {"{\"step\":1,\"epoch\":0,\"loss\":null,\"lr\":0.1,\"samples_per_s\":0.0,\"time_s\":15702}",
         " 4:21:42  step 1  epoch 1  loss not finite", RP_STORY_STEP},
        {"{\"step\":2,\"epoch\":0,\"loss\":12345.6,\"samples_per_s\":9.96,\"time_s\":1}",
         "    0:01  step 2  epoch 1  loss 1.235e+04  10.0 samples/s", RP_STORY_STEP},
        {"{\"event\":\"eval\",\"step\":4,\"loss\":2.25,\"accuracy\":0.234375,\"samples\":64,"
         "\"time_s\":1.2,\"split\":\"test\"}",
         "    0:01  step 4: test loss 2.2500, accuracy 23.44 %", RP_STORY_EVENT},
        {"{\"event\":\"eval\",\"step\":4,\"loss\":2.25,\"samples\":64,\"time_s\":1.2,"
         "\"split\":\"validation\"}",
         "    0:01  step 4: validation loss 2.2500", RP_STORY_EVENT},
        {"{\"step\":3,\"epoch\":2,\"loss\":0.5,\"samples_per_s\":120.5,\"round\":3,\"sites\":7,"
         "\"asked\":8,\"time_s\":1}",
         "    0:01  round 3  7 of 8 sites  loss 0.5000  120 samples/s", RP_STORY_STEP},
        {"{\"event\":\"eval\",\"step\":3,\"round\":3,\"loss\":2.25,\"time_s\":1,"
         "\"split\":\"test\"}",
         "    0:01  round 3: test loss 2.2500", RP_STORY_EVENT},
        {"{\"event\":\"missing\",\"step\":3,\"round\":4,\"text\":\"missing: a\",\"time_s\":1}",
         "    0:01  round 3: missing: a", RP_STORY_EVENT},
        {"{\"event\":\"fault\",\"step\":7,\"time_s\":61,\"text\":\"board 2 is gone\"}",
         "    1:01  step 7: board 2 is gone", RP_STORY_EVENT},
        {"{\"event\":\"fault\",\"step\":7,\"time_s\":61,\"text\":\"a\\u001b[2Jb\\n\"}",
         "    1:01  step 7: a?[2Jb?", RP_STORY_EVENT},
        {"{\"event\":\"prediction\",\"step\":7,\"stage\":1,\"time_s\":61}", NULL, RP_STORY_NOTHING},
        {"{\"event\":\"fault\",\"step\":-7,\"text\":\"a\"}", NULL, RP_STORY_NOTHING},
        {"{\"step\":\"7\"}", NULL, RP_STORY_NOTHING},
        {"{\"step\":7", NULL, RP_STORY_NOTHING},
        {"[7]", NULL, RP_STORY_NOTHING},
        {"", NULL, RP_STORY_NOTHING},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_story story = read(cases[i].line);
        assert_int_equal(story.kind, cases[i].kind);
        if (cases[i].text) {
            assert_string_equal(story.text, cases[i].text);
        }
    }
    assert_int_equal(read(cases[0].line).step, 985);
    assert_true(read(cases[0].line).time_s == 31.4);
}

static void a_long_text_is_cut(void **state) {
    (void)state;
    char line[2000];
    const int used =
        snprintf(line, sizeof line,
                 "{\"event\":\"fault\",\"step\":7,\"time_s\":61,\"text\":\"%01500d\"}", 1);
    assert_true(used > 1500 && used < (int)sizeof line);
    const rp_story story = read(line);
    assert_int_equal(story.kind, RP_STORY_EVENT);
    assert_int_equal(strlen(story.text), sizeof story.text - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_sentences),
        cmocka_unit_test(a_long_text_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
