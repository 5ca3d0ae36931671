/* One direction out: host memory for parcels, used in turn in the order of their ops, free again
 * when the peer has acked them. */
#ifndef RP_AGENT_OUTLET_H
#define RP_AGENT_OUTLET_H

#include "link/link.h"
#include "stage/stage.h"

enum { RP_OUTLET_SLOTS = 4 };

typedef struct {
    enum { RP_OUTLET_FREE, RP_OUTLET_FILLING, RP_OUTLET_READY, RP_OUTLET_UNACKED } state;
    char *memory;
    rp_op op;
} rp_outlet_slot;

typedef struct {
    rp_link *link; /* NULL: nothing is behind it */
    rp_Kind kind;
    rp_crossing crossing;
    uint32_t micro;
    rp_outlet_slot slot[RP_OUTLET_SLOTS];
    uint32_t next; /* slot of the next op */
    uint32_t send; /* slot that is sent next */
} rp_outlet;

rp_err rp_outlet_open(rp_arena *arena, rp_link *link, rp_Kind kind, rp_crossing crossing,
                      uint32_t micro, rp_outlet *out) RP_MUST_CHECK;
bool rp_outlet_free(const rp_outlet *outlet);
/* The slot of an op that is about to be enqueued, NULL when nothing goes out here. */
rp_outlet_slot *rp_outlet_take(rp_outlet *outlet, const rp_op *op);
/* Host addresses of the tensors of a slot. */
void rp_outlet_parts(const rp_outlet *outlet, const rp_outlet_slot *slot, void **parts);
/* Sends the slots that are READY, as far as the link takes them. */
rp_err rp_outlet_send(rp_outlet *outlet, uint32_t stage, bool evaluating) RP_MUST_CHECK;
bool rp_outlet_quiet(const rp_outlet *outlet); /* everything has been acked */

#endif
