/* A line with faults, in front of any port: what this end sends is held back, lost, repeated,
 * reordered or damaged by a profile. Its chance is one stream of the run's seed, so that the same
 * packets at the same times meet the same faults.
 *
 * The line is a port itself: kind `emulate`, over a port of another kind. Packets keep their order
 * but for those that `reorder` holds back. The queue holds as many packets as the inner port's
 * `queue`; a full one says AGAIN, as a real line does. */
#ifndef RP_TRANSPORT_EMULATE_H
#define RP_TRANSPORT_EMULATE_H

#include "base/rng.h"
#include "transport/medium.h"
#include "transport/transport.h"

/* Puts a line in front of *port, which it takes over and closes with itself; *port is then the
 * line. `media`: where it takes its turns, borrowed; NULL, or none of the profile's: on one of its
 * own, and a line that shares its rate then counts what it takes, too.
 * errors MEMORY: *port is as before */
rp_err rp_emulate_wrap(rp_port **port, const rp_link_profile *profile, rp_rng rng,
                       const rp_media *media) RP_MUST_CHECK;

/* Another profile and stream from now on; what waits for the old one keeps its place. */
void rp_emulate_set(rp_port *line, const rp_link_profile *profile, rp_rng rng);
void rp_emulate_begin(rp_port *line); /* the line's time begins now */
const rp_link_profile *rp_emulate_profile(const rp_port *line);
double rp_emulate_busy_s(const rp_port *line); /* with bytes on it, at its rate */

/* The open ports of an emulate transport, one after another; NULL: the first, and behind the
 * last. For simulations, which set each line's profile when a fault begins and ends. */
rp_port *rp_emulate_next(rp_transport *transport, const rp_port *line);

#endif
