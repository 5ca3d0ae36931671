/* The hosts that may command this board: those in the keys' folder, and those in a roster.
 *
 *   hosts:
 *     - {name: desk, key: PUBLIC-KEY}
 *   boards: [...]      # for the controller, not read here */
#ifndef RP_AGENT_HOSTS_H
#define RP_AGENT_HOSTS_H

#include "link/link.h"

/* Appends the hosts of a roster to a copy of the list *hosts of *count hosts. errors  USAGE with
 * file, line and key */
rp_err rp_hosts_read(rp_arena *arena, const char *path, const rp_trusted **hosts,
                     uint32_t *count) RP_MUST_CHECK;

/* Finds the host that this board dials. text: "[NAME@][tcp://]ADDRESS:PORT"; NAME is needed if
 * several hosts are trusted. *endpoint: "tcp://ADDRESS:PORT"; *key: Z85, borrowed from `hosts`.
 * errors  USAGE: invalid address; no trusted host; no host of that name; several hosts and no
 * NAME */
rp_err rp_hosts_find(rp_arena *arena, const char *text, const rp_trusted *hosts, uint32_t count,
                     const char **endpoint, const char **key) RP_MUST_CHECK;

/* Whether it is "ADDRESS:PORT" as --host expects it, without tcp://. */
bool rp_hosts_is_address(const char *address);
/* Whether the address is the placeholder HOST or ADDRESS of manuals and commands. */
bool rp_hosts_is_placeholder(const char *address);

#endif
