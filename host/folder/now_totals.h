/* Counts of boards and wires over all starts of a run, for now.json. They never fall: a link counts
 * from 0 when its peer restarts, and its busy time is computed again for each rate. */
#ifndef RP_FOLDER_NOW_TOTALS_H
#define RP_FOLDER_NOW_TOTALS_H

#include <stdint.h>

#include "base/arena.h"

/* Sums of a board: seconds by op, then these. Those of a wire: its busy seconds first. */
enum { RP_NOW_IDLE = 3, RP_NOW_ENERGY, RP_NOW_REALS, RP_NOW_COUNTS = 3 };

typedef struct {
    double reals[RP_NOW_REALS]; /* seconds and joules, finite, not negative */
    uint64_t counts[RP_NOW_COUNTS];
} rp_now_sums;

/* A wire, or a board, whose `kind` and `to` are "". Texts are borrowed for the call. */
typedef struct {
    const char *kind, *name, *to;
} rp_now_key;

typedef struct rp_now_totals rp_now_totals;

/* Reads the sums of earlier starts from the newer now.json of the run `run_id`: of a board the
 * seconds forward, backward, in updates and idle, and its joules; of a wire its busy seconds, and
 * counts of bytes, messages sent again and connections made again. errors MEMORY */
rp_err rp_now_totals_open(rp_arena *arena, const char *folder, uint64_t run_id,
                          rp_now_totals **out) RP_MUST_CHECK;
/* Turns what was counted since this start into totals. Can be called again with the same sums. When
 * memory is short, *sums is unchanged. */
void rp_now_totals_add(rp_now_totals *totals, const rp_now_key *key, rp_now_sums *sums);

#endif
