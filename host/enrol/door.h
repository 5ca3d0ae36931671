/* Where a board finds this host. */
#ifndef RP_ENROL_DOOR_H
#define RP_ENROL_DOOR_H

#include "base/arena.h"

/* ADDRESS:PORT of "10.0.0.2" or "desk.local:7900". Without a port it is that of `listen`,
 * tcp://HOST:PORT. `what` stands in messages: the option's name. errors  USAGE, MEMORY */
rp_err rp_enrol_door(rp_arena *arena, const char *what, const char *host, const char *listen,
                     const char **out) RP_MUST_CHECK;

#endif
