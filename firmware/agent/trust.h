/* The hosts that a board serves: the list next to its keys and the hosts of a roster, reread when a
 * file has changed. */
#ifndef RP_AGENT_TRUST_H
#define RP_AGENT_TRUST_H

#include "agent/agent.h"

/* Identity of a file as it was read; zeros: it did not exist. */
typedef struct {
    uint64_t number, bytes;
    int64_t changed_ns;
} rp_trust_file;

typedef struct {
    const char *keys;   /* folder; borrowed */
    const char *roster; /* borrowed; NULL: none */
    rp_trust_file seen[2];
    int64_t looked_ns;
} rp_trust;

/* In `arena`. errors  those of rp_trusted_read() and rp_hosts_read() */
rp_err rp_trust_read(rp_trust *trust, rp_arena *arena, const rp_trusted **hosts,
                     uint32_t *count) RP_MUST_CHECK;
/* Checks the files once a second, and passes their contents to the agent when one has changed. A
 * missing file changes nothing; an unreadable one is logged and the hosts are kept. Existing
 * connections stay. */
void rp_trust_follow(rp_trust *trust, rp_agent *agent, int64_t now_ns);

#endif
