/* A line with faults, wrapped around any port: packets that this end sends are delayed, lost,
 * repeated, reordered or damaged, as a profile says. Its random numbers are one stream of the run's
 * seed, so the same packets at the same times meet the same faults.
 *
 * A line is itself a port, of kind `emulate`, on top of a port of another kind. Packets keep their
 * order, except those that `reorder` delays. The queue holds as many packets as the inner port's
 * `queue`; a full queue returns AGAIN, as a real line does. */
#ifndef RP_TRANSPORT_EMULATE_H
#define RP_TRANSPORT_EMULATE_H

#include "base/rng.h"
#include "transport/medium.h"
#include "transport/transport.h"

/* Wraps *port in a line, which owns it from then on and closes it with itself; *port becomes the
 * line. media: the medium that the line shares, borrowed. If it is NULL or does not have the
 * profile's medium, the line has a medium of its own, and received packets also use its time.
 * errors MEMORY: *port is unchanged */
rp_err rp_emulate_wrap(rp_port **port, const rp_link_profile *profile, rp_rng rng,
                       const rp_media *media) RP_MUST_CHECK;

/* Sets another profile and random stream; packets in the queue keep their times. */
void rp_emulate_set(rp_port *line, const rp_link_profile *profile, rp_rng rng);
void rp_emulate_begin(rp_port *line); /* starts the line's time now */
const rp_link_profile *rp_emulate_profile(const rp_port *line);
double rp_emulate_busy_s(const rp_port *line); /* seconds in which bytes occupied the line */

/* Iterates over the open ports of an emulate transport: NULL returns the first one; after the last
 * one NULL is returned. For simulations, which change each line's profile when a fault begins and
 * ends. */
rp_port *rp_emulate_next(rp_transport *transport, const rp_port *line);

#endif
