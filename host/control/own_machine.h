/* The states of the controller, and what they share. */
#ifndef RP_CONTROL_OWN_MACHINE_H
#define RP_CONTROL_OWN_MACHINE_H

#include "control/machine.h"
#include "control/recovery.h"
#include "warm/warm.h"

typedef struct rp_controller rp_controller;

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
/* join.c */
/* Whether the ring is at work, so that boards may join at its next pause. */
bool rp_join_is_possible(const rp_controller *c);
/* At a pause after whose step a checkpoint was written: boards that answer are in the ring from now
 * on, which has no stages for them yet. False: there are none, or it is too early. */
bool rp_join_boards(rp_controller *c) RP_MUST_CHECK;
/* restore.c: what to start from, and what to go back to.
 * errors  those of rp_checkpoint_find() and rp_checkpoint_check_start() */
rp_err rp_controller_find_start(rp_controller *c) RP_MUST_CHECK;
/* Everything is as it was at the newest checkpoint of this run or at newer copies, in a new term;
 * boards that are lost have no link any more. errors  FORMAT, IO; PEER: another controller goes on
 * with the run */
rp_err rp_controller_go_back(rp_controller *c) RP_MUST_CHECK;
/* rp_controller_go_back(), then the recovery from the fault at hand begins. `from`: step at which
 * the run was. */
rp_err rp_controller_begin_way_back(rp_controller *c, uint64_t from) RP_MUST_CHECK;
/* The same on the way back, for no board in particular: it goes back further. */
rp_err rp_controller_go_back_alone(rp_controller *c) RP_MUST_CHECK;
/* What is loaded next: the newest checkpoint, or where the run begins. errors as _go_back */
rp_err rp_controller_find_kept(rp_controller *c) RP_MUST_CHECK;
/* Boards are to come that the run has had: on a way back, but also where it has paused by itself,
 * or before it is resumed. */
bool rp_controller_is_return(const rp_controller *c);
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

#endif
