/* Whom a board serves: the list beside its keys and the hosts of a roster, read again when one of
 * the files is another one. */
#ifndef RP_AGENT_TRUST_H
#define RP_AGENT_TRUST_H

#include "agent/agent.h"

/* Of a file as it was read; zeros: there was none. */
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
/* Looks at the files once a second, and gives the agent what they say when one is another. One
 * that is gone changes nothing; one that can not be read is logged, and the hosts stay who they
 * were. A connection that is there stays. */
void rp_trust_follow(rp_trust *trust, rp_agent *agent, int64_t now_ns);

#endif
