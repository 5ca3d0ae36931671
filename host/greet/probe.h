/* Which addresses take a connection at all: TCP alone, all at once. A link costs more than that,
 * and most of what is not there is found out here. */
#ifndef RP_GREET_PROBE_H
#define RP_GREET_PROBE_H

#include "base/clock.h"
#include "base/err.h"

typedef enum {
    RP_PROBE_UNTRIED,
    RP_PROBE_OPEN,
    RP_PROBE_REFUSED, /* the machine says that nothing listens there */
    RP_PROBE_SILENT,  /* nothing came in time, or no way leads there */
    RP_PROBE_NO_NAME  /* the name has no address, or none in time */
} rp_probe_state;

typedef struct {
    const char *endpoint; /* tcp://HOST:PORT; NULL: it stays untried */
    rp_probe_state state;
    char numeric[32]; /* of an OPEN one: the endpoint with a number in place of a name */
} rp_probe;

/* Files that this process may open for `wanted` things that need `each`, and that many it gets: the
 * limit is raised as far as the system lets it. At least 1. */
uint32_t rp_probe_room(uint32_t wanted, uint32_t each);

/* Names get half of wait_ns together, then every connection half of it; *waits counts the times
 * that the end of such a half was waited for. errors  MEMORY */
rp_err rp_probe_all(const rp_clock *clock, rp_probe *probe, uint32_t count, int64_t wait_ns,
                    uint32_t *waits) RP_MUST_CHECK;

#endif
