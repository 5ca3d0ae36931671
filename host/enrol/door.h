/* The address at which a board reaches this host. */
#ifndef RP_ENROL_DOOR_H
#define RP_ENROL_DOOR_H

#include "base/arena.h"

/* Makes ADDRESS:PORT of "10.0.0.2" or "desk.local:7900"; the default port is that of `listen`,
 * tcp://HOST:PORT. `what`: the option's name, for messages. errors  USAGE, MEMORY */
rp_err rp_enrol_door(rp_arena *arena, const char *what, const char *host, const char *listen,
                     const char **out) RP_MUST_CHECK;

/* Checks the address of this host that a board shall dial, in the form of the agent's --host:
 * [NAME@]ADDRESS:PORT. `option`: the option's name, for messages. errors  USAGE */
rp_err rp_enrol_check_dial(const char *option, const char *text) RP_MUST_CHECK;

#endif
