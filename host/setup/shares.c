/* Makes the next setup from a plan found by a search: cut, shared stages (`plan.share`), codecs and
 * sizes. */
#include <string.h>

#include "planning/cost.h"
#include "setup/choice.h"

static rp_err take_groups(rp_choice *c, const rp_joint_plan *plan) {
    uint32_t *group = NULL;
    double *share = NULL;
    rp_err err = RP_OK;
    if (rp_joint_is_shared(plan)) {
        RP_ASSERT(plan->group[plan->stages] == c->next.boards);
        RP_TRY(RP_ARENA_NEW(c->arena, (size_t)plan->stages + 1, &group));
        RP_TRY(RP_ARENA_NEW(c->arena, plan->count, &share));
        memcpy(group, plan->group, ((size_t)plan->stages + 1) * sizeof *group);
        memcpy(share, plan->share, plan->count * sizeof *share);
    }
    c->next.group = group;
    c->next.share = share;
fail:
    return err;
}

/* Takes codecs for the boundaries of the plan, whose number may have changed. With one stage per
 * board as before, codecs stay. */
static rp_err take_codecs(rp_choice *c, const rp_joint_plan *plan, bool was_row) {
    const bool has_codecs = plan->plain_s > 0;
    rp_codec(*strong)[2];
    rp_err err = RP_OK;
    if (!c->run.codec_auto) {
        return RP_OK;
    }
    if (!rp_joint_is_shared(plan)) {
        return was_row && c->next.codec_stages == plan->stages ? RP_OK
               : has_codecs                                    ? rp_codecs_set(c, plan->codec)
                                                               : rp_codecs_find(c);
    }
    RP_TRY(RP_ARENA_NEW(c->arena, plan->stages, &strong));
    for (uint32_t i = 0; i < 2 * plan->stages; i++) {
        strong[i / 2][i % 2] = rp_cost_strongest(&c->run, i % 2 > 0);
    }
    RP_TRY(rp_codecs_set(c, has_codecs ? plan->codec : (const rp_codec(*)[2])strong));
fail:
    return err;
}

rp_err rp_plan_take(rp_choice *c, const rp_joint_plan *plan) {
    const rp_cut cut = {.stage_count = plan->stages, .first = plan->first};
    const bool was_row = !c->next.group;
    rp_err err;
    RP_ASSERT(plan->stages > 0 && plan->stages <= c->next.boards && !c->facts->is_given);
    c->next.stages = plan->stages;
    RP_TRY(take_groups(c, plan));
    RP_TRY(rp_cut_take(c, &cut));
    RP_TRY(take_codecs(c, plan, was_row));
    RP_TRY(rp_sizes_take(c, plan));
fail:
    return err;
}
