#include "planning/joint_own.h"

#include <math.h>
#include <string.h>

enum { ALL_BOARDS = 5 }; /* most boards for which all orders are tried */

static rp_err try_ring(rp_joint *j, rp_joint_plan *plan) {
    const rp_err err = rp_joint_cut_ring(j, 1, plan);
    j->out->tried++;
    if (err == RP_OK && isfinite(plan->step_s)) {
        rp_joint_keep(j, plan);
    }
    return err;
}

/* Tries every ring that begins with the boards of `plan`. Bit k of `used`: the board at place k is
 * in it. */
static rp_err try_all_orders(rp_joint *j, rp_joint_plan *plan, uint32_t used) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < j->ask->run->boards; k++) {
        if (used & 1u << k || rp_joint_is_over(j)) {
            continue;
        }
        plan->place[plan->count++] = k;
        RP_TRY(try_ring(j, plan));
        RP_TRY(try_all_orders(j, plan, used | 1u << k));
        plan->count--;
    }
fail:
    return err;
}

static rp_joint_plan leave_out_board(const rp_joint_plan *plan, uint32_t at) {
    rp_joint_plan fewer = *plan;
    fewer.stages = 0; /* not cut yet */
    fewer.count--;
    memmove(&fewer.place[at], &fewer.place[at + 1], (fewer.count - at) * sizeof *fewer.place);
    return fewer;
}

static rp_joint_plan insert_board(const rp_joint_plan *plan, uint32_t at, uint32_t place) {
    rp_joint_plan more = *plan;
    memmove(&more.place[at + 1], &more.place[at], (plan->count - at) * sizeof *more.place);
    more.place[at] = place;
    more.count++;
    return more;
}

static rp_err try_better(rp_joint *j, rp_joint_plan *other, rp_joint_plan *best) {
    const rp_err err = try_ring(j, other);
    *best = err == RP_OK && other->step_s < best->step_s ? *other : *best;
    return err;
}

static rp_err try_fewer(rp_joint *j, const rp_joint_plan *from, rp_joint_plan *best) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; from->count > 1 && i < from->count && !rp_joint_is_over(j); i++) {
        rp_joint_plan other = leave_out_board(from, i);
        RP_TRY(try_better(j, &other, best));
    }
fail:
    return err;
}

static rp_err try_more(rp_joint *j, const rp_joint_plan *from, rp_joint_plan *best) {
    rp_err err = RP_OK;
    for (uint32_t place = 0; place < j->ask->run->boards; place++) {
        const bool is_out = !rp_joint_has(from, place);
        for (uint32_t i = 0; is_out && i <= from->count && !rp_joint_is_over(j); i++) {
            rp_joint_plan other = insert_board(from, i, place);
            RP_TRY(try_better(j, &other, best));
        }
    }
fail:
    return err;
}

static rp_err try_exchanges(rp_joint *j, const rp_joint_plan *from, rp_joint_plan *best) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < from->count; i++) {
        for (uint32_t k = i + 1; k < from->count && !rp_joint_is_over(j); k++) {
            rp_joint_plan other = *from;
            other.place[i] = from->place[k];
            other.place[k] = from->place[i];
            RP_TRY(try_better(j, &other, best));
        }
    }
fail:
    return err;
}

/* Changes the ring by one board or pair while that gains. Leaving out comes first, because it has
 * few candidates, and they are cheap. */
static rp_err improve_ring(rp_joint *j, rp_joint_plan *best) {
    rp_joint_plan from;
    rp_err err;
    do {
        from = *best;
        RP_TRY(try_fewer(j, &from, best));
        if (!(best->step_s < from.step_s)) {
            RP_TRY(try_more(j, &from, best));
        }
        if (!(best->step_s < from.step_s)) {
            RP_TRY(try_exchanges(j, &from, best));
        }
    } while (best->step_s < from.step_s && !rp_joint_is_over(j));
fail:
    return err;
}

/* Sorts the boards by speed, the fastest first; equal ones keep their order. */
static void sort_by_speed(const rp_joint *j, rp_joint_plan *plan) {
    for (uint32_t i = 1; i < plan->count; i++) {
        const uint32_t own = plan->place[i];
        uint32_t at = i;
        for (; at > 0 && rp_joint_whole_s(j, plan->place[at - 1]) > rp_joint_whole_s(j, own);
             at--) {
            plan->place[at] = plan->place[at - 1];
        }
        plan->place[at] = own;
    }
}

/* Tries the ring without its slowest boards, a quarter fewer each time, in its order and by speed.
 */
static rp_err try_fastest(rp_joint *j, const rp_joint_plan *now, rp_joint_plan *best) {
    rp_joint_plan fast = *now;
    rp_err err = RP_OK;
    sort_by_speed(j, &fast);
    for (; fast.count > 0 && !rp_joint_is_over(j); fast.count -= (fast.count + 3) / 4) {
        rp_joint_plan row = fast;
        for (uint32_t k = 0, at = 0; k < now->count; k++) {
            for (uint32_t i = 0; i < fast.count; i++) {
                if (fast.place[i] == now->place[k]) {
                    row.place[at++] = now->place[k];
                }
            }
        }
        RP_TRY(try_better(j, &row, best));
        RP_TRY(try_better(j, &fast, best));
    }
fail:
    return err;
}

rp_err rp_joint_search_rings(rp_joint *j, const rp_joint_plan *now) {
    rp_joint_plan none = {.count = 0};
    rp_joint_plan best = *now;
    rp_err err;
    if (now->count <= ALL_BOARDS) {
        return try_all_orders(j, &none, 0);
    }
    RP_TRY(try_ring(j, &best));
    RP_TRY(try_fastest(j, now, &best));
    RP_TRY(improve_ring(j, &best));
fail:
    return err;
}
