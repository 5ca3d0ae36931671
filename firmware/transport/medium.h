/* What carries one packet at a time for all who send over it: both ways of a half-duplex line, or
 * the air that every board of a Wi-Fi shares. Emulated lines take turns on it.
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
    _Atomic int64_t free_ns; /* of the media's clock: the last packet that has a turn has left */
} rp_medium;

typedef struct rp_media rp_media;

/* For the ends in this process. `clock`: of all turns, borrowed; lines on another clock convert.
 * Lies in `arena`. errors MEMORY */
rp_err rp_media_new(rp_arena *arena, const rp_clock *clock, rp_media **out) RP_MUST_CHECK;
/* For this process and its children: rp_media_fd() is what they inherit, and adopt. Close it with
 * rp_media_close(). errors IO, MEMORY; adopt: USAGE where it is no such descriptor */
rp_err rp_media_share(rp_arena *arena, const rp_clock *clock, rp_media **out) RP_MUST_CHECK;
rp_err rp_media_adopt(rp_arena *arena, int fd, const rp_clock *clock, rp_media **out) RP_MUST_CHECK;
int rp_media_fd(const rp_media *media); /* -1: it is not shared */
void rp_media_close(rp_media **media);  /* NULL is accepted */

/* The medium of a key, which is the same for all that share; NULL: key 0, no media, or more than
 * RP_MEDIA_MAX keys. */
rp_medium *rp_media_find(const rp_media *media, uint64_t key);
/* How far a clock is ahead of the media's. */
int64_t rp_media_ahead_ns(const rp_media *media, const rp_clock *clock);

#endif
