/* Samples that something was done to and that wait for what comes next: of a stage between forward
 * and backward, of an edge between sending and taking. Only for the replay. */
#ifndef RP_SCHED_LEDGER_H
#define RP_SCHED_LEDGER_H

#include "base/arena.h"
#include "sched/sched.h"

typedef struct rp_piece {
    struct rp_piece *next, *before;
    uint64_t step;
    rp_range samples;
    double time;      /* usable from here on */
    uint64_t version; /* own updates when it was made */
} rp_piece;

typedef struct {
    rp_piece *first, *last; /* oldest first */
    uint32_t count;
} rp_ledger;

/* Where the pieces of all ledgers come from. */
typedef struct {
    rp_arena *arena;
    rp_piece *spare;
} rp_piece_pool;

/* errors MEMORY, here and below */
rp_err rp_ledger_append(rp_piece_pool *pool, rp_ledger *to, const rp_piece *content) RP_MUST_CHECK;

/* Are all these samples there? Then *time is no earlier than the last of them. */
bool rp_ledger_covers(const rp_ledger *from, uint64_t step, rp_range samples, double *time);

/* Pieces that have some of these samples. */
uint32_t rp_ledger_touched(const rp_ledger *from, uint64_t step, rp_range samples);

/* Takes samples out; *version (may be NULL) becomes the oldest among them. */
rp_err rp_ledger_take(rp_piece_pool *pool, rp_ledger *from, uint64_t step, rp_range samples,
                      uint64_t *version) RP_MUST_CHECK;

#endif
