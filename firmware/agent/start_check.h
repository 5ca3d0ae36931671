/* Tests whether a bundle's agent can start with this board's own libraries and loader. */
#ifndef RP_AGENT_START_CHECK_H
#define RP_AGENT_START_CHECK_H

#include "base/clock.h"
#include "update/ab.h"

/* Asks the agent of the slot on trial for its version, for 20 s at most. After an error no slot is
 * on trial. errors REFUSED with the loader's message, such as the name of a missing library; IO */
rp_err rp_agent_check_start(const char *slots, const rp_ab *ab,
                            const rp_clock *clock) RP_MUST_CHECK;

#endif
