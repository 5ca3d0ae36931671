/* Losses and tensors that are not finite are reported with advice. A run with a result that is not
 * finite does not end as finished. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/train_own.h"

const char *rp_finite_storage_advice(const rp_runfile *run) {
    return run->storage == RP_F16
               ? "with train.storage.activations f16, activations above 65504 become infinite; "
                 "bf16 has the range of f32"
               : NULL;
}

/* Suggests only settings that are not in effect. */
static const char *write_advice(const rp_train *train, char *text, size_t bytes) {
    const bool clips = train->run->optim.clip_norm > 0 || train->run->optim.clip_norm_stage > 0;
    const char *storage = rp_finite_storage_advice(train->run);
    (void)snprintf(text, bytes, "try a smaller optimizer.lr%s%s%s%s%s",
                   clips ? "" : ", optimizer.clip_norm",
                   train->run->guard ? "" : ", train.guard: true",
                   train->run->method.kind->flushed ? "" : ", a schedule with less staleness",
                   storage ? "; " : "", storage ? storage : "");
    return text;
}

void rp_finite_note_loss(rp_train *train, double loss_sum) {
    train->finite.row = isfinite(loss_sum) ? 0 : train->finite.row + 1;
    train->finite.any = train->finite.any || isfinite(loss_sum);
}

/* Marks an error as fatal: a retry would not help. */
static rp_err make_fatal(rp_err err, rp_FaultClass *fault_class) {
    *fault_class = RP_FAULT_FATAL;
    return err;
}

/* ---- while it trains ------------------------------------------------------------------------- */

/* A model that has diverged does not recover. */
static rp_err check_loss(const rp_train *train) {
    const uint32_t most = train->run->score.non_finite_steps;
    char advice[RP_FINITE_ADVICE];
    if (most == 0 || train->finite.row < most) {
        return RP_OK;
    }
    return rp_fail(RP_ERR_FAULT,
                   "the loss has not been finite since step %" PRIu64
                   ", for %u steps (train.stop_after.non_finite); %s",
                   train->position->step - train->finite.row + 1, train->finite.row,
                   write_advice(train, advice, sizeof advice));
}

/* If all updates are skipped, nothing is trained, whatever the loss. */
static rp_err check_skipped(const rp_train *train) {
    const uint32_t most = train->run->score.non_finite_steps;
    char advice[RP_FINITE_ADVICE];
    for (uint32_t k = 0; most > 0 && k < train->ring->count; k++) {
        const rp_board_state *board = &train->ring->board[k];
        if (board->train.skipped_row >= most) {
            return rp_fail(RP_ERR_FAULT,
                           "the gradient has not been finite since step %" PRIu64
                           ", and %u updates were skipped (train.stop_after.non_finite); %s",
                           board->train.skipped_step + 2 - board->train.skipped_row,
                           board->train.skipped_row, write_advice(train, advice, sizeof advice));
        }
    }
    return RP_OK;
}

rp_err rp_finite_check_step(const rp_train *train, rp_FaultClass *fault_class) {
    rp_err err;
    RP_TRY(check_loss(train));
    RP_TRY(check_skipped(train));
    return RP_OK;
fail:
    return make_fatal(err, fault_class);
}

/* Reports that this step has no checkpoint. If new stages need one, this is an error. */
static rp_err tell_unsaved(const rp_train *train, uint64_t kept_step, bool is_needed,
                           rp_FaultClass *fault_class) {
    char advice[RP_FINITE_ADVICE];
    char text[RP_WORDS_BYTES];
    const rp_run_event event = {.kind = RP_EVENT_UNSAVED_TENSOR,
                                .step = train->position->step,
                                .tensor = train->finite.tensor,
                                .checkpoint_step = kept_step,
                                .advice = write_advice(train, advice, sizeof advice)};
    return is_needed
               ? make_fatal(rp_fail(RP_ERR_FAULT, "%s", rp_words_write(&event, text, sizeof text)),
                            fault_class)
               : rp_record_event(rp_train_record(train), &event);
}

rp_err rp_train_note_saved(rp_train *train, const char *tensor, uint64_t kept_step, bool is_needed,
                           rp_FaultClass *fault_class) {
    RP_ASSERT(kept_step <= train->position->step);
    (void)snprintf(train->finite.tensor, sizeof train->finite.tensor, "%s", tensor ? tensor : "");
    return tensor ? tell_unsaved(train, kept_step, is_needed, fault_class) : RP_OK;
}

/* ---- at the end ------------------------------------------------------------------------------ */

/* Score of the current model; NULL: none. */
static const rp_position_score *find_score(const rp_train *train, const char **split) {
    const rp_position *position = train->position;
    *split = position->test.done ? "test" : "validation";
    return position->test.done         ? &position->test
           : position->validation.done ? &position->validation
                                       : NULL;
}

/* The last loss alone may come from a bad sample, which the guard skipped; a score says more. */
rp_err rp_train_check_result(const rp_train *train, rp_FaultClass *fault_class) {
    const char *split;
    const rp_position_score *score = find_score(train, &split);
    char advice[RP_FINITE_ADVICE];
    char what[160] = "";
    if (train->finite.tensor[0]) {
        (void)snprintf(what, sizeof what, "'%s' is not finite", train->finite.tensor);
    } else if (score && !isfinite(score->loss)) {
        (void)snprintf(what, sizeof what, "the %s loss is not finite", split);
    } else if (train->finite.row > 0 && (!score || !train->finite.any)) {
        (void)snprintf(what, sizeof what, "the loss has not been finite since step %" PRIu64,
                       train->position->step - train->finite.row + 1);
    }
    if (train->run->score.non_finite_steps == 0 || !what[0]) {
        return RP_OK;
    }
    return make_fatal(rp_fail(RP_ERR_FAULT, "the result is of no use: %s; %s", what,
                              write_advice(train, advice, sizeof advice)),
                      fault_class);
}

rp_err rp_train_check_score(const rp_position_score *score, rp_FaultClass *fault_class) {
    RP_ASSERT(score->done);
    return isfinite(score->loss)
               ? RP_OK
               : make_fatal(rp_fail(RP_ERR_NUMERIC, "the loss is not finite"), fault_class);
}
