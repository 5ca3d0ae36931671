/* One direction in: the head of a link's stream must fit the op that asks for it.
 *
 * What belongs to training and comes while an evaluation runs is put aside and comes first again
 * afterwards; so is what a checkpoint had put aside. */
#ifndef RP_AGENT_INLET_H
#define RP_AGENT_INLET_H

#include "link/link.h"
#include "stage/stage.h"

typedef struct {
    rp_link *link;
    rp_Kind kind;
    rp_crossing crossing;
    rp_message *head;
    rp_message **aside; /* oldest first */
    uint32_t aside_count, aside_max;
    rp_message *own; /* of a checkpoint, in our memory, not the link's */
    uint32_t own_count;
} rp_inlet;

rp_err rp_inlet_open(rp_arena *arena, rp_link *link, rp_Kind kind, rp_crossing crossing,
                     uint32_t aside_max, rp_inlet *out) RP_MUST_CHECK;
void rp_inlet_close(rp_inlet *inlet);

/* Looks at the head; *ready when it is the parcel of `op`. errors PEER when it is another */
rp_err rp_inlet_peek(rp_inlet *inlet, bool evaluating, const rp_op *op, bool *ready) RP_MUST_CHECK;
rp_err rp_inlet_check(const rp_inlet *inlet, const rp_op *op) RP_MUST_CHECK;
void rp_inlet_release(rp_inlet *inlet, rp_message **message); /* accepts NULL inside */

/* Everything that has come and belongs to training is put aside. errors PEER, LIMIT */
rp_err rp_inlet_put_aside(rp_inlet *inlet) RP_MUST_CHECK;
/* Room for `count` parcels of a checkpoint, which then lie in aside[]. errors MEMORY, LIMIT */
rp_err rp_inlet_restore(rp_arena *arena, rp_inlet *inlet, uint32_t count,
                        uint32_t micro) RP_MUST_CHECK;

/* Parcels of an evaluation carry a mark; its steps count from 0 again. */
bool rp_of_evaluation(const rp_message *message);

#endif
