/* How large microbatches are where schedule.planner chooses that: once in a run, for a number of
 * stages; again where the plan follows the boards. */
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"

/* Once for a number of stages; a checkpoint says those that it was made with. */
bool rp_sizes_are_wanted(const rp_controller *c) {
    return c->run.sizes.planner && c->options.purpose != RP_PURPOSE_EVALUATE && !c->setup.given &&
           c->setup.now.size_stages != c->run.stages;
}

static void take(rp_controller *c, uint32_t stages) {
    c->setup.now.size_stages = stages;
    c->setup.now.size = (const uint32_t(*)[2])c->setup.size;
    rp_setup_refresh(c);
}

void rp_sizes_forget(rp_controller *c) {
    rp_setup_reopen_sizes(&c->setup.now, &c->run);
    rp_setup_refresh(c);
}

static rp_err say(const rp_controller *c, const rp_size_choice *choice) {
    char text[400];
    size_t used = (size_t)snprintf(
        text, sizeof text, "sizes by %s (samples forward/backward):", c->run.sizes.planner->name);
    for (uint32_t k = 0; k < c->run.stages && used < sizeof text / 2; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, " %u/%u", c->setup.size[k][0],
                                 c->setup.size[k][1]);
    }
    (void)snprintf(text + used, sizeof text - used,
                   "; by what was measured a step takes %.4g ms, with microbatches of %u on all "
                   "stages, the best even size, %.4g ms",
                   1e3 * choice->step_s, choice->even, 1e3 * choice->even_step_s);
    return rp_folder_record(c->folder)
               ? rp_record_event(rp_folder_record(c->folder), "sizes", c->train.position.step, text)
               : RP_OK;
}

rp_err rp_sizes_choose(rp_controller *c) {
    rp_size_choice choice;
    rp_err err = RP_OK;
    if (!rp_sizes_are_wanted(c)) {
        return RP_OK;
    }
    rp_measure_place(c->measure);
    RP_TRY(rp_choose_sizes(&c->run, rp_measure_profile(c->measure), &c->setup.now.cut,
                           c->setup.size, &choice));
    take(c, c->run.stages);
    RP_TRY(say(c, &choice));
fail:
    return err;
}

rp_err rp_sizes_keep(rp_controller *c, const uint32_t (*size)[2], const rp_size_choice *choice) {
    memcpy(c->setup.size, size, c->run.stages * sizeof *size);
    take(c, c->run.stages);
    return say(c, choice);
}

rp_err rp_sizes_take(rp_controller *c, const rp_trial_plan *plan) {
    char text[400];
    if (!c->run.sizes.planner) {
        return RP_OK;
    }
    rp_sizes_forget(c); /* those at hand are of another plan */
    if (!plan->has_sizes) {
        return RP_OK;
    }
    memcpy(c->setup.size, plan->size, plan->stages * sizeof *plan->size);
    take(c, plan->stages);
    (void)snprintf(text, sizeof text,
                   "microbatches of %u samples forward and %u backward on all stages, because "
                   "boards share some: %.4g ms a step by prediction, with %u (train.microbatch) "
                   "%.4g ms",
                   plan->size[0][0], plan->size[0][1], 1e3 * plan->predicted_s, c->run.micro,
                   1e3 * plan->even_s);
    return rp_folder_record(c->folder)
               ? rp_record_event(rp_folder_record(c->folder), "sizes", c->train.position.step, text)
               : RP_OK;
}

/* Of a plan that the run has chosen in a former life. */
static void read_sizes(rp_controller *c) {
    for (uint32_t k = 0; k < c->setup.given->stage_count; k++) {
        c->setup.size[k][0] = c->setup.given->stage[k].micro_forward;
        c->setup.size[k][1] = c->setup.given->stage[k].micro_backward;
    }
    take(c, c->run.stages);
}

/* Others would change the order of sums, and with it the bits. */
void rp_sizes_resume(rp_controller *c, const rp_setup *then) {
    if (c->run.sizes.planner && c->setup.given && c->setup.shares.is_own) {
        read_sizes(c);
    } else if (c->run.sizes.planner && !c->setup.given && then->size &&
               then->cut.stage_count == c->run.stages && then->size_stages == c->run.stages) {
        memcpy(c->setup.size, then->size, c->run.stages * sizeof *then->size);
        take(c, c->run.stages);
    }
}
