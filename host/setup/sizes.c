/* How large microbatches are where schedule.planner chooses that: once in a run, for a number of
 * stages; again where the plan follows the boards. */
#include <stdio.h>
#include <string.h>

#include "setup/setup_own.h"

/* Once for a number of stages; a checkpoint says those that it was made with. */
bool rp_sizes_are_wanted(const rp_arrangement *a) {
    return a->run.sizes.planner && !a->evaluates && !a->given &&
           a->now.size_stages != a->run.stages;
}

static void take(rp_arrangement *a, uint32_t stages) {
    RP_ASSERT(a->run.sizes.planner && stages > 0 && stages <= RP_CUT_STAGES_MAX);
    a->now.size_stages = stages;
    a->now.size = (const uint32_t(*)[2])a->size;
    rp_arrangement_refresh(a);
}

void rp_sizes_forget(rp_arrangement *a) {
    rp_setup_reopen_sizes(&a->now, &a->run);
    rp_arrangement_refresh(a);
}

static rp_err say(const rp_arrangement *a, const rp_size_choice *choice) {
    RP_ASSERT(a->now.size_stages == a->run.stages && choice->even > 0);
    char text[400];
    size_t used = (size_t)snprintf(
        text, sizeof text, "sizes by %s (samples forward/backward):", a->run.sizes.planner->name);
    for (uint32_t k = 0; k < a->run.stages && used < sizeof text / 2; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, " %u/%u", a->size[k][0],
                                 a->size[k][1]);
    }
    (void)snprintf(text + used, sizeof text - used,
                   "; by what was measured a step takes %.4g ms, with microbatches of %u on all "
                   "stages, the best even size, %.4g ms",
                   1e3 * choice->step_s, choice->even, 1e3 * choice->even_step_s);
    return rp_folder_record(a->folder)
               ? rp_record_event(rp_folder_record(a->folder), "sizes", a->position->step, text)
               : RP_OK;
}

rp_err rp_sizes_choose(rp_arrangement *a) {
    rp_size_choice choice;
    rp_err err = RP_OK;
    if (!rp_sizes_are_wanted(a)) {
        return RP_OK;
    }
    rp_measure_place(a->measure);
    RP_TRY(rp_choose_sizes(&a->run, rp_measure_profile(a->measure), &a->now.cut, a->size, &choice));
    take(a, a->run.stages);
    RP_TRY(say(a, &choice));
fail:
    return err;
}

rp_err rp_sizes_keep(rp_arrangement *a, const uint32_t (*size)[2], const rp_size_choice *choice) {
    RP_ASSERT(a->now.cut.stage_count == a->run.stages);
    memcpy(a->size, size, a->run.stages * sizeof *size);
    take(a, a->run.stages);
    return say(a, choice);
}

rp_err rp_sizes_take(rp_arrangement *a, const rp_joint_plan *plan) {
    char text[400];
    if (!a->run.sizes.planner) {
        return RP_OK;
    }
    rp_sizes_forget(a); /* those at hand are of another plan */
    if (!rp_joint_has_sizes(plan)) {
        return RP_OK;
    }
    memcpy(a->size, plan->size, plan->stages * sizeof *plan->size);
    take(a, plan->stages);
    (void)snprintf(text, sizeof text,
                   "microbatches of %u samples forward and %u backward on all stages, because "
                   "boards share some: %.4g ms a step by prediction, with %u (train.microbatch) "
                   "%.4g ms",
                   plan->size[0][0], plan->size[0][1], 1e3 * plan->step_s, a->run.micro,
                   1e3 * plan->even_s);
    return rp_folder_record(a->folder)
               ? rp_record_event(rp_folder_record(a->folder), "sizes", a->position->step, text)
               : RP_OK;
}

/* Of a plan that the run has chosen in a former life. */
static void read_sizes(rp_arrangement *a) {
    RP_ASSERT(a->given && a->given->stage_count == a->run.stages);
    for (uint32_t k = 0; k < a->given->stage_count; k++) {
        a->size[k][0] = a->given->stage[k].micro_forward;
        a->size[k][1] = a->given->stage[k].micro_backward;
    }
    take(a, a->run.stages);
}

/* Others would change the order of sums, and with it the bits. */
void rp_sizes_resume(rp_arrangement *a, const rp_setup *then) {
    if (a->run.sizes.planner && a->given && a->shares.is_own) {
        read_sizes(a);
    } else if (a->run.sizes.planner && !a->given && then->size &&
               then->cut.stage_count == a->run.stages && then->size_stages == a->run.stages) {
        memcpy(a->size, then->size, a->run.stages * sizeof *then->size);
        take(a, a->run.stages);
    }
}
