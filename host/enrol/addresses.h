/* At which addresses boards find this host. */
#ifndef RP_ENROL_ADDRESSES_H
#define RP_ENROL_ADDRESSES_H

#include "base/arena.h"

enum { RP_ENROL_ADDRESSES_MAX = 16 };

/* ADDRESS:PORT of `listen`, "tcp://HOST:PORT". When HOST means all addresses, or those of an
 * interface, each IPv4 address is given except the loopback's. The address by which this
 * host reaches other networks comes first. When nothing is left it is the loopback's. *count is at
 * least 1. errors  MEMORY */
rp_err rp_enrol_addresses(rp_arena *arena, const char *listen,
                          const char *out[RP_ENROL_ADDRESSES_MAX], uint32_t *count) RP_MUST_CHECK;

#endif
