/* Verification: after a step of which the boards have recorded a microbatch, each stage's record
 * goes from its board to a second one, which recomputes it. */
#ifndef RP_TRAIN_VERIFY_H
#define RP_TRAIN_VERIFY_H

#include "train/train.h"

/* At a pause: the segment's last step has to be verified before anything of it is saved. */
bool rp_verify_is_due(const rp_train *train);
/* The segment ended only for the verification, so nothing is saved at this pause. */
bool rp_verify_is_alone(const rp_train *train);
rp_err rp_verify_begin(rp_train *train) RP_MUST_CHECK;
/* *over: all boards got the same bits. errors FAULT: *wrong is the board that computed wrong bits,
 * *fault_class BOARD; or no board can be identified, *fault_class FATAL. Otherwise both are
 * unchanged */
rp_err rp_verify_step(rp_train *train, bool *over, uint32_t *wrong,
                      rp_FaultClass *fault_class) RP_MUST_CHECK;
void rp_verify_abandon(rp_train *train);
/* Returns an error that names what is missing. errors TIMEOUT */
rp_err rp_verify_late(const rp_train *train, int64_t waited_ns) RP_MUST_CHECK;
/* errors PEER: a record that was not requested, or pieces that do not fit; MEMORY */
rp_err rp_verify_on_record(rp_train *train, uint32_t board,
                           const rp_message *message) RP_MUST_CHECK;
rp_err rp_verify_on_recomputed(rp_train *train, uint32_t board,
                               const rp_message *message) RP_MUST_CHECK;
rp_summary_verify rp_verify_tell(const rp_train *train);

#endif
