/* Of a run that goes on: `train.microbatch: auto` is the number that it was begun with. */
#include <stdio.h>

#include "control/controller_own.h"

/* Their run.yaml has the number that was chosen; one that can not be read is said later. */
rp_err rp_controller_resume_micro(rp_controller *c) {
    rp_arena arena;
    rp_node *before;
    rp_err err = RP_OK;
    if (!c->run.micro_auto || !c->options.resume) {
        return RP_OK;
    }
    rp_arena_init(&arena, "run.yaml", 0);
    if (rp_config_read_file(&arena, rp_folder_paths_of(c->folder)->run_yaml, &before) == RP_OK) {
        rp_node *train = rp_node_find(before, "train");
        uint32_t micro = 0;
        if (train && rp_node_u32(train, "microbatch", 1, c->run.batch, &micro) == RP_OK && micro) {
            c->setup.now.micro = micro;
            rp_measure_set_micro(c->measure, micro);
            c->setup.now.micro_auto = false;
            RP_TRY(rp_setup_settle(c));
        }
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
