/* Finds out which addresses accept a TCP connection, all at once. This is cheaper than a link, and
 * shows most of the missing boards. */
#ifndef RP_GREET_PROBE_H
#define RP_GREET_PROBE_H

#include "base/clock.h"
#include "base/err.h"

typedef enum {
    RP_PROBE_UNTRIED,
    RP_PROBE_OPEN,
    RP_PROBE_REFUSED, /* the machine reports that nothing listens there */
    RP_PROBE_SILENT,  /* no answer in time, or no route */
    RP_PROBE_NO_NAME  /* the name has no address, or none in time */
} rp_probe_state;

typedef struct {
    const char *endpoint; /* tcp://HOST:PORT; NULL: stays UNTRIED */
    rp_probe_state state;
    char numeric[32]; /* for OPEN: the endpoint with a numeric address */
} rp_probe;

/* Raises the limit of open files as far as possible. Returns for how many of `wanted` items, with
 * `each` files per item, there is room; at least 1. */
uint32_t rp_probe_room(uint32_t wanted, uint32_t each);

/* Names get half of wait_ns, then all connections the other half. *waits counts how many of these
 * halves ran out. errors MEMORY */
rp_err rp_probe_all(const rp_clock *clock, rp_probe *probe, uint32_t count, int64_t wait_ns,
                    uint32_t *waits) RP_MUST_CHECK;

#endif
