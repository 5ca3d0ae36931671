/* `plan.schedules`: the run goes on with the schedule that the planner takes, from before the
 * boards get their stages; run.yaml has it, and a run that is resumed goes on with it. */
#include <stdio.h>

#include "control/controller_own.h"

/* Once in a run. The run's own is what the run file says already. */
static rp_err take(rp_controller *c, uint32_t index) {
    rp_err err;
    c->setup.now.schedule_auto = false;
    if (index > 0) {
        rp_setup_take_schedule(&c->setup.now, &c->run, index);
    }
    RP_TRY(rp_setup_settle(c));
    if (index > 0 && rp_folder_record(c->folder)) {
        rp_record_take_schedule(rp_folder_record(c->folder), c->run.method.kind->name);
    }
fail:
    return err;
}

rp_err rp_schedule_take(rp_controller *c, const rp_joint_answer *answer) {
    const bool known = answer && answer->is_known;
    rp_err err = RP_OK;
    if (!c->run.schedule_auto) {
        return RP_OK;
    }
    RP_TRY(take(c, known ? answer->plan[0].schedule : 0));
    RP_TRY(known ? rp_arena_string(&c->arena, answer->schedule, &c->setup.schedule_words) : RP_OK);
    if (rp_folder_record(c->folder) && known && answer->schedule[0]) {
        RP_TRY(rp_record_event(rp_folder_record(c->folder), "schedule", c->train.position.step,
                               answer->schedule));
    }
fail:
    return err;
}

rp_err rp_schedule_take_given(rp_controller *c) {
    const rp_schedules *all = &c->run.schedules;
    const uint32_t index =
        rp_schedules_find(all, &c->setup.given->method, c->setup.given->stage_count);
    return c->run.schedule_auto && index < all->count ? take(c, index) : RP_OK;
}

/* Their run.yaml has the one that was taken; what can not be read is said later. */
rp_err rp_schedule_resume(rp_controller *c) {
    rp_arena arena;
    rp_node *before;
    rp_method method;
    rp_err err = RP_OK;
    if (!c->run.schedule_auto || !c->options.resume) {
        return RP_OK;
    }
    rp_arena_init(&arena, "run.yaml", 0);
    if (rp_config_read_file(&arena, rp_folder_paths_of(c->folder)->run_yaml, &before) == RP_OK &&
        rp_method_parse(before, c->run.boards, &method) == RP_OK) {
        const uint32_t index = rp_schedules_find(&c->run.schedules, &method, c->run.boards);
        RP_TRY(index < c->run.schedules.count ? take(c, index) : RP_OK);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
