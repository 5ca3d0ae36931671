/* Sums what the boards that share the last stage report. Each board has a part of the samples of a
 * step, and its reports may come some steps earlier than those of another board. */
#ifndef RP_TRAIN_TALLY_H
#define RP_TRAIN_TALLY_H

#include "plan/plan.h"
#include "wire/frame.h"

typedef struct {
    bool is_here;
    double loss;
} rp_tally_part;

typedef struct {
    const rp_plan *plan;
    const rp_plan_hold **hold;   /* [count], of the last stage: boards with its backward */
    const rp_plan_hold **scorer; /* [scorers], of the last stage: boards with its forward */
    uint32_t count, scorers;
    uint32_t room;       /* steps */
    rp_tally_part *part; /* [room][count], by step modulo room */
    double *pass_loss;   /* [scorers] */
} rp_tally;

/* errors MEMORY */
rp_err rp_tally_open(rp_arena *arena, const rp_plan *plan, rp_tally *out) RP_MUST_CHECK;
/* A board's part of a step; `due`: the step that is complete next.
 * errors PEER: another board, another step, or other samples than the plan says */
rp_err rp_tally_add_step(rp_tally *tally, uint32_t board, uint64_t due,
                         const rp_StepDone *done) RP_MUST_CHECK;
/* True: all parts of the step were there, and are taken out; their losses are summed in the order
 * of the plan's holds. */
bool rp_tally_take_step(rp_tally *tally, uint64_t step, double *loss_sum) RP_MUST_CHECK;
/* Losses of a pass without training, by board. */
void rp_tally_begin_pass(rp_tally *tally);
rp_err rp_tally_add_pass(rp_tally *tally, uint32_t board, double loss_sum) RP_MUST_CHECK;
double rp_tally_pass_loss(const rp_tally *tally);

#endif
