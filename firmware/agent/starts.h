/* Whether an agent that a bundle has brought can be started on this board at all: its libraries and
 * its loader are the board's own. */
#ifndef RP_AGENT_STARTS_H
#define RP_AGENT_STARTS_H

#include "base/clock.h"
#include "update/ab.h"

/* Asks the agent of the slot on trial for its version, for 20 s at most. Behind an error no slot is
 * on trial. errors  REFUSED with what the loader says, as the name of a library that is missing; IO
 */
rp_err rp_agent_check_start(const char *slots, const rp_ab *ab,
                            const rp_clock *clock) RP_MUST_CHECK;

#endif
