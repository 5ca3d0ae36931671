/* The agent's half of a roster: which hosts may command this board.
 *
 *   hosts:
 *     - {name: desk, key: PUBLIC-KEY}
 *   boards: [...]      # the controller's half, not read here */
#ifndef RP_AGENT_ROSTER_H
#define RP_AGENT_ROSTER_H

#include "base/arena.h"

/* The hosts' keys, as Z85, behind the `count` keys that are there already, into a new list.
 * errors  USAGE with file, line and key */
rp_err rp_roster_hosts(rp_arena *arena, const char *path, const char *const **keys,
                       uint32_t *count) RP_MUST_CHECK;

#endif
