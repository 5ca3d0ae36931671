/* What is done about a fault: a pure function of what is known of it, of the run and of its boards.
 * `recover_state.c` collects the facts and carries the remedy out; `tests/fuzz/fuzz_remedy.c` walks
 * through histories of faults. */
#ifndef RP_CONTROL_FAULT_REMEDY_H
#define RP_CONTROL_FAULT_REMEDY_H

#include "base/clock.h"
#include "control/fault.h"
#include "control/state.h"

/* Most ways back in a row without a new checkpoint. Each makes the next checkpoint come sooner, so
 * that in the end it follows every step or few. A fault that still comes again is permanent. */
enum { RP_REMEDY_IN_A_ROW_MAX = 8 };

/* rp_remedy_choose() has the order in which they are looked for. */
/* clang-format off */
#define RP_REMEDY_LIST(X)                                                                   \
    X(LESS,   "less",   "fewer microbatches in flight: a board has not the memory for more") \
    X(SPARES, "spares", "spare boards take the places of those that have not come")         \
    X(FEWER,  "fewer",  "the model is cut anew over the boards that are left, spares too")   \
    X(BACK,   "back",   "back to the newest checkpoint, once the boards are there")         \
    X(STOP,   "stop",   "the run stops")                                                    \
    X(GIVE_UP, "give-up", "the run stops: it has gone back too often without a checkpoint")
/* clang-format on */

typedef enum {
#define X(id, text, about) RP_REMEDY_##id,
    RP_REMEDY_LIST(X)
#undef X
        RP_REMEDIES
} rp_remedy;

const char *rp_remedy_name(rp_remedy remedy); /* "spares" */

typedef struct {
    /* the fault */
    rp_err err;
    rp_FaultClass fault_class;
    rp_control_state_id failed; /* the state that it ended */
    /* the run */
    bool trains;
    bool begun;          /* the boards have been loaded once */
    bool had_boards;     /* all have been in the ring, in this life of the run or in one before */
    bool interrupted;    /* by a person */
    bool waits;          /* ring.wait: for boards that are lost */
    bool has_boards;     /* they are known */
    bool can_lessen;     /* a smaller advance is allowed */
    bool places_stay;    /* somebody has given the plan, which names boards */
    bool may_shrink;     /* boards of a roster; nothing in the run file is about places in it */
    uint32_t boards;     /* of the ring as it is now */
    uint32_t absent;     /* of them: not greeted, or only one: */
    bool is_wrong;       /* it is known to compute wrong, and would again; or it lacks a port and */
    bool had_time;       /* boards have lacked one on this way back for as long as ring.wait */
    uint32_t at_least;   /* that the run may go on with */
    uint32_t spares;     /* that have not been tried on this way back */
    uint32_t in_a_row;   /* ways back since the last checkpoint that was written, before this one */
    uint32_t on_the_way; /* faults on this way back, before this one */
} rp_remedy_facts;

rp_remedy rp_remedy_choose(const rp_remedy_facts *facts);
/* Pause after the first of `faults` since the newest checkpoint, before boards are asked again:
 * faults that come close together are mostly one disturbance, which passes. */
int64_t rp_remedy_pause_ns(uint32_t faults);
#define RP_REMEDY_PAUSE_MAX_NS (30 * RP_NS_PER_S)
/* Another process has a port that a board needs for its stages: it may let go of it. */
bool rp_remedy_lacks_port(rp_err err, rp_control_state_id failed);
/* So it is tried again: behind which part of ring.wait, when it has failed so many times before. */
int64_t rp_remedy_port_pause_ns(int64_t wait_ns, uint32_t before);

#endif
