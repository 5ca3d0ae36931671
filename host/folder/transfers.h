/* Finds which op's result went to which other op, by matching the traces of two boards.
 *
 * A trace says when ops began and ended. By the plan, an op sends and receives over certain edges,
 * for certain samples of a step. The two ends of a parcel come from the traces of two boards, in
 * any order. */
#ifndef RP_FOLDER_TRANSFERS_H
#define RP_FOLDER_TRANSFERS_H

#include "plan/plan.h"
#include "record/record.h"

typedef struct rp_transfers rp_transfers;

/* `arena` must live as long as the run. errors MEMORY */
rp_err rp_transfers_open(rp_arena *arena, rp_transfers **out) RP_MUST_CHECK;
void rp_transfers_close(rp_transfers **transfers); /* accepts a NULL inside */

/* Forgets unmatched ends, because the boards start again or have another plan. Accepts NULL. */
void rp_transfers_forget(rp_transfers *transfers);

/* Takes an op that node `op->stage` has run of stage `op->part`, and records every transfer that is
 * now known from end to end. Edges with the host or within a board do not count; an op that does
 * not fit the plan has none. If there are too many unmatched ends, the oldest is forgotten.
 * `model`: for sizes in bytes. `batch`: samples of a step of an evaluation.
 * errors MEMORY; the record's */
rp_err rp_transfers_take(rp_transfers *transfers, const rp_plan *plan, const rp_model *model,
                         uint32_t batch, const rp_sink_op *op, rp_record *record) RP_MUST_CHECK;

#endif
