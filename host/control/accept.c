/* Messages of the boards: which kind is taken in which state, and what bring-up is told. Every kind
 * that is not in the table is refused, with a text. */
#include "control/controller_own.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "setup/assignment.h"

/* Far beyond any board: a number from outside is not believed blindly. */
static const uint64_t BYTES_MAX = UINT64_C(1) << 44;

/* ---- hello, profile, ready ------------------------------------------------------------------- */

static rp_err on_hello(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Hello *hello = &message->frame.body.hello;
    rp_board_state *state = &c->ring.board[board];
    bool is_new;
    rp_err err;
    if (c->machine.state == RP_CONTROL_ADOPT) {
        return rp_keep_on_adopted_hello(c->keep, board, message);
    }
    if (state->hello) {
        return RP_OK; /* it answers an earlier greeting, too */
    }
    RP_TRY(rp_ring_check_software(&c->ring, board, hello));
    RP_TRY(rp_arrangement_check_software(c->setup, board, hello));
    RP_TRY(rp_ring_take_hello(&c->ring, board, hello, &is_new));
    RP_TRY(is_new ? rp_arrangement_check_device(c->setup, board) : RP_OK);
fail:
    return err;
}

/* Numbers for people: one that is not possible is cut down, and ends nothing. */
static rp_err on_building(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_ring_take_building(&c->ring, board, &message->frame.body.building);
    return RP_OK;
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
        rp_profile_say(c, answer.note);
    }
    state->machine.asked = !answer.again;
    rp_ring_end_building(&c->ring, board);
fail:
    return err;
}

static rp_err on_trial(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_measure_take_trial(c->measure, board, &message->frame.body.trial_done);
    if (c->machine.state == RP_CONTROL_PROFILE) { /* else nothing waits for it any more */
        rp_ring_note_progress(&c->ring);
    }
    return RP_OK;
}

static rp_err on_ready(rp_controller *c, uint32_t board, const rp_message *message) {
    const bool stays = c->options.purpose != RP_PURPOSE_WARM; /* else it waits for nobody */
    return rp_ring_take_ready(&c->ring, board, &message->frame.body.ready,
                              stays ? rp_arrangement_plan(c->setup) : NULL);
}

/* ---- the end of a segment, faults ------------------------------------------------------------ */

static rp_err on_finished(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Finished *report = &message->frame.body.finished;
    rp_board_state *state = &c->ring.board[board];
    const size_t want =
        rp_keep_applied_count(rp_arrangement_plan(c->setup), board) * sizeof(uint64_t);
    if (state->train.finished) {
        return rp_fail(RP_ERR_PEER, "board %s has finished its segment twice", state->name);
    }
    if (message->part[0].bytes != want) {
        return rp_fail(RP_ERR_PEER, "board %s did not report the updates that it has applied",
                       state->name);
    }
    state->train.finished = true;
    memcpy(state->train.applied, message->part[0].data, want);
    rp_ring_take_facts(&c->ring, board, report);
    const rp_err lost = rp_losses_take(c->measure, rp_arrangement_plan(c->setup), board, report);
    if (lost != RP_OK) {
        return lost;
    }
    if (report->in_flight_bytes > BYTES_MAX) {
        return rp_fail(RP_ERR_PEER,
                       "board %s reports %" PRIu64 " bytes of in-flight state, at most %" PRIu64
                       " are possible",
                       state->name, report->in_flight_bytes, BYTES_MAX);
    }
    state->train.in_flight_bytes = report->in_flight_bytes;
    state->train.ledger = (rp_run_ledger){report->ledger, report->ledger_samples};
    return RP_OK;
}

static rp_err on_fault(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Fault *fault = &message->frame.body.fault;
    const bool known = fault->err > 0 && fault->err < RP_ERR_COUNT;
    c->machine.reported =
        fault->fault_class; /* it knows best; the text and the error say the rest */
    return rp_fail(known ? (rp_err)fault->err : RP_ERR_FAULT, "board %s: %s",
                   c->ring.board[board].name, fault->text);
}

/* What a board said to the host that it has lost. */
static rp_err ignore(rp_controller *c, uint32_t board, const rp_message *message) {
    (void)c;
    (void)board;
    (void)message;
    return RP_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define IN(id) (UINT32_C(1) << RP_CONTROL_##id)
#define ANYWHERE ((UINT32_C(1) << RP_CONTROL_STATES) - 1)
#define TRAINING (IN(TRAIN) | IN(DRAIN))
#define SENDING (IN(SAVE) | IN(RESCUE))
#define PASSES (IN(EVALUATE) | IN(STATISTICS))

static const struct {
    rp_kind kind;
    uint32_t states;
    rp_control_handler handle;
} accepted[] = {
    {RP_KIND_HELLO, ANYWHERE, on_hello},
    {RP_KIND_FAULT, ANYWHERE, on_fault},
    {RP_KIND_BUILDING, IN(PROFILE) | IN(ASSIGN) | IN(VERIFY), on_building},
    {RP_KIND_PROFILE_DONE, IN(PROFILE), on_profile},
    {RP_KIND_TRIAL_DONE, ANYWHERE, on_trial},
    {RP_KIND_TRIAL_BYTES, ANYWHERE, ignore}, /* the board times them to their acks */
    {RP_KIND_READY, IN(ASSIGN), on_ready},
    {RP_KIND_STEP_DONE, TRAINING, rp_segment_on_step_done},
    {RP_KIND_NORMS, TRAINING, rp_segment_on_report},
    {RP_KIND_PREDICTION_ERROR, TRAINING, rp_segment_on_report},
    {RP_KIND_SKIPPED, TRAINING, rp_segment_on_report},
    {RP_KIND_EVALUATE_DONE, IN(EVALUATE), rp_segment_on_report},
    {RP_KIND_WAITING, TRAINING | PASSES, rp_segment_on_report},
    {RP_KIND_TRACE, TRAINING | PASSES, rp_segment_on_trace},
    {RP_KIND_FINISHED, TRAINING | PASSES, on_finished},
    {RP_KIND_COPIED, ANYWHERE, rp_copy_on_copied},
    {RP_KIND_TENSOR, SENDING, rp_save_on_tensor},
    {RP_KIND_IN_FLIGHT, SENDING, rp_save_on_in_flight},
    {RP_KIND_TENSORS_END, SENDING, rp_save_on_end},
    {RP_KIND_RECORD, IN(VERIFY), rp_segment_on_report},
    {RP_KIND_RECOMPUTED, IN(VERIFY), rp_segment_on_report},
    {RP_KIND_HELD, IN(ADOPT), rp_adopt_on_held},
    {RP_KIND_STEP_DONE, IN(ADOPT), ignore},
    {RP_KIND_NORMS, IN(ADOPT), ignore},
    {RP_KIND_PREDICTION_ERROR, IN(ADOPT), ignore},
    {RP_KIND_SKIPPED, IN(ADOPT), ignore},
    {RP_KIND_EVALUATE_DONE, IN(ADOPT), ignore},
    {RP_KIND_WAITING, IN(ADOPT), ignore},
    {RP_KIND_TRACE, IN(ADOPT), ignore},
    {RP_KIND_FINISHED, IN(ADOPT), ignore},
};

rp_control_handler rp_control_handler_of(rp_kind kind, rp_control_state_id state) {
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        if (accepted[i].kind == kind && accepted[i].states & UINT32_C(1) << state) {
            return accepted[i].handle;
        }
    }
    return NULL;
}
