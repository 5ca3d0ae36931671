#include "sched/contributions.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Serialises the words first, so that the hash is the same on every board. */
static uint64_t hash_of(const uint64_t *words, size_t count) {
    unsigned char bytes[3 * sizeof *words];
    for (size_t i = 0; i < count * sizeof *words; i++) {
        bytes[i] = (unsigned char)(words[i / sizeof *words] >> 8 * (i % sizeof *words));
    }
    return XXH3_64bits(bytes, count * sizeof *words);
}

void rp_contributions_add(rp_contributions *to, uint64_t step, rp_range samples) {
    for (uint32_t i = 0; i < samples.count; i++) {
        const uint64_t words[] = {step, (uint64_t)samples.first + i};
        to->sum += hash_of(words, 2);
    }
    to->count += samples.count;
}

rp_contributions rp_contributions_of(uint64_t step, rp_range samples) {
    rp_contributions all = {0};
    rp_contributions_add(&all, step, samples);
    return all;
}

bool rp_contributions_equal(rp_contributions a, rp_contributions b) {
    return a.sum == b.sum && a.count == b.count;
}

void rp_run_ledger_add(rp_run_ledger *to, uint64_t step, rp_contributions done) {
    const uint64_t words[] = {step, done.sum, done.count};
    to->digest += hash_of(words, 3);
    to->samples += done.count;
}

void rp_run_ledger_add_steps(rp_run_ledger *to, const rp_sched_shape *shape, uint64_t first,
                             uint64_t end) {
    for (uint64_t step = first; step < end; step++) {
        const rp_range all = {0, rp_sched_step_samples(shape, step)};
        rp_run_ledger_add(to, step, rp_contributions_of(step, all));
    }
}
