/* `plan.schedules`: the run goes on with the schedule that the planner takes, from before the
 * boards get their stages; run.yaml has it, and a run that is resumed goes on with it. */
#include <stdio.h>

#include "setup/setup_own.h"

/* Once in a run. The run's own is what the run file says already. */
static rp_err take(rp_arrangement *a, uint32_t index) {
    RP_ASSERT(a->now.schedule_auto && index < a->run.schedules.count);
    rp_err err;
    a->now.schedule_auto = false;
    if (index > 0) {
        rp_setup_take_schedule(&a->now, &a->run, index);
    }
    RP_TRY(rp_arrangement_settle(a));
    if (index > 0 && rp_folder_record(a->folder)) {
        rp_record_take_schedule(rp_folder_record(a->folder), a->run.method.kind->name);
    }
fail:
    return err;
}

rp_err rp_schedule_take(rp_arrangement *a, const rp_joint_answer *answer) {
    const bool known = answer && answer->is_known;
    rp_err err = RP_OK;
    if (!a->run.schedule_auto) {
        return RP_OK;
    }
    RP_TRY(take(a, known ? answer->plan[0].schedule : 0));
    RP_TRY(known ? rp_arena_string(a->arena, answer->schedule, &a->schedule_words) : RP_OK);
    if (rp_folder_record(a->folder) && known && answer->schedule[0]) {
        RP_TRY(rp_record_event(rp_folder_record(a->folder), "schedule", a->position->step,
                               answer->schedule));
    }
fail:
    return err;
}

rp_err rp_schedule_take_given(rp_arrangement *a) {
    const rp_schedules *all = &a->run.schedules;
    const uint32_t index = rp_schedules_find(all, &a->given->method, a->given->stage_count);
    return a->run.schedule_auto && index < all->count ? take(a, index) : RP_OK;
}

/* Their run.yaml has the one that was taken; what can not be read is said later. */
rp_err rp_schedule_resume(rp_arrangement *a) {
    rp_arena arena;
    rp_node *before;
    rp_method method;
    rp_err err = RP_OK;
    if (!a->run.schedule_auto || !a->resume) {
        return RP_OK;
    }
    rp_arena_init(&arena, "run.yaml", 0);
    if (rp_config_read_file(&arena, rp_folder_paths_of(a->folder)->run_yaml, &before) == RP_OK &&
        rp_method_parse(before, a->run.boards, &method) == RP_OK) {
        const uint32_t index = rp_schedules_find(&a->run.schedules, &method, a->run.boards);
        RP_TRY(index < a->run.schedules.count ? take(a, index) : RP_OK);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
