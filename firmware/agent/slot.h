/* An agent that runs from a slot (update/ab.h): which slot a start uses, and when software on trial
 * has proved to be good. */
#ifndef RP_AGENT_SLOT_H
#define RP_AGENT_SLOT_H

#include "agent/agent.h"

#define RP_AGENT_SLOT_ENV                                                                          \
    "RINGPIPE_SLOT" /* set in a process that was started from a slot: the slot's name */
/* Names the file that says which system slot runs (update/system.h); unset: the board has no system
 * slots. */
#define RP_AGENT_SYSTEM_ENV "RINGPIPE_SYSTEM"
enum { RP_AGENT_SETTLE_S = 60 };

typedef struct {
    const char *dir; /* NULL: there are no slots */
    rp_ab_slot slot; /* the slot of this process */
    int64_t since_ns, settle_ns;
    bool settled; /* nothing is left to be recorded */
} rp_agent_slot;

/* Replaces this process by the agent of the slot that is due, with the same arguments; then it does
 * not return. It returns in a process of a slot, and if the system's own software is due: if the
 * system (`system_path` says which one runs, NULL: it has no slots) is newer than the slots'
 * software, if the slots cannot be read, or if a good slot does not start, because a board without
 * an agent cannot be repaired remotely.
 * errors  IO: the slot on trial does not start, which uses up one of its starts */
rp_err rp_agent_slot_enter(rp_agent_slot *slot, const char *dir, const char *system_path,
                           char **argv, const rp_clock *clock) RP_MUST_CHECK;

/* Executes this program again in this process, for the slot that is due now. errors IO */
rp_err rp_agent_slot_again(char **argv) RP_MUST_CHECK;

/* Call it once a round. The slot, and a system on trial, is good when this process, whose device
 * has passed its self-test, has run for settle_ns and a trusted host has greeted it. */
void rp_agent_slot_follow(rp_agent_slot *slot, rp_agent *agent, int64_t now_ns);

#endif
