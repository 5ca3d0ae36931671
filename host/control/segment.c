/* The states that feed the ring: train, drain, evaluate, statistics, verify. The room `train` does
 * the work; here is what follows from it. */
#include <inttypes.h>

#include "control/controller_own.h"

rp_err rp_segment_late(const rp_controller *c) {
    return rp_fail(RP_ERR_TIMEOUT, "no board has reported anything for %" PRId64 " s",
                   c->machine.timeout_ns / RP_NS_PER_S);
}

/* ---- training -------------------------------------------------------------------------------- */

rp_err rp_segment_train_enter(rp_controller *c) {
    rp_err err;
    c->machine.renewed = c->way.looked_at = false;
    RP_TRY(rp_keep_choose_copy_pace(c->keep, c->position.step, rp_train_usual_step_ns(c->train)));
    rp_keep_note_unsaved(c->keep, true);
    const rp_pauses pauses = rp_controller_pauses(c);
    const uint64_t copies = rp_keep_next_copies(c->keep, c->position.step);
    RP_TRY(rp_train_begin(c->train, rp_pauses_next(&pauses, copies)));
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
    rp_controller_follow_losses(c);
    const rp_run_view view = rp_controller_view(c);
    RP_TRY(rp_telemetry_write_facts(&view));
    RP_TRY(rp_controller_choose_next(c));
fail:
    return err;
}

void rp_segment_abandon(rp_controller *c) {
    rp_train_abandon(c->train);
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

/* The test part after the validation part, in the same state. */
static bool is_more_due(const rp_controller *c) {
    rp_split split;
    return c->options.purpose == RP_PURPOSE_TRAIN && c->machine.interrupts == 0 &&
           rp_train_is_evaluation_due(c->train, &split);
}

static rp_err keep_score(rp_train *train, rp_keep *keep, const rp_runfile *run) {
    bool stops;
    const rp_err err = rp_train_keep_score(train, &stops);
    if (stops && run->method.kind->flushed) {
        rp_keep_note_unsaved(keep, true); /* once more: as the run's result */
    }
    return err;
}

rp_err rp_segment_evaluate_step(rp_controller *c) {
    bool over;
    rp_err err;
    RP_TRY(rp_train_step_pass(c->train, &over));
    if (!over || rp_keep_disk_rests(c->keep)) {
        return RP_OK;
    }
    err = c->options.purpose == RP_PURPOSE_TRAIN ? keep_score(c->train, c->keep, c->run) : RP_OK;
    if (err == RP_ERR_IO) {
        rp_ring_note_progress(&c->ring);
        return rp_machine_disk_failed(&c->machine, c->keep, c->position.step);
    }
    RP_TRY(err);
    if (is_more_due(c)) {
        return rp_segment_evaluate_enter(c);
    }
    RP_TRY(rp_controller_choose_next(c));
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
        RP_TRY(rp_controller_choose_next(c));
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
    RP_TRY(over ? rp_controller_choose_next(c) : RP_OK);
fail:
    return err;
}

void rp_segment_verify_abandon(rp_controller *c) {
    rp_verify_abandon(c->train);
}

rp_err rp_segment_verify_late(const rp_controller *c) {
    return rp_verify_late(c->train, c->machine.timeout_ns);
}

/* ---- messages -------------------------------------------------------------------------------- */

rp_err rp_segment_on_step_done(rp_controller *c, uint32_t board, const rp_message *message) {
    double loss_sum;
    rp_err err;
    RP_TRY(rp_train_on_step_done(c->train, board, message));
    while (rp_train_take_step(c->train, &loss_sum)) {
        rp_keep_note_step(c->keep, rp_train_usual_step_ns(c->train));
        (void)rp_drift_note_step(c->measure);
        RP_TRY(rp_train_end_step(c->train, loss_sum));
    }
fail:
    return err;
}

rp_err rp_segment_on_report(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_train *train = c->train;
    switch (rp_frame_kind(&message->frame)) {
    case RP_KIND_NORMS:
        return rp_train_on_norms(train, board, message);
    case RP_KIND_PREDICTION_ERROR:
        return rp_train_on_prediction(train, board, message);
    case RP_KIND_SKIPPED:
        return rp_train_on_skipped(train, board, message);
    case RP_KIND_EVALUATE_DONE:
        return rp_train_on_evaluated(train, board, message);
    case RP_KIND_WAITING:
        return rp_train_on_waiting(train, board, message);
    case RP_KIND_RECORD:
        return rp_verify_on_record(train, board, message);
    default:
        RP_ASSERT(rp_frame_kind(&message->frame) == RP_KIND_RECOMPUTED);
        return rp_verify_on_recomputed(train, board, message);
    }
}

rp_err rp_segment_on_trace(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_ring_note_progress(&c->ring);
    const rp_run_view view = rp_controller_view(c);
    return rp_telemetry_take_ops(&view, board, &message->part[0]);
}

/* ---- progress -------------------------------------------------------------------------------- */

static bool is_in(const rp_machine *machine, const rp_ring *ring, bool renews) {
    const rp_control_state_id state = machine->state;
    const bool feeds = state == RP_CONTROL_TRAIN || state == RP_CONTROL_DRAIN ||
                       state == RP_CONTROL_EVALUATE || (renews && state == RP_CONTROL_STATISTICS);
    return feeds && machine->entered && machine->next == state && ring->board;
}

rp_err rp_segment_check_progress(const rp_machine *machine, const rp_ring *ring, rp_train *train) {
    return is_in(machine, ring, false) ? rp_train_check_progress(train) : RP_OK;
}

rp_err rp_segment_find_hang(const rp_machine *machine, const rp_ring *ring, rp_train *train,
                            uint32_t *board) {
    return is_in(machine, ring, true) ? rp_train_find_hang(train, board) : RP_OK;
}
