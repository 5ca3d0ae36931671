/* Tests whether a TCP address can be reached from here, and explains why not. */
#ifndef RP_TRANSPORT_REACH_H
#define RP_TRANSPORT_REACH_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>

enum { RP_REACH_HOST_BYTES = 128, RP_REACH_PORT_BYTES = 16 };

typedef enum {
    RP_REACH_LISTENS, /* something accepts connections there */
    RP_REACH_UNKNOWN, /* the name is not known here */
    RP_REACH_CLOSED,  /* the machine responds, but nothing listens at the port */
    RP_REACH_SILENT,  /* no answer within the time */
    RP_REACH_FAILED   /* another error of the system */
} rp_reach;

/* Connects to "tcp://HOST:PORT", waits at most `wait_ms` for each of its addresses, and closes the
 * connection without sending anything. `out`: the result for the last address, as the end of a
 * sentence; "" for LISTENS. Looking up a name may take as long as the system's resolver waits. */
rp_reach rp_reach_try(const char *endpoint, int wait_ms, char *out, size_t bytes);

/* The first step: splits "tcp://HOST:PORT", in which HOST may be in brackets. Returns false for any
 * other form. */
bool rp_reach_split(const char *endpoint, char host[RP_REACH_HOST_BYTES],
                    char port[RP_REACH_PORT_BYTES]);
/* The second step: connects and closes. Returns 0 if something listens there, else an errno. */
int rp_reach_connect(const struct addrinfo *to, int wait_ms);

#endif
