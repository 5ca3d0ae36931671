/* Whether an address of TCP can be reached from here, and why not, in words for people. */
#ifndef RP_TRANSPORT_REACH_H
#define RP_TRANSPORT_REACH_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>

enum { RP_REACH_HOST_BYTES = 128, RP_REACH_PORT_BYTES = 16 };

typedef enum {
    RP_REACH_LISTENS, /* something takes connections there */
    RP_REACH_UNKNOWN, /* the name is not known here */
    RP_REACH_CLOSED,  /* the machine is there, and nothing listens at the port */
    RP_REACH_SILENT,  /* no answer within the time */
    RP_REACH_FAILED   /* the system says why not */
} rp_reach;

/* Connects to "tcp://HOST:PORT", waits `wait_ms` at most for each of its addresses, and closes the
 * connection, sending nothing. `out`: the result for the last address, as the end of a sentence; ""
 * for LISTENS. Looking up a name may take as long as the system's resolver waits. */
rp_reach rp_reach_try(const char *endpoint, int wait_ms, char *out, size_t bytes);

/* Its two steps. Splits "tcp://HOST:PORT", in which HOST may stand in brackets; false: it has
 * another form. */
bool rp_reach_split(const char *endpoint, char host[RP_REACH_HOST_BYTES],
                    char port[RP_REACH_PORT_BYTES]);
/* Connects and closes. 0: something listens there; else a number of errno. */
int rp_reach_connect(const struct addrinfo *to, int wait_ms);

#endif
