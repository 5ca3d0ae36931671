/* The states that feed the ring: train, drain, evaluate, statistics, verify. The room `train` does
 * the work; these functions act on its results. */
#include "control/controller_own.h"

/* ---- training -------------------------------------------------------------------------------- */

rp_err rp_segment_train_enter(rp_controller *c) {
    const uint64_t step = c->position.step;
    rp_err err;
    c->machine.renewed = c->way.looked_at = false;
    RP_TRY(rp_keep_choose_copy_pace(c->keep, step, rp_train_usual_step_ns(c->train)));
    rp_keep_note_unsaved(c->keep, true);
    RP_TRY(rp_train_begin(c->train, rp_pause_next_step(c, rp_keep_next_copies(c->keep, step))));
    rp_drift_begin_segment(c->measure);
fail:
    return err;
}

rp_err rp_segment_drain_enter(rp_controller *c) {
    c->machine.renewed = false;
    rp_keep_note_unsaved(c->keep, true);
    rp_drift_begin_segment(c->measure);
    return rp_train_begin_drain(c->train);
}

/* Records what the boards have reported so far. */
static rp_err record_facts(rp_record *record, const rp_measure *measure, const rp_plan *plan,
                           uint64_t step) {
    rp_record_end told = {0};
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "facts", 0);
    RP_TRY(rp_measure_tell(measure, plan, &arena, &told));
    RP_TRY(rp_record_facts(record, &(rp_sink_facts){.step = step,
                                                    .stage = told.stage,
                                                    .stage_count = told.stage_count,
                                                    .link = told.link,
                                                    .link_count = told.link_count}));
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_segment_train_step(rp_controller *c) {
    bool paused;
    rp_err err;
    RP_TRY(rp_train_step(c->train, c->machine.interrupts > 0, &paused, &c->machine.reported));
    if (!paused) {
        return RP_OK;
    }
    RP_TRY(rp_arrangement_follow_wires(c->setup, rp_train_segment_s(c->train)));
    RP_TRY(rp_train_end_segment(c->train));
    RP_TRY(rp_arrangement_note_losses(c->setup));
    rp_pause_follow_losses(c);
    RP_TRY(record_facts(rp_folder_record(c->folder), c->measure, rp_arrangement_plan(c->setup),
                        c->position.step));
    RP_TRY(rp_pause_choose_next(c));
fail:
    return err;
}

/* ---- passes without training ----------------------------------------------------------------- */

rp_err rp_segment_evaluate_enter(rp_controller *c) {
    const bool trains = c->options.purpose == RP_PURPOSE_TRAIN;
    rp_split split = c->options.split;
    if (trains) {
        RP_ASSERT(rp_train_is_evaluation_due(c->train, &split));
    }
    rp_drift_begin_segment(c->measure);
    return rp_train_begin_evaluation(c->train, split, trains);
}

static rp_err keep_score(rp_train *train, rp_keep *keep, const rp_runfile *run) {
    bool stops;
    const rp_err err = rp_train_keep_score(train, &stops);
    if (stops && run->method.kind->flushed) {
        rp_keep_note_unsaved(keep, true); /* saved again, as the result of the run */
    }
    return err;
}

/* The test split follows the validation split in the same state. */
rp_err rp_segment_evaluate_step(rp_controller *c) {
    const bool trains = c->options.purpose == RP_PURPOSE_TRAIN;
    rp_split split;
    bool over;
    rp_err err;
    RP_TRY(rp_train_step_pass(c->train, &over));
    if (!over || rp_keep_disk_rests(c->keep)) {
        return RP_OK;
    }
    err = trains ? keep_score(c->train, c->keep, c->run) : RP_OK;
    if (err == RP_ERR_IO) {
        rp_ring_note_progress(&c->ring);
        return rp_machine_disk_failed(&c->machine, c->keep, c->position.step);
    }
    RP_TRY(err);
    if (trains && c->machine.interrupts == 0 && rp_train_is_evaluation_due(c->train, &split)) {
        return rp_segment_evaluate_enter(c);
    }
    RP_TRY(rp_pause_choose_next(c));
fail:
    return err;
}

rp_err rp_segment_statistics_enter(rp_controller *c) {
    rp_drift_begin_segment(c->measure);
    return rp_train_begin_statistics(c->train);
}

rp_err rp_segment_statistics_step(rp_controller *c) {
    bool over;
    rp_err err;
    RP_TRY(rp_train_step_pass(c->train, &over));
    if (over) {
        c->machine.renewed = true;
        RP_TRY(rp_pause_choose_next(c));
    }
fail:
    return err;
}

/* ---- verify ---------------------------------------------------------------------------------- */

rp_err rp_segment_verify_enter(rp_controller *c) {
    return rp_verify_begin(c->train);
}

rp_err rp_segment_verify_step(rp_controller *c) {
    bool over;
    rp_err err;
    RP_TRY(rp_verify_step(c->train, &over, &c->machine.wrong, &c->machine.reported));
    RP_TRY(over ? rp_pause_choose_next(c) : RP_OK);
fail:
    return err;
}
