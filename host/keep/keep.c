/* Opening and closing the room, and which checkpoint is the newest. */
#include <inttypes.h>

#include "keep/keep_own.h"

rp_err rp_keep_open(rp_arena *arena, const rp_keep_needs *needs, rp_keep **out) {
    rp_keep *keep;
    RP_ASSERT(needs->run != NULL && needs->ring != NULL && needs->folder != NULL);
    const rp_err err = RP_ARENA_NEW(arena, 1, &keep);
    if (err == RP_OK) {
        keep->needs = *needs;
        *out = keep;
    }
    return err;
}

void rp_keep_close(rp_keep *keep) {
    RP_ASSERT(keep->load.reader == NULL && keep->save.writer == NULL);
    rp_arena_finish(&keep->adopt.arena);
    rp_copies_drop_set(rp_copies_whole(keep));
    rp_copies_drop_set(rp_copies_pending(keep));
}

/* ---- what is saved --------------------------------------------------------------------------- */

bool rp_keep_is_unsaved(const rp_keep *keep) {
    return keep->is_unsaved;
}

void rp_keep_note_unsaved(rp_keep *keep, bool is_unsaved) {
    keep->is_unsaved = is_unsaved;
}

uint64_t rp_keep_saved_step(const rp_keep *keep) {
    return keep->save.kept_step;
}

void rp_keep_note_start(rp_keep *keep, uint64_t step) {
    RP_ASSERT(keep->save.writer == NULL && keep->save.boards_left == 0);
    keep->save.kept_step = keep->save.drawn_step = step;
}

void rp_keep_note_return(rp_keep *keep, uint64_t step) {
    RP_ASSERT(keep->save.writer == NULL);
    RP_ASSERT(step >= keep->save.kept_step); /* copies are newer than the checkpoint, and the run
                                                never goes back further than that */
    keep->save.drawn_step = step;
}

rp_err rp_keep_find(rp_keep *keep, rp_arena *arena, char **path, rp_position *position) {
    RP_ASSERT(rp_keep_paths(keep)->checkpoints != NULL);
    RP_ASSERT(keep->load.reader == NULL && keep->save.writer == NULL);
    return rp_checkpoint_find(arena, keep->needs.run, rp_keep_paths(keep)->checkpoints, path,
                              position, keep->damaged);
}

/* Only for the newest checkpoint it is known what boards had counted. */
rp_err rp_keep_check_step(const rp_keep *keep, uint64_t step) {
    return step == keep->save.kept_step
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT,
                         "the run cannot return to the checkpoint of step %" PRIu64 ": %s",
                         keep->save.kept_step,
                         keep->damaged[0] ? keep->damaged : "the file is missing");
}

const char *rp_keep_damage(const rp_keep *keep) {
    return keep->damaged;
}

rp_err rp_keep_say_damage(const rp_keep *keep, uint64_t step) {
    const rp_run_event event = {.kind = RP_EVENT_DAMAGED, .step = step, .error = keep->damaged};
    return keep->damaged[0] ? rp_record_event(rp_keep_record(keep), &event) : RP_OK;
}
