#include "tree.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static char dir[128];

static int slots_setup(void **state) {
    const int failed = tree_setup(state);
    (void)snprintf(dir, sizeof dir, "%s/slots", folder);
    return failed;
}

static rp_err install(const char *bundle) {
    rp_ab slots;
    char path[512];
    (void)snprintf(path, sizeof path, "%s", in_folder(bundle));
    return rp_ab_install(dir, path, pair.public, "pocl-cpu", &slots);
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
    expect_said(rp_ab_revert(dir), RP_ERR_USAGE, "nothing to go back from");
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
    assert_int_equal(start(), 7);
    expect_ok(install("eight"));
    assert_int_equal(start(), 8);
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
    remove_tree("slots");
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
        cmocka_unit_test_setup_teardown(new_software_becomes_good, slots_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(software_that_does_not_come_up_is_left, slots_setup,
                                        tree_teardown),
        cmocka_unit_test_setup_teardown(a_trial_is_ended_by_hand, slots_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_newer_or_for_others_is_refused, slots_setup,
                                        tree_teardown),
        cmocka_unit_test_setup_teardown(a_bundle_that_is_cut_off_costs_nothing, slots_setup,
                                        tree_teardown),
        cmocka_unit_test_setup_teardown(a_damaged_state_says_where, slots_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(two_do_not_change_the_slots_at_once, slots_setup,
                                        tree_teardown),
        cmocka_unit_test_setup_teardown(a_power_cut_leaves_the_old_or_the_new, slots_setup,
                                        tree_teardown),
    };
    return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
