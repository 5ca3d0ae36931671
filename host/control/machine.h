/* The machine: the state at hand, the fault that ended one, and what follows from both for every
 * state. */
#ifndef RP_CONTROL_MACHINE_H
#define RP_CONTROL_MACHINE_H

#include "control/fault.h"
#include "control/state.h"
#include "keep/keep.h"
#include "measure/measure.h"

typedef struct {
    rp_control_state_id state, next;
    bool entered;               /* the first state, too */
    rp_control_state_id failed; /* the state that the fault ended */
    int64_t since_ns;           /* when the state was entered */
    int64_t timeout_ns;         /* of the state, without progress; 0: it does not wait */
    rp_controller_fault fault;
    rp_FaultClass reported; /* by the board whose FAULT is being handled */
    bool begun;             /* the boards have been loaded once: training has begun */
    bool renewed;           /* batch statistics are those of this pause */
    uint32_t wrong;         /* a board that computed wrong bits and is to leave the ring, or
                               RP_NO_BOARD */
    uint32_t interrupts;
    rp_err result;
    char joined[200]; /* (RP_MEMBERSHIP_NAMES_BYTES) names of boards that have just joined the ring,
                         for the log */
    char note[RP_FAULT_TEXT]; /* in plain language why it did not finish */
} rp_machine;

/* Leaves the state at the end of this step. */
void rp_machine_enter(rp_machine *machine, rp_control_state_id next);
/* The state that was chosen begins now. A fault has ended the one before if the state is RECOVER.
 */
void rp_machine_begin_state(rp_machine *machine, rp_ring *ring);
/* The way to RECOVER is open: there is a fault, and the state is one that a fault ends. */
bool rp_machine_is_failed(const rp_machine *machine);
/* The state waits longer than it may. */
bool rp_machine_is_late(const rp_machine *machine, const rp_ring *ring);
/* When time alone brings something about in this state; INT64_MAX: never. Not before the round. */
int64_t rp_machine_deadline_ns(const rp_machine *machine, const rp_ring *ring, const rp_keep *keep);
/* The state waits no longer than this without progress; 0: no longer than its row says. */
void rp_machine_limit(rp_machine *machine, int64_t limit_ns);
/* The ring is at work, so boards may join it at its next pause. */
bool rp_machine_may_grow(const rp_machine *machine);
/* The first board that has not done what the state waits for; the count: there is none. */
uint32_t rp_machine_first_undone(const rp_machine *machine, const rp_ring *ring,
                                 const rp_measure *measure);
/* Every board has done what the state waits for. */
bool rp_machine_all_done(const rp_machine *machine, const rp_ring *ring, const rp_measure *measure);
/* No board has been asked for what the state wants. */
void rp_machine_forget_asked(rp_ring *ring);
/* The boards of the run, which stands at `step`, have been at work before, in this life of the run
 * or in the one that it resumes. */
bool rp_machine_had_boards(const rp_machine *machine, uint64_t step);

/* ---- faults ---------------------------------------------------------------------------------- */

/* The text is rp_err_message(). `board`: RP_NO_BOARD: of none in particular. Does nothing if
 * `err` is OK, there is a fault already, or the run is being closed. */
void rp_machine_raise(rp_machine *machine, const rp_ring *ring, rp_err err, uint32_t board);
/* The fault has been dealt with. */
void rp_machine_forget_fault(rp_machine *machine);
/* Marks an error as one that no new try would mend. Returns `err`. */
rp_err rp_machine_final(rp_machine *machine, rp_err err) RP_MUST_CHECK;
/* Marks an IO error of a run that has begun as one that may pass, so that the run goes back to its
 * newest checkpoint. Returns `err`. */
rp_err rp_machine_disk_fault(rp_machine *machine, rp_err err) RP_MUST_CHECK;
/* What the room keep gave: with OVER nothing can be saved any more, which no new try would mend.
 * Returns `err`. */
rp_err rp_machine_keep_result(rp_machine *machine, rp_err err,
                              rp_keep_outcome outcome) RP_MUST_CHECK;
/* rp_keep_disk_failed() at `step`, where the run stands. */
rp_err rp_machine_disk_failed(rp_machine *machine, rp_keep *keep, uint64_t step) RP_MUST_CHECK;
/* The run's next term, which is in its folder when this returns. `fresh`: the id of a run that has
 * none yet; 0: random. errors FORMAT, IO */
rp_err rp_machine_begin_term(rp_machine *machine, rp_ring *ring, const rp_folder *folder,
                             uint64_t fresh) RP_MUST_CHECK;

#endif
