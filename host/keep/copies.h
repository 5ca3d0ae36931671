/* Copies of state that boards keep for each other (ring.copy_steps). At a pause each board copies
 * its state, and its neighbour receives the copy while training goes on. When boards are lost,
 * their state is fetched from boards with copies and becomes a checkpoint: a rescue. */
#ifndef RP_KEEP_COPIES_H
#define RP_KEEP_COPIES_H

#include "keep/keep.h"

/* ---- how often ------------------------------------------------------------------------------- */

/* Chooses the pace; called when a segment begins. `usual_ns`: duration of a step, 0: unknown.
 * errors IO */
rp_err rp_keep_choose_copy_pace(rp_keep *keep, uint64_t step, int64_t usual_ns) RP_MUST_CHECK;
/* A step is done; the first one after a pause shows what copies cost. */
void rp_keep_note_step(rp_keep *keep, int64_t usual_ns);
/* The next step after `step` at which copies are due; UINT64_MAX: never. */
uint64_t rp_keep_next_copies(rp_keep *keep, uint64_t step);
bool rp_keep_copies_are_due(const rp_keep *keep, uint64_t step);

/* ---- can they be made? ----------------------------------------------------------------------- */

/* Checks that every board of the plan has a neighbour that can keep its copy. errors USAGE naming
 * the board */
rp_err rp_keep_check_plan(const rp_keep *keep, const rp_plan *plan) RP_MUST_CHECK;
/* Checks that every board has the memory for copies. errors LIMIT naming the board */
rp_err rp_keep_check_memory(const rp_keep *keep, const rp_plan *plan) RP_MUST_CHECK;

/* ---- making ---------------------------------------------------------------------------------- */

/* Copies were ordered, and not all boards have reported theirs. */
bool rp_keep_is_copying(const rp_keep *keep);
/* Orders copies of the state at this pause. While the last copies are incomplete, orders nothing,
 * and all boards count as `copied`. errors MEMORY; of the ring */
rp_err rp_keep_begin_copy(rp_keep *keep, const rp_plan *plan, const rp_position *position,
                          const rp_gain_estimator *estimator) RP_MUST_CHECK;
/* Takes a board's report of a copy. `plan` NULL: no assignment. errors PEER: the board is not to
 * keep it */
rp_err rp_keep_on_copied(rp_keep *keep, const rp_plan *plan, uint32_t board,
                         const rp_message *message) RP_MUST_CHECK;
/* Forgets all copies, because the plan has changed. */
void rp_keep_forget_copies(rp_keep *keep);

/* ---- going back to them ---------------------------------------------------------------------- */

/* Position of the newest copies that all boards have; NULL: none are newer than the newest
 * checkpoint. Borrowed until they are forgotten. */
const rp_position *rp_keep_newest_copies(const rp_keep *keep);
/* Microbatches that a board had counted at that position. */
uint64_t rp_keep_copied_microbatches(const rp_keep *keep, uint32_t board);
/* The run goes back to the newest copies; boards are to be asked which ones they have. */
void rp_keep_want_copies(rp_keep *keep);
bool rp_keep_wants_copies(const rp_keep *keep);
/* A greeting begins: boards report again which copies they have. */
void rp_keep_ask_for_holders(rp_keep *keep, const rp_plan *plan);
/* Names a node of the plan whose copy no board has; NULL: all exist. Borrowed from the plan. */
const char *rp_keep_find_lost(const rp_keep *keep, const rp_plan *plan);

/* ---- the rescue ------------------------------------------------------------------------------ */

/* Position of the copies to which the run goes back. */
const rp_position *rp_keep_wanted_position(const rp_keep *keep);
/* Asks boards for the copies, none of which is lost. `plan` is borrowed until the rescue is
 * abandoned. WAITS; AGAIN: the file cannot be opened; OVER. errors MEMORY, IO */
rp_err rp_keep_begin_rescue(rp_keep *keep, const rp_plan *plan, rp_keep_outcome *out) RP_MUST_CHECK;
/* WAITS; AGAIN: call rp_keep_begin_rescue(); DAMAGED: *not_finite names a tensor, borrowed until
 * the rescue is abandoned; DONE, also with errors IO: a checkpoint is written, and the copies are
 * forgotten; OVER. errors as rp_keep_step_save(); of the ring */
rp_err rp_keep_step_rescue(rp_keep *keep, const char **not_finite,
                           rp_keep_outcome *out) RP_MUST_CHECK;
/* Ends a rescue, finished or not. Also forgets the copies, because a checkpoint is on disk. */
void rp_keep_abandon_rescue(rp_keep *keep);

#endif
