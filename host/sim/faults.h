/* The faults of one simulated run: a list of events in virtual time, read from a file or drawn from
 * a seed. One with `in` waits until the controller is in that state.
 *
 * A seed draws its own subset of the kinds and its own rates (swarm testing: a run that sees every
 * kind at once never reaches the states that a run with two of them reaches). Events lie in the
 * first `phase_ns`; behind it the network is calm and the run must get on.
 *
 *   faults:
 *     - {kind: loss, from: 0, to: 1, at_s: 0.1, for_s: 0.4, amount: 0.2}
 *     - {kind: crash, node: 2, at_s: 0.3, for_s: 0.5, in: save}
 *
 * Nodes are numbered as in the plan; the host is `host`.
 *
 * source  swarm testing: Groce et al., "Swarm testing", ISSTA 2012; a faulty phase and then a calm
 *         one that must make progress: TigerBeetle's simulator */
#ifndef RP_SIM_FAULTS_H
#define RP_SIM_FAULTS_H

#include "base/arena.h"
#include "base/config.h"
#include "base/rng.h"
#include "control/state.h"

/* name in files, target, unit of `amount`, largest amount, whether it may end a run (links recover
 * from whatever a network does for a while, and a slow board is no fault), what it does. */
/* clang-format off */
#define RP_SIM_FAULT_LIST(X)                                                                     \
    X(DELAY,      "delay",      EDGE, "ms", 2000,   false, "each frame is up to so much later")  \
    X(LOSS,       "loss",       EDGE, "share", 0.9, false, "frames vanish")                      \
    X(DUPLICATE,  "duplicate",  EDGE, "share", 0.9, false, "frames come twice")                  \
    X(REORDER,    "reorder",    EDGE, "share", 0.9, false, "frames overtake others")             \
    X(CORRUPT,    "corrupt",    EDGE, "share", 0.9, false, "one bit of a frame flips")           \
    X(CLOG,       "clog",       EDGE, "", 0, false, "nothing passes, then everything at once")   \
    X(PARTITION,  "partition",  EDGE, "", 0, false, "frames vanish in this direction")           \
    X(MTU,        "mtu",        EDGE, "bytes", 2048, false, "larger frames vanish")             \
    X(STALE,      "stale",      NODE, "frames", 64, false, "old frames of the node come again")  \
    X(CRASH,      "crash",      NODE, "", 0, false, "the agent ends without a word, and starts "  \
                                                   "anew after for_s")                           \
    X(MOVE,       "move",       NODE, "", 0, false, "the same, at another address")               \
    X(TWIN,       "twin",       NODE, "", 0, false, "another agent with the key of the node, at "  \
                                                   "its address, or dialling as it does")       \
    X(EMPTY,      "empty-disk", NODE, "", 0, false, "as crash, and it has lost its key: it makes " \
                                                   "another one, and is refused")                \
    X(GONE,       "gone",       NODE, "", 0, false, "the agent ends without a word, for good")    \
    X(SLOW,       "slow",       NODE, "times", 100, false, "every op takes so many times as long") \
    X(CLOCK,      "clock",      NODE, "s", 1e9, false, "the clock of the node jumps ahead")       \
    X(DRIFT,      "drift",      NODE, "percent", 10, false, "the clock of the node is fast")      \
    X(SUSPEND,    "suspend",    NODE, "", 0, false, "the agent stands still, then goes on")        \
    X(RESET,      "reset",      NODE, "boards", 8, false, "so many boards, from this one on, end " \
                                                          "at once, and start anew after for_s")   \
    X(WRONG,      "wrong",      NODE, "forwards", 20, false, "one of so many forwards has a "      \
                                                             "wrong bit")                          \
    X(DEVICE,     "device",     NODE, "", 0, false, "an op of the node fails, by its device")      \
    X(HANG,       "hang",       NODE, "", 0, false, "no op of the node's device ends; its agent "  \
                                                    "answers")                                    \
    X(MEMORY,     "memory",     NODE, "allocations", 64, false, "one of the next so many "         \
                                                                "allocations of the node fails")   \
    X(HOST_STILL, "host-suspend", HOST, "", 0, false, "the controller stands still, then goes on") \
    X(HOST_CRASH, "host-crash", HOST, "", 0, true, "the controller ends without a word")         \
    X(DISK_FULL,  "disk-full",  HOST, "", 0, false, "no file of the run folder grows")           \
    X(STALL,      "disk-stall", HOST, "", 0, false, "while the controller saves, one of its "      \
                                                    "writes takes for_s")                          \
    X(LIED,       "fsync-lied", HOST, "", 0, true, "what is written to the run folder meanwhile "  \
                                                   "is lost: behind for_s the power goes")         \
    X(SAVE_CRASH, "save-crash", HOST, "", 0, true, "the controller ends while it saves") \
    X(TORN,       "torn",       HOST, "share", 0.9, true, "the controller ends; a file of "     \
                                                          "the newest checkpoint lost its end") \
    X(MISPLACED,  "misplaced",  HOST, "", 0, true, "the same, a block lies where another should") \
    X(ROTTEN,     "rotten",     HOST, "", 0, true, "the same, one bit has flipped")             \
    X(INTERRUPT,  "interrupt",  HOST, "", 0, true, "the controller is interrupted, as by Ctrl-C")
/* clang-format on */

typedef enum {
#define X(name, text, target, unit, most, stops, about) RP_SIM_FAULT_##name,
    RP_SIM_FAULT_LIST(X)
#undef X
        RP_SIM_FAULT_KINDS,
    RP_SIM_FAULT_DRAWN = RP_SIM_FAULT_INTERRUPT /* kinds before this one can be drawn from a seed */
} rp_sim_fault_kind;

typedef enum { RP_SIM_TARGET_EDGE, RP_SIM_TARGET_NODE, RP_SIM_TARGET_HOST } rp_sim_target;

enum { RP_SIM_HOST = UINT32_MAX, RP_SIM_FAULTS_MAX = 64 };

typedef struct {
    rp_sim_fault_kind kind;
    uint32_t from, to; /* of an edge: direction of the frames; of a node: `from`; RP_SIM_HOST */
    int64_t at_ns;     /* after the start of the run */
    int64_t for_ns;    /* how long it lasts; of a crash: until it starts anew */
    double amount;     /* in the kind's unit, 0 where it has none */
    rp_control_state_id in; /* begins in this state of the controller; STATES: in any */
} rp_sim_fault;

typedef struct {
    rp_sim_fault fault[RP_SIM_FAULTS_MAX]; /* by at_ns */
    uint32_t count;
} rp_sim_faults;

/* What is said of a kind; NULL behind the last. */
typedef struct {
    const char *name;  /* in files */
    const char *about; /* what it does */
    const char *keys;  /* that say where it happens */
    const char *unit;  /* of its `amount`; "": it has none */
    double most;       /* largest amount */
} rp_sim_fault_facts;
const rp_sim_fault_facts *rp_sim_fault_facts_at(uint32_t kind);

rp_sim_target rp_sim_fault_target(rp_sim_fault_kind kind);
/* How long a board may be away that is waited for so long, and is greeted again in that time. Where
 * that is too short for a second greeting, or there is no wait: what each run bears. */
int64_t rp_sim_fault_borne_ns(int64_t wait_ns);
/* Whether it may end a life of the controller, however many boards are left; and whether it costs
 * one. A lost board is waited for so long (ring.wait; 0: it is not waited for). */
bool rp_sim_fault_may_stop(const rp_sim_fault *fault, int64_t wait_ns);
bool rp_sim_fault_loses_board(const rp_sim_fault *fault, int64_t wait_ns);

/* What is drawn from: a ring of `nodes` boards, and pairs (from, to) that carry frames, host
 * included. `least` events begin in [0, early_ns), up to as many again, or three times as many, in
 * [0, phase_ns). */
typedef struct {
    uint32_t nodes;
    const uint32_t (*edges)[2];
    uint32_t edge_count;
    int64_t early_ns, phase_ns;
    uint32_t least;
    uint32_t may_lose; /* boards, and the run goes on */
    int64_t back_ns; /* a board that is away for so long is missed in any case, and may find the run
                        at work when it is back: one is, for a fifth of it or more. 0: none is */
    bool is_verified; /* each microbatch: one that is computed wrong is found */
} rp_sim_field;
/* The same stream gives the same events. They last for_ns up to half a phase, or for some seconds,
 * in which silence is noticed, or (crashes) longer than any board is waited for. */
void rp_sim_faults_draw(rp_rng *rng, const rp_sim_field *field, rp_sim_faults *out);

/* errors  USAGE with file, line and key */
rp_err rp_sim_faults_read(rp_arena *arena, const char *path, uint32_t nodes,
                          rp_sim_faults *out) RP_MUST_CHECK;

/* As a file that rp_sim_faults_read() takes. */
void rp_sim_faults_write(const rp_sim_faults *faults, FILE *file);
/* One event as one line without an end, e.g. "loss 0 -> 1 at 0.100 s for 0.400 s, 0.2 share". */
void rp_sim_fault_text(const rp_sim_fault *fault, char *out, size_t bytes);

#endif
