#include "run_folder.h"

#include "view/state_json.h"

#include <jansson.h>

static void boards_of_an_active_run(void **state) {
    rp_view_run run = run_here();
    rp_view_facts facts;
    (void)state;
    expect_ok(rp_owner_write(folder));
    write_plan();
    add_steps(1, 12);
    write_now();
    expect_ok(rp_view_read(&arena, &run, &facts));
    assert_int_equal(facts.state.condition, RP_RUN_TRAINING);
    assert_int_equal(facts.board_count, 2);
    assert_string_equal(facts.board[0].name, "left");
    assert_string_equal(facts.board[0].layers, "fc1 .. relu1");
    assert_string_equal(facts.board[0].stages, "0");
    assert_string_equal(facts.board[0].state, "training");
    assert_true(facts.board[0].busy == 0.75);
    assert_true(isnan(facts.board[0].heat_c));
    assert_string_equal(facts.board[1].layers, "fc2");
    assert_string_equal(facts.board[1].state, "silent");
    assert_true(isnan(facts.board[1].busy)); /* 7 is no share */
    assert_true(facts.board[1].heat_c == 61.5);
    assert_int_equal(facts.wire_count, 1);
    assert_true(facts.wire[0].use == 0.25);
    assert_true(facts.left_s == 14.5);
    assert_true(facts.age_s > 1e9); /* it was written in 1970 */
    assert_string_equal(facts.controller, "train");
}

static void the_state_is_json(void **state) {
    rp_view_run run = run_here();
    rp_view_facts facts;
    rp_view_text text = {.arena = &arena};
    (void)state;
    expect_ok(rp_view_read(&arena, &run, &facts));
    rp_view_state_json(&facts, &text);
    expect_ok(text.err);
    assert_null(strchr(text.data, '\n'));
    json_t *root = json_loads(text.data, 0, NULL);
    assert_non_null(root);
    const json_t *boards = json_object_get(root, "boards");
    assert_int_equal(json_array_size(boards), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(boards, 1), "name")),
                        "right \"2\"");
    assert_null(json_object_get(json_array_get(boards, 1), "busy")); /* unknown is absent */
    assert_true(json_number_value(json_object_get(root, "step")) == 12);
    json_decref(root);
    text = (rp_view_text){.arena = &arena};
    rp_view_add_string(&text, "a\"\\\x01\xff\xc3\xa4");
    assert_string_equal(text.data, "\"a\\\"\\\\??\xc3\xa4\"");
}

/* The controller is dead: what now.json says of boards is not true any more. */
static void the_state_of_an_ended_run_is_old(void **state) {
    rp_view_run run = run_here();
    rp_view_facts facts;
    (void)state;
    rp_owner_remove(folder);
    (void)write_text("summary.json",
                     "{\"status\":\"finished\",\"samples\":2560,\"samples_per_s\":60,"
                     "\"ledger\":{\"lost\":0,\"repeated\":3},\"stage\":[{},{}],\"wire\":[]}");
    expect_ok(rp_view_read(&arena, &run, &facts));
    assert_int_equal(facts.state.condition, RP_RUN_FINISHED);
    assert_string_equal(facts.board[0].state, "");
    assert_true(isnan(facts.board[0].busy));
    assert_true(facts.board[0].op_s[1] == 4.0); /* counts stay */
    assert_true(isnan(facts.age_s));
    assert_true(facts.lost == 0 && facts.repeated == 3);
    assert_true(facts.samples == 768);
}

static void a_run_of_an_older_version_has_its_summary(void **state) {
    rp_view_run run = run_here();
    rp_view_facts facts;
    (void)state;
    assert_int_equal(unlink(in_folder("now.json")), 0);
    (void)write_text(
        "summary.json",
        "{\"status\":\"finished\",\"samples\":2560,\"stage\":[{\"device_bytes_max\":99,"
        "\"idle_s\":2.5,\"gap_max\":3}],\"wire\":[{\"kind\":\"feed\",\"from\":\"host\",\"to\":0,"
        "\"bytes\":10,\"rate_mbit\":8,\"utilisation\":0.5,\"delay_p50_ms\":2},"
        "{\"kind\":\"hop\",\"from\":1,\"to\":77,\"bytes\":-4,\"utilisation\":null}]}");
    expect_ok(rp_view_read(&arena, &run, &facts));
    assert_true(facts.samples == 2560);
    assert_true(facts.board[0].memory_bytes == 99 && facts.board[0].staleness == 3);
    assert_int_equal(facts.wire_count, 2);
    assert_string_equal(facts.wire[0].from, "host");
    assert_string_equal(facts.wire[0].to, "left");
    assert_true(facts.wire[0].rate_bytes_s == 1e6);
    assert_true(facts.wire[0].delay_s[0] > 0.00199 && facts.wire[0].delay_s[0] < 0.00201);
    assert_true(isnan(facts.wire[1].bytes) && isnan(facts.wire[1].use));
    assert_string_equal(facts.wire[1].to, "host"); /* no such board */
}

static void damaged_files_are_ignored(void **state) {
    static const char *const texts[] = {
        "", "[]", "{\"boards\":7,\"wires\":{}}", "{\"nodes\":[7]}",
        "{\"boards\":[7,{\"name\":5}],\"wires\":[3],\"pid\":\"x\"}"};
    rp_view_run run = run_here();
    rp_view_facts facts;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        (void)write_text("now.json", texts[i]);
        (void)write_text("plan.json", texts[i]);
        (void)write_text("summary.json", texts[i]);
        expect_ok(rp_view_read(&arena, &run, &facts));
        for (uint32_t k = 0; k < facts.board_count; k++) {
            assert_true(isnan(facts.board[k].busy));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boards_of_an_active_run),
        cmocka_unit_test(the_state_is_json),
        cmocka_unit_test(the_state_of_an_ended_run_is_old),
        cmocka_unit_test(a_run_of_an_older_version_has_its_summary),
        cmocka_unit_test(damaged_files_are_ignored),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
