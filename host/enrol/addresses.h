/* Addresses at which boards reach this host. */
#ifndef RP_ENROL_ADDRESSES_H
#define RP_ENROL_ADDRESSES_H

#include "base/arena.h"

enum { RP_ENROL_ADDRESSES_MAX = 16 };

/* Lists ADDRESS:PORT for `listen`, "tcp://HOST:PORT". If HOST means all addresses or an interface,
 * these are all IPv4 addresses except the loopback's (which is used only if there are no more); the
 * source address for further networks comes first. *count is at least 1. errors  MEMORY */
rp_err rp_enrol_addresses(rp_arena *arena, const char *listen,
                          const char *out[RP_ENROL_ADDRESSES_MAX], uint32_t *count) RP_MUST_CHECK;

#endif
