/* The enter and step functions of the controller's states, and what the states share. Only
 * functions that act on decisions take an rp_controller; pure functions take the facts they
 * need. */
#ifndef RP_CONTROL_STEPS_H
#define RP_CONTROL_STEPS_H

#include "control/env.h"
#include "control/machine.h"
#include "warm/warm.h"

/* start.c */
rp_err rp_start_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_restart_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_start_step(rp_controller *c) RP_MUST_CHECK; /* START and RESTART */
rp_err rp_hello_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_hello_step(rp_controller *c) RP_MUST_CHECK;
/* Names a board that has not answered, and the cause. errors TIMEOUT, REFUSED, FAULT */
rp_err rp_hello_late(const rp_controller *c) RP_MUST_CHECK;
/* All boards have greeted: enters the next state. Boards stay watched if copies are to be
 * fetched. */
void rp_hello_leave(rp_controller *c);
/* Finds the keys of this host: from env, new ones for local boards, or from files for a roster. */
rp_err rp_start_find_keys(const rp_controller_env *env, const rp_runfile *run,
                          const char *keys_folder, rp_keypair *out) RP_MUST_CHECK;
/* plan.c */
rp_err rp_profile_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_profile_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_plan_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_plan_step(rp_controller *c) RP_MUST_CHECK;
/* Shows what boards measure now: in the record, or on `progress` where PLAN and PROFILE have
 * none. */
void rp_profile_say(rp_record *record, FILE *progress, const char *text);
/* assign.c */
rp_err rp_assign_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_assign_step(rp_controller *c) RP_MUST_CHECK;
/* Starts a new term; all boards are greeted and get new stages. */
rp_err rp_assign_again(rp_controller *c) RP_MUST_CHECK;
/* warming.c: carries out what the room `warm` decides. _go_on: after a round in which all boards
 * became ready. _wait: after a fault, waits for the lost board. _leave: goes on without the failed
 * spares. */
rp_err rp_warming_go_on(rp_controller *c, rp_warm_outcome outcome) RP_MUST_CHECK;
rp_err rp_warming_wait(rp_controller *c) RP_MUST_CHECK;
rp_err rp_warming_leave(rp_controller *c) RP_MUST_CHECK;
rp_warm_fault rp_warming_fault(const rp_machine *machine);
/* saves.c: load, save, round */
rp_err rp_load_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_load_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_round_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_round_step(rp_controller *c) RP_MUST_CHECK;
/* segment.c: train, drain, evaluate, statistics, verify */
rp_err rp_segment_train_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_drain_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_train_step(rp_controller *c) RP_MUST_CHECK; /* TRAIN and DRAIN */
rp_err rp_segment_evaluate_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_evaluate_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_statistics_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_statistics_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_verify_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_verify_step(rp_controller *c) RP_MUST_CHECK;
/* board_copies.c: adopt, copy, rescue */
rp_err rp_adopt_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_adopt_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_copy_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_copy_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_rescue_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_rescue_step(rp_controller *c) RP_MUST_CHECK;
/* recover_state.c. The enter function is also the step function; RECOVER is left at once unless it
 * waits for the disk. */
rp_err rp_recover_enter(rp_controller *c) RP_MUST_CHECK;
/* close.c */
rp_err rp_close_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_close_step(rp_controller *c) RP_MUST_CHECK;
/* Writes the summary and closes the record. errors IO */
rp_err rp_close_record(const rp_controller *c, const char *status) RP_MUST_CHECK;
/* Closes links, feeds and boards in the order in which they borrow from each other. */
void rp_close_rooms(rp_controller *c);

/* present.c: writes now.json once a second. _end: for the last time, while the record is open.
 * _close: frees what it has; can be called again. */
void rp_present_look(rp_controller *c);
void rp_present_end(rp_controller *c);
void rp_present_close(rp_controller *c);

/* accept.c: handles the received messages of a board until one fails. errors PEER: a message is not
 * expected in this state; those of the rooms */
rp_err rp_accept_messages(rp_controller *c, uint32_t board) RP_MUST_CHECK;
/* rp_accept_message() hands one accepted message to its room. rp_accept_takes(): whether messages
 * of this kind are accepted in a state, possibly to be ignored. */
rp_err rp_accept_message(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
bool rp_accept_takes(rp_kind kind, rp_control_state_id state);

/* pause.c: chooses and enters the state that follows at a pause. errors INTERRUPTED */
rp_err rp_pause_choose_next(rp_controller *c) RP_MUST_CHECK;
/* Returns the step at which the segment that begins now ends. `copies`: the step at which copies
 * are due. */
uint64_t rp_pause_next_step(const rp_controller *c, uint64_t copies);
/* At the end of a segment with empty pipes: puts other codecs into effect where the old ones lost
 * too much. The boards get new stages after the checkpoint. */
void rp_pause_follow_losses(rp_controller *c);
/* This pause is a round: a lane's checkpoint is now to be averaged with those of all
 * lanes. */
bool rp_pause_is_round(const rp_controller *c);

/* resume_point.c: finds what the run starts from. errors those of rp_checkpoint_find() and
 * rp_checkpoint_check_start() */
rp_err rp_resume_find_start(rp_controller *c) RP_MUST_CHECK;
/* Chooses what is loaded next: the newest checkpoint, or else the run's start. errors as
 * _go_back */
rp_err rp_resume_find_kept(rp_controller *c) RP_MUST_CHECK;
/* Resets everything to the newest checkpoint of this run, or to newer copies, in a new term. Links
 * of lost boards are closed. errors FORMAT, IO; PEER: another controller has taken over the run */
rp_err rp_resume_go_back(rp_controller *c) RP_MUST_CHECK;
/* rp_resume_go_back(), and begins the recovery from the current fault. `from`: step of the run when
 * the fault occurred. */
rp_err rp_resume_begin_way_back(rp_controller *c, uint64_t from) RP_MUST_CHECK;

#endif
