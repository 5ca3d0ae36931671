/* Limits how often a trusted key may connect to a bound end, and how many connections it may have
 * there.
 *
 * ZeroMQ reports each handshake of a trusted key, but not the end of a connection. So handshakes
 * are counted per key, and when a key reaches the limit, its count is lowered to the number of all
 * connections at this end, which the key cannot exceed. Therefore other keys' connections never
 * lock out a key that has not connected that often itself. Handshakes are also limited in rate, by
 * a leaky bucket as in link/flood.h.
 *
 * Pure: time and the number of connections are arguments. */
#ifndef RP_TRANSPORT_CALLERS_H
#define RP_TRANSPORT_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/keytext.h"

enum {
    RP_CALLERS_MAX = 64,        /* keys remembered; the oldest is dropped first */
    RP_CALLER_CONNECTIONS = 32, /* per key */
    RP_CALLER_AT_ONCE = 64,     /* handshakes of one key in a burst */
    RP_CALLER_A_SECOND = 4      /* handshakes of one key per second after the burst */
};

typedef struct {
    uint8_t key[RP_KEY_BYTES];
    uint32_t connections; /* upper bound of its present connections */
    int64_t paid_until_ns;
    int64_t told_ns; /* time of the last log line about a refusal; 0 = never */
} rp_caller;

typedef struct {
    rp_caller caller[RP_CALLERS_MAX];
    uint32_t count;   /* keys ever added; the oldest entries are overwritten */
    uint64_t refused; /* refused handshakes of trusted keys */
} rp_callers;

/* Whether to admit one more handshake of the key; if not, the peer may retry. `connections` returns
 * the number of connections at this end and is seldom called. */
bool rp_callers_admit(rp_callers *callers, const uint8_t key[RP_KEY_BYTES], int64_t now_ns,
                      uint32_t (*connections)(const void *context), const void *context);
/* Whether no log line about this refused key was due for a while; marks this one as logged. */
bool rp_callers_is_news(rp_callers *callers, const uint8_t key[RP_KEY_BYTES], int64_t now_ns);

#endif
