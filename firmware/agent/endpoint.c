/* The addresses where an agent listens, or dials. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_own.h"

rp_err rp_agent_split_endpoint(const char *endpoint, char *host, size_t host_bytes,
                               uint32_t *port) {
    const char *start = strncmp(endpoint, "tcp://", 6) == 0 ? endpoint + 6 : NULL;
    const char *colon = start ? strrchr(start, ':') : NULL;
    char *end = NULL;
    unsigned long value = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!colon || colon == start || end == colon + 1 || *end || value > 65533 ||
        (size_t)(colon - start) >= host_bytes) {
        return rp_fail(RP_ERR_USAGE, "expected tcp://HOST:PORT (port 0 to 65533), found '%s'",
                       endpoint);
    }
    memcpy(host, start, (size_t)(colon - start));
    host[colon - start] = '\0';
    *port = (uint32_t)value;
    return RP_OK;
}

void rp_agent_dial_text(const rp_agent *agent, uint32_t plus, char *out, size_t bytes) {
    (void)snprintf(out, bytes, "tcp://%s:%u", agent->host, agent->port + plus);
}

void rp_agent_bind_text(const rp_agent *agent, uint32_t plus, char *out, size_t bytes) {
    if (agent->port) {
        (void)snprintf(out, bytes, "tcp://%s:%u", agent->host, agent->port + plus);
    } else {
        (void)snprintf(out, bytes, "tcp://%s:*", agent->host);
    }
}
