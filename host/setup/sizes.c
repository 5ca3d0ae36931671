/* schedule.planner: chooses the sizes of microbatches once for a number of stages, and again when
 * the plan changes. */
#include <stdio.h>
#include <string.h>

#include "planning/choose_sizes.h"
#include "setup/choice.h"

bool rp_sizes_are_open(const rp_choice *c) {
    return c->run.sizes.planner && !c->facts->evaluates && !rp_choice_is_fixed(c) &&
           c->next.size_stages != c->run.stages;
}

static void set_sizes(rp_choice *c, const uint32_t (*size)[2]) {
    RP_ASSERT(c->run.sizes.planner && c->next.cut.stage_count == c->next.stages);
    c->next.size = size;
    c->next.size_stages = c->next.stages;
    rp_choice_refresh(c);
}

static rp_err say_sizes(rp_choice *c, const rp_size_choice *choice) {
    RP_ASSERT(c->next.size_stages == c->run.stages && choice->even > 0);
    char text[400];
    size_t used = (size_t)snprintf(
        text, sizeof text, "sizes by %s (samples forward/backward):", c->run.sizes.planner->name);
    for (uint32_t k = 0; k < c->run.stages && used < sizeof text / 2; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, " %u/%u", c->next.size[k][0],
                                 c->next.size[k][1]);
    }
    (void)snprintf(text + used, sizeof text - used,
                   "; by what was measured a step takes %.4g ms, with microbatches of %u on all "
                   "stages, the best even size, %.4g ms",
                   1e3 * choice->step_s, choice->even, 1e3 * choice->even_step_s);
    return rp_choice_say(c, "sizes", text);
}

rp_err rp_sizes_find(rp_choice *c) {
    rp_size_choice choice;
    uint32_t(*size)[2];
    rp_err err;
    RP_ASSERT(c->facts->profile);
    RP_TRY(RP_ARENA_NEW(c->arena, c->next.cut.stage_count, &size));
    RP_TRY(rp_choose_sizes(&c->run, &c->placed, &c->next.cut, size, &choice));
    set_sizes(c, (const uint32_t(*)[2])size);
    RP_TRY(say_sizes(c, &choice));
fail:
    return err;
}

rp_err rp_sizes_choose(rp_choice *c) {
    return rp_sizes_are_open(c) ? rp_sizes_find(c) : RP_OK;
}

rp_err rp_sizes_take(rp_choice *c, const rp_joint_plan *plan) {
    uint32_t(*size)[2];
    char text[400];
    rp_err err = RP_OK;
    if (!c->run.sizes.planner) {
        return RP_OK;
    }
    rp_setup_reopen_sizes(&c->next, c->wish); /* the current ones belong to another plan */
    rp_choice_refresh(c);
    if (!rp_joint_has_sizes(plan)) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(c->arena, plan->stages, &size));
    memcpy(size, plan->size, plan->stages * sizeof *plan->size);
    set_sizes(c, (const uint32_t(*)[2])size);
    (void)snprintf(text, sizeof text,
                   "microbatches of %u samples forward and %u backward on all stages, because "
                   "boards share some: %.4g ms a step by prediction, with %u (train.microbatch) "
                   "%.4g ms",
                   plan->size[0][0], plan->size[0][1], 1e3 * plan->step_s, c->run.micro,
                   1e3 * plan->even_s);
    RP_TRY(rp_choice_say(c, "sizes", text));
fail:
    return err;
}
