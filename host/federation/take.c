#include "federation/take.h"

#include <stdbool.h>

rp_take_decision rp_take_decide(const rp_take_facts *facts) {
    const uint32_t least =
        facts->least == 0 || facts->least > facts->asked ? facts->asked : facts->least;
    const bool is_late = facts->wait_ns > 0 && facts->waited_ns >= facts->wait_ns;
    if (facts->asked - facts->given_up < least) {
        return RP_TAKE_FAILS;
    }
    if (facts->done < least) {
        return RP_TAKE_WAITS;
    }
    return is_late || facts->done + facts->given_up >= facts->asked ? RP_TAKE_CLOSES
                                                                    : RP_TAKE_WAITS;
}
