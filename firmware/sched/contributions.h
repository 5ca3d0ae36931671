/* Which samples contributed a gradient to which step: the ledger of a run, as digests. Every stage
 * adds up what it computed; the host derives the expected value from the plan.
 *
 * A sample has a hash of its step and its index in it. A step's contributions are the sum of these
 * hashes modulo 2^64, so neither their order nor the division into microbatches matters, while a
 * sample that is missing, occurs twice or belongs to another step changes the sum. The ledger is
 * the sum of one hash per step, over its contributions: all stages of a run have the same ledger at
 * the same step, on every board.
 *
 * source  incremental multiset hashes: Bellare and Micciancio, EUROCRYPT 1997 (AdHash); the hash is
 *         XXH3-64. It finds mistakes, not forgery. */
#ifndef RP_SCHED_CONTRIBUTIONS_H
#define RP_SCHED_CONTRIBUTIONS_H

#include "sched/sched.h"

/* Contributions to one step; all zeros: none. */
typedef struct {
    uint64_t sum;
    uint32_t count;
} rp_contributions;

void rp_contributions_add(rp_contributions *to, uint64_t step, rp_range samples);
rp_contributions rp_contributions_of(uint64_t step, rp_range samples);
bool rp_contributions_equal(rp_contributions a, rp_contributions b);

/* The ledger at a step covers all steps before it. All zeros: no steps. */
typedef struct {
    uint64_t digest, samples;
} rp_run_ledger;

/* Adds a completed step with these contributions. */
void rp_run_ledger_add(rp_run_ledger *to, uint64_t step, rp_contributions done);
/* Adds steps [first, end) of a shape, each with all of its samples. */
void rp_run_ledger_add_steps(rp_run_ledger *to, const rp_sched_shape *shape, uint64_t first,
                             uint64_t end);

#endif
