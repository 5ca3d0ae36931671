/* The keys of `lanes`, and whose the boards of a roster are. */
#include "folder.h"

#include "run/lanes.h"

static rp_err read_keys(const char *text, rp_lanes_keys *out) {
    rp_node *root;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &root));
    return rp_lanes_read(root, out);
}

static void what_is_not_said_is_chosen(void **state) {
    rp_lanes_keys keys;
    (void)state;
    expect_ok(read_keys("model: mlp\n", &keys));
    assert_int_equal(keys.count, 0);
    assert_int_equal(keys.own, RP_LANE_NONE);
    expect_ok(read_keys("lanes: {count: 3}\n", &keys));
    assert_int_equal(keys.count, 3);
    assert_true(keys.every > 0);
    expect_close(keys.alpha, 0.3, 1e-12, 0);
    assert_true(keys.lag_auto);
    assert_int_equal(keys.own, RP_LANE_NONE);
    expect_ok(read_keys("lanes: {count: 2, every: 7, alpha: 0.5, lag: 4, lane: 1}\n", &keys));
    assert_int_equal(keys.every, 7);
    expect_close(keys.alpha, 0.5, 0, 0);
    assert_false(keys.lag_auto);
    assert_int_equal(keys.lag, 4);
    assert_int_equal(keys.own, 1);
}

static void wrong_keys_are_refused(void **state) {
    static const char *const wrong[] = {
        "lanes: 3\n",
        "lanes: {every: 10}\n",
        "lanes: {count: 1}\n",
        "lanes: {count: 9}\n",
        "lanes: {count: 2, every: 0}\n",
        "lanes: {count: 2, alpha: 0.51}\n",
        "lanes: {count: 2, alpha: 0}\n",
        "lanes: {count: 2, alpha: .nan}\n",
        "lanes: {count: 2, lag: -1}\n",
        "lanes: {count: 2, lane: 2}\n",
        "lanes: {count: 2, laps: 2}\n",
    };
    rp_lanes_keys keys;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_err(read_keys(wrong[i], &keys), RP_ERR_USAGE);
    }
}

/* Five boards and a spare for two lanes: each board is one lane's. */
static void boards_are_dealt_in_order(void **state) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "spare"};
    rp_roster_entry all[6];
    rp_lanes_keys keys;
    uint32_t seen = 0;
    rp_node *at;
    (void)state;
    expect_ok(rp_config_read_text(&arena, "ring: {}\n", 9, "run.yaml", &at));
    for (uint32_t i = 0; i < 6; i++) {
        all[i] = (rp_roster_entry){.name = names[i]};
    }
    for (uint32_t lane = 0; lane < 2; lane++) {
        rp_roster_entry *own = all;
        uint32_t boards = 5;
        uint32_t spares = 1;
        keys = (rp_lanes_keys){.count = 2, .own = lane};
        expect_ok(rp_lanes_deal(&arena, &keys, at, &own, &boards, &spares));
        assert_int_equal(boards, lane == 0 ? 2 : 3);
        assert_int_equal(spares, lane == 0 ? 0 : 1);
        for (uint32_t i = 0; i < boards + spares; i++) {
            assert_string_equal(own[i].name, names[seen++]);
        }
    }
    assert_int_equal(seen, 6);
    rp_roster_entry *few = all;
    uint32_t boards = 1;
    uint32_t spares = 0;
    expect_err(rp_lanes_deal(&arena, &keys, at, &few, &boards, &spares), RP_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_said_is_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_keys_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(boards_are_dealt_in_order, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
