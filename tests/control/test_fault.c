/* The class of a fault, and what a run ends with. */
#include "expect.h"

#include "control/fault.h"

static void every_error_has_a_class(void **state) {
    (void)state;
    for (int e = 1; e < RP_ERR_COUNT; e++) {
        for (int flags = 0; flags < 4; flags++) {
            const rp_FaultClass found =
                rp_fault_classify((rp_err)e, (flags & 1) != 0, (flags & 2) != 0);
            assert_true(found != RP_FAULT_UNKNOWN);
            assert_string_not_equal(rp_fault_class_name(found), "unknown");
        }
    }
    assert_string_equal(rp_fault_class_name(RP_FAULT_UNKNOWN), "unknown");
}

static void a_class_says_who_can_help(void **state) {
    (void)state;
    assert_int_equal(rp_fault_classify(RP_ERR_REFUSED, true, true), RP_FAULT_SECURITY);
    assert_int_equal(rp_fault_classify(RP_ERR_INTERRUPTED, false, true), RP_FAULT_USER);
    assert_int_equal(rp_fault_classify(RP_ERR_DATA, false, true), RP_FAULT_USER);
    assert_int_equal(rp_fault_classify(RP_ERR_USAGE, true, false), RP_FAULT_USER);
    assert_int_equal(rp_fault_classify(RP_ERR_IO, false, true), RP_FAULT_FATAL); /* a full disk */
    assert_int_equal(rp_fault_classify(RP_ERR_FAULT, true, true), RP_FAULT_BOARD);
    assert_int_equal(rp_fault_classify(RP_ERR_DEVICE, true, false), RP_FAULT_BOARD);
    assert_int_equal(rp_fault_classify(RP_ERR_TIMEOUT, false, true), RP_FAULT_TRANSIENT);
    assert_int_equal(rp_fault_classify(RP_ERR_NUMERIC, false, true), RP_FAULT_FATAL);
}

/* Once training has begun a full disk is no bad input: exit code 3, and the run can be resumed. A
 * damaged picture stays the user's: the run would end there again. */
static void input_is_at_fault_before_training_only(void **state) {
    (void)state;
    for (int e = 0; e < RP_ERR_COUNT; e++) {
        const rp_err before = rp_fault_result((rp_err)e, false);
        const rp_err after = rp_fault_result((rp_err)e, true);
        assert_int_equal(before, e);
        assert_true(after == before || rp_err_exit_code(before) == 2);
        assert_int_equal(rp_err_exit_code(after) == 2, e == RP_ERR_DATA);
    }
    assert_int_equal(rp_fault_result(RP_ERR_IO, true), RP_ERR_FAULT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_a_class),
        cmocka_unit_test(a_class_says_who_can_help),
        cmocka_unit_test(input_is_at_fault_before_training_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
