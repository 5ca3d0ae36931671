#include "unflushed.h"

extern const rp_sched_kind rp_sched_xpipe;
#define KIND rp_sched_xpipe

static void sizes(void **state) {
    (void)state;
    check_unflushed_sizes(&KIND);
}

static void facts(void **state) {
    (void)state;
    check_unflushed_facts(&KIND);
    check_unflushed_busy(&KIND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
