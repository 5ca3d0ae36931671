/* Probes: check whether a cached profile still holds. */
#include <math.h>
#include <stdio.h>

#include "measure/measure_own.h"

enum { PROBE_S = 2, PROBE_LAYERS = 4 };
/* A cached profile holds if its costliest layers take the same time within this share. Repeats in
 * one run differ by less than 20 %, and no two machines are exactly equal. */
static const double HOLDS = 0.3;

bool rp_profile_probe_is_due(const rp_measure *m, uint32_t board) {
    RP_ASSERT(board < m->kept.board_count && board < m->board_count);
    return m->kept.board[board].known && !m->board[board].probed;
}

static double kept_s(const rp_measure *m, uint32_t board, uint32_t layer) {
    const rp_profile_layer *own = &m->kept.board[board].layer[layer];
    return rp_curve_at(&own->pass[RP_MEASURED_FORWARD], m->profile.micro) +
           rp_curve_at(&own->pass[RP_MEASURED_BACKWARD], m->profile.micro);
}

/* Takes the costliest layer not taken yet. False: all are taken. */
static bool take_costliest(const rp_measure *m, uint32_t board, bool *taken) {
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < m->profile.layer_count; i++) {
        if (!taken[i] && (found == UINT32_MAX || kept_s(m, board, i) > kept_s(m, board, found))) {
            found = i;
        }
    }
    if (found != UINT32_MAX) {
        taken[found] = true;
    }
    return found != UINT32_MAX;
}

rp_err rp_profile_probe_order(const rp_measure *m, uint32_t board, rp_Profile *out) {
    bool *taken;
    uint32_t left = PROBE_LAYERS;
    rp_arena arena;
    rp_err err;
    RP_ASSERT(rp_profile_probe_is_due(m, board) && out->layer_count == 0);
    rp_arena_init(&arena, "probe", 0);
    RP_TRY(RP_ARENA_NEW(&arena, m->profile.layer_count, &taken));
    while (left > 0 && take_costliest(m, board, taken)) {
        left--;
    }
    for (uint32_t i = 0; i < m->profile.layer_count; i++) { /* in ascending order */
        if (taken[i]) {
            out->layer[out->layer_count++] = i;
        }
    }
    out->samples_count = 1;
    out->samples[0] = m->profile.micro;
    out->seconds = PROBE_S;
    RP_ASSERT(out->layer_count > 0 && out->layer_count <= PROBE_LAYERS);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Measured time divided by cached time, over the probed layers; NaN: the answer is not one to a
 * probe. */
static double compare_with_kept(const rp_measure *m, uint32_t board, const double *values,
                                size_t count) {
    const size_t layers = m->profile.layer_count;
    double sum[2] = {0, 0};
    if (count != rp_measured_count(layers, 1)) {
        return (double)NAN;
    }
    for (uint32_t i = 0; i < layers; i++) {
        const double *forward = &values[rp_measured_at(layers, 0, i, RP_MEASURED_FORWARD)];
        const double *backward = &values[rp_measured_at(layers, 0, i, RP_MEASURED_BACKWARD)];
        if (forward[1] >= 0 && backward[1] >= 0) {
            sum[0] += forward[0] + backward[0];
            sum[1] += kept_s(m, board, i);
        }
    }
    return sum[1] > 0 ? sum[0] / sum[1] : (double)NAN;
}

static void take_kept(rp_measure *m, uint32_t board) {
    rp_profile_board *own = &m->profile.board[board];
    const rp_profile_board named = *own;
    *own = m->kept.board[board];
    own->name = own->like = named.name;
    own->device = named.device;
    own->memory_bytes = named.memory_bytes;
    own->device_memory = named.device_memory;
    RP_ASSERT(own->known);
}

rp_err rp_profile_probe_take(rp_measure *m, uint32_t board, const double *values, size_t count,
                             rp_measure_answer *out) {
    const double ratio = compare_with_kept(m, board, values, count);
    const char *name = m->needs.ring->board[board].name;
    RP_ASSERT(rp_profile_probe_is_due(m, board));
    if (!isfinite(ratio) || ratio < 0) {
        return rp_fail(RP_ERR_PEER,
                       "board %s: its answer to a probe of %u layers has %zu values, "
                       "or no times",
                       name, PROBE_LAYERS, count);
    }
    m->board[board].probed = true;
    if (fabs(ratio - 1) <= HOLDS) {
        take_kept(m, board);
        return RP_OK;
    }
    out->again = true;
    (void)snprintf(out->note, sizeof out->note,
                   "board %s takes %.2f times as long as in a former run: it is measured again",
                   name, ratio);
    return RP_OK;
}
