/* The faults of one simulated run: a list of events in virtual time, read from a file or drawn from
 * a seed. A fault with `in` does not begin until the controller is in that state.
 *
 * Each seed draws its own subset of the kinds and its own rates (swarm testing: a run with all
 * kinds at once never reaches the states that a run with two of them reaches). All faults begin in
 * the first `phase_ns`; after that the network is calm and the run must make progress.
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

/* Columns: identifier, name in files, target, unit of `amount`, largest amount, whether the fault
 * may end a run, effect. Faults of the network and slow boards may not, because links recover. */
/* clang-format off */
#define RP_SIM_FAULT_LIST(X)                                                                       \
    X(DELAY, "delay", EDGE, "ms", 2000, false, "each frame is delayed by up to this much")         \
    X(LOSS, "loss", EDGE, "share", 0.9, false, "frames are lost")                                  \
    X(DUPLICATE, "duplicate", EDGE, "share", 0.9, false, "frames arrive twice")                    \
    X(REORDER, "reorder", EDGE, "share", 0.9, false, "frames arrive out of order")                 \
    X(CORRUPT, "corrupt", EDGE, "share", 0.9, false, "one bit of a frame flips")                   \
    X(CLOG, "clog", EDGE, "", 0, false, "frames are held back, then all arrive at once")           \
    X(PARTITION, "partition", EDGE, "", 0, false, "all frames in this direction are lost")         \
    X(MTU, "mtu", EDGE, "bytes", 2048, false, "larger frames are lost")                            \
    X(STALE, "stale", NODE, "frames", 64, false, "old frames arrive again")                        \
    X(CRASH, "crash", NODE, "", 0, false,                                                          \
      "the agent ends without a message and restarts after for_s")                                 \
    X(MOVE, "move", NODE, "", 0, false, "like crash, but the agent restarts at another address")   \
    X(TWIN, "twin", NODE, "", 0, false,                                                            \
      "a second agent with the key of the node starts, at its address or dialling as it does")     \
    X(EMPTY, "empty-disk", NODE, "", 0, false,                                                     \
      "like crash, but the agent loses its key, makes a new one and is refused")                   \
    X(GONE, "gone", NODE, "", 0, false, "the agent ends without a message, for good")              \
    X(SLOW, "slow", NODE, "times", 100, false, "every op takes this many times as long")           \
    X(CLOCK, "clock", NODE, "s", 1e9, false, "the clock of the node jumps forward")                \
    X(DRIFT, "drift", NODE, "percent", 10, false, "the clock of the node is fast")                 \
    X(SUSPEND, "suspend", NODE, "", 0, false, "the agent is suspended, then continues")            \
    X(RESET, "reset", NODE, "boards", 8, false,                                                    \
      "this many boards, counted from the node, end at once and restart after for_s")              \
    X(WRONG, "wrong", NODE, "forwards", 20, false, "one of this many forwards has a wrong bit")    \
    X(DEVICE, "device", NODE, "", 0, false, "an op of the node fails in its device")               \
    X(HANG, "hang", NODE, "", 0, false,                                                            \
      "the device of the node finishes no op, while its agent answers")                            \
    X(MEMORY, "memory", NODE, "allocations", 64, false,                                            \
      "one of the next allocations, drawn from this many, fails")                                  \
    X(HOST_STILL, "host-suspend", HOST, "", 0, false,                                              \
      "the controller is suspended, then continues")                                               \
    X(HOST_CRASH, "host-crash", HOST, "", 0, true, "the controller ends without a message")        \
    X(DISK_FULL, "disk-full", HOST, "", 0, false, "no file of the run folder can grow")            \
    X(STALL, "disk-stall", HOST, "", 0, false, "one write takes for_s while the controller saves") \
    X(LIED, "fsync-lied", HOST, "", 0, true,                                                       \
      "the power fails after for_s and undoes all writes to the run folder since")                 \
    X(SAVE_CRASH, "save-crash", HOST, "", 0, true, "the controller ends while it saves")           \
    X(TORN, "torn", HOST, "share", 0.9, true,                                                      \
      "the controller ends, and a file of the newest checkpoint loses its end")                    \
    X(MISPLACED, "misplaced", HOST, "", 0, true,                                                   \
      "like torn, but a block of the file is overwritten by another block")                        \
    X(ROTTEN, "rotten", HOST, "", 0, true, "like torn, but one bit of the file flips")             \
    X(INTERRUPT, "interrupt", HOST, "", 0, true, "the controller is interrupted, as by Ctrl-C")
/* clang-format on */

typedef enum {
#define X(name, text, target, unit, most, stops, about) RP_SIM_FAULT_##name,
    RP_SIM_FAULT_LIST(X)
#undef X
        RP_SIM_FAULT_KINDS,
    RP_SIM_FAULT_DRAWN = RP_SIM_FAULT_INTERRUPT /* kinds before it are drawn from seeds */
} rp_sim_fault_kind;

typedef enum { RP_SIM_TARGET_EDGE, RP_SIM_TARGET_NODE, RP_SIM_TARGET_HOST } rp_sim_target;

enum { RP_SIM_HOST = UINT32_MAX, RP_SIM_FAULTS_MAX = 64 };

typedef struct {
    rp_sim_fault_kind kind;
    uint32_t from, to; /* edge: frames go from `from` to `to`; node: both are its number; host: both
                          are RP_SIM_HOST */
    int64_t at_ns;     /* begin, since the start of the run */
    int64_t for_ns;    /* duration; of a crash: until the agent restarts */
    double amount;     /* in the kind's unit; 0: the kind has no amount */
    rp_control_state_id in; /* state of the controller in which it begins; STATES: any */
} rp_sim_fault;

typedef struct {
    rp_sim_fault fault[RP_SIM_FAULTS_MAX]; /* sorted by at_ns */
    uint32_t count;
} rp_sim_faults;

/* A row of RP_SIM_FAULT_LIST for the manual. */
typedef struct {
    const char *name;  /* in files */
    const char *about; /* effect */
    const char *keys;  /* keys that name the target: "from, to", "node" or "" */
    const char *unit;  /* unit of `amount`; "": the kind has no amount */
    double most;       /* largest amount */
} rp_sim_fault_facts;
/* NULL when `kind` is no kind. */
const rp_sim_fault_facts *rp_sim_fault_facts_at(uint32_t kind);

rp_sim_target rp_sim_fault_target(rp_sim_fault_kind kind);
/* Longest absence of a board that a run with this ring.wait survives: the wait less one interval
 * between greetings, at least 0.5 s; 5 s when wait_ns is 0. */
int64_t rp_sim_fault_borne_ns(int64_t wait_ns);
/* Whether the fault may end a life of the controller, however many boards are left. */
bool rp_sim_fault_may_stop(const rp_sim_fault *fault, int64_t wait_ns);
/* Whether the fault costs the ring a board. wait_ns: ring.wait; 0: lost boards are not waited for.
 */
bool rp_sim_fault_loses_board(const rp_sim_fault *fault, int64_t wait_ns);

/* Ring for which faults are drawn. `least` faults begin in [0, early_ns); between none and `least`
 * more, in one run of four up to three times `least` more, begin in [0, phase_ns). */
typedef struct {
    uint32_t nodes;             /* boards, spares included */
    const uint32_t (*edges)[2]; /* pairs (from, to) that carry frames, host included */
    uint32_t edge_count;
    int64_t early_ns, phase_ns;
    uint32_t least;
    uint32_t may_lose; /* boards that may be lost for good before the run ends */
    int64_t back_ns;   /* after this absence the ring has gone on without a board, which joins again
                          when it is back; one crash lasts 0.2 to 1.2 of it. 0: none is drawn */
    bool is_verified;  /* every microbatch is computed twice, so wrong results are found */
} rp_sim_field;
/* Equal states of `rng` give equal faults. A fault lasts up to half of phase_ns; some outages
 * last 5 to 25 s, enough to be noticed, and some crashes longer than a board is waited for. */
void rp_sim_faults_draw(rp_rng *rng, const rp_sim_field *field, rp_sim_faults *out);

/* errors  USAGE with file, line and key */
rp_err rp_sim_faults_read(rp_arena *arena, const char *path, uint32_t nodes,
                          rp_sim_faults *out) RP_MUST_CHECK;

/* Writes the format that rp_sim_faults_read() reads. */
void rp_sim_faults_write(const rp_sim_faults *faults, FILE *file);
/* One fault as a line without its end: "loss 0 -> 1 at 0.100 s for 0.400 s, 0.2 share". */
void rp_sim_fault_text(const rp_sim_fault *fault, char *out, size_t bytes);

#endif
