/* A medium carries one packet at a time for all its senders: both directions of a half-duplex line,
 * or the air shared by the boards of a Wi-Fi network. Emulated lines take turns on it.
 *
 * Its memory may be shared between the processes of one machine, whose monotonic clocks are the
 * same. Boards on several machines do not take turns with each other. */
#ifndef RP_TRANSPORT_MEDIUM_H
#define RP_TRANSPORT_MEDIUM_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/clock.h"

enum { RP_MEDIA_MAX = 4096 };

typedef struct {
    _Atomic uint64_t key;
    _Atomic int64_t free_ns; /* time, by the media's clock, at which the last reserved turn ends */
} rp_medium;

typedef struct rp_media rp_media;

/* Creates media for the ends in this process, in `arena`. `clock`, borrowed, is the time base of
 * all turns; lines on another clock convert. errors MEMORY */
rp_err rp_media_new(rp_arena *arena, const rp_clock *clock, rp_media **out) RP_MUST_CHECK;
/* Creates media for this process and its children, which inherit rp_media_fd() and adopt it. Close
 * with rp_media_close(). errors IO, MEMORY; adopt: USAGE if the descriptor is not one of media */
rp_err rp_media_share(rp_arena *arena, const rp_clock *clock, rp_media **out) RP_MUST_CHECK;
rp_err rp_media_adopt(rp_arena *arena, int fd, const rp_clock *clock, rp_media **out) RP_MUST_CHECK;
int rp_media_fd(const rp_media *media); /* -1 if not shared */
void rp_media_close(rp_media **media);  /* NULL is accepted */

/* The medium of a key, the same for all that share the media. NULL: key 0, no media, or more than
 * RP_MEDIA_MAX keys. */
rp_medium *rp_media_find(const rp_media *media, uint64_t key);
/* By how much a clock is later than the media's clock. */
int64_t rp_media_ahead_ns(const rp_media *media, const rp_clock *clock);

#endif
