/* `horizon: measured`: prediction gains, which the host sends: a factor from 0 to 1 for each
 * parameter. */
#include <math.h>
#include <string.h>

#include "stage/stage_own.h"

uint64_t rp_stage_gain_delay(const rp_stage *stage) {
    return 2 * (uint64_t)stage->layout->probe_steps;
}

rp_err rp_stage_set_gain(rp_stage *stage, uint64_t step, const double *gain, size_t count) {
    rp_stage_gains *all = &stage->gain;
    if (count != stage->layout->trained_count || !all->share[0]) {
        return rp_fail(RP_ERR_PEER,
                       "prediction gains from step %llu on: %zu values, expected one for each "
                       "trained parameter",
                       (unsigned long long)step, count);
    }
    /* A resumed run may sample more often than before; gains for later steps are then outdated. */
    while (all->count > 0 && all->step[all->count - 1] >= step) {
        all->count--;
    }
    if (all->count == RP_GAIN_ENTRIES) {
        float *oldest = all->share[0];
        memmove(all->share, all->share + 1, (RP_GAIN_ENTRIES - 1) * sizeof *all->share);
        memmove(all->step, all->step + 1, (RP_GAIN_ENTRIES - 1) * sizeof *all->step);
        all->share[RP_GAIN_ENTRIES - 1] = oldest;
        all->count--;
    }
    for (size_t i = 0; i < count; i++) {
        const bool good = gain[i] >= 0 && gain[i] <= 1;
        all->share[all->count][i] = good ? (float)gain[i] : 0;
    }
    all->step[all->count++] = step;
    return RP_OK;
}

const float *rp_stage_gain_at(const rp_stage *stage, uint64_t step) {
    const rp_stage_gains *all = &stage->gain;
    const float *share = NULL;
    for (uint32_t i = 0; i < all->count; i++) {
        share = all->step[i] <= step ? all->share[i] : share;
    }
    return share;
}

bool rp_stage_gain_missing(const rp_stage *stage, const rp_op *op) {
    const uint32_t every = stage->layout->probe_steps;
    const rp_stage_gains *all = &stage->gain;
    if (stage->job->method.horizon != RP_HORIZON_MEASURED || every == 0 ||
        stage->layout->trained_count == 0 || op->micro > 0 || op->step % every != 0 ||
        op->step < stage->job->step_first + rp_stage_gain_delay(stage)) {
        /* Early in a run none can be missing: gains from before a resumed run were restored with
         * it. */
        return false;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->step[i] == op->step) {
            return false;
        }
    }
    return true;
}
