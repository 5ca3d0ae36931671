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
    char list[240] = "";
    size_t used = 0;
    for (uint32_t k = 0; k < c->run.stages && used < sizeof list; k++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%u/%u", k ? " " : "",
                                 c->next.size[k][0], c->next.size[k][1]);
    }
    return rp_choice_say(c, &(rp_run_event){.kind = RP_EVENT_SIZES,
                                            .planner = c->run.sizes.planner->name,
                                            .sizes = list,
                                            .step_s = choice->step_s,
                                            .even = choice->even,
                                            .even_s = choice->even_step_s});
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
    RP_TRY(rp_choice_say(c, &(rp_run_event){.kind = RP_EVENT_SIZES_SHARED,
                                            .forward = plan->size[0][0],
                                            .backward = plan->size[0][1],
                                            .step_s = plan->step_s,
                                            .even = c->run.micro,
                                            .even_s = plan->even_s}));
fail:
    return err;
}
