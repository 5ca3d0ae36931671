/* `ring.memory_mb` and `ring.memory_mib`: how much of its device's memory a board may use. */
#ifndef RP_RUN_MEMORIES_H
#define RP_RUN_MEMORIES_H

#include "run/roster.h"

typedef struct {
    const char *board; /* its name in the roster, or its place in a local ring */
    uint64_t bytes;
} rp_board_memory;

/* All zeros: no board has a limit. */
typedef struct {
    uint64_t all; /* bytes, for boards that are not in `own`; 0: no limit */
    uint32_t count;
    const rp_board_memory *own; /* in an arena */
} rp_memories;

/* Reads `memory_mb`, in 10^6 bytes: a number, a list with one for each local board, or a map by
 * board; or `memory_mib`, a number in 2^20 bytes. `roster`: as rp_throttles_read().
 * errors USAGE with file, line and key; MEMORY */
rp_err rp_memories_read(rp_arena *arena, rp_node *ring, const rp_roster_entry *roster,
                        uint32_t boards, rp_memories *out) RP_MUST_CHECK;

/* Limit of the board `name` in bytes; 0: no limit. */
uint64_t rp_memories_of(const rp_memories *memories, const char *name);

#endif
