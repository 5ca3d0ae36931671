/* How often a trusted key may connect to a bound end, and how many connections it may have there.
 *
 * ZeroMQ says of a handshake whose key it has, and not when the connection ends. So handshakes are
 * counted, and when they are as many as connections may be, it is asked how many connections there
 * are in all: the key has no more than these. Nobody else's connections keep a key out that has not
 * connected so often itself. Beside that a handshake is one of CALLERS_AT_ONCE, and of so many a
 * second, as in link/flood.h.
 *
 * Pure: time and the number of connections are arguments. */
#ifndef RP_TRANSPORT_CALLERS_H
#define RP_TRANSPORT_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/keytext.h"

enum {
    RP_CALLERS_MAX = 64,        /* keys that are remembered; then the one that called first goes */
    RP_CALLER_CONNECTIONS = 32, /* of one key */
    RP_CALLER_AT_ONCE = 64,     /* handshakes of one key .. */
    RP_CALLER_A_SECOND = 4      /* .. and how many more may come behind these */
};

typedef struct {
    uint8_t key[RP_KEY_BYTES];
    uint32_t connections; /* that it may have, at most */
    int64_t paid_until_ns;
    int64_t told_ns; /* when somebody was told that it was not let in; 0 = never */
} rp_caller;

typedef struct {
    rp_caller caller[RP_CALLERS_MAX];
    uint32_t count;   /* ever; the first are overwritten */
    uint64_t refused; /* handshakes of trusted keys */
} rp_callers;

/* Whether one more handshake of the key is let in; if not, it may try again. `connections` says how
 * many there are at this end, and is asked seldom. */
bool rp_callers_admit(rp_callers *callers, const uint8_t key[RP_KEY_BYTES], int64_t now_ns,
                      uint32_t (*connections)(const void *context), const void *context);
/* The key was not let in, and nobody was told for a while: now somebody is. */
bool rp_callers_is_news(rp_callers *callers, const uint8_t key[RP_KEY_BYTES], int64_t now_ns);

#endif
