/* The hub of the inproc kind: names and connections of one process, in one thread. There is no
 * global state; a simulation or a test may have any number of hubs.
 *
 * A connection has two queues, each as long as the smaller `queue` of its two ends. It delivers at
 * once, in order, without loss; an emulated line above it adds faults. A name is an endpoint's
 * text: "tcp://HOST:PORT"; HOST 0.0.0.0 or * matches every host, PORT * gets a new number. */
#ifndef RP_TRANSPORT_INPROC_H
#define RP_TRANSPORT_INPROC_H

#include "transport/transport.h"

/* `remembered`: number of recently delivered packets kept for rp_hub_replay(), 0 = none. Allocates
 * in `arena`. errors MEMORY */
rp_err rp_hub_new(rp_arena *arena, uint32_t remembered, rp_hub **out) RP_MUST_CHECK;
void rp_hub_finish(rp_hub **hub); /* close all its ports first; NULL is accepted */

/* From now on two transports with one key may bind the same address, like two machines that are
 * copies of each other: a connecting end gets the one bound last. Binding then also ends every
 * connection to that address, as when another machine takes over an address. */
void rp_hub_let_twins(rp_hub *hub);
void rp_hub_end_connections(rp_hub *hub, const char *endpoint);

/* Replays a frame from an earlier session: sends a copy of a remembered packet (0 = the oldest)
 * over the present connection between the same two addresses, in the same direction.
 * errors  AGAIN: no such connection, or no room */
uint32_t rp_hub_remembered(const rp_hub *hub);
rp_err rp_hub_replay(rp_hub *hub, uint32_t index) RP_MUST_CHECK;

/* From now on the hub also keeps the first packets of connections, the newest `count` of them,
 * separately: rp_hub_replay() counts them first. errors MEMORY */
rp_err rp_hub_remember_beginnings(rp_hub *hub, rp_arena *arena, uint32_t count) RP_MUST_CHECK;

/* Inserts a packet into a connection of the port that is bound to `endpoint`, towards it or from
 * it. The hub takes its own references. errors as rp_hub_replay() */
rp_err rp_hub_inject(rp_hub *hub, const char *endpoint, bool to_bound,
                     const rp_packet *packet) RP_MUST_CHECK;

#endif
