/* `ring.memory_mb` and `ring.memory_mib`: how much of its device's memory a board may use. */
#ifndef RP_RUN_MEMORIES_H
#define RP_RUN_MEMORIES_H

#include "run/roster.h"

typedef struct {
    const char *board; /* its name in the roster, or its place in a ring of this machine */
    uint64_t bytes;
} rp_board_memory;

/* Zeros: no board has a limit. */
typedef struct {
    uint64_t all; /* of boards that are not in the list; 0: none */
    uint32_t count;
    const rp_board_memory *own; /* in an arena */
} rp_memories;

/* `memory_mb:` of `ring`, in 10^6 bytes: a number, a list of one for each board of this machine, or
 * a map by board; or `memory_mib:`, a number of 2^20 bytes. `roster`: as rp_throttles_read().
 * errors USAGE with file, line and key; MEMORY */
rp_err rp_memories_read(rp_arena *arena, rp_node *ring, const rp_roster_entry *roster,
                        uint32_t boards, rp_memories *out) RP_MUST_CHECK;

/* Of the board `name`, in bytes; 0: no limit. */
uint64_t rp_memories_of(const rp_memories *memories, const char *name);

#endif
