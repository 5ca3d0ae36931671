/* What boards send becomes a checkpoint; boards that are lost, values that are not finite, and a
 * disk that is full for a while. */
#include "keeping.h"

#include <errno.h>
#include <fcntl.h>

/* In place of the C library's: the program's own files are written with these two. */
static bool is_full;

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) {
    if (is_full) {
        errno = ENOSPC;
        return -1;
    }
    return lseek(fd, at, SEEK_SET) == at ? write(fd, data, bytes) : -1;
}

int posix_fallocate(int fd, off_t at, off_t bytes) {
    return is_full ? ENOSPC : ftruncate(fd, at + bytes);
}

static bool has_checkpoint(uint64_t step) {
    char name[80];
    (void)snprintf(name, sizeof name, "out/checkpoint/step-%010u.safetensors", (unsigned)step);
    return access(in_folder(name), F_OK) == 0;
}

static void a_save_is_whole_when_all_boards_have_ended(void **state) {
    (void)state;
    const char *not_finite;
    rp_keep_outcome outcome;
    open_keep(NULL);
    rp_keep_note_unsaved(keep, true);
    expect_ok(begin_save(4, &outcome));
    pass_ms(5);
    for (uint32_t k = 0; k < BOARDS; k++) {
        assert_int_equal(far[k].orders[RP_KIND_SAVE], 1);
        expect_ok(rp_keep_step_save(keep, &not_finite, &outcome));
        assert_int_equal(outcome, RP_KEEP_WAITS);
        (void)say_stage(k, k, 0.5F);
        assert_int_equal(rp_keep_save_is_late(keep, 9 * RP_NS_PER_S), RP_ERR_TIMEOUT);
        assert_non_null(strstr(rp_err_message(), k == 0 ? "2 boards" : "1 boards"));
        expect_ok(rp_keep_on_end(keep, k));
    }
    assert_false(has_checkpoint(4));
    assert_int_equal(end_save(), RP_KEEP_DONE);
    assert_true(has_checkpoint(4) && rp_keep_saved_step(keep) == 4);
    assert_true(rp_keep_is_unsaved(keep)); /* the caller decides */
    close_keep();
}

static void what_comes_after_the_end_is_refused(void **state) {
    (void)state;
    rp_keep_outcome outcome;
    rp_message message = {.frame = {.which_body = RP_KIND_IN_FLIGHT}};
    open_keep(NULL);
    expect_ok(begin_save(4, &outcome));
    expect_err(say_piece(0, "nobody.weight", 0, 4, 1, &outcome), RP_ERR_PEER);
    expect_err(say_piece(0, "fc1.weight", 73728, 1, 1, &outcome), RP_ERR_LIMIT);
    expect_err(rp_keep_on_in_flight(keep, 0, &message, &outcome), RP_ERR_PEER);
    expect_ok(rp_keep_on_end(keep, 0));
    expect_err(rp_keep_on_end(keep, 0), RP_ERR_PEER);
    expect_err(say_piece(0, "fc1.weight", 0, 4, 1, &outcome), RP_ERR_PEER);
    expect_err(rp_keep_on_in_flight(keep, 0, &message, &outcome), RP_ERR_PEER);
    rp_keep_abandon_save(keep);
    close_keep();
}

static void a_board_that_is_lost_leaves_no_file(void **state) {
    (void)state;
    rp_keep_outcome outcome;
    open_keep(NULL);
    save_at(4, 0.5F);
    expect_ok(begin_save(8, &outcome));
    (void)say_stage(0, 0, 0.25F);
    rp_keep_abandon_save(keep); /* as the controller does on a fault */
    assert_false(has_checkpoint(8));
    assert_int_equal(rp_keep_saved_step(keep), 4);
    save_at(8, 0.25F);
    assert_true(has_checkpoint(8));
    close_keep();
}

static void values_that_are_not_finite_are_no_checkpoint(void **state) {
    (void)state;
    const char *not_finite;
    rp_keep_outcome outcome;
    open_keep(NULL);
    save_at(4, 0.5F);
    expect_ok(begin_save(8, &outcome));
    say_stages(1.0F / 0.0F);
    expect_ok(rp_keep_step_save(keep, &not_finite, &outcome));
    assert_int_equal(outcome, RP_KEEP_WHOLE);
    assert_non_null(not_finite);
    expect_ok(rp_keep_commit_save(keep, &outcome));
    assert_int_equal(outcome, RP_KEEP_DAMAGED);
    rp_keep_abandon_save(keep);
    assert_true(!has_checkpoint(8) && rp_keep_saved_step(keep) == 4);
    close_keep();
}

static void another_controller_ends_the_save(void **state) {
    (void)state;
    const char *not_finite;
    rp_keep_outcome outcome;
    rp_run_identity other = {0};
    open_keep(NULL);
    expect_ok(rp_identity_begin_term(rp_folder_paths_of(run_folder)->folder, 7, &other));
    expect_ok(begin_save(4, &outcome));
    say_stages(0.5F);
    expect_err(rp_keep_step_save(keep, &not_finite, &outcome), RP_ERR_PEER);
    rp_keep_abandon_save(keep);
    assert_false(has_checkpoint(4));
    close_keep();
}

static void a_full_disk_is_tried_again(void **state) {
    (void)state;
    const char *not_finite;
    rp_keep_outcome outcome;
    open_keep(NULL);
    is_full = true;
    expect_ok(begin_save(4, &outcome));
    assert_int_equal(outcome, RP_KEEP_AGAIN);
    expect_events(1, .kind = RP_EVENT_UNSAVED, .tries = 10);
    expect_ok(rp_keep_step_save(keep, &not_finite, &outcome));
    assert_int_equal(outcome, RP_KEEP_AGAIN);
    assert_true(rp_keep_disk_rests(keep));
    assert_true(rp_keep_disk_deadline_ns(keep) == ring.now_ns + RP_NS_PER_S);
    pass_ms(5);
    assert_int_equal(far[0].orders[RP_KIND_SAVE], 0); /* no board is asked for nothing */
    rp_keep_abandon_save(keep);
    pass_s(1);
    assert_false(rp_keep_disk_rests(keep));
    assert_true(rp_keep_disk_deadline_ns(keep) == INT64_MAX);
    is_full = false;
    save_at(4, 0.5F);
    expect_events(1, .kind = RP_EVENT_SAVED, .checkpoint_step = 4);
    close_keep();
}

static void a_disk_that_fills_in_a_save_is_tried_again(void **state) {
    (void)state;
    rp_keep_outcome outcome;
    open_keep(NULL);
    expect_ok(begin_save(4, &outcome));
    (void)say_stage(0, 0, 0.5F);
    is_full = true;
    expect_ok(say_piece(1, "fc2.weight", 0, 16, 0.5F, &outcome));
    assert_int_equal(outcome, RP_KEEP_AGAIN);
    is_full = false;
    expect_ok(say_piece(1, "fc2.weight", 16, 16, 0.5F, &outcome)); /* of no use, and no error */
    assert_int_equal(outcome, RP_KEEP_WAITS);
    expect_ok(rp_keep_on_end(keep, 0));
    expect_ok(rp_keep_on_end(keep, 1));
    assert_int_equal(end_save(), RP_KEEP_AGAIN);
    assert_true(!has_checkpoint(4) && rp_keep_saved_step(keep) == 0);
    pass_s(1);
    save_at(4, 0.5F);
    close_keep();
}

static void a_disk_that_stays_full_ends_the_run(void **state) {
    (void)state;
    rp_keep_outcome outcome;
    rp_err err = RP_OK;
    uint32_t tries = 0;
    open_keep("ring.wait=20");
    for (is_full = true; err == RP_OK; tries++) {
        err = begin_save(4, &outcome);
        assert_int_equal(outcome, err == RP_OK ? RP_KEEP_AGAIN : RP_KEEP_OVER);
        rp_keep_abandon_save(keep);
        pass_s(1);
    }
    is_full = false;
    assert_int_equal(err, RP_ERR_IO);
    assert_int_equal(tries, 21);
    close_keep();
    open_keep("ring.wait=0"); /* at once */
    expect_ok(rp_keep_disk_is_writable(keep) ? RP_OK : RP_ERR_IO);
    assert_int_equal(rp_keep_disk_failed(keep, 4, &outcome), RP_ERR_IO);
    assert_int_equal(outcome, RP_KEEP_OVER);
    close_keep();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_save_is_whole_when_all_boards_have_ended, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_comes_after_the_end_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_is_lost_leaves_no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(values_that_are_not_finite_are_no_checkpoint, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(another_controller_ends_the_save, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_fills_in_a_save_is_tried_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_stays_full_ends_the_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
