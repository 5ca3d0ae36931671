/* The states that train, evaluate and verify: what the room `train` tells, and what follows. */
#ifndef RP_CONTROL_OWN_TRAIN_H
#define RP_CONTROL_OWN_TRAIN_H

#include "control/machine.h"
#include "train/train.h"
#include "train/verify.h"

typedef struct rp_controller rp_controller;

/* segment.c: train, drain, evaluate, statistics, verify */
rp_err rp_segment_train_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_drain_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_train_step(rp_controller *c) RP_MUST_CHECK;
void rp_segment_abandon(rp_controller *c);
rp_err rp_segment_evaluate_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_evaluate_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_statistics_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_statistics_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_verify_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_verify_step(rp_controller *c) RP_MUST_CHECK;
void rp_segment_verify_abandon(rp_controller *c);
rp_err rp_segment_verify_late(const rp_controller *c) RP_MUST_CHECK;
/* What the boards report meanwhile: steps, ops, and what the room `train` takes as it is. */
rp_err rp_segment_on_step_done(rp_controller *c, uint32_t board,
                               const rp_message *message) RP_MUST_CHECK;
rp_err rp_segment_on_trace(rp_controller *c, uint32_t board,
                           const rp_message *message) RP_MUST_CHECK;
rp_err rp_segment_on_report(rp_controller *c, uint32_t board,
                            const rp_message *message) RP_MUST_CHECK;
/* Once a round: is a step overdue, and does a board hang? errors  IO; FAULT: *board hangs, else it
 * is not changed */
rp_err rp_segment_check_progress(const rp_machine *machine, const rp_ring *ring,
                                 rp_train *train) RP_MUST_CHECK;
rp_err rp_segment_find_hang(const rp_machine *machine, const rp_ring *ring, rp_train *train,
                            uint32_t *board) RP_MUST_CHECK;
/* round.c */
bool rp_round_is_due(const rp_controller *c); /* of a lane, at a pause after its checkpoint */
rp_err rp_round_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_round_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_round_late(const rp_controller *c) RP_MUST_CHECK;

#endif
