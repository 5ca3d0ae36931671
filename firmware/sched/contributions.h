/* Which samples contributed a gradient to which step: the ledger of a run, as digests. Every stage
 * adds up what it did; the host knows from the plan what that must be.
 *
 * A sample has a hash of its step and its place in it, and a step's contributions are the sum of
 * theirs, modulo 2^64: so neither their order nor the cut into microbatches counts, while one that
 * is missing, comes twice or is another step's changes the sum. The ledger is the sum of one hash a
 * step, over its contributions: stages of one run have the same at the same step, on every board.
 *
 * source  incremental multiset hashes: Bellare and Micciancio, EUROCRYPT 1997 (AdHash); the hash is
 *         XXH3-64. It finds mistakes, not forgery. */
#ifndef RP_SCHED_CONTRIBUTIONS_H
#define RP_SCHED_CONTRIBUTIONS_H

#include "sched/sched.h"

/* Of one step; zero: none. */
typedef struct {
    uint64_t sum;
    uint32_t count;
} rp_contributions;

void rp_contributions_add(rp_contributions *to, uint64_t step, rp_range samples);
rp_contributions rp_contributions_of(uint64_t step, rp_range samples);
bool rp_contributions_equal(rp_contributions a, rp_contributions b);

/* A ledger at a step: of all steps before it. Zero: of none. */
typedef struct {
    uint64_t digest, samples;
} rp_run_ledger;

/* A step is done, with these contributions. */
void rp_run_ledger_add(rp_run_ledger *to, uint64_t step, rp_contributions done);
/* The same of steps [first, end) of a shape, each with all of its samples. */
void rp_run_ledger_add_steps(rp_run_ledger *to, const rp_sched_shape *shape, uint64_t first,
                             uint64_t end);

#endif
