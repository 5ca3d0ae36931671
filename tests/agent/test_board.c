#include "expect.h"

#include "agent/board.h"

static void known_boards_and_unknown_ones(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_board board;
    expect_ok(rp_board_find(&arena, "pocl-cpu", &board));
    assert_string_equal(board.name, "pocl-cpu");
    assert_non_null(board.platform);
    assert_non_null(board.tuning_path);
    assert_true(board.memory_fraction > 0 && board.memory_fraction <= 1);
    expect_err(rp_board_find(&arena, "no-such-board", &board), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "pocl-cpu"));
    expect_err(rp_board_find(&arena, "../boards/pocl-cpu", &board), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

static void auto_finds_one(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_board board;
    expect_ok(rp_board_find(&arena, "auto", &board));
    assert_true(strlen(board.name) > 0);
    rp_arena_finish(&arena);
}

static void a_folder_of_ones_own(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_board board;
    assert_int_equal(setenv("RINGPIPE_BOARDS", "/nonexistent", 1), 0);
    expect_err(rp_board_find(&arena, "pocl-cpu", &board), RP_ERR_USAGE);
    expect_ok(rp_board_find(&arena, "auto", &board));
    assert_string_equal(board.name, "generic");
    assert_null(board.tuning_path);
    assert_int_equal(unsetenv("RINGPIPE_BOARDS"), 0);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_boards_and_unknown_ones),
        cmocka_unit_test(auto_finds_one),
        cmocka_unit_test(a_folder_of_ones_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
