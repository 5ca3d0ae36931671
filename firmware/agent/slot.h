/* An agent that runs out of a slot (update/ab.h): which one a start takes, and when what is on
 * trial has shown that it is good. */
#ifndef RP_AGENT_SLOT_H
#define RP_AGENT_SLOT_H

#include "agent/agent.h"

#define RP_AGENT_SLOT_ENV                                                                          \
    "RINGPIPE_SLOT" /* of a process that was started out of a slot: its name */
/* A file that says which whole system runs (update/system.h); unset: it has no slots. */
#define RP_AGENT_SYSTEM_ENV "RINGPIPE_SYSTEM"
enum { RP_AGENT_SETTLE_S = 60 };

typedef struct {
    const char *dir; /* NULL: there are no slots */
    rp_ab_slot slot; /* this process is of */
    int64_t since_ns, settle_ns;
    bool settled; /* nothing is left to be said */
} rp_agent_slot;

/* Takes the place of this process by the agent of the slot that is due, with the same arguments,
 * and does not come back then. It comes back in a process of a slot, and where the system's own
 * software is due: where the whole system (`system_path` says which one runs, NULL: it has no
 * slots) is newer than what the slots have, and when the slots can not be read, or a good slot does
 * not start, for a board without an agent can not be mended from afar. errors  IO: the slot on
 * trial does not start, which has cost it a start */
rp_err rp_agent_slot_enter(rp_agent_slot *slot, const char *dir, const char *system_path,
                           char **argv, const rp_clock *clock) RP_MUST_CHECK;

/* Starts this program again in the place of this process, for the slot that is due now. errors IO
 */
rp_err rp_agent_slot_again(char **argv) RP_MUST_CHECK;

/* Once a round: the slot, and a whole system that is on trial, is good when this process, whose
 * device has passed its self-test, has been at work for settle_ns and a host that it trusts has
 * greeted it. */
void rp_agent_slot_follow(rp_agent_slot *slot, rp_agent *agent, int64_t now_ns);

#endif
