/* Resolves the address where a port listens: looks up names of this machine and refuses IPv6. */
#ifndef RP_TRANSPORT_LISTEN_H
#define RP_TRANSPORT_LISTEN_H

#include <stddef.h>

#include "base/err.h"

enum { RP_LISTEN_HOST_MAX = 99 }; /* bytes of HOST */

/* `endpoint` is tcp://HOST:PORT. `out` receives the same with a HOST that ZeroMQ can bind: a
 * numeric IPv4 address, `*` and a network interface are kept, a name becomes its first IPv4
 * address. The lookup uses the C library and waits as long as its resolver does.
 * errors  USAGE: IPv6, a name that is unknown or has no IPv4 address, or `out` is too small */
rp_err rp_listen_resolve(const char *endpoint, char *out, size_t bytes) RP_MUST_CHECK;

#endif
