/* The machine of the controller: its states, its fault, and what is done about that. */
#ifndef RP_CONTROL_OWN_MACHINE_H
#define RP_CONTROL_OWN_MACHINE_H

#include "control/fault.h"
#include "control/state.h"
#include "keep/keep.h"
#include "warm/warm.h"

typedef struct rp_controller rp_controller;

/* Recoveries that the summary has; more are only in the log. */
enum { RP_RECOVERIES_TOLD = 64 };

/* recovery.c: the way back to work after a fault. */
typedef struct {
    bool is_on;
    rp_controller_fault fault;   /* that began it */
    int64_t since_ns;            /* when that was noticed */
    int64_t assign_ns;           /* when the boards could get their stages again; 0: not yet */
    uint64_t step, microbatches; /* where the run was, and what it does again */
    uint32_t spares_taken;       /* on this way: a board that has not come is not tried again */
    uint32_t on_the_way;         /* faults since it began */
    uint32_t ports_lacked;       /* of them: a board lacked a port, */
    int64_t port_since_ns;       /* first then; */
    int64_t not_before_ns;       /* the boards are asked again; 0: at once */
    uint32_t in_a_row;           /* ways back since the last checkpoint that was written here, */
    int64_t row_since_ns;        /* the first of which began then */
    rp_summary_recovery done[RP_RECOVERIES_TOLD]; /* that have led back to work */
    uint32_t done_count;
} rp_recovery;

typedef struct {
    rp_control_state_id state, next;
    bool entered;               /* the first state, too */
    rp_control_state_id failed; /* the state that the fault ended */
    int64_t since_ns;
    int64_t timeout_ns;
    rp_controller_fault fault;
    rp_FaultClass reported; /* by the board whose FAULT is being handled */
    bool begun;             /* the boards have been loaded once: training has begun */
    bool renewed;           /* batch statistics are those of this pause */
    uint32_t wrong;         /* a board that computed wrong bits and is to leave the ring, or
                               RP_FAULT_NO_BOARD */
    uint32_t interrupts;
    rp_err result;
    char joined[200];         /* names of boards that have just joined the ring, for the log */
    char note[RP_FAULT_TEXT]; /* in plain language why it did not finish */
} rp_machine;

/* Leaves the state at the end of this step. */
void rp_controller_enter(rp_controller *c, rp_control_state_id next);
/* Seconds since the segment at hand began. */
double rp_controller_segment_s(const rp_controller *c);
/* Every board has done what the state waits for. */
bool rp_controller_all_done(const rp_controller *c);
/* The step after which the run is over. */
uint64_t rp_controller_end(const rp_controller *c);
void rp_controller_forget_asked(rp_controller *c);
/* Its boards have been at work before, in this life of the run or in the one that it resumes. */
bool rp_controller_had_boards(const rp_controller *c);
/* It has been dealt with. */
void rp_controller_forget_fault(rp_controller *c);
/* A fault that no new try would mend; its text is rp_err_message(). Returns `err`. */
rp_err rp_controller_final(rp_controller *c, rp_err err) RP_MUST_CHECK;
/* Marks an IO error of a run that has begun as one that may pass, so that the run goes back to its
 * newest checkpoint. Returns `err`. */
rp_err rp_controller_disk_fault(rp_controller *c, rp_err err) RP_MUST_CHECK;
/* What the room keep gave: with OVER nothing can be saved any more, which no new try would mend.
 * Returns `err`. */
rp_err rp_controller_keep_result(rp_controller *c, rp_err err,
                                 rp_keep_outcome outcome) RP_MUST_CHECK;
/* rp_keep_disk_failed(), where the run stands. */
rp_err rp_controller_disk_failed(rp_controller *c) RP_MUST_CHECK;
/* The run's next term, which is in its folder when this returns. errors FORMAT, IO */
rp_err rp_controller_begin_term(rp_controller *c) RP_MUST_CHECK;
/* A line for a person who watches. */
void rp_controller_print(const rp_controller *c, const char *format, ...) RP_PRINTF(2, 3);
/* Called once the boards have reported their memory. errors USAGE: the net does not fit, whatever
 * the cut */
rp_err rp_memory_check_least(rp_controller *c) RP_MUST_CHECK;
/* Checks the first plan. errors USAGE: what boards need and have; MEMORY */
rp_err rp_memory_check_plan(rp_controller *c) RP_MUST_CHECK;
/* bringup.c: start, restart, hello, profile, assign */
/* This host's: given, made for local boards, or read for a roster. */
rp_err rp_start_find_keys(const rp_controller *c, rp_keypair *out) RP_MUST_CHECK;
rp_err rp_start_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_restart_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_start_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_start_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_hello_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_hello_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_hello_late(const rp_controller *c) RP_MUST_CHECK;
/* missing.c */
const rp_cause *rp_missing_cause(const rp_controller *c, uint32_t board); /* NULL: not known */
bool rp_missing_ends_wait(const rp_controller *c);
/* A missing board for which waiting does not help, else `otherwise`. */
uint32_t rp_missing_first(const rp_controller *c, uint32_t otherwise);
void rp_missing_say(rp_controller *c, int64_t longest_ns);
/* The board has a cause. errors  REFUSED, TIMEOUT */
rp_err rp_missing_fail(const rp_controller *c, uint32_t board, int64_t waited_ns) RP_MUST_CHECK;
/* What boards measure now. PLAN and PROFILE have no record: they show it. */
void rp_profile_say(const rp_controller *c, const char *text);
rp_err rp_profile_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_profile_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_profile_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_assign_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_assign_step(rp_controller *c) RP_MUST_CHECK;
/* Every board has greeted, and nothing has to be fetched from them. */
void rp_controller_leave_hello(rp_controller *c);
/* What the boards held is over: they are greeted and get their stages again. */
rp_err rp_controller_assign_again(rp_controller *c) RP_MUST_CHECK;
/* recover.c */
rp_err rp_recover_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_recover_step(rp_controller *c) RP_MUST_CHECK;
/* absent.c: boards that have not come in their time. Spares that have not been tried take their
 * places, or the ring goes on without them: rp_arrangement_plan(c->setup) and the cut are of fewer
 * boards then. */
rp_err rp_absent_take_spares(rp_controller *c) RP_MUST_CHECK;
/* NULL: this run file lets boards leave; else what of it does not. */
const char *rp_absent_why_stay(const rp_controller *c);
rp_err rp_absent_leave(rp_controller *c) RP_MUST_CHECK;
/* join.c */
/* Whether the ring is at work, so that boards may join at its next pause. */
bool rp_join_is_possible(const rp_controller *c);
/* At a pause after whose step a checkpoint was written: boards that answer are in the ring from now
 * on, which has no stages for them yet. False: there are none, or it is too early. */
bool rp_join_boards(rp_controller *c) RP_MUST_CHECK;
/* After rp_join_boards(): the ring is cut again over its boards. */
rp_err rp_absent_return(rp_controller *c) RP_MUST_CHECK;
/* restore.c: what to start from, and what to go back to.
 * errors  those of rp_checkpoint_find() and rp_checkpoint_check_start() */
rp_err rp_controller_find_start(rp_controller *c) RP_MUST_CHECK;
/* Everything is as it was at the newest checkpoint of this run or at newer copies, in a new term;
 * boards that are lost have no link any more. errors  FORMAT, IO; PEER: another controller goes on
 * with the run */
rp_err rp_controller_go_back(rp_controller *c) RP_MUST_CHECK;
/* The same on the way back, for no board in particular: it goes back further. */
rp_err rp_controller_go_back_alone(rp_controller *c) RP_MUST_CHECK;
/* What is loaded next: the newest checkpoint, or where the run begins. errors as _go_back */
rp_err rp_controller_find_kept(rp_controller *c) RP_MUST_CHECK;
/* recovery.c: of the way back from c->machine.fault, at step `from`, once the position is the one
 * to go on from. */
void rp_recovery_begin(rp_controller *c, uint64_t from);
/* The boards hold the checkpoint's state: the run is at work again, if it was being recovered. */
rp_err rp_recovery_note_work(rp_controller *c) RP_MUST_CHECK;
/* A checkpoint has been written: what boards have counted so far is in it. */
void rp_recovery_note_checkpoint(rp_controller *c);
/* Boards that the run can not go on with: they have not come, or one of them computes wrong. */
/* The fault at hand: this board lacks a port, and on this way back boards did so for ring.wait. */
bool rp_recovery_is_portless(const rp_controller *c, uint32_t board);
bool rp_recovery_had_time_for_port(const rp_controller *c);
bool rp_recovery_lacks(const rp_controller *c, uint32_t board);
uint32_t rp_recovery_absent(const rp_controller *c);
uint32_t rp_recovery_spares(const rp_controller *c); /* that have not been tried on this way */
/* Boards are to come that the run has had: on a way back, but also where it has paused by itself,
 * or before it is resumed. */
bool rp_recovery_is_return(const rp_controller *c);
/* warming.c: what the room `warm` says of all boards that are ready, of a fault that is waited for,
 * and of one that costs spares their part */
rp_err rp_warming_go_on(rp_controller *c) RP_MUST_CHECK;
rp_warm_fault rp_warming_fault(const rp_controller *c);
rp_err rp_warming_wait(rp_controller *c) RP_MUST_CHECK;
rp_err rp_warming_leave(rp_controller *c) RP_MUST_CHECK;
/* close.c */
rp_err rp_close_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_close_step(rp_controller *c) RP_MUST_CHECK;
/* Links, feeds and boards go at once, in the order in which they borrow from each other. */
void rp_controller_release(rp_controller *c);
/* At a pause: leaves for what is due. errors INTERRUPTED */
rp_err rp_controller_choose_next(rp_controller *c) RP_MUST_CHECK;
/* Where the training segment that begins now ends, unless a step before is to be verified. */
uint64_t rp_controller_next_boundary(rp_controller *c);
/* Copies are all that is due at this pause of a training segment. */
bool rp_controller_copies_suffice(const rp_controller *c);
/* An evaluation is due here, of *split. */
bool rp_controller_evaluation_due(const rp_controller *c, rp_split *split);
/* The step in front of which an evaluation is due, or the run's end. */
uint64_t rp_controller_next_evaluation(const rp_controller *c);
/* The step at which the pipes would be empty if no input went in from here on. */
uint64_t rp_controller_drained_at(const rp_controller *c);

#endif
