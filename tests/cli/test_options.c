/* Each verb with each option that any verb has: taken where the verb has it, refused elsewhere. */
#include <ctype.h>

#include "cli/cli.h"
#include "expect.h"

static rp_arena arena;

/* A value that the option takes. */
static const char *value_of(const rp_option *option) {
    static char first[32];
    switch (option->kind) {
    case RP_OPTION_CHOICE:
        (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(option->value, "|"),
                       option->value);
        return first;
    case RP_OPTION_NUMBER:
    case RP_OPTION_REAL:
        return "1";
    case RP_OPTION_RANGE:
        return strstr(option->value, "..") ? "1..2" : "1";
    default:
        return "x";
    }
}

static const rp_option *find_own(const rp_option *table, const char *name) {
    while (table->name && strcmp(table->name, name) != 0) {
        table++;
    }
    return table->name ? table : NULL;
}

static bool is_flag(const rp_option *option) {
    return option->kind == RP_OPTION_FLAG || option->kind == RP_OPTION_END;
}

/* A line of the verb with all that it needs, and with `option` unless that is needed anyway. */
static rp_err parse(const rp_cli_verb *verb, const rp_option *table, const rp_option *option,
                    rp_cli_args *out) {
    static char text[RP_OPTIONS_MAX][96];
    char *argv[RP_OPTIONS_MAX];
    int argc = 0;
    for (uint32_t i = 0; i < verb->words_min; i++) {
        (void)snprintf(text[argc], sizeof text[0], "word");
        argc++;
    }
    for (const rp_option *at = table; at->name; at++) {
        if (at->required && strcmp(at->name, option->name) != 0) {
            (void)snprintf(text[argc++], sizeof text[0], "--%s=%s", at->name, value_of(at));
        }
    }
    (void)snprintf(text[argc++], sizeof text[0], is_flag(option) ? "--%s" : "--%s=%s", option->name,
                   value_of(option));
    for (int i = 0; i < argc; i++) {
        argv[i] = text[i];
    }
    return rp_cli_parse(&arena, verb, argc, argv, out);
}

static void verbs_take_their_own_options_only(void **state) {
    (void)state;
    uint32_t taken = 0;
    uint32_t refused = 0;
    for (const rp_cli_verb *verb = rp_cli_verbs; verb->name; verb++) {
        rp_option table[RP_OPTIONS_MAX];
        rp_cli_options_of(verb, table);
        for (const rp_option *at = rp_cli_options; verb->run && at->name; at++) {
            const rp_option *own = find_own(table, at->name);
            static rp_cli_args args;
            char begins[96];
            const rp_err err = parse(verb, table, own ? own : at, &args);
            (void)snprintf(begins, sizeof begins, "%s: no option '--%s'", verb->name, at->name);
            if (own && err != RP_OK) {
                fail_msg("%s --%s: %s", verb->name, at->name, rp_err_message());
            }
            if (!own &&
                (err != RP_ERR_USAGE || strncmp(rp_err_message(), begins, strlen(begins)) != 0)) {
                fail_msg("found %d '%s', expected '%s'", (int)err, rp_err_message(), begins);
            }
            taken += own != NULL;
            refused += !own;
        }
    }
    assert_true(taken > 200 && refused > 1000);
}

static void an_option_of_another_verb_is_named(void **state) {
    (void)state;
    const rp_cli_verb *verb = rp_cli_verbs;
    while (strcmp(verb->name, "boards list") != 0) {
        verb++;
    }
    char *argv[] = {"--roster", "lab.yaml", "--dial", "x"};
    rp_cli_args args;
    assert_int_equal(rp_cli_parse(&arena, verb, 4, argv, &args), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "boards list: no option '--dial'"));
    assert_int_equal(rp_cli_parse(&arena, verb, 2, argv, &args), RP_OK);
    assert_string_equal(args.roster, "lab.yaml");
    assert_string_equal(args.format, "text");
    assert_int_equal(rp_cli_wait_s(&args, 8), 8);
    assert_int_equal(rp_cli_parse(&arena, verb, 0, argv, &args), RP_ERR_USAGE);
    assert_string_equal(rp_err_message(), "boards list: --roster FILE.yaml is missing");
}

static void every_row_is_an_option_of_a_verb(void **state) {
    (void)state;
    for (const rp_option *at = rp_cli_options; at->name; at++) {
        bool used = false;
        for (const rp_cli_verb *verb = rp_cli_verbs; verb->name && !used; verb++) {
            rp_option table[RP_OPTIONS_MAX];
            rp_cli_options_of(verb, table);
            for (const rp_option *own = table; verb->run && own->name && !used; own++) {
                used = own->offset == at->offset && own->about == at->about;
            }
        }
        if (!used) {
            fail_msg("no verb has the row of --%s", at->name);
        }
    }
}

static void letters_and_names_are_unique_in_a_verb(void **state) {
    (void)state;
    for (const rp_cli_verb *verb = rp_cli_verbs; verb->name; verb++) {
        rp_option table[RP_OPTIONS_MAX];
        rp_cli_options_of(verb, table);
        for (const rp_option *at = table; at->name; at++) {
            assert_true(!at->letter || isalpha((unsigned char)at->letter));
            assert_non_null(at->about);
            assert_int_equal(is_flag(at), at->value == NULL);
            for (const rp_option *other = table; other < at; other++) {
                if (strcmp(other->name, at->name) == 0 ||
                    (at->letter && other->letter == at->letter)) {
                    fail_msg("%s: --%s and --%s", verb->name, other->name, at->name);
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_take_their_own_options_only),
        cmocka_unit_test(an_option_of_another_verb_is_named),
        cmocka_unit_test(every_row_is_an_option_of_a_verb),
        cmocka_unit_test(letters_and_names_are_unique_in_a_verb),
    };
    rp_arena_init(&arena, "test", 0);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rp_arena_finish(&arena);
    return failed;
}
