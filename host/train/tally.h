/* Sums the losses of the boards that share the last stage. Each reports its part of a step's
 * samples, possibly some steps earlier than other boards. */
#ifndef RP_TRAIN_TALLY_H
#define RP_TRAIN_TALLY_H

#include "plan/plan.h"
#include "wire/frame.h"

/* Losses of some samples: their sum, and the number of targets that do not count. */
typedef struct {
    double loss;
    uint64_t ignored;
} rp_loss_sum;

typedef struct {
    bool is_here;
    rp_loss_sum sum;
} rp_tally_part;

typedef struct {
    const rp_plan *plan;
    const rp_plan_hold **hold;   /* [count], boards with the last stage's backward */
    const rp_plan_hold **scorer; /* [scorers], boards with the last stage's forward */
    uint32_t count, scorers;
    uint32_t room;       /* capacity in steps */
    rp_tally_part *part; /* [room][count], ring buffer by step */
    rp_loss_sum *pass;   /* [scorers] */
} rp_tally;

/* errors MEMORY */
rp_err rp_tally_open(rp_arena *arena, const rp_plan *plan, rp_tally *out) RP_MUST_CHECK;
/* Takes a board's part of a step; `due`: the first incomplete step.
 * errors PEER: unexpected board, step or number of samples */
rp_err rp_tally_add_step(rp_tally *tally, uint32_t board, uint64_t due,
                         const rp_StepDone *done) RP_MUST_CHECK;
/* True if all parts of the step are there; removes them. Losses are summed in the order of the
 * plan's holds, whatever the order of arrival. */
bool rp_tally_take_step(rp_tally *tally, uint64_t step, rp_loss_sum *sum) RP_MUST_CHECK;
/* Losses of a pass without training, by board. */
void rp_tally_begin_pass(rp_tally *tally);
rp_err rp_tally_add_pass(rp_tally *tally, uint32_t board,
                         const rp_EvaluateDone *done) RP_MUST_CHECK;
rp_loss_sum rp_tally_pass_sum(const rp_tally *tally);

#endif
