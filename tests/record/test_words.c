/* Every kind of event has a sentence, which uses no fact that the kind lacks. */
#include "folder.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "record/words.h"

static char text[RP_WORDS_BYTES];

#define IS_TEXT(name, about) {#name, 't'},
#define IS_COUNT(name, about) {#name, 'c'},
#define IS_REAL(name, about) {#name, 'r'},
static const struct {
    const char *name;
    char type;
} facts[] = {RP_EVENT_FACTS(IS_TEXT, IS_COUNT, IS_REAL)};

static char type_of(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        if (strlen(facts[i].name) == length && strncmp(facts[i].name, name, length) == 0) {
            return facts[i].type;
        }
    }
    return 0;
}

static bool lists(const char *list, const char *name, size_t length) {
    for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (strcspn(at, " ") == length && strncmp(at, name, length) == 0) {
            return true;
        }
    }
    return false;
}

/* What is wrong with a row; NULL: nothing. */
static const char *find_mistake(const rp_event_row *row) {
    if (!row->kind || !row->facts || !row->words || !row->words[0]) {
        return "it has no words";
    }
    for (const char *at = row->facts; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (!type_of(at, strcspn(at, " "))) {
            return "it has a fact that is unknown";
        }
    }
    for (const char *at = row->words; *at; at++) {
        const size_t length = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_0123456789");
        const char *end = at + 1 + length;
        if ((unsigned char)*at < ' ' || (unsigned char)*at > '~') {
            return "it has more than ASCII";
        }
        if (*at != '{' && *at != '[') {
            continue;
        }
        const char type = type_of(at + 1, length);
        if (!lists(row->facts, at + 1, length) && strncmp(at + 1, "step", length) != 0) {
            return "its words use a fact that it lacks";
        }
        if (*at == '[' &&
            (*end != '?' || !strchr(end, ']') || strcspn(end, "[") < strcspn(end, "]"))) {
            return "it has a bracket without a question";
        }
        if (*at == '{' && (type == 'r' ? *end != ':' && *end != '*' : *end != '}')) {
            return "a number has no format, or a text has one";
        }
    }
    return NULL;
}

static void every_kind_has_words(void **state) {
    (void)state;
    for (uint32_t kind = RP_EVENT_NONE + 1; kind < RP_EVENT_KINDS; kind++) {
        const rp_event_row *row = &rp_event_rows[kind];
        const char *mistake = find_mistake(row);
        if (mistake) {
            fail_msg("kind %u, %s: %s", kind, row->kind ? row->kind : "?", mistake);
        }
        for (uint32_t other = 1; other < kind; other++) { /* one event stays or does not */
            const rp_event_row *o = &rp_event_rows[other];
            assert_true(strcmp(o->kind, row->kind) != 0);
            assert_true(!row->event || !o->event || strcmp(row->event, o->event) != 0 ||
                        (row->flags & RP_EVENT_STAYS) == (o->flags & RP_EVENT_STAYS));
        }
    }
}

static void mistakes_are_found(void **state) {
    (void)state;
    static const rp_event_row rows[] = {
        {"A", "a", 0, "board", NULL},
        {"A", "a", 0, "board", ""},
        {"A", "a", 0, "bord", "it"},
        {"A", "a", 0, "board", "{bord} is lost"},
        {"A", "a", 0, "board", "{peer} is lost"},
        {"A", "a", 0, "board", "lost[peer?: {board}]"},
        {"A", "a", 0, "board", "lost[board: {board}]"},
        {"A", "a", 0, "board", "lost[board?: {board}"},
        {"A", "a", 0, "board", "{board:.1f} is lost"},
        {"A", "a", 0, "seconds", "for {seconds} s"},
    };
    static const rp_event_row good = {"A", "a", 0, "board seconds",
                                      "{board} is lost at {step}[seconds? for {seconds*1:.1f} s|]"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_non_null(find_mistake(&rows[i]));
    }
    assert_null(find_mistake(&good));
}

/* An event with all facts of its kind, or with those only that a sentence can not do without. */
static rp_run_event fill(rp_event_kind kind, bool all) {
    const rp_event_row *row = &rp_event_rows[kind];
    rp_run_event event = {.kind = kind, .step = 7};
    char question[80];
#define FILL(name, value)                                                                          \
    (void)snprintf(question, sizeof question, "[%s?", #name);                                      \
    if (lists(row->facts, #name, strlen(#name)) && (all || !strstr(row->words, question))) {       \
        event.name = (value);                                                                      \
    }
#define FILL_TEXT(name, about) FILL(name, "a " #name)
#define FILL_COUNT(name, about) FILL(name, 12)
#define FILL_REAL(name, about) FILL(name, 0.5)
    RP_EVENT_FACTS(FILL_TEXT, FILL_COUNT, FILL_REAL)
    event.step = 7;
    return event;
}

static void every_sentence_is_whole(void **state) {
    (void)state;
    for (uint32_t kind = RP_EVENT_NONE + 1; kind < RP_EVENT_KINDS; kind++) {
        for (int all = 1; all >= 0; all--) {
            const rp_run_event event = fill((rp_event_kind)kind, all);
            assert_ptr_equal(rp_words_write(&event, text, sizeof text), text);
            if (strlen(text) < 5 || strpbrk(text, "{}|") || strstr(text, "nan") ||
                strstr(text, "  ") || text[strlen(text) - 1] == '.') {
                fail_msg("%s: '%s'", rp_event_rows[kind].kind, text);
            }
        }
    }
}

static void expect_words(const char *want, const rp_run_event *event) {
    assert_string_equal(rp_words_write(event, text, sizeof text), want);
}

/* The rules by which words are filled in, at rows that use them. */
static void facts_are_filled_in(void **state) {
    (void)state;
    expect_words(
        "no step for 9.0 s (usually 1.5 s): a waits",
        &(rp_run_event){RP_EVENT_STEP_LATE, .seconds = 9, .usual_s = 1.5, .waits = "a waits"});
    expect_words("no step for 9.0 s: a waits",
                 &(rp_run_event){RP_EVENT_STEP_LATE, .seconds = 9, .usual_s = (double)NAN,
                                 .waits = "a waits"});
    expect_words("goes on from step 5, with a: 1 (was 2)",
                 &(rp_run_event){RP_EVENT_RESUMED, .step = 5, .changes = "a: 1 (was 2)"});
    expect_words("starts again from the beginning, because there is no checkpoint",
                 &(rp_run_event){RP_EVENT_RESUMED_SAME, .changes = ""});
    expect_words("best accuracy so far: 91.25 %",
                 &(rp_run_event){RP_EVENT_BEST_ACCURACY, .accuracy = 0.9125});
    expect_words("ops of board a take 2.00 times as long as predicted: the plan stays, another "
                 "saves too little (a step takes 20 ms as it is, 19.5 ms with the best plan)",
                 &(rp_run_event){RP_EVENT_PLAN_KEPT, .board = "a", .factor = 2,
                                 .step_before_s = 0.02, .step_s = 0.0195});
    assert_string_equal(rp_words_of(RP_EVENT_LOST_ABSENT), "has not come");
}

/* Facts may come from files and peers. */
static void words_are_bounded_and_valid(void **state) {
    (void)state;
    char error[2 * RP_WORDS_BYTES];
    char cut[16];
    memset(error, 'e', sizeof error);
    error[sizeof error - 1] = '\0';
    expect_words("one\\u000atwo\\xff; the checkpoint of step 3 is used",
                 &(rp_run_event){RP_EVENT_DAMAGED, .step = 3, .error = "one\ntwo\xff"});
    const rp_run_event longest = {RP_EVENT_DAMAGED, .step = 3, .error = error};
    assert_int_equal(strlen(rp_words_write(&longest, text, sizeof text)), sizeof text - 1);
    for (size_t bytes = 1; bytes < sizeof cut; bytes++) { /* never within a character */
        const rp_run_event umlauts = {RP_EVENT_DAMAGED,
                                      .error = "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"};
        rp_words_write(&umlauts, cut, bytes);
        json_t *whole = json_string(cut);
        assert_non_null(whole);
        assert_true(strlen(cut) < bytes);
        json_decref(whole);
    }
}

static void facts_are_keys_of_the_log(void **state) {
    (void)state;
    const rp_run_event event = {RP_EVENT_FEWER, .step = 4, .boards = "left, right",
                                .why = rp_words_of(RP_EVENT_LOST_SEVERAL)};
    json_t *line = json_object();
    rp_words_put_facts(&event, line);
    assert_int_equal(json_object_size(line), 4); /* what is missing is left out */
    assert_string_equal(json_string_value(json_object_get(line, "kind")), "fewer");
    assert_string_equal(json_string_value(json_object_get(line, "boards")), "left, right");
    assert_string_equal(json_string_value(json_object_get(line, "why")), "have not come");
    assert_true(json_is_integer(json_object_get(line, "board_count"))); /* 0 is a number */
    json_decref(line);
    for (uint32_t kind = RP_EVENT_NONE + 1; kind < RP_EVENT_KINDS; kind++) {
        const rp_run_event all = fill((rp_event_kind)kind, true);
        line =
            json_pack("{s:s, s:i, s:f, s:s}", "event", "e", "step", 7, "time_s", 1.0, "text", "t");
        rp_words_put_facts(&all, line);
        size_t count = 5;
        for (const char *at = rp_event_rows[kind].facts; *at;) {
            at += strcspn(at, " ");
            at += strspn(at, " ");
            count++;
        }
        assert_int_equal(json_object_size(line), count); /* no fact has the name of another key */
        for (const char *at = json_string_value(json_object_get(line, "kind")); *at; at++) {
            assert_true(islower((unsigned char)*at) || *at == '_');
        }
        json_decref(line);
    }
}

static void a_copy_has_texts_of_its_own(void **state) {
    (void)state;
    char name[] = "left";
    rp_run_event copy;
    expect_ok(rp_words_copy(
        &arena, &(rp_run_event){.kind = RP_EVENT_FEED_HEARD, .step = 2, .board = name}, &copy));
    name[0] = 'L';
    expect_words("board left answers over its feed again", &copy);
    assert_null(copy.peer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_words),
        cmocka_unit_test(mistakes_are_found),
        cmocka_unit_test(every_sentence_is_whole),
        cmocka_unit_test(facts_are_filled_in),
        cmocka_unit_test(words_are_bounded_and_valid),
        cmocka_unit_test(facts_are_keys_of_the_log),
        cmocka_unit_test_setup_teardown(a_copy_has_texts_of_its_own, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
