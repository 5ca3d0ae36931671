/* The agent: the state machine of one board.
 *
 *   hello --ASSIGN--> building --READY--> assigned --CONNECT--> ready --START, EVALUATE--> running
 *     |                  |                                                                  |  ^
 *     `---PROFILE------->'                                                         FINISHED |  |
 *                                                                                           v  |
 *                                        saving <--SAVE, TENSORS_END--> paused <------------'--'
 *
 * BYE, FAULT, a HELLO, and any error lead from any state back to hello; errors are reported to the
 * host with a FAULT. ASSIGN and PROFILE begin a new run from any state.
 *
 *   ready, running, paused, saving --the host is silent--> orphan --its time is up--> hello
 *   paused --a RECORD to be recomputed--> building --RECOMPUTED--> paused
 *   any state --ASSIGN or PROFILE before a run--> warming --READY, PROFILE_DONE--> hello
 *
 * An orphan's run has stopped and keeps what its stages hold. The host is told, in case it is still
 * alive; from its term the board accepts only BYE and FAULT, so that only a HELLO of a higher term,
 * or of another run, ends it before its time is up. A HELLO of a higher term that asks what is held
 * ends nothing: the run continues in that term where it was, or is paused if the HELLO says so.
 * There is no global state.
 *
 * While stages are built (on a separate thread) and while a segment runs, rp_agent_step() waits for
 * neither the device nor the network, and the agent keeps answering. It waits when
 *   a run ends    for the ops in the device's queue, at most RP_RUNNER_DEPTH a node, and for the
 *                 transport to release sent messages, see rp_link_close()
 *   links open    while an address is still in use, see rp_link_open()
 *   tensors are loaded or saved    for the copy of one piece to or from the device. */
#ifndef RP_AGENT_AGENT_H
#define RP_AGENT_AGENT_H

#include "agent/assignment.h"
#include "link/link.h"
#include "stage/stage.h"
#include "update/ab.h"

/* Destination of software that a host pushes (update/ab.h). */
typedef struct {
    const char *slots;  /* folder of the slots */
    rp_ab_slot own;     /* the slot of this process */
    const char *board;  /* name of its profile; NULL: accepts bundles of any board */
    const uint8_t *key; /* [RP_SIGNING_BYTES]; NULL: no key, so that every bundle is refused */
    const char *system; /* file that says which system slot runs; NULL: there are no system slots */
} rp_agent_software;

typedef struct {
    const char *name; /* of the board, for messages of the host; borrowed */
    /* tcp://HOST:PORT for control; PORT + 1 is for a hop, + 2 for the feed, + 3 and up for more
     * hops; port 0: any. NULL: the agent dials and cannot be dialled */
    const char *listen;
    /* tcp://HOST:PORT where it dials the host for control; PORT + 1 for the feed */
    const char *dial;
    const char *host_public; /* key of the host at `dial`, Z85 */
    rp_keypair keys;
    const char *const *trusted; /* public keys of hosts, borrowed */
    uint32_t trusted_count;
    uint32_t memory_mib; /* memory limit of a stage if the job names none; 0 = the device's */
    /* memory limit in the processor's memory if the device has its own; 0 = none */
    uint32_t processor_mib;
    bool journal;                      /* log the beginning and end of runs and links */
    bool once;                         /* ends after one run, or when the host is silent */
    const rp_agent_software *software; /* borrowed; NULL: refuses PUSH */
    const rp_executor_kind *executor;  /* NULL: opencl. Others need no device and build at once */
    rp_site site;                      /* for such an executor */
    rp_transport *transport;           /* transport of its links, borrowed; NULL: ZeroMQ over TCP */
    const rp_media *media;             /* as in rp_links_options, borrowed; NULL: none */
    rp_rng *sessions;                  /* as in rp_links_options, borrowed; NULL: from the kernel */
    rp_loop *loop;                     /* used by rp_agent_wait(), borrowed; NULL: poll() */
    /* shared by the agents of this process, borrowed; NULL: none */
    rp_agent_library *library;
    /* Answers to questions of hosts, all borrowed: */
    const char *profile;     /* of the board; NULL: it has none */
    const char *system_root; /* prefix of the kernel's files; NULL: "", except in tests */
    const char *folder;      /* folder whose disk is reported; NULL: none */
    /* Reports heat, power and energy while it has a run, and in HELLO the machine that it
     * measures. Off in simulations, and for agents that a controller starts on its own machine. */
    bool reports_energy;
    uint64_t life; /* random number that identifies this process */
    /* a host may request a reboot: the agent then ends, see rp_agent_reboots() */
    bool may_reboot;
} rp_agent_options;

typedef struct rp_agent rp_agent;

typedef enum {
    RP_AGENT_HELLO,    /* no run; waits for a host */
    RP_AGENT_BUILDING, /* builds kernels, or times layers */
    RP_AGENT_ASSIGNED, /* the stage is built; waits for CONNECT */
    RP_AGENT_READY,    /* connected; no segment has begun */
    RP_AGENT_RUNNING,  /* trains or evaluates */
    RP_AGENT_PAUSED,   /* between two segments */
    RP_AGENT_SAVING,   /* sends what the stage holds */
    RP_AGENT_ORPHAN,   /* the host was lost; keeps its run for a while */
    RP_AGENT_WARMING,  /* like building, but before a run and with a time limit; then hello */
    RP_AGENT_STATES
} rp_agent_state;
const char *rp_agent_state_name(rp_agent_state state);
rp_agent_state rp_agent_state_of(const rp_agent *agent);
/* Whether an agent in this state accepts a message of this kind; a message that it does not accept
 * ends its run with a FAULT. */
bool rp_agent_takes(rp_agent_state state, rp_kind kind);

/* `device`: NULL with an executor that needs none. errors USAGE (address); IO; MEMORY */
rp_err rp_agent_open(rp_arena *arena, rp_device *device, const rp_clock *clock,
                     const rp_agent_options *options, rp_agent **out) RP_MUST_CHECK;
void rp_agent_close(rp_agent **agent);
const char *rp_agent_endpoint(const rp_agent *agent);
/* Whether it has ended because other software is due: that in `slots`. */
bool rp_agent_starts_again(const rp_agent *agent);
/* Whether an op has exceeded the limit of sched/op_limit.h on the device. If a run ends then, the
 * agent also ends: rp_agent_step() fails with DEVICE, and rp_agent_close() would wait for the
 * device. */
bool rp_agent_device_hangs(const rp_agent *agent);
/* Exit code when a host has requested a reboot: the agent's parent then reboots the board. */
enum { RP_AGENT_REBOOT_EXIT = 84 };
bool rp_agent_reboots(const rp_agent *agent);
/* The running software has proved that it works, including a system slot that is on trial. */
void rp_agent_has_settled(rp_agent *agent);
bool rp_agent_has_met_host(const rp_agent *agent); /* whether a trusted host has greeted it */
/* Trusts exactly these hosts (Z85) from now on; no effect if it dials.
 * errors  FORMAT; LIMIT: too many; the hosts are then unchanged */
rp_err rp_agent_trust(rp_agent *agent, const char *const *keys, uint32_t count) RP_MUST_CHECK;

/* Runs one round. *over: an agent with `once` has nothing left to do.
 * errors  only when the agent itself cannot continue (device lost) */
rp_err rp_agent_step(rp_agent *agent, bool *over) RP_MUST_CHECK;
/* Sends what is due before a sleep. Returns the latest time of the next rp_agent_step(). */
int64_t rp_agent_deadline_ns(const rp_agent *agent);
/* Sleeps on the loop until something may have happened, at most until the deadline. */
rp_err rp_agent_wait(rp_agent *agent) RP_MUST_CHECK;

#endif
