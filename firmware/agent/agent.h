/* The agent: one board's state machine.
 *
 *   hello -> (ASSIGN) -> ready -> (START, EVALUATE) -> running -> ready ... -> (BYE) -> hello
 *
 * The host speaks first, with HELLO; whatever goes wrong in a run ends it with a FAULT to the host
 * and the agent is back at hello. rp_agent_step() never waits for the device or the network; only
 * ASSIGN and PROFILE take seconds (kernels are built then), and the host allows for that. */
#ifndef RP_AGENT_AGENT_H
#define RP_AGENT_AGENT_H

#include "link/link.h"
#include "stage/stage.h"

typedef struct {
    const char *name;   /* of the board, for the host's pictures; borrowed */
    const char *listen; /* tcp://HOST:PORT: control; PORT + 1 hop, PORT + 2 feed; port 0: any */
    rp_keypair keys;
    const char *const *trusted; /* public keys of hosts, borrowed */
    uint32_t trusted_count;
    uint32_t memory_mib; /* limit for a stage when the job names none; 0 = the device's */
    bool once;           /* over after one run, or when the host is silent */
} rp_agent_options;

typedef struct rp_agent rp_agent;

rp_err rp_agent_open(rp_arena *arena, rp_device *device, const rp_clock *clock,
                     const rp_agent_options *options, rp_agent **out) RP_MUST_CHECK;
void rp_agent_close(rp_agent **agent);
const char *rp_agent_endpoint(const rp_agent *agent);

/* One round. *over: an agent that runs once has nothing left to do. errors only when the agent
 * itself can not go on (device lost) */
rp_err rp_agent_step(rp_agent *agent, bool *over) RP_MUST_CHECK;
/* Sleeps until something may have happened. */
rp_err rp_agent_wait(rp_agent *agent, int64_t timeout_ns) RP_MUST_CHECK;

#endif
