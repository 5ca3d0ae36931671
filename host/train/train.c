/* The room: opening and closing, the boards' plan, recoveries. */
#include <math.h>

#include "train/train_own.h"

rp_err rp_train_open(rp_arena *arena, const rp_train_needs *needs, rp_train **out) {
    rp_err err;
    RP_ASSERT(needs->run && needs->ring && needs->position && needs->folder);
    RP_TRY(RP_ARENA_NEW(arena, 1, out));
    **out = (rp_train){.needs = *needs,
                       .run = needs->run,
                       .ring = needs->ring,
                       .position = needs->position,
                       .paths = rp_folder_paths_of(needs->folder)};
fail:
    return err;
}

rp_record *rp_train_record(const rp_train *train) {
    return rp_folder_record(train->needs.folder);
}

void rp_train_close_feeds(rp_train *train) {
    rp_feed_close(&train->feed);
    rp_arena_finish(&train->feed_arena);
    rp_feed_close(&train->pass.feed);
    rp_arena_finish(&train->pass.arena);
    RP_ASSERT(!train->feed && !train->pass.feed);
}

void rp_train_close(rp_train *train) {
    if (!train) {
        return;
    }
    rp_train_close_feeds(train);
    rp_arena_finish(&train->verify.arena);
    train->verify.check = NULL;
    rp_arena_finish(&train->plan_arena);
    train->plan = NULL;
}

rp_err rp_train_open_plan(rp_train *train, const rp_plan *plan) {
    const uint32_t params = train->run->model->param_count;
    rp_err err;
    RP_ASSERT(train->segment_start_ns == 0 && !train->pass.feed);
    rp_arena_finish(&train->plan_arena);
    rp_arena_init(&train->plan_arena, "train", 0);
    train->plan = NULL;
    train->norms = (rp_step_norms){0};
    RP_TRY(RP_ARENA_NEW(&train->plan_arena, plan->hold_count, &train->norms.of));
    RP_TRY(RP_ARENA_NEW(&train->plan_arena, params, &train->norms.sumsq));
    RP_TRY(RP_ARENA_NEW(&train->plan_arena, params, &train->gain));
    RP_TRY(rp_tally_open(&train->plan_arena, plan, &train->tally));
    RP_TRY(rp_plan_cut(&train->plan_arena, plan, train->run->model, &train->cut));
    RP_ASSERT(train->cut.stage_count == plan->stage_count);
    train->plan = plan;
fail:
    return err;
}

rp_err rp_train_open_gains(rp_train *train, rp_arena *arena) {
    return rp_gain_estimator_open(arena, train->run->model->param_count, &train->estimator);
}

void rp_train_go_back(rp_train *train) {
    rp_train_close_feeds(train);
    for (uint32_t k = 0; k < train->ring->count; k++) {
        train->ring->board[k].train.skipped_row = 0;
    }
    train->segment_start_ns = 0;
    train->verify.is_due = train->verify.alone = false;
    train->stopping = false;
    train->round = (rp_round_sums){0};
    train->finite.row = train->norms.got = 0;
    if (train->estimator.params > 0) {
        rp_gain_estimator_reset(&train->estimator);
    }
}

uint64_t rp_train_drained_at(const rp_train *train) {
    const rp_sched_state *list = &train->fed.list;
    return train->run->method.kind->flushed ? train->position->step : list->f_step + (list->f > 0);
}

int64_t rp_train_segment_start_ns(const rp_train *train) {
    return train->segment_start_ns;
}

double rp_train_segment_s(const rp_train *train) {
    return (double)(train->ring->now_ns - train->segment_start_ns) * 1e-9;
}

bool rp_train_has_feed(const rp_train *train) {
    return train->feed != NULL;
}

int rp_train_eventfd(const rp_train *train) {
    const rp_feed *feed = train->pass.feed               ? train->pass.feed
                          : train->segment_start_ns != 0 ? train->feed
                                                         : NULL;
    return feed ? rp_feed_eventfd(feed) : -1;
}

rp_gain_estimator *rp_train_gains(rp_train *train) {
    return train->run->method.horizon == RP_HORIZON_MEASURED ? &train->estimator : NULL;
}

double rp_train_take_round_loss(rp_train *train) {
    const rp_round_sums sums = train->round;
    train->round = (rp_round_sums){0};
    return sums.counted > 0 ? sums.loss / (double)sums.counted : (double)NAN;
}

uint32_t rp_train_first_stage(const rp_train *train, uint32_t board) {
    RP_ASSERT(train->plan && board < train->plan->node_count);
    return train->plan->hold[train->plan->node[board].hold_first].stage;
}

bool rp_train_stage_trains(const rp_train *train, uint32_t stage, uint32_t param) {
    const rp_model_param *p = &train->run->model->param[param];
    RP_ASSERT(stage < train->cut.stage_count);
    return p->role == RP_PARAM_TRAINED && p->layer >= train->cut.first[stage] &&
           p->layer < train->cut.first[stage + 1];
}

/* ---- the record ------------------------------------------------------------------------------ */

rp_record_score rp_train_record_score(const rp_position_score *score) {
    return (rp_record_score){.known = score->done,
                             .loss = score->loss,
                             .samples = score->samples,
                             .counted = score->counted,
                             .correct = score->correct,
                             .mean_iou = score->mean_iou};
}

rp_record_totals rp_train_totals(const rp_train *train) {
    const rp_position *position = train->position;
    return (rp_record_totals){.step = position->step,
                              .samples = position->samples,
                              .epoch_samples = position->epoch_samples,
                              .epoch_counted = position->epoch_counted,
                              .epoch_loss = position->epoch_loss,
                              .seconds = position->seconds,
                              .segment_s = position->segment_s,
                              .eval = rp_train_record_score(&position->test),
                              .validation = rp_train_record_score(&position->validation)};
}

rp_err rp_train_rewind_record(const rp_train *train) {
    const rp_record_totals to = rp_train_totals(train);
    return rp_record_rewind(rp_train_record(train), &to);
}

void rp_train_read_totals(rp_train *train) {
    rp_position *position = train->position;
    rp_record_totals totals = rp_train_totals(train);
    rp_record_read_totals(rp_train_record(train), &totals);
    position->samples = totals.samples;
    position->epoch_samples = totals.epoch_samples;
    position->epoch_counted = totals.epoch_counted;
    position->epoch_loss = totals.epoch_loss;
    position->seconds = totals.seconds;
    position->segment_s = totals.segment_s;
}

rp_err rp_train_record_op(rp_train *train, const rp_sink_op *op) {
    rp_transfers *transfers = rp_folder_transfers(train->needs.folder);
    rp_record *record = rp_train_record(train);
    rp_err err;
    RP_TRY(rp_record_op(record, op));
    RP_TRY(transfers ? rp_transfers_take(transfers, train->plan, train->run->model,
                                         train->run->batch, op, record)
                     : RP_OK);
fail:
    return err;
}
