/* A list that grows, outside of the arenas. Private to the room. */
#ifndef RP_DATA_GROWN_H
#define RP_DATA_GROWN_H

#include <stddef.h>

#include "base/err.h"

typedef struct {
    void *at;           /* [room] of `size` bytes each */
    size_t size;        /* set by the owner, who zeroes the rest */
    size_t count, room; /* `count` belongs to the owner; rp_grown_reserve() keeps these items */
} rp_grown;

/* Makes room for `room` items; `at` may move. errors  MEMORY */
rp_err rp_grown_reserve(rp_grown *grown, size_t room) RP_MUST_CHECK;
void rp_grown_free(rp_grown *grown);

#endif
