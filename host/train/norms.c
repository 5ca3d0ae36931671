/* Gradient norms: a step that is clipped or guarded waits until the norms of all boards are
 * summed. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "train/train_own.h"

/* The global gradient norm is summed in the order of the model's parameters, so the decision does
 * not depend on the cut. A gradient that is not finite makes all boards skip the step. */
static rp_err decide_step(rp_train *train) {
    double total = 0;
    rp_err err = RP_OK;
    RP_ASSERT(train->norms.got == train->plan->hold_count);
    for (uint32_t p = 0; p < train->run->model->param_count; p++) {
        const bool is_owner = train->run->model->param[p].owner == p; /* once for a tied tensor */
        total += is_owner ? train->norms.sumsq[p] : 0;
    }
    rp_Frame frame = {
        .which_body = RP_KIND_STEP_DECISION,
        .body.step_decision = {.step = train->norms.step, .scale = 1.0, .skip = !isfinite(total)}};
    if (isfinite(total)) {
        frame.body.step_decision.scale =
            rp_optim_clip_scale(train->run->optim.clip_norm, sqrt(total));
        RP_TRY(rp_record_norm(rp_train_record(train), train->norms.step, sqrt(total)));
    }
    train->norms.got = 0;
    memset(train->norms.of, 0, train->plan->hold_count * sizeof *train->norms.of);
    if (frame.body.step_decision.skip) {
        rp_reports_count_skipped(train, 0, train->norms.step);
        RP_TRY(rp_record_event(rp_train_record(train),
                               &(rp_run_event){.kind = RP_EVENT_SKIPPED_STEP,
                                               .step = train->norms.step + 1,
                                               .advice = rp_finite_storage_advice(train->run)}));
    }
    RP_TRY(rp_ring_post_all(train->ring, &frame));
fail:
    return err;
}

static rp_err check_norms(const rp_train *train, const rp_plan_hold *hold, uint64_t step) {
    const char *name = train->ring->board[hold->node].name;
    if (train->norms.of[hold - train->plan->hold]) {
        return rp_fail(RP_ERR_PEER, "board %s sent its norms of step %" PRIu64 " twice", name,
                       step);
    }
    if (train->norms.got > 0 && train->norms.step != step) {
        return rp_fail(RP_ERR_PEER,
                       "board %s sent norms of step %" PRIu64 ", expected step %" PRIu64, name,
                       step, train->norms.step);
    }
    return RP_OK;
}

/* The first hold of a stage whose norms have arrived; NULL: none. */
static const rp_plan_hold *find_reported(const rp_train *train, uint32_t stage) {
    for (uint32_t h = 0; h < train->plan->hold_count; h++) {
        if (train->plan->hold[h].stage == stage && train->norms.of[h]) {
            return &train->plan->hold[h];
        }
    }
    return NULL;
}

/* Boards that share a stage have equal gradients, bit for bit. Each computes the norm itself, and
 * different devices may round it differently. */
static bool is_near(double a, double b) {
    return (!isfinite(a) && !isfinite(b)) || fabs(a - b) <= 1e-3 * fmax(a, b);
}

/* Stores norms in sumsq. If boards share a stage, those of its first hold count. */
static rp_err take_norms(rp_train *train, const rp_plan_hold *hold, const double *got,
                         size_t count) {
    const rp_model *model = train->run->model;
    const rp_plan_hold *other = find_reported(train, hold->stage);
    const char *name = train->ring->board[hold->node].name;
    const uint32_t end = model->param_first[train->cut.first[hold->stage + 1]];
    size_t used = 0;
    for (uint32_t p = model->param_first[train->cut.first[hold->stage]]; p < end; p++) {
        if (!rp_train_stage_trains(train, hold->stage, p)) {
            continue;
        }
        double own = 0;
        if (used < count) {
            memcpy(&own, &got[used], sizeof own);
        }
        if (used < count && other && !is_near(train->norms.sumsq[p], own)) {
            return rp_fail(
                RP_ERR_FAULT,
                "boards %s and %s share stage %u and have different gradients of '%.80s'",
                train->ring->board[other->node].name, name, hold->stage, model->param[p].name);
        }
        if (used < count && (!other || hold < other)) {
            train->norms.sumsq[p] = own;
        }
        used++;
    }
    return used == count ? RP_OK
                         : rp_fail(RP_ERR_PEER, "board %s sent %zu norms, it has %zu parameters",
                                   name, count, used);
}

rp_err rp_train_on_norms(rp_train *train, uint32_t board, const rp_message *message) {
    const uint64_t step = message->frame.body.norms.step;
    const uint32_t stage = message->frame.body.norms.stage;
    const rp_plan_hold *hold = rp_plan_find_hold(train->plan, board, stage);
    const double *got = message->part_count ? message->part[0].data : NULL;
    const size_t count = message->part_count ? message->part[0].bytes / sizeof(double) : 0;
    rp_err err;
    if (!hold) {
        return rp_fail(RP_ERR_PEER, "board %s sent norms of stage %u, which it does not hold",
                       train->ring->board[board].name, stage);
    }
    RP_TRY(check_norms(train, hold, step));
    rp_ring_note_progress(train->ring);
    RP_TRY(take_norms(train, hold, got, count));
    train->norms.of[hold - train->plan->hold] = true;
    train->norms.step = step;
    RP_ASSERT(train->norms.got < train->plan->hold_count);
    RP_ASSERT(hold->node == board);
    return ++train->norms.got == train->plan->hold_count ? decide_step(train) : RP_OK;
fail:
    return err;
}
