#define KIND rp_sched_xpipe
#include "unflushed.h"

int main(void) {
    const struct CMUnitTest tests[] = {
        UNFLUSHED_TESTS,
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
