/* Messages of the boards: which kind is accepted in which state, and which room handles it. A kind
 * that is not in the table is refused with an error. */
#include "control/controller_own.h"

#include "measure/losses.h"
#include "ring/identity.h"
#include "setup/assignment.h"
#include "wire/trace.h"

/* ---- the table ------------------------------------------------------------------------------- */

#define IN(id) (UINT32_C(1) << RP_CONTROL_##id)
#define ANYWHERE ((UINT32_C(1) << RP_CONTROL_STATES) - 1)
#define TRAINING (IN(TRAIN) | IN(DRAIN))
#define SENDING (IN(SAVE) | IN(RESCUE))
#define PASSES (IN(EVALUATE) | IN(STATISTICS))
/* Reports of a segment that was given up: by a controller that has died, or because of a fault that
 * the board has not heard of yet, such as one that was suspended meanwhile. */
#define OUTDATED (IN(ADOPT) | IN(HELLO))

static const struct {
    rp_kind kind;
    uint32_t taken;
    uint32_t ignored; /* outdated, or only there to time acks */
} accepted[] = {
    {RP_KIND_HELLO, ANYWHERE, 0},
    {RP_KIND_FAULT, ANYWHERE, 0},
    {RP_KIND_BUILDING, IN(PROFILE) | IN(ASSIGN) | IN(VERIFY), 0},
    {RP_KIND_PROFILE_DONE, IN(PROFILE), 0},
    {RP_KIND_TRIAL_DONE, ANYWHERE, 0},
    {RP_KIND_TRIAL_BYTES, 0, ANYWHERE},
    {RP_KIND_READY, IN(ASSIGN), 0},
    {RP_KIND_STEP_DONE, TRAINING, OUTDATED},
    {RP_KIND_NORMS, TRAINING, OUTDATED},
    {RP_KIND_PREDICTION_ERROR, TRAINING, OUTDATED},
    {RP_KIND_SKIPPED, TRAINING, OUTDATED},
    {RP_KIND_EVALUATE_DONE, IN(EVALUATE), OUTDATED},
    {RP_KIND_WAITING, TRAINING | PASSES, OUTDATED},
    {RP_KIND_TRACE, TRAINING | PASSES, OUTDATED},
    {RP_KIND_FINISHED, TRAINING | PASSES, OUTDATED},
    {RP_KIND_COPIED, ANYWHERE, 0},
    {RP_KIND_TENSOR, SENDING, 0},
    {RP_KIND_IN_FLIGHT, SENDING, 0},
    {RP_KIND_TENSORS_END, SENDING, 0},
    {RP_KIND_RECORD, IN(VERIFY), 0},
    {RP_KIND_RECOMPUTED, IN(VERIFY), 0},
    {RP_KIND_HELD, IN(ADOPT), 0},
};

/* REFUSED is 0. */
static enum { REFUSED, IGNORED, TAKEN } find_fate(rp_kind kind, rp_control_state_id state) {
    const uint32_t bit = UINT32_C(1) << state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        if (accepted[i].kind == kind) {
            return accepted[i].taken & bit ? TAKEN : accepted[i].ignored & bit ? IGNORED : REFUSED;
        }
    }
    return REFUSED;
}

bool rp_accept_takes(rp_kind kind, rp_control_state_id state) {
    return find_fate(kind, state) != REFUSED;
}

/* ---- bring-up -------------------------------------------------------------------------------- */

static rp_err on_hello(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Hello *hello = &message->frame.body.hello;
    rp_board_state *state = &c->ring.board[board];
    bool is_new;
    rp_err err;
    if (c->machine.state == RP_CONTROL_ADOPT) {
        return rp_keep_on_adopted_hello(c->keep, board, message);
    }
    if (state->hello) {
        return RP_OK; /* also answers an earlier greeting */
    }
    RP_TRY(rp_ring_check_software(&c->ring, board, hello));
    RP_TRY(rp_arrangement_check_software(c->setup, board, hello));
    RP_TRY(rp_ring_take_hello(&c->ring, board, hello, &is_new));
    RP_TRY(is_new ? rp_arrangement_check_device(c->setup, board) : RP_OK);
fail:
    return err;
}

static rp_err on_profile(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_board_state *state = &c->ring.board[board];
    rp_err err = RP_OK;
    if (!state->machine.asked || state->measure.profiled) {
        return rp_fail(RP_ERR_PEER, "board %s sent a profile without being asked", state->name);
    }
    rp_measure_answer answer;
    RP_TRY(rp_measure_take(c->measure, board, &message->frame.body.profile_done, &message->part[0],
                           &answer));
    if (answer.again) {
        rp_profile_say(rp_folder_record(c->folder), c->env.progress, answer.note);
    }
    state->machine.asked = !answer.again;
    rp_ring_end_building(&c->ring, board);
fail:
    return err;
}

/* ---- a segment ------------------------------------------------------------------------------- */

static rp_err on_step_done(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_loss_sum sum;
    rp_err err;
    RP_TRY(rp_train_on_step_done(c->train, board, message));
    while (rp_train_take_step(c->train, &sum)) {
        rp_keep_note_step(c->keep, rp_train_usual_step_ns(c->train));
        rp_drift_note_step(c->measure);
        RP_TRY(rp_train_end_step(c->train, &sum));
    }
fail:
    return err;
}

static rp_err on_trace(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_plan *plan = rp_arrangement_plan(c->setup);
    const rp_part *part = &message->part[0];
    rp_err err = RP_OK;
    rp_ring_note_progress(&c->ring);
    rp_ring_take_sensors(&c->ring, board, &message->frame.body.trace);
    if (part->bytes % RP_TRACE_BYTES) {
        return rp_fail(RP_ERR_PEER, "a trace of stage %u has %zu bytes", board, part->bytes);
    }
    for (size_t i = 0; i < part->bytes; i += RP_TRACE_BYTES) {
        const uint8_t *bytes = (const uint8_t *)part->data + i;
        rp_sink_op op;
        RP_TRY(rp_ring_unpack_op(&c->ring, board, plan, bytes, &op));
        rp_drift_note_op(c->measure, plan, &op);
        rp_now_counts_add(&c->now, c->ring.board[board].name, &op);
        RP_TRY(rp_train_record_op(c->train, &op));
    }
fail:
    return err;
}

static rp_err on_finished(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_plan *plan = rp_arrangement_plan(c->setup);
    const rp_Finished *report = &message->frame.body.finished;
    rp_err err;
    RP_TRY(rp_train_on_finished(c->train, board, message, rp_keep_applied_count(plan, board)));
    rp_ring_take_facts(&c->ring, board, report);
    RP_TRY(rp_losses_take(c->measure, plan, board, report));
fail:
    return err;
}

/* ---- what is kept, faults -------------------------------------------------------------------- */

static rp_err on_saved(rp_keep *keep, rp_machine *machine, uint32_t board,
                       const rp_message *message) {
    rp_keep_outcome outcome = RP_KEEP_WAITS;
    const rp_kind kind = rp_frame_kind(&message->frame);
    const rp_err err = kind == RP_KIND_TENSOR ? rp_keep_on_tensor(keep, board, message, &outcome)
                       : kind == RP_KIND_IN_FLIGHT
                           ? rp_keep_on_in_flight(keep, board, message, &outcome)
                           : rp_keep_on_end(keep, board);
    return rp_machine_keep_result(machine, err, outcome);
}

/* The board knows class, error and text of the fault best. */
static rp_err on_fault(const char *name, const rp_Fault *fault, rp_FaultClass *reported) {
    const bool known = fault->err > 0 && fault->err < RP_ERR_COUNT;
    *reported = fault->fault_class;
    return rp_fail(known ? (rp_err)fault->err : RP_ERR_FAULT, "board %s: %s", name, fault->text);
}

/* ---- one message ----------------------------------------------------------------------------- */

rp_err rp_accept_message(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_plan *plan = rp_arrangement_plan(c->setup);
    const rp_kind kind = rp_frame_kind(&message->frame);
    switch (kind) {
    case RP_KIND_HELLO:
        return on_hello(c, board, message);
    case RP_KIND_FAULT:
        return on_fault(c->ring.board[board].name, &message->frame.body.fault,
                        &c->machine.reported);
    case RP_KIND_BUILDING:
        rp_ring_take_building(&c->ring, board, &message->frame.body.building);
        return RP_OK;
    case RP_KIND_PROFILE_DONE:
        return on_profile(c, board, message);
    case RP_KIND_TRIAL_DONE:
        rp_measure_take_trial(c->measure, board, &message->frame.body.trial_done);
        if (c->machine.state == RP_CONTROL_PROFILE) { /* in other states nothing waits for it */
            rp_ring_note_progress(&c->ring);
        }
        return RP_OK;
    case RP_KIND_READY: /* with `boards warm` no board waits for others */
        return rp_ring_take_ready(&c->ring, board, &message->frame.body.ready,
                                  c->options.purpose != RP_PURPOSE_WARM ? plan : NULL);
    case RP_KIND_STEP_DONE:
        return on_step_done(c, board, message);
    case RP_KIND_TRACE:
        return on_trace(c, board, message);
    case RP_KIND_FINISHED:
        return on_finished(c, board, message);
    case RP_KIND_COPIED:
        return rp_keep_on_copied(c->keep, plan, board, message);
    case RP_KIND_HELD:
        return rp_keep_on_held(c->keep, board, message);
    case RP_KIND_TENSOR:
    case RP_KIND_IN_FLIGHT:
    case RP_KIND_TENSORS_END:
        return on_saved(c->keep, &c->machine, board, message);
    case RP_KIND_NORMS:
        return rp_train_on_norms(c->train, board, message);
    case RP_KIND_PREDICTION_ERROR:
        return rp_train_on_prediction(c->train, board, message);
    case RP_KIND_SKIPPED:
        return rp_train_on_skipped(c->train, board, message);
    case RP_KIND_EVALUATE_DONE:
        return rp_train_on_evaluated(c->train, board, message);
    case RP_KIND_WAITING:
        return rp_train_on_waiting(c->train, board, message);
    case RP_KIND_RECORD:
        return rp_verify_on_record(c->train, board, message);
    default:
        RP_ASSERT(kind == RP_KIND_RECOMPUTED);
        return rp_verify_on_recomputed(c->train, board, message);
    }
}

/* Stores the newer term, so that the next start uses a still newer one: the folder may have lost
 * its newest files in a disk failure, and then no other controller exists. */
static rp_err yield_to_newer(const rp_ring *ring, const rp_folder *folder, uint32_t board,
                             uint32_t term) {
    const rp_run_identity newer = {ring->identity.id, term};
    rp_err err;
    RP_TRY(rp_identity_keep(rp_folder_paths_of(folder)->folder, &newer));
    err = rp_fail(RP_ERR_PEER,
                  "board %s serves a newer start of this run (its term is %u, ours %u): another "
                  "controller has taken over the run, or this run folder has lost its newest "
                  "files; if no other controller runs, resume the run again",
                  ring->board[board].name, term, ring->identity.term);
fail:
    return err;
}

static rp_err take_message(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_control_state_id state = c->machine.state;
    const rp_kind kind = rp_frame_kind(&message->frame);
    const rp_run_identity own = c->ring.identity;
    c->machine.reported = RP_FAULT_UNKNOWN;
    if (message->frame.run_id == own.id && message->frame.term > own.term) {
        return yield_to_newer(&c->ring, c->folder, board, message->frame.term);
    }
    const bool says_who = kind == RP_KIND_HELLO && state == RP_CONTROL_ADOPT;
    if (message->frame.run_id != 0 && !rp_frame_is_of_run(&message->frame, own) && !says_who) {
        return RP_OK; /* of an earlier assignment, which ended because another board failed */
    }
    switch (find_fate(kind, state)) {
    case TAKEN:
        return rp_accept_message(c, board, message);
    case IGNORED:
        return RP_OK;
    default:
        return rp_fail(
            RP_ERR_PEER, "board %s sent %s, which the controller does not expect in state %s",
            c->ring.board[board].name, rp_kind_name(kind), rp_control_states[state].name);
    }
}

rp_err rp_accept_messages(rp_controller *c, uint32_t board) {
    rp_link *link = c->ring.board[board].control;
    rp_err err = RP_OK;
    while (link && err == RP_OK && c->machine.fault.err == RP_OK) {
        rp_message *message;
        err = rp_link_recv(link, &message);
        if (err == RP_ERR_AGAIN) {
            return RP_OK;
        }
        if (err == RP_OK) {
            err = take_message(c, board, message);
            rp_link_release(link, &message);
        }
    }
    return err;
}
