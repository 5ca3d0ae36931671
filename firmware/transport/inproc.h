/* The hub of the inproc kind: names and connections of one process, in one thread. Nothing is
 * process-wide; a simulation or a test has as many hubs as it wants.
 *
 * A connection has two queues, each as long as the smaller `queue` of its two ends. It delivers at
 * once, in order, without loss; an emulated line above it does the rest. A name is an endpoint's
 * text: "tcp://HOST:PORT"; HOST 0.0.0.0 or * stands for every host, PORT * for a new one. */
#ifndef RP_TRANSPORT_INPROC_H
#define RP_TRANSPORT_INPROC_H

#include "transport/transport.h"

/* `remembered`: how many of the packets that were delivered last the hub keeps for
 * rp_hub_replay(), 0 = none. Its memory lies in `arena`. errors MEMORY */
rp_err rp_hub_new(rp_arena *arena, uint32_t remembered, rp_hub **out) RP_MUST_CHECK;
void rp_hub_finish(rp_hub **hub); /* all its ports are closed before; NULL is accepted */

/* From now on two transports with one key may bind one address, as two machines do that are copies
 * of each other: who connects gets the one that was bound last. And every connection to what is
 * bound there ends, as it does when another machine answers for an address. */
void rp_hub_let_twins(rp_hub *hub);
void rp_hub_end_connections(rp_hub *hub, const char *endpoint);

/* A frame from an earlier life: puts a copy of a remembered packet (0 = the oldest) into the
 * connection that now exists between the same two addresses, in the same direction.
 * errors  AGAIN: no such connection, or no room */
uint32_t rp_hub_remembered(const rp_hub *hub);
rp_err rp_hub_replay(rp_hub *hub, uint32_t index) RP_MUST_CHECK;

/* From now on the hub keeps the first packets of connections, too, the last `count` of them, and
 * not among the others: they come first in rp_hub_replay(). errors MEMORY */
rp_err rp_hub_remember_beginnings(rp_hub *hub, rp_arena *arena, uint32_t count) RP_MUST_CHECK;

/* A packet of the caller's into a connection to the port that is bound to `endpoint`: towards it,
 * or from it. The hub takes its own references. errors as above */
rp_err rp_hub_inject(rp_hub *hub, const char *endpoint, bool to_bound,
                     const rp_packet *packet) RP_MUST_CHECK;

#endif
