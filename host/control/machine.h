/* The state machine: current state, fault, and what follows from both in every state. */
#ifndef RP_CONTROL_MACHINE_H
#define RP_CONTROL_MACHINE_H

#include "control/fault.h"
#include "control/state.h"
#include "keep/keep.h"
#include "measure/measure.h"

typedef struct {
    rp_control_state_id state, next;
    bool entered;               /* `state` has been entered (false at the very beginning) */
    rp_control_state_id failed; /* the state that the fault ended */
    int64_t since_ns;           /* when the state was entered */
    int64_t timeout_ns;         /* of the state, without progress; 0: no timeout */
    rp_controller_fault fault;
    rp_FaultClass reported; /* class from the FAULT message being handled */
    bool begun;             /* the boards have been loaded once: training has begun */
    bool renewed;           /* batch statistics were renewed at this pause */
    uint32_t wrong; /* board that computed wrong bits and is to leave the ring; else RP_NO_BOARD */
    uint32_t interrupts;
    rp_err result;
    char joined[200]; /* (RP_MEMBERSHIP_NAMES_BYTES) boards that are rejoining the ring, for the log
                       */
    char note[RP_FAULT_TEXT]; /* why the run did not finish, for the user */
} rp_machine;

/* Selects the next state; the current one is left at the end of this step. */
void rp_machine_enter(rp_machine *machine, rp_control_state_id next);
/* Begins the selected state. */
void rp_machine_begin_state(rp_machine *machine, rp_ring *ring);
/* A fault is pending in a state that faults end, so RECOVER is next. */
bool rp_machine_is_failed(const rp_machine *machine);
/* The state's timeout has expired. */
bool rp_machine_is_late(const rp_machine *machine, const rp_ring *ring);
/* When the state has to be stepped next even if nothing arrives; INT64_MAX: never. Never earlier
 * than the current round. */
int64_t rp_machine_deadline_ns(const rp_machine *machine, const rp_ring *ring, const rp_keep *keep);
/* Sets the state's timeout without progress; 0: keeps the one of its table row. */
void rp_machine_limit(rp_machine *machine, int64_t limit_ns);
/* Boards may join at the next pause: the run is in a state from TRAIN to DRAIN and not
 * interrupted. */
bool rp_machine_may_grow(const rp_machine *machine);
/* The first board that has not done what the state waits for; ring->count: all have. */
uint32_t rp_machine_first_undone(const rp_machine *machine, const rp_ring *ring,
                                 const rp_measure *measure);
/* Every board has done what the state waits for. */
bool rp_machine_all_done(const rp_machine *machine, const rp_ring *ring, const rp_measure *measure);
/* Marks all boards as not yet asked, for a state that asks each one once. */
void rp_machine_forget_asked(rp_ring *ring);
/* The run, now at `step`, had all its boards before, in this life or in the one that it resumes. */
bool rp_machine_had_boards(const rp_machine *machine, uint64_t step);

/* ---- faults ---------------------------------------------------------------------------------- */

/* Raises a fault whose text is rp_err_message(). `board`: RP_NO_BOARD if no particular one. Does
 * nothing if `err` is OK, a fault is pending, or the run is being closed. */
void rp_machine_raise(rp_machine *machine, const rp_ring *ring, rp_err err, uint32_t board);
/* The fault has been handled. */
void rp_machine_forget_fault(rp_machine *machine);
/* Marks an error as fatal: a retry would not help. Returns `err`. */
rp_err rp_machine_final(rp_machine *machine, rp_err err) RP_MUST_CHECK;
/* Marks an IO error of a run that has begun as transient, so that the run goes back to its newest
 * checkpoint. Returns `err`. */
rp_err rp_machine_disk_fault(rp_machine *machine, rp_err err) RP_MUST_CHECK;
/* Takes a result of the room keep: outcome OVER means that nothing can be saved any more, so the
 * error becomes fatal. Returns `err`. */
rp_err rp_machine_keep_result(rp_machine *machine, rp_err err,
                              rp_keep_outcome outcome) RP_MUST_CHECK;
/* rp_keep_disk_failed() at `step`, where the run stands. */
rp_err rp_machine_disk_failed(rp_machine *machine, rp_keep *keep, uint64_t step) RP_MUST_CHECK;
/* Starts the run's next term; it is stored in the run folder when this returns. `fresh`: id for a
 * run without one; 0: random. errors FORMAT, IO */
rp_err rp_machine_begin_term(rp_machine *machine, rp_ring *ring, const rp_folder *folder,
                             uint64_t fresh) RP_MUST_CHECK;

#endif
