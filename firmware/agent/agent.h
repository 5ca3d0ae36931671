/* The agent: one board's state machine.
 *
 *   hello --ASSIGN--> building --READY--> assigned --CONNECT--> ready --START, EVALUATE--> running
 *     |                  |                                                                  |  ^
 *     `---PROFILE------->'                                                         FINISHED |  |
 *                                                                                           v  |
 *                                        saving <--SAVE, TENSORS_END--> paused <------------'--'
 *
 * BYE, FAULT, a HELLO, and whatever goes wrong lead from any state back to hello; what goes wrong
 * is told to the host with a FAULT. ASSIGN and PROFILE begin a new run from any state.
 *
 *   ready, running, paused, saving --the host is silent--> orphan --nobody asks for it--> hello
 *   paused --a RECORD to be computed again--> building --RECOMPUTED--> paused
 *   any state --ASSIGN or PROFILE ahead of a run--> warming --READY, PROFILE_DONE--> hello
 *
 * An orphan's run has stopped and keeps what its stages hold. The host is told, in case it lives;
 * of its term the board takes BYE and FAULT only, so that a HELLO of a higher term, or of another
 * run, is what ends it before its time is up. A HELLO of a higher term that asks what is held ends
 * nothing: the run goes on in that term where it was, or is paused when the HELLO says so. No state
 * is process-wide.
 *
 * While stages are built (on a thread of their own) and while a segment runs, rp_agent_step() waits
 * for neither the device nor the network, and the agent answers meanwhile. It waits where
 *   a run ends    for the ops in the device's queue, RP_RUNNER_DEPTH a node at most, and for the
 *                 transport to let go of sent messages, as rp_link_close() says
 *   links open    while an address is still in use, as rp_link_open() says
 *   tensors are loaded or saved    for the copy of one piece to or from the device. */
#ifndef RP_AGENT_AGENT_H
#define RP_AGENT_AGENT_H

#include "agent/reading.h"
#include "link/link.h"
#include "stage/stage.h"
#include "update/ab.h"

/* Where software that a host pushes goes (update/ab.h). */
typedef struct {
    const char *slots;  /* folder */
    rp_ab_slot own;     /* this process is of */
    const char *board;  /* its profile; NULL: any bundle's */
    const uint8_t *key; /* [RP_SIGNING_BYTES]; NULL: there is none, and nothing is taken */
    const char *system; /* file that says which whole system runs; NULL: it has no slots */
} rp_agent_software;

typedef struct {
    const char *name;        /* of the board, for the host's pictures; borrowed */
    const char *listen;      /* tcp://HOST:PORT: control; PORT + 1 hop, + 2 feed, + 3 .. more
                                hops; port 0: any. NULL: it dials, and nobody can dial it */
    const char *dial;        /* tcp://HOST:PORT: where it dials the host, control; PORT + 1 feed */
    const char *host_public; /* whose key the host has there, Z85 */
    rp_keypair keys;
    const char *const *trusted; /* public keys of hosts, borrowed */
    uint32_t trusted_count;
    uint32_t memory_mib;    /* limit for a stage when the job names none; 0 = the device's */
    uint32_t processor_mib; /* .. for what lies in the processor's memory where the device has its
                               own; 0 = none */
    bool journal;           /* runs and peers that come and go are logged */
    bool once;              /* over after one run, or when the host is silent */
    const rp_agent_software *software; /* borrowed; NULL: it takes no PUSH */
    const rp_executor_kind *executor;  /* NULL: opencl. Others need no device, and build at once */
    rp_site site;                      /* of such an executor */
    rp_transport *transport;           /* of its links, borrowed; NULL: ZeroMQ over TCP */
    const rp_media *media;             /* as in rp_links_options, borrowed; NULL: none */
    rp_rng *sessions;                  /* as in rp_links_options, borrowed; NULL: from the kernel */
    rp_loop *loop;                     /* what rp_agent_wait() waits with, borrowed; NULL: a poll */
    rp_agent_library *library;         /* of this process's agents, borrowed; NULL: none */
    /* What hosts are told when they ask, all borrowed: */
    const char *profile;     /* of the board; NULL: it has none */
    const char *system_root; /* below which the kernel's files lie; NULL: "", but for tests */
    const char *folder;      /* whose disk is meant; NULL: none is */
    uint64_t life;           /* random: of this process */
    bool may_reboot;         /* when a host wants it: the agent ends, see rp_agent_reboots() */
} rp_agent_options;

typedef struct rp_agent rp_agent;

typedef enum {
    RP_AGENT_HELLO,    /* no run; waits for a host */
    RP_AGENT_BUILDING, /* kernels are built, or layers are timed */
    RP_AGENT_ASSIGNED, /* the stage is there; waits for CONNECT */
    RP_AGENT_READY,    /* complete; no segment has begun */
    RP_AGENT_RUNNING,  /* trains or evaluates */
    RP_AGENT_PAUSED,   /* between two segments */
    RP_AGENT_SAVING,   /* sends what the stage holds */
    RP_AGENT_ORPHAN,   /* the host was lost; keeps its run for a while */
    RP_AGENT_WARMING,  /* as building, ahead of a run and within a time; then hello */
    RP_AGENT_STATES
} rp_agent_state;
const char *rp_agent_state_name(rp_agent_state state);
rp_agent_state rp_agent_state_of(const rp_agent *agent);
/* Whether an agent in this state takes a message of this kind; what it does not take ends its run
 * with a FAULT. */
bool rp_agent_takes(rp_agent_state state, rp_kind kind);

/* `device`: NULL with an executor that needs none. errors  USAGE (address); IO; MEMORY */
rp_err rp_agent_open(rp_arena *arena, rp_device *device, const rp_clock *clock,
                     const rp_agent_options *options, rp_agent **out) RP_MUST_CHECK;
void rp_agent_close(rp_agent **agent);
const char *rp_agent_endpoint(const rp_agent *agent);
/* It is over because other software is due: that of `slots`. */
bool rp_agent_starts_again(const rp_agent *agent);
/* The device has not ended an op for longer than sched/op_limit.h gives it. A run that ends then
 * ends the agent, too: rp_agent_step() fails with DEVICE, and rp_agent_close() would wait for the
 * device. */
bool rp_agent_device_hangs(const rp_agent *agent);
/* It is over because a host wants the board to begin anew: whoever has started the agent does that,
 * told by the exit code. */
enum { RP_AGENT_REBOOT_EXIT = 84 };
bool rp_agent_reboots(const rp_agent *agent);
/* What runs has shown that it works: that of the whole system's slots, too, where that is on trial.
 */
void rp_agent_has_settled(rp_agent *agent);
bool rp_agent_has_met_host(const rp_agent *agent); /* one that it trusts has greeted it */
/* These hosts from now on, Z85; nothing where it dials. errors  FORMAT; LIMIT: too many; then they
 * stay who they were */
rp_err rp_agent_trust(rp_agent *agent, const char *const *keys, uint32_t count) RP_MUST_CHECK;

/* One round. *over: an agent that runs once has nothing left to do. errors only when the agent
 * itself can not go on (device lost) */
rp_err rp_agent_step(rp_agent *agent, bool *over) RP_MUST_CHECK;
/* Sends what is due before a sleep; the time at which step() must be called though nothing comes.
 */
int64_t rp_agent_deadline_ns(const rp_agent *agent);
/* Sleeps on the loop until something may have happened, at most until the deadline. */
rp_err rp_agent_wait(rp_agent *agent) RP_MUST_CHECK;

#endif
