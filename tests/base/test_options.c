#include "base/options.h"

#include "expect.h"

typedef struct {
    bool quiet, loud, help;
    const char *out, *format;
    uint32_t jobs;
    double minutes;
    rp_option_range seeds;
    rp_option_list set;
} values;

#define AT(member) offsetof(values, member)

static const rp_option table[] = {
    {"quiet", 'q', RP_OPTION_FLAG, NULL, AT(quiet), "Errors only", 0, NULL, false, 1},
    {"loud", 'l', RP_OPTION_FLAG, NULL, AT(loud), "Everything", 0, NULL, false, 1},
    {"out", 'o', RP_OPTION_TEXT, "FILE", AT(out), "Where to write", 0, NULL, false, 0},
    {"format", 0, RP_OPTION_CHOICE, "text|csv|json", AT(format), "How", 0, NULL, false, 0},
    {"jobs", 'j', RP_OPTION_NUMBER, "N", AT(jobs), "Concurrent runs", 8, NULL, false, 0},
    {"minutes", 0, RP_OPTION_REAL, "N", AT(minutes), "Time", 60, NULL, false, 0},
    {"seed", 0, RP_OPTION_RANGE, "N", AT(seeds), "One seed", 0, NULL, false, 2},
    {"seeds", 0, RP_OPTION_RANGE, "A..B", AT(seeds), "Many seeds", 0, NULL, false, 2},
    {"set", 0, RP_OPTION_LIST, "KEY=VALUE", AT(set), "One key", 2, NULL, false, 0},
    {"help", 'h', RP_OPTION_END, NULL, AT(help), "This list", 0, NULL, false, 0},
    {"hidden", 0, RP_OPTION_NUMBER, "N", AT(jobs), NULL, 8, NULL, false, 0},
    {0},
};

static const char *found[32];
static values got;
static rp_option_words words;

/* Parses the words of `line`, which single blanks separate. */
static rp_err parse_with(const rp_option *rows, const char *line) {
    static char text[256];
    char *argv[32];
    int argc = 0;
    (void)snprintf(text, sizeof text, "%s", line);
    for (char *at = text; *at;) {
        const size_t length = strcspn(at, " ");
        argv[argc++] = at;
        at += length;
        if (*at) {
            *at++ = '\0';
        }
    }
    got = (values){.format = "text", .jobs = 1};
    words = (rp_option_words){.about = "RUN.yaml", .least = 0, .most = 2, .item = found};
    return rp_options_parse(rows, "train", argc, argv, &got, &words);
}

static rp_err parse(const char *line) {
    return parse_with(table, line);
}

static void expect_refused(const char *line, const char *part) {
    assert_int_equal(parse(line), RP_ERR_USAGE);
    if (!strstr(rp_err_message(), part) || strncmp(rp_err_message(), "train: ", 7) != 0) {
        fail_msg("'%s': found message '%s', expected '%s' in it", line, rp_err_message(), part);
    }
}

static void values_are_read(void **state) {
    (void)state;
    assert_int_equal(parse("a.yaml --out x --format=csv -j 3 --minutes 0.5 -q b"), RP_OK);
    assert_string_equal(got.out, "x");
    assert_string_equal(got.format, "csv");
    assert_int_equal(got.jobs, 3);
    assert_true(got.minutes == 0.5 && got.quiet && !got.loud);
    assert_int_equal(words.count, 2);
    assert_string_equal(words.item[0], "a.yaml");
    assert_string_equal(words.item[1], "b");
    assert_int_equal(parse("--out --format --out= -qoy"), RP_OK); /* a value is no option */
    assert_string_equal(got.out, "y");
    assert_string_equal(got.format, "text"); /* the default */
    assert_int_equal(parse("--seed 7"), RP_OK);
    assert_true(got.seeds.first == 7 && got.seeds.last == 7);
    assert_int_equal(parse("--seeds 2..9 --hidden 4"), RP_OK);
    assert_true(got.seeds.first == 2 && got.seeds.last == 9 && got.jobs == 4);
    assert_int_equal(parse("--set a=1 --set=b=2"), RP_OK);
    assert_int_equal(got.set.count, 2);
    assert_string_equal(got.set.item[1], "b=2");
}

static void words_may_begin_with_a_dash(void **state) {
    (void)state;
    assert_int_equal(parse("- -- --out"), RP_OK);
    assert_int_equal(words.count, 2);
    assert_string_equal(words.item[0], "-");
    assert_string_equal(words.item[1], "--out");
    assert_null(got.out);
}

static void wrong_lines_are_refused(void **state) {
    (void)state;
    expect_refused("--ot x", "no option '--ot'; did you mean '--out'?");
    expect_refused("--form csv", "did you mean '--format'?"); /* no abbreviations */
    expect_refused("--dial=x", "no option '--dial'; there are: --quiet --loud");
    assert_null(strstr(rp_err_message(), "--hidden"));
    expect_refused("-x", "no option '-x'");
    expect_refused("-qx", "no option '-x'");
    expect_refused("--out", "--out: expected FILE after it");
    expect_refused("-o", "--out: expected FILE after it");
    expect_refused("--quiet=yes", "--quiet takes no value");
    expect_refused("--format xml", "--format: expected text|csv|json, found 'xml'");
    expect_refused("--format tex", "expected text|csv|json");
    expect_refused("--jobs 9", "--jobs: expected a number from 0 to 8, found '9'");
    expect_refused("--jobs -1", "found '-1'");
    expect_refused("--jobs 1x", "found '1x'");
    expect_refused("--jobs 99999999999999999999999", "expected a number");
    expect_refused("--minutes nan", "--minutes: expected a number from 0 to 60");
    expect_refused("--minutes 61", "found '61'");
    expect_refused("--seed 1..2", "--seed: expected N");
    expect_refused("--seeds 5", "--seeds: expected A..B");
    expect_refused("--seeds 5..4", "--seeds: expected A..B");
    expect_refused("--seeds 5..6x", "--seeds: expected A..B");
    expect_refused("--loud -q", "--loud and --quiet exclude each other");
    expect_refused("--seed 1 --seeds 1..2", "--seed and --seeds exclude each other");
    expect_refused("--set a --set b --set c", "more than 2 --set");
    expect_refused("a b c", "unexpected 'c'");
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    const rp_option rows[] = {
        {"to", 0, RP_OPTION_TEXT, "DIR", AT(out), "Where", 0, NULL, true, 0},
        {"help", 0, RP_OPTION_END, NULL, AT(help), "This list", 0, NULL, false, 0},
        {0}};
    assert_int_equal(parse_with(rows, "--help --wrong"), RP_OK);
    assert_true(got.help);
    assert_int_equal(parse_with(rows, "--to x"), RP_OK);
    assert_int_equal(parse_with(rows, ""), RP_ERR_USAGE);
    assert_string_equal(rp_err_message(), "train: --to DIR is missing");
    words.least = 1;
    char *none[] = {NULL};
    assert_int_equal(rp_options_parse(table, "", 0, none, &got, &words), RP_ERR_USAGE);
    assert_string_equal(rp_err_message(), "expected RUN.yaml");
}

static void the_help_text_has_lines_of_80_columns(void **state) {
    (void)state;
    const rp_option rows[] = {
        {"a-very-long-name", 0, RP_OPTION_TEXT, "VALUE-OF-IT", AT(out),
         "A text which is so long that it needs more than one line of a terminal with 80 columns",
         0, NULL, false, 0},
        {"hidden", 0, RP_OPTION_FLAG, NULL, AT(quiet), NULL, 0, NULL, false, 0},
        {0}};
    char text[1024] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    assert_non_null(file);
    rp_options_print(file, rows);
    (void)fclose(file);
    assert_string_equal(text,
                        "      --a-very-long-name VALUE-OF-IT\n"
                        "                              A text which is so long that it needs "
                        "more than\n"
                        "                              one line of a terminal with 80 columns\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(words_may_begin_with_a_dash),
        cmocka_unit_test(wrong_lines_are_refused),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(the_help_text_has_lines_of_80_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
