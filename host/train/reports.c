/* Takes reports during training: completed steps and skipped updates. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "train/train_own.h"

/* Larger than any board has; numbers from outside are bounded. */
static const uint64_t BYTES_MAX = UINT64_C(1) << 44;

uint64_t rp_train_counted(const rp_train *train, uint64_t samples, uint64_t ignored) {
    const uint64_t targets = samples * rp_runfile_target_rows(train->run);
    return ignored < targets ? targets - ignored : 0;
}

rp_err rp_train_count_step(rp_train *train, const rp_loss_sum *sum) {
    rp_position *position = train->position;
    const rp_runfile *run = train->run;
    const uint64_t step = position->step;
    RP_ASSERT(train->plan && step < run->steps);
    const uint32_t samples = rp_plan_step_samples(train->plan, step);
    const double lr = rp_lr_at(&run->lr, (double)run->optim.lr, step, run->steps, run->epoch_steps);
    const uint64_t counted = rp_train_counted(train, samples, sum->ignored);
    rp_finite_note_loss(train, sum->loss);
    train->round.loss += sum->loss;
    train->round.counted += counted;
    position->step++;
    position->round = 0;
    position->test.done = position->validation.done = false;
    return rp_record_step(rp_train_record(train), step,
                          counted > 0 ? sum->loss / (double)counted : (double)NAN, lr, samples,
                          counted);
}

rp_err rp_train_end_step(rp_train *train, const rp_loss_sum *sum) {
    rp_err err;
    RP_ASSERT(train->segment_start_ns != 0 && train->position->step < train->segment_end);
    RP_TRY(rp_waiting_note_step(train));
    RP_TRY(rp_train_count_step(train, sum));
fail:
    return err;
}

rp_err rp_train_check_ignored(const rp_train *train, uint32_t board, uint64_t samples,
                              uint64_t ignored) {
    const uint64_t targets =
        train->run->loss_options.ignores ? samples * rp_runfile_target_rows(train->run) : 0;
    return ignored <= targets
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s reports %" PRIu64 " targets that do not count, at most %" PRIu64
                         " are possible",
                         train->ring->board[board].name, ignored, targets);
}

rp_err rp_train_on_step_done(rp_train *train, uint32_t board, const rp_message *message) {
    const rp_StepDone *done = &message->frame.body.step_done;
    rp_err err;
    if (done->step >= train->segment_end) {
        return rp_fail(RP_ERR_PEER,
                       "board %s reports step %" PRIu64 ", the segment ends before step %" PRIu64,
                       train->ring->board[board].name, done->step, train->segment_end);
    }
    RP_TRY(rp_train_check_ignored(train, board, done->samples, done->ignored));
    RP_TRY(rp_tally_add_step(&train->tally, board, train->position->step, done));
    rp_ring_note_progress(train->ring);
fail:
    return err;
}

bool rp_train_take_step(rp_train *train, rp_loss_sum *sum) {
    return rp_tally_take_step(&train->tally, train->position->step, sum);
}

void rp_reports_count_skipped(rp_train *train, uint32_t board, uint64_t step) {
    RP_ASSERT(board < train->ring->count);
    rp_board_state *at = &train->ring->board[board];
    at->train.skipped_row = at->train.skipped_row > 0 && step == at->train.skipped_step + 1
                                ? at->train.skipped_row + 1
                                : 1;
    at->train.skipped_step = step;
}

/* Without a flush each stage decides by its own gradients. */
rp_err rp_train_on_skipped(rp_train *train, uint32_t board, const rp_message *message) {
    const uint64_t step = message->frame.body.skipped.step;
    rp_reports_count_skipped(train, board, step);
    rp_ring_note_progress(train->ring);
    return rp_record_event(rp_train_record(train),
                           &(rp_run_event){.kind = RP_EVENT_SKIPPED_UPDATE,
                                           .step = step + 1,
                                           .stage = rp_train_first_stage(train, board),
                                           .advice = rp_finite_storage_advice(train->run)});
}

rp_err rp_train_on_finished(rp_train *train, uint32_t board, const rp_message *message,
                            uint32_t applied) {
    const rp_Finished *report = &message->frame.body.finished;
    rp_board_state *state = &train->ring->board[board];
    const size_t want = applied * sizeof(uint64_t);
    RP_ASSERT(want <= sizeof state->train.applied);
    if (state->train.finished) {
        return rp_fail(RP_ERR_PEER, "board %s has finished its segment twice", state->name);
    }
    if (message->part[0].bytes != want) {
        return rp_fail(RP_ERR_PEER, "board %s did not report the updates that it has applied",
                       state->name);
    }
    if (report->in_flight_bytes > BYTES_MAX) {
        return rp_fail(RP_ERR_PEER,
                       "board %s reports %" PRIu64 " bytes of in-flight state, at most %" PRIu64
                       " are possible",
                       state->name, report->in_flight_bytes, BYTES_MAX);
    }
    state->train.finished = true;
    memcpy(state->train.applied, message->part[0].data, want);
    state->train.in_flight_bytes = report->in_flight_bytes;
    state->train.ledger = (rp_run_ledger){report->ledger, report->ledger_samples};
    return RP_OK;
}
