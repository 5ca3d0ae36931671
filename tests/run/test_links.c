/* `ring.link`: profiles by name and by path, traces, and what lies over what. */
#include "folder.h"

#include <stdlib.h>

#include "base/log.h"
#include "run/links.h"
#include "run/paths.h"

static struct {
    rp_link_profile link;
    rp_link_hops hops;
} run;

/* As a run file in the folder says it; three boards. */
static rp_err read_link(const char *link) {
    rp_node *root;
    char *text;
    char *path;
    rp_err err;
    memset(&run, 0, sizeof run);
    expect_ok(rp_arena_printf(&arena, &text, "ring:\n  link: %s\n", link));
    write_text("run.yaml", text);
    expect_ok(rp_arena_string(&arena, in_folder("run.yaml"), &path));
    RP_TRY(rp_config_read_file(&arena, path, &root));
    RP_TRY(rp_paths_resolve(&arena, root));
    RP_TRY(rp_links_read(&arena, rp_node_at(root, "ring.link"), 3, NULL, &run.link, &run.hops));
fail:
    return err;
}

static rp_link_profile wire(uint32_t from, uint32_t to) {
    return rp_link_profile_of(&run.link, &run.hops, from, to);
}

/* Every one that is shipped is read, says what it is and where its numbers are from. */
static void shipped_profiles_are_whole(void **state) {
    (void)state;
    static const char *const wanted[] = {"ethernet", "lte", "wifi-good", "wifi-walking-away"};
    const char *const *names;
    uint32_t count;
    expect_ok(rp_links_names(&arena, &names, &count));
    assert_int_equal(count, 4);
    for (uint32_t i = 0; i < count; i++) {
        const char *about;
        const char *source = "";
        char *path;
        rp_node *root;
        assert_string_equal(names[i], wanted[i]);
        expect_ok(rp_links_about(&arena, names[i], &about));
        assert_true(strlen(about) > 10 && strlen(about) < 90);
        expect_ok(rp_arena_printf(&arena, &path, "%s/%s.yaml", rp_links_folder(), names[i]));
        expect_ok(rp_config_read_file(&arena, path, &root));
        expect_ok(rp_node_string(root, "source", &source));
        assert_true(strstr(source, "Rate") && strstr(source, "made up"));
        expect_ok(read_link(names[i]));
        const rp_link_profile line = wire(0, 1);
        assert_true(rp_link_profile_rate_mbit(&line) > 1);
        assert_true(rp_link_profile_delay_ms(&line) > 0);
    }
}

static void what_is_said_lies_over_the_profile(void **state) {
    (void)state;
    expect_ok(read_link("lte"));
    expect_close(wire(0, 1).rate_mbit, 6, 0, 0);
    expect_close(wire(RP_LINK_HOST, 2).rate_mbit, 13, 0, 0);
    expect_close(wire(2, RP_LINK_HOST).delay_ms, 35, 0, 0);
    expect_ok(read_link("{profile: lte, delay_ms: 100}"));
    expect_close(wire(RP_LINK_HOST, 2).delay_ms, 100, 0, 0); /* over its hops, too */
    expect_close(wire(RP_LINK_HOST, 2).rate_mbit, 13, 0, 0);
    expect_close(wire(0, 1).delay_ms, 100, 0, 0);
    expect_ok(read_link("{profile: ethernet, loss: 0.1, hops: ["
                        "{between: [1, any], profile: lte, rate_mbit: 2},"
                        "{from: 1, to: 2, profile: wifi-walking-away}]}"));
    expect_close(wire(0, 2).rate_mbit, 941, 0, 0);
    expect_close(wire(0, 2).loss, 0.1, 0, 0);
    expect_close(wire(0, 1).rate_mbit, 2, 0, 0); /* all that the profile does not say is 0 */
    expect_close(wire(0, 1).loss, 0, 0, 0);
    expect_close(wire(0, 1).delay_ms, 70, 0, 0);
    expect_close(wire(RP_LINK_HOST, 1).delay_ms, 35, 0, 0); /* of its own hops what matches */
    expect_close(wire(RP_LINK_HOST, 0).delay_ms, 0.15, 0, 0);
    const rp_link_profile walk = wire(1, 2);
    assert_non_null(walk.trace);
    assert_string_equal(walk.shared, "air");
    assert_null(wire(2, 1).trace);
}

static void traces_are_found_beside_their_file(void **state) {
    (void)state;
    write_text("a.csv", "0,5\n10,1\n");
    write_text("mine.yaml", "rate_mbit: 3\nhops: [{from: host, trace: a.csv}]\n");
    expect_ok(read_link("{trace: a.csv, hops: [{from: 0, trace: none}, {from: 2, trace: a.csv}]}"));
    assert_non_null(wire(1, 0).trace);
    assert_null(wire(0, 1).trace);
    assert_true(wire(2, 0).trace->has_rate);
    expect_ok(read_link("{profile: ./mine.yaml}"));
    assert_non_null(wire(RP_LINK_HOST, 0).trace);
    expect_close(wire(0, 1).rate_mbit, 3, 0, 0);
    expect_ok(read_link("mine.yaml"));
    assert_non_null(wire(RP_LINK_HOST, 0).trace);
}

/* run.yaml of a run folder lies elsewhere. */
static void paths_become_absolute(void **state) {
    (void)state;
    static const char text[] = "ring: {link: {trace: a.csv, profile: lte, hops: [{from: 0, "
                               "profile: b/c.yaml, trace: none}, {to: 1, trace: d}]}}";
    rp_node *root;
    char *written;
    expect_ok(rp_config_read_text(&arena, text, sizeof text - 1, "--set", &root));
    expect_ok(rp_paths_make_absolute(&arena, root));
    expect_ok(rp_config_text(&arena, root, &written));
    assert_string_equal(rp_node_text(rp_node_at(root, "ring.link.profile")), "lte");
    assert_int_equal(rp_node_text(rp_node_at(root, "ring.link.trace"))[0], '/');
    const rp_node *hops = rp_node_at(root, "ring.link.hops");
    rp_node *first = rp_node_item(hops, 0);
    assert_int_equal(rp_node_text(rp_node_at(first, "profile"))[0], '/');
    assert_string_equal(rp_node_text(rp_node_at(first, "trace")), "none");
    assert_int_equal(rp_node_text(rp_node_at(rp_node_item(hops, 1), "trace"))[0], '/');
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    write_text("bad.csv", "0,5\n10,-1\n");
    write_text("odd.yaml", "rate_mbit: 3\nhops: [{from: 0}]\n");
    write_text("deep.yaml", "profile: lte\n");
    static const char *const cases[][2] = {
        {"wifi",
         "run.yaml:2: ring.link: unknown link profile 'wifi': expected ethernet, lte, wifi-good, "
         "wifi-walking-away, or a path to a file"},
        {"{profile: wifi}", "run.yaml:2: ring.link.profile: unknown link profile 'wifi'"},
        {"{hops: [{from: 1, profile: [a]}]}", "expected the name of a profile, or a path"},
        {"[5]", "expected a map like"},
        {"{trace: bad.csv}", "bad.csv:2: the rate is not from 0"},
        {"{trace: [1, 2]}", "expected a trace, or none"},
        {"{trace: nothing.csv}", "nothing.csv: No such file"},
        {"odd.yaml", "odd.yaml:2: hops[0].from: expected `host` or `any`, found '0'"},
        {"deep.yaml", "deep.yaml:1: profile: expected a map, not the name of a profile"},
        {"no/such.yaml", "such.yaml"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_err err = read_link(cases[i][0]);
        if (err == RP_OK || !strstr(rp_err_message(), cases[i][1])) {
            fail_msg("%s: %d '%s' does not say '%s'", cases[i][0], (int)err, rp_err_message(),
                     cases[i][1]);
        }
    }
}

/* All of it goes to each board in one message. */
static void too_much_text_is_refused(void **state) {
    (void)state;
    FILE *file = fopen(in_folder("long.csv"), "w");
    assert_non_null(file);
    for (int i = 0; i < 16000; i++) {
        (void)fprintf(file, "%d,%d,%d\n", i, 1000000 - i, 50000 - i);
    }
    assert_int_equal(fclose(file), 0);
    expect_ok(read_link("{trace: long.csv}"));
    expect_err(read_link("{hops: [{from: 0, trace: long.csv}, {from: 1, trace: long.csv}, "
                         "{from: 2, trace: long.csv}]}"),
               RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "expected fewer or shorter traces"));
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shipped_profiles_are_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_said_lies_over_the_profile, setup, teardown),
        cmocka_unit_test_setup_teardown(traces_are_found_beside_their_file, setup, teardown),
        cmocka_unit_test_setup_teardown(paths_become_absolute, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(too_much_text_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
