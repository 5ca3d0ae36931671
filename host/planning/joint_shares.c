/* Plans in which neighbouring boards share a stage, for rings with known boards and order. */
#include "planning/joint_own.h"

#include <math.h>
#include <string.h>

enum { NEAR = 24 }; /* most plans to try near the fastest */

rp_err rp_joint_share_rings(rp_joint *j, const rp_joint_plan *now) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i <= j->kept[false].count && (i == 0 || !rp_joint_is_over(j)); i++) {
        rp_joint_plan shared = i > 0 ? j->kept[false].plan[i - 1] : *now;
        RP_TRY(shared.count > 1 ? rp_joint_cut_ring(j, j->ask->share_most, &shared) : RP_OK);
        if (rp_joint_is_shared(&shared) && isfinite(shared.step_s)) {
            rp_joint_keep(j, &shared);
        }
    }
fail:
    return err;
}

/* ---- near the fastest ------------------------------------------------------------------------ */

static bool is_same(const rp_joint_plan *a, const rp_joint_plan *b) {
    return a->count == b->count && a->stages == b->stages &&
           memcmp(a->place, b->place, a->count * sizeof *a->place) == 0 &&
           memcmp(a->first, b->first, ((size_t)a->stages + 1) * sizeof *a->first) == 0 &&
           memcmp(a->group, b->group, ((size_t)a->stages + 1) * sizeof *a->group) == 0;
}

static const rp_joint_plan *find_fastest_shared(const rp_joint_answer *out) {
    uint32_t at = 0;
    while (at < out->count && !rp_joint_is_shared(&out->plan[at])) {
        at++;
    }
    return at < out->count ? &out->plan[at] : NULL;
}

/* Each stage has a layer and a board, and at most share_most boards. */
static bool is_possible(const rp_joint *j, const rp_joint_plan *plan) {
    bool good = true;
    for (uint32_t k = 0; good && k < plan->stages; k++) {
        const uint32_t boards = plan->group[k + 1] - plan->group[k];
        good = plan->first[k] < plan->first[k + 1] && plan->group[k] < plan->group[k + 1] &&
               boards <= j->ask->share_most;
    }
    return good;
}

static rp_err try_plan(rp_joint *j, rp_joint_plan *other, const rp_joint_plan *from,
                       uint32_t *left) {
    bool is_new = !is_same(other, from) && is_possible(j, other);
    rp_err err = RP_OK;
    for (uint32_t i = 0; is_new && i < j->out->count; i++) {
        is_new = !rp_joint_is_shared(&j->out->plan[i]) || !is_same(other, &j->out->plan[i]);
    }
    if (is_new && rp_joint_share_out(j, other)) {
        other->origin = RP_JOINT_NEAR;
        (*left)--;
        RP_TRY(rp_joint_replay(j, other));
        rp_joint_list(j->out, other);
    }
fail:
    return err;
}

/* Tries plans with one layer or one board moved over one boundary. */
static rp_err try_near(rp_joint *j, const rp_joint_plan *from, uint32_t *left) {
    rp_err err = RP_OK;
    for (uint32_t i = 4; i<4 * from->stages && * left> 0 && !rp_joint_is_over(j); i++) {
        rp_joint_plan other = *from;
        uint32_t *own = i % 4 < 2 ? &other.first[i / 4] : &other.group[i / 4];
        *own = i % 2 ? *own + 1 : *own - 1;
        RP_TRY(try_plan(j, &other, from, left));
    }
fail:
    return err;
}

rp_err rp_joint_search_near_shares(rp_joint *j) {
    const rp_joint_plan *best = find_fastest_shared(j->out);
    uint32_t left = NEAR;
    double before_s = (double)INFINITY;
    rp_err err = RP_OK;
    while (best && best->step_s < before_s) {
        const rp_joint_plan from = *best;
        before_s = from.step_s;
        RP_TRY(try_near(j, &from, &left));
        best = find_fastest_shared(j->out);
    }
fail:
    return err;
}
