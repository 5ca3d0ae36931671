#include <time.h>

#include "contract.h"

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    contract = (contract_kind){.name = "zmq", .real = true};
    const struct CMUnitTest tests[] = {CONTRACT_CASES};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
