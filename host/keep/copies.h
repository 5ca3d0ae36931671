/* Copies that boards keep of each other (ring.copy_steps). At a pause each board copies what it
 * holds, and its neighbour gets the copy while training goes on. When boards are lost, what they
 * held is fetched from the boards that have copies, and becomes a checkpoint: a rescue. */
#ifndef RP_KEEP_COPIES_H
#define RP_KEEP_COPIES_H

#include "keep/keep.h"

/* ---- how often ------------------------------------------------------------------------------- */

/* Chosen again at the begin of a segment. `usual_ns`: what a step takes, 0: not known. errors IO */
rp_err rp_keep_choose_copy_pace(rp_keep *keep, uint64_t step, int64_t usual_ns) RP_MUST_CHECK;
/* A step was done: the first one after a pause tells what copies cost. */
void rp_keep_note_step(rp_keep *keep, int64_t usual_ns);
/* The step after `step` at which copies are due next; UINT64_MAX: never. */
uint64_t rp_keep_next_copies(rp_keep *keep, uint64_t step);
bool rp_keep_copies_are_due(const rp_keep *keep, uint64_t step);

/* ---- can they be made? ----------------------------------------------------------------------- */

/* Every board of the plan has a neighbour that can keep its copy. errors USAGE naming the board */
rp_err rp_keep_check_plan(const rp_keep *keep, const rp_plan *plan) RP_MUST_CHECK;
/* Every board has the memory for copies. errors LIMIT naming the board */
rp_err rp_keep_check_memory(const rp_keep *keep, const rp_plan *plan) RP_MUST_CHECK;

/* ---- making ---------------------------------------------------------------------------------- */

/* Copies were ordered, and not all boards have said that they have theirs. */
bool rp_keep_is_copying(const rp_keep *keep);
/* Orders copies of what the boards hold at this pause. As long as the last ones are on their way
 * nothing is ordered, and all boards count as `copied`. errors MEMORY; of the ring */
rp_err rp_keep_begin_copy(rp_keep *keep, const rp_plan *plan, const rp_position *position,
                          const rp_gain_estimator *estimator) RP_MUST_CHECK;
/* A board has a copy. `plan` NULL: there is no assignment. errors PEER: it does not keep that */
rp_err rp_keep_on_copied(rp_keep *keep, const rp_plan *plan, uint32_t board,
                         const rp_message *message) RP_MUST_CHECK;
/* All copies are of no use any more: there is another plan. */
void rp_keep_forget_copies(rp_keep *keep);

/* ---- going back to them ---------------------------------------------------------------------- */

/* Where the run stood at the newest copies that all boards have; NULL: none are newer than the
 * newest checkpoint. Borrowed until they are forgotten. */
const rp_position *rp_keep_newest_copies(const rp_keep *keep);
/* What a board had counted there. */
uint64_t rp_keep_copied_microbatches(const rp_keep *keep, uint32_t board);
/* The run goes back to them: the boards are asked which ones they have. */
void rp_keep_want_copies(rp_keep *keep);
bool rp_keep_wants_copies(const rp_keep *keep);
/* The boards are greeted, and say again what they have. */
void rp_keep_ask_for_holders(rp_keep *keep, const rp_plan *plan);
/* A node of the plan whose copy no board has; NULL: none is missing. Borrowed from the plan. */
const char *rp_keep_find_lost(const rp_keep *keep, const rp_plan *plan);

/* ---- the rescue ------------------------------------------------------------------------------ */

/* Where the copies stand that are wanted. */
const rp_position *rp_keep_wanted_position(const rp_keep *keep);
/* Asks for the copies. `plan` is borrowed until the rescue is abandoned. No copy is lost. WAITS;
 * AGAIN: the file cannot be opened; OVER. errors MEMORY, IO */
rp_err rp_keep_begin_rescue(rp_keep *keep, const rp_plan *plan, rp_keep_outcome *out) RP_MUST_CHECK;
/* WAITS; AGAIN: begin it again; DAMAGED: *not_finite names a tensor, borrowed until the rescue is
 * abandoned; DONE, also with errors IO: it is a checkpoint, and the copies are forgotten; OVER.
 * errors as rp_keep_step_save(); of the ring */
rp_err rp_keep_step_rescue(rp_keep *keep, const char **not_finite,
                           rp_keep_outcome *out) RP_MUST_CHECK;
/* Also forgets the copies: the disk has a checkpoint. */
void rp_keep_abandon_rescue(rp_keep *keep);

#endif
