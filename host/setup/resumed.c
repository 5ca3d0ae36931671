/* What a run begins with: a plan that is given; of a run that goes on the choices that its run.yaml
 * has. */
#include <stdio.h>

#include "planning/planfile.h"
#include "setup/setup_own.h"

/* Their run.yaml has the number that was chosen; one that can not be read is said later. */
rp_err rp_arrangement_resume_micro(rp_arrangement *a) {
    rp_arena arena;
    rp_node *before;
    rp_err err = RP_OK;
    if (!a->run.micro_auto || !a->resume) {
        return RP_OK;
    }
    rp_arena_init(&arena, "run.yaml", 0);
    if (rp_config_read_file(&arena, rp_folder_paths_of(a->folder)->run_yaml, &before) == RP_OK) {
        rp_node *train = rp_node_find(before, "train");
        uint32_t micro = 0;
        if (train && rp_node_u32(train, "microbatch", 1, a->run.batch, &micro) == RP_OK && micro) {
            a->now.micro = micro;
            rp_measure_set_micro(a->measure, micro);
            a->now.micro_auto = false;
            RP_TRY(rp_arrangement_settle(a));
        }
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_arrangement_resume_choices(rp_arrangement *a) {
    rp_err err;
    RP_TRY(rp_arrangement_resume_micro(a));
    RP_TRY(rp_schedule_resume(a));
fail:
    return err;
}

rp_err rp_arrangement_read_plan(rp_arrangement *a, const char *executor) {
    const char *path;
    rp_err err;
    RP_TRY(rp_shares_read(a, &path));
    if (path) {
        RP_TRY(rp_planfile_read(a->arena, path, &a->run, executor, &a->given));
        a->now.stages = a->given->stage_count; /* boards may share one */
        a->now.micro = a->given->micro;        /* where the run file says: auto */
        rp_arrangement_refresh(a);
        RP_TRY(rp_schedule_take_given(a));
        rp_arrangement_adopt_advance(a, a->given->method.advance);
        RP_TRY(rp_ahead_take(a, a->given->method.ahead, a->given->method.ahead_count));
    }
fail:
    return err;
}
