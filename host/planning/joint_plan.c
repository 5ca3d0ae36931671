#include "planning/joint_own.h"

#include <math.h>
#include <string.h>

void rp_joint_list(rp_joint_answer *out, const rp_joint_plan *plan) {
    const uint32_t room = RP_JOINT_PLANS_MAX;
    uint32_t at = out->count < room ? out->count : room;
    if (!isfinite(plan->step_s) || (at == room && out->plan[room - 1].step_s <= plan->step_s)) {
        return;
    }
    out->count = at < room ? at + 1 : room;
    for (at = out->count - 1; at > 0 && out->plan[at - 1].step_s > plan->step_s; at--) {
        out->plan[at] = out->plan[at - 1];
    }
    out->plan[at] = *plan;
}

void rp_joint_relist(rp_joint_answer *out, const rp_joint_plan *changed, uint32_t count) {
    out->count -= count;
    memmove(out->plan, out->plan + count, out->count * sizeof *out->plan);
    for (uint32_t i = 0; i < count; i++) {
        rp_joint_list(out, &changed[i]);
    }
}

static bool has_same_boards(const rp_joint_plan *a, const rp_joint_plan *b) {
    bool same = a->count == b->count;
    for (uint32_t k = 0; same && k < a->count; k++) {
        same = rp_joint_has(b, a->place[k]);
    }
    return same;
}

void rp_joint_keep(rp_joint *j, const rp_joint_plan *plan) {
    rp_joint_plan *kept = j->kept[rp_joint_is_shared(plan)].plan;
    uint32_t *count = &j->kept[rp_joint_is_shared(plan)].count;
    uint32_t at = 0;
    while (at < *count && !has_same_boards(&kept[at], plan)) {
        at++;
    }
    if (at < *count && kept[at].step_s <= plan->step_s) {
        return;
    }
    if (at == RP_JOINT_REPLAYS) {
        at = RP_JOINT_REPLAYS - 1;
        if (kept[at].step_s <= plan->step_s) {
            return;
        }
    }
    *count += at == *count;
    for (; at > 0 && kept[at - 1].step_s > plan->step_s; at--) {
        kept[at] = kept[at - 1];
    }
    kept[at] = *plan;
}

bool rp_joint_is_over(const rp_joint *j) {
    const rp_joint_ask *ask = j->ask;
    const bool late =
        ask->limit_ns > 0 && rp_clock_now_ns(ask->clock) - j->start_ns >= ask->limit_ns;
    const bool over = late || j->out->tried >= j->rounds;
    j->out->is_complete = j->out->is_complete && !over;
    return over;
}

bool rp_joint_has(const rp_joint_plan *plan, uint32_t place) {
    bool found = false;
    for (uint32_t k = 0; !found && k < plan->count; k++) {
        found = plan->place[k] == place;
    }
    return found;
}

bool rp_joint_is_shared(const rp_joint_plan *plan) {
    return plan->stages > 0 && plan->stages < plan->count;
}

bool rp_joint_has_sizes(const rp_joint_plan *plan) {
    return rp_joint_is_shared(plan) && plan->even_s > 0;
}

bool rp_joint_is_ring(const rp_joint_plan *plan, uint32_t boards) {
    bool same = plan->count == boards && !rp_joint_is_shared(plan);
    for (uint32_t k = 0; same && k < boards; k++) {
        same = plan->place[k] == k;
    }
    return same;
}
