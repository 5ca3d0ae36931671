/* Where a board finds this host. */
#ifndef RP_ENROL_DOOR_H
#define RP_ENROL_DOOR_H

#include "base/arena.h"

/* ADDRESS:PORT of "10.0.0.2" or "desk.local:7900". Without a port it is that of `listen`,
 * tcp://HOST:PORT. `what` stands in messages: the option's name. errors  USAGE, MEMORY */
rp_err rp_enrol_door(rp_arena *arena, const char *what, const char *host, const char *listen,
                     const char **out) RP_MUST_CHECK;

/* Checks the address of this host that a board is to dial, as the agent's --host takes it:
 * [NAME@]ADDRESS:PORT. `option` is the option's name in messages. errors  USAGE */
rp_err rp_enrol_check_dial(const char *option, const char *text) RP_MUST_CHECK;

#endif
