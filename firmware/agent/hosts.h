/* Which hosts may command this board: those of the keys' folder, and the agent's half of a roster.
 *
 *   hosts:
 *     - {name: desk, key: PUBLIC-KEY}
 *   boards: [...]      # the controller's half, not read here */
#ifndef RP_AGENT_HOSTS_H
#define RP_AGENT_HOSTS_H

#include "link/link.h"

/* The hosts of a roster behind the `count` that are there already, into a new list.
 * errors  USAGE with file, line and key */
rp_err rp_hosts_read(rp_arena *arena, const char *path, const rp_trusted **hosts,
                     uint32_t *count) RP_MUST_CHECK;

/* The host that this board dials. `text`: "[NAME@][tcp://]ADDRESS:PORT"; NAME is needed where more
 * than one host is trusted. *endpoint: "tcp://ADDRESS:PORT"; *key: Z85, borrowed from `hosts`.
 * errors  USAGE: the address; nobody is trusted, or nobody of that name, or several and no NAME */
rp_err rp_hosts_find(rp_arena *arena, const char *text, const rp_trusted *hosts, uint32_t count,
                     const char **endpoint, const char **key) RP_MUST_CHECK;

/* "ADDRESS:PORT" as --host takes it, without tcp:// in front. */
bool rp_hosts_is_address(const char *address);
/* Whether the address is still the word HOST or ADDRESS that manuals and commands show. */
bool rp_hosts_is_placeholder(const char *address);

#endif
