#include "tree.h"

#include "update/releases.h"
#include "update/space.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static char dir[128];

static int slots_setup(void **state) {
    const int failed = tree_setup(state);
    (void)snprintf(dir, sizeof dir, "%s/slots", folder);
    return failed;
}

static rp_err install_on(const char *board, const char *bundle) {
    rp_ab slots;
    char path[512];
    (void)snprintf(path, sizeof path, "%s", in_folder(bundle));
    return rp_ab_install(dir, path, pair.public, board, &slots);
}

static rp_err install(const char *bundle) {
    return install_on("pocl-cpu", bundle);
}

/* The next start, and what the software in it says of itself: 0 for the system's own. */
static int start(void) {
    char name[64];
    rp_ab_slot slot;
    int version = 0;
    expect_ok(rp_ab_start(dir, &slot));
    if (slot == RP_AB_NONE) {
        return 0;
    }
    (void)snprintf(name, sizeof name, "slots/%s/bin/ringpipe-agent", rp_ab_slot_name(slot));
    assert_int_equal(sscanf(slurp(name, NULL), "software %d", &version), 1);
    return version;
}

/* As start(), and the software says that it is good. */
static int start_well(void) {
    rp_ab_slot slot;
    const int version = start();
    rp_ab slots;
    expect_ok(rp_ab_read(dir, &slots));
    slot = slots.trial != RP_AB_NONE ? slots.trial : slots.good;
    expect_ok(rp_ab_validate(dir, slot));
    return version;
}

static void new_software_becomes_good(void **state) {
    (void)state;
    make_bundle("seven", "pocl-cpu", 7);
    make_bundle("eight", "pocl-cpu", 8);
    assert_int_equal(start(), 0);
    expect_ok(install("seven"));
    assert_int_equal(start_well(), 7);
    expect_ok(install("eight"));
    assert_int_equal(start_well(), 8);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(start(), 8);
    }
    expect_ok(rp_ab_revert(dir));
    assert_int_equal(start(), 7);
    expect_ok(rp_ab_revert(dir));
    assert_int_equal(start(), 0);
    expect_said(rp_ab_revert(dir), RP_ERR_USAGE, "no trial and no previous version to return to");
}

static void software_that_does_not_come_up_is_left(void **state) {
    (void)state;
    rp_ab slots;
    make_bundle("seven", "pocl-cpu", 7);
    make_bundle("eight", "pocl-cpu", 8);
    expect_ok(install("seven"));
    assert_int_equal(start_well(), 7);
    expect_ok(install("eight"));
    for (int i = 0; i < RP_AB_STARTS; i++) {
        assert_int_equal(start(), 8);
    }
    assert_int_equal(start(), 7);
    assert_int_equal(start(), 7);
    expect_ok(rp_ab_read(dir, &slots));
    assert_int_equal(slots.failed, 8);
    expect_ok(install("eight")); /* somebody has mended what was in its way */
    assert_int_equal(start_well(), 8);
}

static void a_trial_is_ended_by_hand(void **state) {
    (void)state;
    make_bundle("seven", "pocl-cpu", 7);
    expect_ok(install("seven"));
    assert_int_equal(start(), 7);
    expect_ok(rp_ab_revert(dir));
    assert_int_equal(start(), 0);
    /* The process of the slot that was on trial says later that it is good: too late. */
    expect_ok(rp_ab_validate(dir, RP_AB_A));
    assert_int_equal(start(), 0);
}

static void what_is_no_newer_or_for_others_is_refused(void **state) {
    (void)state;
    make_bundle("seven", "pocl-cpu", 7);
    make_bundle("six", "pocl-cpu", 6);
    make_bundle("theirs", "rk3588", 9);
    expect_ok(install("seven"));
    assert_int_equal(start_well(), 7);
    expect_said(install("six"), RP_ERR_REFUSED, "expected a newer one");
    expect_said(install("seven"), RP_ERR_REFUSED, "expected a newer one");
    expect_said(install("theirs"), RP_ERR_REFUSED, "profile rk3588, and this is a pocl-cpu");
    expect_said(install("missing"), RP_ERR_IO, "missing");
    assert_int_equal(start(), 7);
}

/* The board's profile changes, and changes back: numbers of the one say nothing about the other. */
static void releases_count_by_profile(void **state) {
    (void)state;
    make_bundle("seven", "pocl-cpu", 7);
    make_bundle("eight", "pocl-cpu", 8);
    make_bundle("two", "rk3588", 2);
    make_bundle("three", "rk3588", 3);
    expect_ok(install("seven"));
    assert_int_equal(start_well(), 7);
    expect_ok(install_on("rk3588", "two"));
    expect_said(install("seven"), RP_ERR_REFUSED, "7 is installed"); /* on trial is not good yet */
    assert_int_equal(start_well(), 2);
    expect_said(install_on("rk3588", "two"), RP_ERR_REFUSED, "2 is installed");
    expect_said(install("seven"), RP_ERR_REFUSED, "7 is installed");
    expect_ok(rp_ab_revert(dir));
    expect_said(install("seven"), RP_ERR_REFUSED, "7 is installed");
    expect_ok(install_on("rk3588", "two")); /* it was left, so it may come again */
    assert_int_equal(start_well(), 2);
    expect_ok(install("eight"));
    assert_int_equal(start_well(), 8);
    expect_said(install_on("rk3588", "two"), RP_ERR_REFUSED, "2 is installed");
    expect_ok(install_on("rk3588", "three"));
    assert_int_equal(start_well(), 3);
}

/* An older agent knows nothing of profiles: what it wrote counts for the profile at hand. */
static void slots_of_an_older_agent_count(void **state) {
    (void)state;
    make_bundle("seven", "pocl-cpu", 7);
    make_bundle("eight", "pocl-cpu", 8);
    expect_ok(install("seven"));
    assert_int_equal(start_well(), 7);
    assert_int_equal(remove(in_folder("slots/releases")), 0);
    expect_said(install("seven"), RP_ERR_REFUSED, "7 is installed");
    expect_ok(install("eight"));
    put_file("slots/state", "good: b\nversion: 9\n", 0644); /* by that agent, behind our back */
    expect_said(install("eight"), RP_ERR_REFUSED, "9 is installed");
}

static void kept_releases_are_bounded(void **state) {
    (void)state;
    rp_releases all = {0};
    rp_releases back;
    for (uint32_t i = 1; i <= 20; i++) {
        char board[16];
        const uint32_t good = 1 + i % 2;
        (void)snprintf(board, sizeof board, "board-%u", i);
        rp_releases_note(&all, good, board, i);
        rp_releases_note(&all, 3 - good, "next", i + 1);
        assert_true(rp_releases_leave(&all, good, i, 3 - good, i + 1));
    }
    assert_int_equal(mkdir(dir, 0755), 0);
    expect_ok(rp_releases_write(dir, &all));
    expect_ok(rp_releases_read(dir, &back));
    assert_int_equal(back.kept_count, RP_RELEASES_KEPT);
    assert_int_equal(rp_releases_newest(&back, 0, 0, "board-20"), 20);
    assert_int_equal(rp_releases_newest(&back, 0, 0, "board-5"), 5);
    assert_int_equal(rp_releases_newest(&back, 0, 0, "board-4"), 0);
    put_file("slots/releases", "a: {board: '../x', version: 1}\n", 0644);
    expect_said(rp_releases_read(dir, &back), RP_ERR_USAGE, "releases:1");
}

/* ---- room on the disk ------------------------------------------------------------------------ */

static void room_is_counted(void **state) {
    (void)state;
    uint64_t used;
    put_file("full/inner/file", "some bytes", 0644);
    put_file("full/other", "more bytes", 0644);
    expect_ok(rp_space_used(in_folder("full"), &used));
    assert_in_range(used, 2, 1 << 20);
    expect_ok(rp_space_used(in_folder("missing"), &used));
    assert_int_equal(used, 0);
    expect_ok(rp_space_check("it", folder, 0, 0, 0));
    expect_said(rp_space_check("it", folder, UINT64_C(1) << 60, 0, 1 << 20), RP_ERR_LIMIT,
                "it needs 1125899906842624 KiB, ");
    expect_said(rp_space_check("it", folder, 0, 0, UINT64_C(1) << 60), RP_ERR_LIMIT, "stay free");
    expect_ok(rp_space_check("it", folder, UINT64_C(1) << 60, UINT64_C(1) << 61, 1 << 20));
}

/* A disk that has room for one bundle, or one more when the slot that is not good is emptied. */
static void a_bundle_that_does_not_fit_costs_nothing(void **state) {
    (void)state;
    static char big[3 << 20];
    rp_ab slots;
    if (mkdir(dir, 0755) != 0 || mount("ringpipe-test", dir, "tmpfs", 0, "size=20m") != 0) {
        print_message("may not mount a small disk: %s\n", strerror(errno));
        skip();
    }
    memset(big, 'x', sizeof big - 1);
    make_bundle("seven", "pocl-cpu", 7);
    put_file("tree/share/big", big, 0644);
    make_bundle("eight", "pocl-cpu", 8);
    make_bundle("nine", "pocl-cpu", 9);
    put_file("tree/share/more", big, 0644);
    make_bundle("ten", "pocl-cpu", 10);
    expect_ok(install("seven"));
    assert_int_equal(start_well(), 7);
    expect_ok(install("eight"));
    expect_ok(install("nine")); /* in eight's place */
    expect_said(install("ten"), RP_ERR_LIMIT, "needs 6");
    expect_ok(rp_ab_read(dir, &slots));
    assert_int_equal(slots.trial_version, 9); /* nothing has changed */
    assert_int_equal(start_well(), 9);
    expect_said(rp_ab_check_space(dir, 1 << 20, 0), RP_ERR_LIMIT, "does not fit on the disk");
}

static int small_disk_teardown(void **state) {
    (void)umount2(dir, MNT_DETACH);
    return teardown(state);
}

/* A bundle that is signed and cut off: the good slot stays, and nothing is on trial. */
static void a_bundle_that_is_cut_off_costs_nothing(void **state) {
    (void)state;
    static char whole[1 << 16];
    size_t bytes;
    make_bundle("seven", "pocl-cpu", 7);
    make_bundle("eight", "pocl-cpu", 8);
    expect_ok(install("seven"));
    assert_int_equal(start_well(), 7);
    memcpy(whole, slurp("eight", &bytes), sizeof whole);
    append("short", whole, bytes - 1);
    expect_said(install("short"), RP_ERR_FORMAT, "cut off");
    assert_int_equal(access(in_folder("slots/b/bin"), F_OK), -1); /* half of it is not kept */
    assert_int_equal(start(), 7);
    expect_ok(install("eight"));
    assert_int_equal(start(), 8);
}

static void a_link_in_place_of_a_slot_is_not_emptied(void **state) {
    (void)state;
    char target[512];
    make_bundle("seven", "pocl-cpu", 7);
    make_bundle("eight", "pocl-cpu", 8);
    expect_ok(install("seven"));
    assert_int_equal(start_well(), 7);
    put_file("elsewhere/file", "mine", 0644);
    (void)snprintf(target, sizeof target, "%s", in_folder("elsewhere"));
    assert_int_equal(symlink(target, in_folder("slots/b")), 0);
    expect_said(install("eight"), RP_ERR_IO, "slots/b");
    assert_string_equal(slurp("elsewhere/file", NULL), "mine");
    assert_int_equal(start(), 7);
}

static void a_damaged_state_says_where(void **state) {
    (void)state;
    rp_ab slots;
    put_file("slots/state", "good: c\n", 0644);
    expect_said(rp_ab_read(dir, &slots), RP_ERR_USAGE, "state:1");
    put_file("slots/state", "good: a\ntrial: a\n", 0644);
    expect_said(rp_ab_read(dir, &slots), RP_ERR_USAGE, "on trial");
}

static void two_do_not_change_the_slots_at_once(void **state) {
    (void)state;
    make_bundle("seven", "pocl-cpu", 7);
    expect_ok(install("seven"));
    const int held = open(in_folder("slots/lock"), O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_EX), 0);
    expect_said(rp_ab_revert(dir), RP_ERR_AGAIN, "another program");
    (void)close(held);
    expect_ok(rp_ab_revert(dir));
}

/* ---- power cuts ------------------------------------------------------------------------------ */

/* Runs `change` in a process that is killed in front of its n-th system call; false: it had come to
 * its end before. */
static bool run_until(void (*change)(void), uint32_t n) {
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)raise(SIGSTOP);
        change();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSTOPPED(status));
    for (uint32_t stops = 0; WIFSTOPPED(status) && stops < 2 * n; stops++) { /* entry and exit */
        assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    const bool cut = WIFSTOPPED(status);
    if (cut) {
        (void)kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    return cut;
}

static void install_eight(void) {
    (void)!install("eight");
}

static void start_once(void) {
    rp_ab_slot slot;
    (void)!rp_ab_start(dir, &slot);
}

static void validate_b(void) {
    (void)!rp_ab_validate(dir, RP_AB_B);
}

static void revert(void) {
    (void)!rp_ab_revert(dir);
}

/* Seven is good; eight is on trial where `on_trial`. */
static void prepare(bool on_trial) {
    (void)remove_tree(in_folder("slots"));
    expect_ok(install("seven"));
    assert_int_equal(start_well(), 7);
    if (on_trial) {
        expect_ok(install("eight"));
        assert_int_equal(start(), 8);
    }
}

/* Whatever was cut off: a start takes seven or eight, whole; and eight can be installed and become
 * good. Gives the number of cuts. */
static uint32_t cut_everywhere(void (*change)(void), bool on_trial) {
    uint32_t cuts = 0;
    for (bool cut = true; cut; cuts += cut) {
        rp_ab slots;
        prepare(on_trial);
        cut = run_until(change, cuts + 1);
        const int version = start();
        if (version != 7 && version != 8) {
            fail_msg("cut %u: %d is started", cuts, version);
        }
        expect_ok(rp_ab_read(dir, &slots));
        if (slots.version != 8) {
            expect_ok(install("eight"));
        }
        assert_int_equal(start_well(), 8);
        assert_int_equal(start(), 8);
    }
    return cuts;
}

static void a_power_cut_leaves_the_old_or_the_new(void **state) {
    (void)state;
    uint32_t cuts = 0;
    make_bundle("seven", "pocl-cpu", 7);
    make_bundle("eight", "pocl-cpu", 8);
    cuts += cut_everywhere(install_eight, false);
    cuts += cut_everywhere(install_eight, true);
    cuts += cut_everywhere(start_once, true);
    cuts += cut_everywhere(validate_b, true);
    cuts += cut_everywhere(revert, true);
    printf("%u cuts\n", cuts);
    assert_true(cuts >= 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(new_software_becomes_good, slots_setup, teardown),
        cmocka_unit_test_setup_teardown(software_that_does_not_come_up_is_left, slots_setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_trial_is_ended_by_hand, slots_setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_newer_or_for_others_is_refused, slots_setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(releases_count_by_profile, slots_setup, teardown),
        cmocka_unit_test_setup_teardown(slots_of_an_older_agent_count, slots_setup, teardown),
        cmocka_unit_test_setup_teardown(kept_releases_are_bounded, slots_setup, teardown),
        cmocka_unit_test_setup_teardown(room_is_counted, slots_setup, teardown),
        cmocka_unit_test_setup_teardown(a_bundle_that_does_not_fit_costs_nothing, slots_setup,
                                        small_disk_teardown),
        cmocka_unit_test_setup_teardown(a_bundle_that_is_cut_off_costs_nothing, slots_setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_link_in_place_of_a_slot_is_not_emptied, slots_setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_damaged_state_says_where, slots_setup, teardown),
        cmocka_unit_test_setup_teardown(two_do_not_change_the_slots_at_once, slots_setup, teardown),
        cmocka_unit_test_setup_teardown(a_power_cut_leaves_the_old_or_the_new, slots_setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
