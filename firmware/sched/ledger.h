/* Samples that wait for their next op: on a stage between forward and backward, on an edge between
 * sending and receiving. Only for the replay. */
#ifndef RP_SCHED_LEDGER_H
#define RP_SCHED_LEDGER_H

#include "base/arena.h"
#include "sched/sched.h"

typedef struct rp_piece {
    struct rp_piece *next, *before;
    uint64_t step;
    rp_range samples;
    double time;      /* time from which it can be used */
    uint64_t version; /* number of own updates when it was made */
} rp_piece;

typedef struct {
    rp_piece *first, *last; /* oldest first */
    uint32_t count;
} rp_ledger;

/* Memory for the pieces of all ledgers. */
typedef struct {
    rp_arena *arena;
    rp_piece *spare;
} rp_piece_pool;

/* errors  MEMORY, here and below */
rp_err rp_ledger_append(rp_piece_pool *pool, rp_ledger *to, const rp_piece *content) RP_MUST_CHECK;

/* Whether the ledger has all these samples; *time is then at least that of the last one. */
bool rp_ledger_covers(const rp_ledger *from, uint64_t step, rp_range samples, double *time);

/* Number of pieces that have some of these samples. */
uint32_t rp_ledger_touched(const rp_ledger *from, uint64_t step, rp_range samples);

/* Removes samples; *version (may be NULL) becomes the oldest version among them. */
rp_err rp_ledger_take(rp_piece_pool *pool, rp_ledger *from, uint64_t step, rp_range samples,
                      uint64_t *version) RP_MUST_CHECK;

#endif
