/* Measures how fast a link is. Messages of several sizes are sent one at a time, and each is timed
 * from sending to its ack. The sizes alternate, so that a temporary slowdown affects all of them. A
 * size that would take longer than a second is omitted, with all larger ones. In row mode only the
 * largest size is sent, with several messages in flight: then an ack that is late because it
 * is queued after the peer's messages delays nothing, and the rate of both directions at once is
 * measured.
 *
 * Zero-initialised: no measurement. Allocates its own memory. */
#ifndef RP_LINK_WIRE_RATE_H
#define RP_LINK_WIRE_RATE_H

#include "link/link.h"

enum { RP_WIRE_SIZES_MAX = 4, RP_WIRE_ROUNDS = 7, RP_WIRE_BYTES_MAX = 4 << 20 };

typedef struct {
    rp_arena arena;
    const rp_clock *clock; /* NULL: no measurement */
    uint8_t *bytes;        /* content of the messages */
    uint32_t sizes, size[RP_WIRE_SIZES_MAX];
    uint32_t sizes_asked;
    uint32_t at, round; /* size and round of the next message */
    bool is_row;
    uint32_t on_way; /* messages in flight */
    int64_t began_ns, sent_ns;
    double repeat_s[RP_WIRE_SIZES_MAX][RP_WIRE_ROUNDS];
    uint32_t repeats[RP_WIRE_SIZES_MAX];
} rp_wire_rate;

/* errors  USAGE: sizes that do not rise from 1 to RP_WIRE_BYTES_MAX; MEMORY */
rp_err rp_wire_rate_begin(rp_wire_rate *rate, const rp_clock *clock, const uint32_t *size,
                          uint32_t count, bool row) RP_MUST_CHECK;
bool rp_wire_rate_is_on(const rp_wire_rate *rate);
/* Sends the next message when the last one is acked; call it in every round. *over: all are acked.
 * `rate` must not move until rp_wire_rate_end(), which must follow the link's close or the last
 * ack. errors of rp_link_send() except AGAIN */
rp_err rp_wire_rate_step(rp_wire_rate *rate, rp_link *link, bool *over) RP_MUST_CHECK;
/* The medians; 0 for a size that was omitted. */
void rp_wire_rate_result(rp_wire_rate *rate, double *seconds, double *spread);
/* Call it after the link is closed or all messages are acked. */
void rp_wire_rate_end(rp_wire_rate *rate);

#endif
