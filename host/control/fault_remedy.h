/* Chooses what to do about a fault: a pure function of the fault, the run and its boards.
 * `recover_state.c` collects the facts and carries out the remedy; `tests/fuzz/fuzz_remedy.c` tries
 * histories of faults. */
#ifndef RP_CONTROL_FAULT_REMEDY_H
#define RP_CONTROL_FAULT_REMEDY_H

#include "base/clock.h"
#include "control/fault.h"
#include "control/state.h"

/* Maximum number of recoveries in a row without a new checkpoint. Each brings the next checkpoint
 * closer, in the end to every step or few. A fault that still recurs is permanent. */
enum { RP_REMEDY_IN_A_ROW_MAX = 8 };

/* rp_remedy_choose() has their order of preference. */
/* clang-format off */
#define RP_REMEDY_LIST(X) \
    X(LESS,   "less",   "fewer microbatches in flight, because a board lacks memory") \
    X(SPARES, "spares", "spare boards replace those that have not come") \
    X(FEWER,  "fewer",  "the model is cut again, for the remaining boards and spares") \
    X(BACK,   "back",   "the run returns to its newest checkpoint with the same boards") \
    X(STOP,   "stop",   "the run stops") \
    X(GIVE_UP, "give-up", "the run stops: too many recoveries without a new checkpoint")
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
    rp_control_state_id failed; /* the state that the fault ended */
    bool of_board;              /* a particular board has it */
    /* the run */
    bool trains;
    bool begun;       /* the boards have been loaded once */
    bool had_boards;  /* all boards have been in the ring, in this or an earlier life of the run */
    bool interrupted; /* by the user */
    bool waits;       /* ring.wait > 0: the run waits for lost boards */
    bool has_boards;  /* the ring has been opened */
    bool can_lessen;  /* a smaller advance is allowed */
    bool places_stay; /* the user gave a plan, which names the boards */
    bool may_shrink;  /* a ring of roster boards, and no key of the run file forbids fewer */
    uint32_t boards;  /* boards in the ring now */
    uint32_t absent; /* lost boards: not greeted or without a port; if is_wrong, that board alone */
    bool is_wrong;   /* a board computes wrong, and would do so again */
    bool had_time;   /* a board has lacked a port for as long as ring.wait in this recovery */
    uint32_t at_least;   /* smallest number of boards that the run may go on with */
    uint32_t spares;     /* spares not yet tried in this recovery */
    uint32_t in_a_row;   /* earlier recoveries since the last checkpoint was written */
    uint32_t on_the_way; /* earlier faults in this recovery */
} rp_remedy_facts;

rp_remedy rp_remedy_choose(const rp_remedy_facts *facts);
/* Pause before boards are greeted again, counted from the first of `faults` since the newest
 * checkpoint. Faults close together mostly come from one disturbance, which passes. */
int64_t rp_remedy_pause_ns(uint32_t faults);
#define RP_REMEDY_PAUSE_MAX_NS (30 * RP_NS_PER_S)
/* Another process uses a port that a board needs for its stages; it may release it later. An error
 * of this host's disk is of no board (`of_board` false). */
bool rp_remedy_lacks_port(rp_err err, rp_control_state_id failed, bool of_board);
/* Pause before the board is asked again, as a fraction of ring.wait that grows with `before`, the
 * number of failed attempts. */
int64_t rp_remedy_port_pause_ns(int64_t wait_ns, uint32_t before);

#endif
