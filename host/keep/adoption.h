/* Adoption: when a run is resumed whose controller has died, its boards may hold a newer state than
 * the newest checkpoint. They are asked what they hold until all of them rest. If all are at the
 * same step, a checkpoint is made of their state, and the run continues from it. Otherwise, and in
 * any doubt, the run continues from the existing checkpoint.
 *
 *   rp_keep_begin_adoption, rp_keep_read_adopted_plan, rp_keep_ask_boards
 *   rp_keep_step_adoption until it does not WAIT
 *   TAKE: rp_keep_take_adopted, then rp_keep_adopted_loss for each step, then a save
 *   rp_keep_end_adoption */
#ifndef RP_KEEP_ADOPTION_H
#define RP_KEEP_ADOPTION_H

#include "keep/keep.h"

typedef enum {
    RP_ADOPTION_WAITS,
    RP_ADOPTION_IS_OFF, /* the boards' state is not used; `why`, or kind NONE if it is not newer */
    RP_ADOPTION_TAKES   /* all boards stopped at one step, and their state is to be used */
} rp_adoption;

/* Facts that decide whether the boards' state is useful. */
typedef struct {
    const rp_run_ledger *ledger; /* ledger of the newest checkpoint */
    uint64_t end;                /* last step of the run */
} rp_adopt_facts;

/* The state of the boards. */
typedef struct {
    uint64_t step, fill_step;
    rp_run_ledger ledger; /* its `samples`: of the steps since the newest checkpoint */
} rp_adopted;

/* The boards of the resumed run may hold its state, as far as known before the start. `is_given`:
 * the user gave a plan. False once an adoption was tried. */
bool rp_keep_may_adopt(const rp_keep *keep, bool is_given);
bool rp_keep_adoption_is_due(const rp_keep *keep, bool is_given);

/* Sets whether only the boards can help: the newest checkpoint is damaged, but its step is
 * known. */
void rp_keep_hope_for_boards(rp_keep *keep, bool hopes);
bool rp_keep_hopes_for_boards(const rp_keep *keep);

/* Finds where the run continues: rp_keep_find(). If the newest checkpoint is damaged and boards may
 * help: *path is NULL, and `position` that of the damaged one. errors of rp_checkpoint_find() */
rp_err rp_keep_find_start(rp_keep *keep, rp_arena *arena, bool is_given, char **path,
                          rp_position *position) RP_MUST_CHECK;
/* `step`: of the newest checkpoint. errors MEMORY */
rp_err rp_keep_begin_adoption(rp_keep *keep, uint64_t step) RP_MUST_CHECK;
/* Reads the boards' plan from plan.json; call it again if the run file changed. Borrowed until the
 * adoption ends. errors of rp_planfile_read() */
rp_err rp_keep_read_adopted_plan(rp_keep *keep) RP_MUST_CHECK;
rp_plan *rp_keep_adopted_plan(rp_keep *keep); /* NULL: not read yet */
/* Asks all boards what they hold. errors of the ring */
rp_err rp_keep_ask_boards(rp_keep *keep) RP_MUST_CHECK;
/* Takes a board's answer. errors PEER: unexpected layout; MEMORY */
rp_err rp_keep_on_adopted_hello(rp_keep *keep, uint32_t board,
                                const rp_message *message) RP_MUST_CHECK;
rp_err rp_keep_on_held(rp_keep *keep, uint32_t board, const rp_message *message) RP_MUST_CHECK;
/* The texts of *why are borrowed until the next call. errors of the ring */
rp_err rp_keep_step_adoption(rp_keep *keep, const rp_adopt_facts *facts, rp_run_event *why,
                             rp_adoption *out) RP_MUST_CHECK;
/* Names a board that has not answered, or does not come to rest. errors TIMEOUT */
rp_err rp_keep_adoption_is_late(const rp_keep *keep) RP_MUST_CHECK;

/* After TAKES: copies the boards' answers into the ring; a save must follow. errors PEER: an answer
 * does not fit the plan */
rp_err rp_keep_take_adopted(rp_keep *keep, const rp_run_ledger *from,
                            rp_adopted *out) RP_MUST_CHECK;
/* Sum of the losses of a step, and its targets that do not count, as boards reported it to the
 * former controller. False: no longer known. */
bool rp_keep_adopted_loss(const rp_keep *keep, uint64_t step, double *sum,
                          uint64_t *ignored) RP_MUST_CHECK;
/* _save_adopted: the checkpoint of the boards' state is being saved. _saves_adopted: that is in
 * progress. _is_adopting: any part of the adoption is in progress. */
void rp_keep_save_adopted(rp_keep *keep);
bool rp_keep_saves_adopted(const rp_keep *keep);
bool rp_keep_is_adopting(const rp_keep *keep);

/* Ends the adoption and releases its plan. `why`: why the boards' state is not used; NULL: it was
 * saved, and the run is at `step`. errors IO */
rp_err rp_keep_end_adoption(rp_keep *keep, const rp_run_event *why, uint64_t step) RP_MUST_CHECK;
/* Ends the adoption without logging it. */
void rp_keep_forget_adoption(rp_keep *keep);

#endif
