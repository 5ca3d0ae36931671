/* A send port: boundary tensors of one kind (activation or gradient) that one stage of this node
 * produces, for all nodes that consume them.
 *
 * Slots, as many as the edges have windows, are used in the order of the ops; a slot in use has
 * memory for one microbatch. The device fills it; then each outgoing edge gets one parcel with the
 * samples that the plan sends over it, a slice of the same memory. The slot is free again when
 * every slice has been acknowledged, so it is also the replay buffer. The memory that was freed
 * last is used next, so that only as much is touched as was ever in use at once, which depends on
 * the path and not on the plan's windows. An edge may end on this very node; then the parcel is a
 * view of the slot, and its consumer acknowledges it.
 *
 * Pure bookkeeping: edges send through a function, so it knows no link, no device, no clock. */
#ifndef RP_AGENT_PORT_OUT_H
#define RP_AGENT_PORT_OUT_H

#include "agent/port_in.h"

enum { RP_PORT_EDGES_MAX = 17 };

typedef struct {
    /* Sends a parcel; its memory is borrowed until done(slot), called when the far end has
     * acknowledged it. errors AGAIN: nothing was taken, retry later */
    rp_err (*send)(void *context, const rp_parcel *parcel, void (*done)(void *slot), void *slot);
    void *context;
} rp_port_edge;

/* An edge that ends at a receive port of this node: its `send`, with one of these as context. */
typedef struct {
    rp_port_in *port;
    uint32_t source;          /* edge number at that port */
    void (*done)(void *slot); /* of the send port; set by `send` */
} rp_port_local;
rp_err rp_port_local_send(void *local, const rp_parcel *parcel, void (*done)(void *slot),
                          void *slot) RP_MUST_CHECK;

typedef struct {
    rp_port_form form;
    uint32_t micro;      /* samples of a slot at most */
    uint32_t slot_count; /* >= 1 */
    /* memory shared by all slots, if it is never written; NULL: each has its own */
    void *shared;
    uint32_t edge_count; /* 0: the output has no consumer; the port is always free */
    rp_port_edge edge[RP_PORT_EDGES_MAX];
} rp_port_out_options;

typedef struct rp_port_out rp_port_out;
typedef struct rp_port_slot rp_port_slot;

/* errors MEMORY */
rp_err rp_port_out_open(rp_arena *arena, const rp_port_out_options *options,
                        rp_port_out **out) RP_MUST_CHECK;

/* Whether a slot is free for the next op, or the op needs none. */
bool rp_port_out_has_room(const rp_port_out *port);
/* The slot of an op that is about to be enqueued; NULL if nothing is sent here. slice[e]: the op's
 * samples that go over edge e, possibly none. */
rp_port_slot *rp_port_out_take(rp_port_out *port, const rp_op *op, bool evaluating,
                               const rp_range *slice);
/* Where the device writes: part[i] has room for `micro` samples of tensor i. */
void rp_port_out_parts(const rp_port_out *port, const rp_port_slot *slot, void **part);
/* Sets the tokens of a sample in the op's step, which decide what is sent; 0 before. */
void rp_port_out_set_time(rp_port_slot *slot, uint32_t time);
/* The device has written it. */
void rp_port_out_fill(rp_port_slot *slot);
/* Sends filled slots, in the order of the ops, while the edges accept them. errors of `send` */
rp_err rp_port_out_send(rp_port_out *port) RP_MUST_CHECK;
bool rp_port_out_is_quiet(const rp_port_out *port); /* everything has been acknowledged */

#endif
