/* Where a port listens: a name of this machine is looked up, and IPv6 is refused. */
#ifndef RP_TRANSPORT_LISTEN_H
#define RP_TRANSPORT_LISTEN_H

#include <stddef.h>

#include "base/err.h"

enum { RP_LISTEN_HOST_MAX = 99 }; /* bytes of HOST */

/* `endpoint` is tcp://HOST:PORT. `out` gets the same with a HOST that ZeroMQ binds: a numeric IPv4
 * address, `*` and a network interface stay as they are, a name becomes its first IPv4 address. The
 * lookup is that of the C library and waits as long as its resolver does.
 * errors  USAGE: IPv6, a name that is unknown or has no IPv4 address, or `out` is too small */
rp_err rp_listen_resolve(const char *endpoint, char *out, size_t bytes) RP_MUST_CHECK;

#endif
