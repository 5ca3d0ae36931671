/* Finds where a run starts or continues: the seed, a weights file, or its newest checkpoint. After
 * a lost board the run returns there. */
#include "control/controller_own.h"
#include "ring/identity.h"

/* *path NULL: start from the seed, or from what boards hold. */
static rp_err find_checkpoint(rp_controller *c, rp_arena *arena, char **path) {
    const rp_plan *given = rp_arrangement_given(c->setup);
    rp_err err;
    RP_TRY(
        rp_keep_find_start(c->keep, arena, rp_arrangement_is_fixed(c->setup), path, &c->position));
    rp_train_resume_best(c->train);
    if (*path && given && c->position.setup.advance != given->method.advance) {
        return rp_fail(RP_ERR_USAGE, "%s: method.advance: is %u, the checkpoint was made with %u",
                       given->source, given->method.advance, c->position.setup.advance);
    }
    RP_TRY(*path || rp_keep_hopes_for_boards(c->keep) ? rp_arrangement_resume(c->setup) : RP_OK);
fail:
    return err;
}

rp_err rp_resume_find_start(rp_controller *c) {
    rp_err err = RP_OK;
    char *path = NULL;
    if (c->options.resume) {
        RP_TRY(find_checkpoint(c, &c->arena, &path));
        rp_keep_note_start(c->keep, c->position.step);
        if (!path && c->run->init &&
            !rp_keep_hopes_for_boards(c->keep)) { /* else checked before the folder existed */
            RP_TRY(rp_checkpoint_check_start(c->run));
        }
    }
    rp_keep_load_from(c->keep, path, RP_KEEP_CHECKPOINT);
    RP_TRY(path || rp_keep_hopes_for_boards(c->keep) ? RP_OK
                                                     : rp_keep_load_first(c->keep, &c->arena));
    rp_arrangement_begin_at(c->setup, c->position.step);
fail:
    return err;
}

/* ---- going back ------------------------------------------------------------------------------ */

static void forget_progress(rp_controller *c) {
    rp_ring_reset(&c->ring, c->machine.fault.board);
    rp_train_go_back(c->train); /* after the links, because parcels may borrow batches */
    for (uint32_t k = 0; k < c->ring.count; k++) {
        rp_board_state *board = &c->ring.board[k];
        board->measure.profiled = rp_measure_has_profile(c->measure);
        rp_ring_rewind_facts(&c->ring, k,
                             rp_keep_newest_copies(c->keep)
                                 ? rp_keep_copied_microbatches(c->keep, k)
                                 : board->keep.microbatches_kept);
    }
    rp_keep_note_unsaved(c->keep, false);
    c->machine.renewed = false;
    rp_arrangement_go_back(c->setup);
    c->way.follow.phase = RP_FOLLOW_NONE;
    c->way.looked_at = false;
    c->way.reassigning = rp_arrangement_plan(c->setup) != NULL;
}

rp_err rp_resume_find_kept(rp_controller *c) {
    char *path = NULL;
    rp_err err;
    rp_arena_finish(&c->way.follow_arena);
    rp_arena_init(&c->way.follow_arena, "restore", 0);
    c->position = (rp_position){0};
    RP_TRY(find_checkpoint(c, &c->way.follow_arena, &path));
    RP_TRY(rp_keep_check_step(c->keep, c->position.step));
    rp_keep_load_from(c->keep, path, RP_KEEP_CHECKPOINT);
    RP_TRY(path ? RP_OK : rp_keep_load_first(c->keep, &c->way.follow_arena));
fail:
    return err;
}

rp_err rp_resume_go_back(rp_controller *c) {
    const rp_position *copies = rp_keep_newest_copies(c->keep);
    rp_err err;
    RP_TRY(rp_identity_check(rp_folder_paths_of(c->folder)->folder, &c->ring.identity));
    forget_progress(c);
    if (copies) { /* they become a checkpoint as soon as the boards can be asked for them */
        c->position = *copies;
        rp_train_resume_best(c->train);
        rp_keep_want_copies(c->keep);
    } else {
        RP_TRY(rp_resume_find_kept(c));
    }
    rp_keep_note_return(c->keep, c->position.step);
    rp_arrangement_begin_at(c->setup, c->position.step);
    RP_TRY(rp_train_rewind_record(c->train));
    RP_TRY(rp_machine_begin_term(&c->machine, &c->ring, c->folder, c->env.run_id));
fail:
    return err;
}

rp_err rp_resume_begin_way_back(rp_controller *c, uint64_t from) {
    rp_err err;
    RP_TRY(rp_resume_go_back(c));
    rp_recovery_begin(&c->recovery, &(rp_recovery_order){.run = c->run,
                                                         .fault = &c->machine.fault,
                                                         .from = from,
                                                         .to = c->position.step,
                                                         .now_ns = c->ring.now_ns});
fail:
    return err;
}
