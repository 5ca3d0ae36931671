/* What the states of the controller do when they are entered and stepped, and what they share. Only
 * functions that carry out what follows from facts take the controller. */
#ifndef RP_CONTROL_STEPS_H
#define RP_CONTROL_STEPS_H

#include "control/env.h"
#include "control/machine.h"
#include "warm/warm.h"

/* start.c */
rp_err rp_start_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_restart_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_start_step(rp_controller *c) RP_MUST_CHECK; /* of both */
rp_err rp_hello_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_hello_step(rp_controller *c) RP_MUST_CHECK;
/* Names a board that has not answered, and why. errors TIMEOUT, REFUSED, FAULT */
rp_err rp_hello_late(const rp_controller *c) RP_MUST_CHECK;
/* Every board has greeted, and nothing has to be fetched from them. */
void rp_hello_leave(rp_controller *c);
/* Keys of this host: given, made for local boards, or read for a roster. */
rp_err rp_start_find_keys(const rp_controller_env *env, const rp_runfile *run,
                          const char *keys_folder, rp_keypair *out) RP_MUST_CHECK;
/* plan.c */
rp_err rp_profile_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_profile_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_plan_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_plan_step(rp_controller *c) RP_MUST_CHECK;
/* What boards measure now. PLAN and PROFILE have no record: `progress` shows it. */
void rp_profile_say(rp_record *record, FILE *progress, const char *text);
/* assign.c */
rp_err rp_assign_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_assign_step(rp_controller *c) RP_MUST_CHECK;
/* What the boards held is over: they are greeted and get their stages again. */
rp_err rp_assign_again(rp_controller *c) RP_MUST_CHECK;
/* warming.c: carries out what the room `warm` says of all boards that are ready, of a fault that is
 * waited for, and of one that costs spares their part */
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
rp_err rp_segment_train_step(rp_controller *c) RP_MUST_CHECK; /* of both */
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
/* recover_state.c. It is stepped by entering it again: it is left at once, unless it waits for the
 * disk.
 */
rp_err rp_recover_enter(rp_controller *c) RP_MUST_CHECK;
/* close.c */
rp_err rp_close_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_close_step(rp_controller *c) RP_MUST_CHECK;
/* The record ends with its summary. errors IO */
rp_err rp_close_record(const rp_controller *c, const char *status) RP_MUST_CHECK;
/* Links, feeds and boards go at once, in the order in which they borrow from each other. */
void rp_close_rooms(rp_controller *c);

/* accept.c: takes the messages that a board has sent, until one fails. errors PEER: one is not
 * expected in this state; those of the rooms */
rp_err rp_accept_messages(rp_controller *c, uint32_t board) RP_MUST_CHECK;
/* .. a message that is accepted; whether this kind is, in a state. */
rp_err rp_accept_message(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
bool rp_accept_takes(rp_kind kind, rp_control_state_id state);

/* pause.c: at a pause. Leaves for what is due. errors INTERRUPTED */
rp_err rp_pause_choose_next(rp_controller *c) RP_MUST_CHECK;
/* End of the segment that begins here. `copies`: the step at which they are due. */
uint64_t rp_pause_next_step(const rp_controller *c, uint64_t copies);
/* At the end of a segment: where too much was lost, and the pipes are empty, other codecs are in
 * effect, and the boards get their stages again after the checkpoint. */
void rp_pause_follow_losses(rp_controller *c);
/* Of a lane, at a pause after its checkpoint: it is averaged with those of the other lanes. */
bool rp_pause_is_round(const rp_controller *c);

/* resume_point.c: what to start from, and what to go back to.
 * errors  those of rp_checkpoint_find() and rp_checkpoint_check_start() */
rp_err rp_resume_find_start(rp_controller *c) RP_MUST_CHECK;
/* What is loaded next: the newest checkpoint, or where the run begins. errors as _go_back */
rp_err rp_resume_find_kept(rp_controller *c) RP_MUST_CHECK;
/* Everything is as it was at the newest checkpoint of this run or at newer copies, in a new term;
 * boards that are lost have no link any more. errors  FORMAT, IO; PEER: another controller goes on
 * with the run */
rp_err rp_resume_go_back(rp_controller *c) RP_MUST_CHECK;
/* .. and the recovery from the fault at hand begins. `from`: step at which the run was. */
rp_err rp_resume_begin_way_back(rp_controller *c, uint64_t from) RP_MUST_CHECK;

#endif
