/* Which op's result went to which other op: what two boards have traced is brought together.
 *
 * A board's trace says when its ops began and ended. By the plan an op sends over some edges and
 * takes over others, of given samples of a step; the two ends of a parcel come with the traces of
 * two boards, in any order. */
#ifndef RP_FOLDER_TRANSFERS_H
#define RP_FOLDER_TRANSFERS_H

#include "plan/plan.h"
#include "record/record.h"

typedef struct rp_transfers rp_transfers;

/* `arena` lives as long as the run. errors MEMORY */
rp_err rp_transfers_open(rp_arena *arena, rp_transfers **out) RP_MUST_CHECK;
void rp_transfers_close(rp_transfers **transfers); /* accepts NULL inside */

/* Forgets what is open: the boards begin anew, or have another plan. Accepts NULL. */
void rp_transfers_forget(rp_transfers *transfers);

/* An op that node `op->stage` has run of stage `op->part`; every transfer that is now known from
 * end to end goes to the record. Those with the host and inside a board are none, an op that does
 * not fit the plan has none, and the oldest end without another is forgotten when there are too
 * many. `model` gives the bytes. `batch`: samples of an evaluation's step.
 * errors  MEMORY; the record's */
rp_err rp_transfers_take(rp_transfers *transfers, const rp_plan *plan, const rp_model *model,
                         uint32_t batch, const rp_sink_op *op, rp_record *record) RP_MUST_CHECK;

#endif
