/* Losses and tensors that are not finite: reported with advice. If the result of a run is not
 * finite, the run does not end as finished. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"

/* What is in force already is not advised. */
static const char *advise(const rp_controller *c, char *text, size_t bytes) {
    const bool clips = c->run.optim.clip_norm > 0 || c->run.optim.clip_norm_stage > 0;
    (void)snprintf(text, bytes, "try a smaller optimizer.lr%s%s%s",
                   clips ? "" : ", optimizer.clip_norm", c->run.guard ? "" : ", train.guard: true",
                   c->run.method.kind->flushed ? "" : ", a schedule with less staleness");
    return text;
}

void rp_finite_note_loss(rp_controller *c, double loss_sum) {
    c->train.finite.row = isfinite(loss_sum) ? 0 : c->train.finite.row + 1;
    c->train.finite.any = c->train.finite.any || isfinite(loss_sum);
}

/* ---- while it trains ------------------------------------------------------------------------- */

/* Nothing better comes of a model that has diverged. */
static rp_err check_loss(rp_controller *c) {
    const uint32_t most = c->run.non_finite_steps;
    char advice[RP_FINITE_ADVICE];
    if (most == 0 || c->train.finite.row < most) {
        return RP_OK;
    }
    const rp_err err = rp_fail(RP_ERR_FAULT,
                               "the loss has not been finite since step %" PRIu64
                               ", for %u steps (train.stop_after.non_finite); %s",
                               c->train.position.step - c->train.finite.row + 1,
                               c->train.finite.row, advise(c, advice, sizeof advice));
    return rp_controller_final(c, err);
}

/* When all updates are left out, the run trains nothing, whatever its loss. */
static rp_err check_skipped(rp_controller *c) {
    const uint32_t most = c->run.non_finite_steps;
    char advice[RP_FINITE_ADVICE];
    for (uint32_t k = 0; most > 0 && k < c->ring.count; k++) {
        const rp_board_state *board = &c->ring.board[k];
        if (board->skipped_row >= most) {
            const rp_err err =
                rp_fail(RP_ERR_FAULT,
                        "the gradient has not been finite since step %" PRIu64
                        ", and %u updates were left out (train.stop_after.non_finite); %s",
                        board->skipped_step + 2 - board->skipped_row, board->skipped_row,
                        advise(c, advice, sizeof advice));
            return rp_controller_final(c, err);
        }
    }
    return RP_OK;
}

rp_err rp_finite_check_step(rp_controller *c) {
    const rp_err err = check_loss(c);
    return err == RP_OK ? check_skipped(c) : err;
}

/* There is no checkpoint of this step. New stages could not be filled from it, either. */
static rp_err tell_unsaved(rp_controller *c) {
    char advice[RP_FINITE_ADVICE];
    char from[32] = "the start";
    char text[240]; /* a line of the progress view holds it */
    if (c->keep.save.kept_step > 0) {
        (void)snprintf(from, sizeof from, "step %" PRIu64, c->keep.save.kept_step);
    }
    (void)snprintf(text, sizeof text,
                   "'%s' is not finite, so no checkpoint is saved: --resume goes on from %s; %s",
                   c->train.finite.tensor, from, advise(c, advice, sizeof advice));
    if (c->setup.follow.phase != RP_FOLLOW_NONE) {
        return rp_controller_final(c, rp_fail(RP_ERR_FAULT, "%s", text));
    }
    return rp_record_event(rp_folder_record(c->folder), "unsaved", c->train.position.step, text);
}

rp_err rp_finite_note_saved(rp_controller *c, const char *tensor) {
    (void)snprintf(c->train.finite.tensor, sizeof c->train.finite.tensor, "%s",
                   tensor ? tensor : "");
    return tensor ? tell_unsaved(c) : RP_OK;
}

/* ---- at the end ------------------------------------------------------------------------------ */

/* Score of the current model; NULL: it has not been scored. */
static const rp_position_score *find_score(const rp_controller *c, const char **split) {
    const rp_position *position = &c->train.position;
    *split = position->test.done ? "test" : "validation";
    return position->test.done         ? &position->test
           : position->validation.done ? &position->validation
                                       : NULL;
}

/* The last step alone may have had a bad sample, which the guard left out; a score says more. */
rp_err rp_finite_check_end(rp_controller *c) {
    const char *split;
    const rp_position_score *score = find_score(c, &split);
    char advice[RP_FINITE_ADVICE];
    char what[160] = "";
    if (c->train.finite.tensor[0]) {
        (void)snprintf(what, sizeof what, "'%s' is not finite", c->train.finite.tensor);
    } else if (score && !isfinite(score->loss)) {
        (void)snprintf(what, sizeof what, "the %s loss is not finite", split);
    } else if (c->train.finite.row > 0 && (!score || !c->train.finite.any)) {
        (void)snprintf(what, sizeof what, "the loss has not been finite since step %" PRIu64,
                       c->train.position.step - c->train.finite.row + 1);
    }
    if (c->run.non_finite_steps == 0 || !what[0]) {
        return RP_OK;
    }
    return rp_controller_final(c, rp_fail(RP_ERR_FAULT, "the result is of no use: %s; %s", what,
                                          advise(c, advice, sizeof advice)));
}

rp_err rp_finite_check_score(rp_controller *c, const rp_position_score *score) {
    return isfinite(score->loss)
               ? RP_OK
               : rp_controller_final(c, rp_fail(RP_ERR_NUMERIC, "the loss is not finite"));
}
