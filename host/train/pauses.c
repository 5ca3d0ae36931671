#include "train/pauses.h"

#include "base/err.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Halves the distance for every recovery since the last checkpoint, so that a ring with frequent
 * faults makes progress. Where a run pauses does not change its results. */
static uint64_t move_closer(const rp_pauses *pauses, uint64_t end) {
    const uint64_t steps = pauses->returns < 64 ? (end - pauses->step) >> pauses->returns : 0;
    return pauses->step + (steps > 0 ? steps : 1);
}

/* The first multiple of any of `every` after the run's step, at most the run's end. */
static uint64_t find_next(const rp_pauses *pauses, const uint64_t *every, uint32_t count) {
    uint64_t end = pauses->end;
    for (uint32_t i = 0; i < count; i++) {
        end = every[i] ? smaller(end, (pauses->step / every[i] + 1) * every[i]) : end;
    }
    return end;
}

uint64_t rp_pauses_next(const rp_pauses *pauses, uint64_t copies) {
    const bool looks = pauses->step == 0 && pauses->look > 0;
    RP_ASSERT(copies > pauses->step);
    uint64_t end = find_next(pauses, pauses->save_every, 5);
    end = looks ? smaller(end, pauses->look) : end;
    return move_closer(pauses, smaller(end, copies));
}

bool rp_pauses_need_no_save(const rp_pauses *pauses) {
    bool saves = pauses->must_save || pauses->step == pauses->end;
    for (uint32_t i = 0; i < 5; i++) {
        const uint64_t every = pauses->save_every[i];
        saves |= every && pauses->step % every == 0;
    }
    return !saves;
}

uint64_t rp_pauses_next_score(const rp_pauses *pauses) {
    return find_next(pauses, pauses->score_every, 2);
}
