/* Adoption: a run is resumed whose controller has died, and its boards may hold a newer state than
 * the newest checkpoint. They are asked what they hold until nothing moves any more. When all of
 * them stand at the same step, a checkpoint is made of it, from which the run goes on. Otherwise,
 * and whenever something is in doubt, it goes on from the checkpoint that is there.
 *
 *   rp_keep_begin_adoption, rp_keep_read_adopted_plan, rp_keep_ask_boards
 *   rp_keep_step_adoption until it does not WAIT
 *   TAKE: rp_keep_take_adopted, then rp_keep_adopted_loss for each step, then a save
 *   rp_keep_end_adoption */
#ifndef RP_KEEP_ADOPTION_H
#define RP_KEEP_ADOPTION_H

#include "keep/keep.h"

enum { RP_KEEP_WHY_BYTES = 240 };

typedef enum {
    RP_ADOPTION_WAITS,
    RP_ADOPTION_IS_OFF, /* `why`, or "" where there is nothing to gain */
    RP_ADOPTION_TAKES   /* all boards have stopped at one step, which is worth it */
} rp_adoption;

/* What decides whether the boards' state is of use. */
typedef struct {
    const rp_run_ledger *ledger; /* at the newest checkpoint */
    uint64_t end;                /* the run's last step */
} rp_adopt_facts;

/* Where the boards stand. */
typedef struct {
    uint64_t step, fill_step;
    rp_run_ledger ledger; /* its samples: of the steps since the newest checkpoint */
} rp_adopted;

/* Boards of the resumed run may hold something, as far as it can be said before the start.
 * `is_given`: a plan was given for the run. Once only. */
bool rp_keep_may_adopt(const rp_keep *keep, bool is_given);
bool rp_keep_adoption_is_due(const rp_keep *keep, bool is_given);

/* The newest checkpoint is damaged, and its step is known: only boards can help. */
void rp_keep_hope_for_boards(rp_keep *keep, bool hopes);
bool rp_keep_hopes_for_boards(const rp_keep *keep);

/* Where the run goes on: rp_keep_find(); or what boards hold, which may help where the newest
 * checkpoint is damaged: then *path is NULL, and `position` is that of the damaged one. errors of
 * rp_checkpoint_find() */
rp_err rp_keep_find_start(rp_keep *keep, rp_arena *arena, bool is_given, char **path,
                          rp_position *position) RP_MUST_CHECK;
/* `step`: of the newest checkpoint. errors MEMORY */
rp_err rp_keep_begin_adoption(rp_keep *keep, uint64_t step) RP_MUST_CHECK;
/* The plan by which the boards ran, from plan.json; again when the run file has changed since.
 * Borrowed until the adoption ends. errors of rp_planfile_read() */
rp_err rp_keep_read_adopted_plan(rp_keep *keep) RP_MUST_CHECK;
rp_plan *rp_keep_adopted_plan(rp_keep *keep); /* NULL: not read yet */
/* Asks all boards what they hold. errors of the ring */
rp_err rp_keep_ask_boards(rp_keep *keep) RP_MUST_CHECK;
/* A board answers. errors PEER: not in the expected form; MEMORY */
rp_err rp_keep_on_adopted_hello(rp_keep *keep, uint32_t board,
                                const rp_message *message) RP_MUST_CHECK;
rp_err rp_keep_on_held(rp_keep *keep, uint32_t board, const rp_message *message) RP_MUST_CHECK;
/* errors of the ring */
rp_err rp_keep_step_adoption(rp_keep *keep, const rp_adopt_facts *facts,
                             char why[RP_KEEP_WHY_BYTES], rp_adoption *out) RP_MUST_CHECK;
/* A board has not answered, or is not at rest, for too long. errors TIMEOUT */
rp_err rp_keep_adoption_is_late(const rp_keep *keep) RP_MUST_CHECK;

/* After TAKES. The ring's boards are what they say; a save is to follow. errors PEER: a board's
 * answer does not fit the plan */
rp_err rp_keep_take_adopted(rp_keep *keep, const rp_run_ledger *from,
                            rp_adopted *out) RP_MUST_CHECK;
/* The sum of losses of a step, as the boards told their controller. False: they do not know it any
 * more. */
bool rp_keep_adopted_loss(const rp_keep *keep, uint64_t step, double *sum) RP_MUST_CHECK;
/* The checkpoint of the boards' state is being saved; or anything of the adoption is under way. */
void rp_keep_save_adopted(rp_keep *keep);
bool rp_keep_saves_adopted(const rp_keep *keep);
bool rp_keep_is_adopting(const rp_keep *keep);

/* Lets go of the plan, which nothing may use any more. `why`: why the boards' state is not used;
 * NULL: it was saved, and the run stands at `step`. errors IO */
rp_err rp_keep_end_adoption(rp_keep *keep, const char *why, uint64_t step) RP_MUST_CHECK;
/* The same without a word. */
void rp_keep_forget_adoption(rp_keep *keep);

#endif
