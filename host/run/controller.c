#include "run/controller.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "run/checkpoint.h"
#include "run/feed.h"
#include "run/planfile.h"
#include "run/steer.h"

/* A ring in which nothing at all is reported for so long has stopped. */
static const int64_t STALL_NS = 900 * RP_NS_PER_S;

/* What an encrypted link carries on one core: `build/bin/bench_link` gave 195 to 262 MB/s. */
static const double CURVE_BYTES_PER_S = 200e6;

/* Stage 0's op list at a pause, and the inputs that it has asked for by then. */
typedef struct {
    rp_sched_state list;
    rp_feed_limit limit;
} feed_plan;

typedef struct {
    rp_arena arena;
    rp_runfile run;
    rp_ring ring;
    rp_record *record;
    rp_cut cut;
    const char *folder; /* NULL for eval */
    char *checkpoints, *weights, *run_yaml;
    bool has_statistics; /* the model has layers with running statistics */
    rp_position position;

    /* of the segment under way */
    uint64_t segment_end;
    feed_plan fed, feeding; /* at the pause before this segment, and at the one behind it */
    int64_t heard_ns;
    rp_feed *feed;
    double eval_loss;
    uint64_t eval_samples, eval_correct;

    /* norms of the step that waits for its verdict */
    uint32_t norms_got;
    uint64_t norms_step;
    rp_steer steer;              /* horizon: measured */
    double *trust;               /* of the stage that is told */
    const double *layer_seconds; /* of the profile, when there was one */
    double *sumsq;               /* by parameter of the model; 0 for those without a gradient */
} controller;

/* ---- verdicts -------------------------------------------------------------------------------- */

/* The global gradient norm is summed in the order of the model's parameters, so the verdict does
 * not depend on the cut; a non-finite gradient anywhere skips the step everywhere. */
static rp_err give_verdict(controller *c) {
    double total = 0;
    for (uint32_t p = 0; p < c->run.model->param_count; p++) {
        total += c->sumsq[p];
    }
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_VERDICT;
    header.step = c->norms_step;
    header.code = isfinite(total) ? 0u : 1u;
    header.number_count = 1;
    header.number[0] = 1.0;
    if (c->run.optim.clip_norm > 0 && isfinite(total)) {
        /* torch.nn.utils.clip_grad_norm_: min(1, max_norm / (norm + 1e-6)) */
        double scale = c->run.optim.clip_norm / (sqrt(total) + 1e-6);
        header.number[0] = scale < 1.0 ? scale : 1.0;
    }
    c->norms_got = 0;
    if (header.code) {
        rp_err err = rp_record_event(c->record, "skipped", c->norms_step,
                                     "a gradient is not finite: the step is skipped");
        if (err != RP_OK) {
            return err;
        }
    }
    return rp_ring_send_all(&c->ring, &header);
}

static rp_err on_norms(controller *c, uint32_t stage, const rp_message *message) {
    const rp_model *model = c->run.model;
    const double *got = message->part_count ? message->part[0].data : NULL;
    size_t count = message->part_count ? message->part[0].bytes / sizeof(double) : 0;
    if (c->norms_got > 0 && c->norms_step != message->header.step) {
        return rp_fail(RP_ERR_PEER, "board %s is at step %" PRIu64 ", the others at %" PRIu64,
                       c->ring.board[stage].name, message->header.step, c->norms_step);
    }
    size_t used = 0;
    for (uint32_t p = 0; p < model->param_count; p++) {
        bool here = model->param[p].layer >= c->cut.first[stage] &&
                    model->param[p].layer < c->cut.first[stage + 1] &&
                    model->param[p].role == RP_PARAM_TRAINED;
        if (here && used < count) {
            memcpy(&c->sumsq[p], &got[used], sizeof(double));
        }
        used += here;
    }
    if (used != count) {
        return rp_fail(RP_ERR_PEER, "board %s sent %zu norms, it has %zu parameters",
                       c->ring.board[stage].name, count, used);
    }
    c->norms_step = message->header.step;
    return ++c->norms_got == c->ring.count ? give_verdict(c) : RP_OK;
}

/* ---- messages of a run ----------------------------------------------------------------------- */

static rp_err on_step_done(controller *c, const rp_Header *header) {
    rp_sched_shape shape = {.epoch_samples = c->run.data.count[RP_SPLIT_TRAIN],
                            .batch = c->run.batch,
                            .micro = c->run.micro,
                            .stages = 1,
                            .step_end = c->run.steps};
    if (header->step != c->position.step || header->number_count < 1 || header->whole_count < 2 ||
        header->whole[0] != rp_sched_step_samples(&shape, header->step)) {
        return rp_fail(RP_ERR_PEER, "the last board reports step %" PRIu64 ", due is %" PRIu64,
                       header->step, c->position.step);
    }
    double lr = rp_lr_at(&c->run.lr, (double)c->run.optim.lr, header->step, c->run.steps,
                         c->run.epoch_steps);
    c->position.step++;
    c->position.evaluated = false;
    return rp_record_step(c->record, header->step, header->number[0] / (double)header->whole[0], lr,
                          (uint32_t)header->whole[0], header->whole[1]);
}

/* Without a flush every stage judges its own gradients. */
static rp_err on_skipped(controller *c, uint32_t stage, uint64_t step) {
    char text[160];
    (void)snprintf(text, sizeof text,
                   "a gradient is not finite on stage %u: it leaves out this update", stage);
    return rp_record_event(c->record, "skipped", step, text);
}

/* Trained parameters of a stage in model order: index `i` of them, or the model's count. */
static uint32_t trained_param(const controller *c, uint32_t stage, size_t i) {
    const rp_model *model = c->run.model;
    for (uint32_t p = 0; p < model->param_count; p++) {
        const bool here = model->param[p].role == RP_PARAM_TRAINED &&
                          model->param[p].layer >= c->cut.first[stage] &&
                          model->param[p].layer < c->cut.first[stage + 1];
        if (here && i-- == 0) {
            return p;
        }
    }
    return model->param_count;
}

static rp_err send_trust(controller *c, uint32_t stage, uint64_t effect, const double *trust,
                         size_t count) {
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_STEER;
    header.step = effect;
    const rp_part part = {trust, count * sizeof *trust};
    return rp_ring_send(&c->ring, stage, &header, &part, 1);
}

/* A stage's probe changes the trust in its own predictions, from a step on that no board reached.
 */
static rp_err steer(controller *c, uint32_t stage, const rp_Header *header, const double *sums,
                    size_t count) {
    const uint64_t step = header->step;
    const uint64_t effect = header->whole[2];
    double mean = 0;
    char text[96];
    rp_err err;
    for (size_t i = 0; i < count; i++) {
        const uint32_t param = trained_param(c, stage, i);
        if (param == c->run.model->param_count) {
            return rp_fail(RP_ERR_PEER, "board %s probed %zu parameters", c->ring.board[stage].name,
                           count);
        }
        const rp_steer_probe probe = {sums[i], sums[count + i], sums[2 * count + i]};
        c->trust[i] = rp_steer_add(&c->steer, step, effect, param, &probe);
        mean += c->trust[i] / (double)count;
    }
    RP_TRY(send_trust(c, stage, effect, c->trust, count));
    (void)snprintf(text, sizeof text, "stage %u trusts its predictions to %.0f %%", stage,
                   100 * mean);
    RP_TRY(rp_record_note(c->record, "trust", step, text));
fail:
    return err;
}

/* Sums of squares by parameter: of the error, of the stale error, of the prediction. */
static rp_err on_probe(controller *c, uint32_t stage, const rp_message *message) {
    const rp_Header *header = &message->header;
    const size_t bytes = message->part_count == 1 ? message->part[0].bytes : 0;
    const size_t count = bytes / sizeof(double) / RP_PROBE_NORMS;
    const double *sums = count ? message->part[0].data : NULL;
    double error = 0;
    double stale = 0;
    if (count == 0 || bytes != RP_PROBE_NORMS * count * sizeof(double) || header->whole_count < 3) {
        return rp_fail(RP_ERR_PEER, "board %s sent a probe of %zu bytes", c->ring.board[stage].name,
                       bytes);
    }
    for (size_t i = 0; i < count; i++) {
        error += sums[i];
        stale += sums[count + i];
    }
    const rp_record_prediction line = {.step = header->step,
                                       .stage = stage,
                                       .gap = header->whole[0],
                                       .ahead = header->whole[1],
                                       .error = sqrt(error),
                                       .stale_error = sqrt(stale)};
    rp_err err = rp_record_probe(c->record, &line);
    if (err == RP_OK && c->run.method.horizon == RP_HORIZON_MEASURED) {
        err = steer(c, stage, header, sums, count);
    }
    return err;
}

static rp_err on_message(void *context, uint32_t stage, const rp_message *message) {
    controller *c = context;
    const rp_Header *header = &message->header;
    bool last = stage + 1 == c->ring.count;
    bool result = header->kind == RP_KIND_STEP_DONE || header->kind == RP_KIND_EVAL_DONE;
    if (!c->record || (result && !last)) {
        return rp_fail(RP_ERR_PEER, "board %s sent message %d, which is not its to send now",
                       c->ring.board[stage].name, (int)header->kind);
    }
    c->heard_ns = rp_clock_now_ns(&c->ring.clock);
    switch (header->kind) {
    case RP_KIND_STEP_DONE:
        return on_step_done(c, header);
    case RP_KIND_NORMS:
        return on_norms(c, stage, message);
    case RP_KIND_PROBE_DONE:
        return on_probe(c, stage, message);
    case RP_KIND_SKIPPED:
        return on_skipped(c, stage, header->step);
    case RP_KIND_EVAL_DONE:
        if (header->number_count < 1 || header->whole_count < 2) {
            return rp_fail(RP_ERR_PEER, "short evaluation message");
        }
        c->eval_loss += header->number[0];
        c->eval_samples += header->whole[0];
        c->eval_correct += header->whole[1];
        return RP_OK;
    case RP_KIND_TRACE:
        return message->part_count == 1
                   ? rp_record_trace(c->record, stage, c->ring.board[stage].clock_offset_ns,
                                     message->part[0].data, message->part[0].bytes)
                   : RP_OK;
    case RP_KIND_TENSOR:
    case RP_KIND_TENSORS_END:
        return rp_checkpoint_message(&c->ring, stage, message);
    default:
        return rp_fail(RP_ERR_PEER, "board %s sent message %d", c->ring.board[stage].name,
                       (int)header->kind);
    }
}

/* ---- segments -------------------------------------------------------------------------------- */

static bool all_finished(const controller *c) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (!c->ring.board[k].finished) {
            return false;
        }
    }
    return true;
}

static rp_err start_segment(controller *c, rp_Kind kind, uint64_t step, uint64_t whole,
                            uint32_t code) {
    rp_Header header = rp_Header_init_zero;
    header.kind = kind;
    header.step = step;
    header.code = code;
    header.whole_count = 1;
    header.whole[0] = whole;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].finished = false;
    }
    c->heard_ns = rp_clock_now_ns(&c->ring.clock);
    return rp_ring_send_all(&c->ring, &header);
}

/* What stage 0 asks for until it pauses at `pause`: where its list is then, and the last input. */
static feed_plan plan_feed(const controller *c, uint64_t pause) {
    feed_plan plan = c->fed;
    rp_op op;
    while (plan.list.step < pause && c->run.method.kind->next(&plan.list, &op)) {
        if (op.kind == RP_OP_FORWARD) {
            plan.limit = (rp_feed_limit){op.step, op.micro + 1};
        }
    }
    return plan;
}

static void start_list(controller *c, uint64_t step) {
    rp_sched_shape shape = {.stages = c->ring.count,
                            .step_first = step,
                            .step_end = c->run.steps,
                            .epoch_samples = c->run.data.count[RP_SPLIT_TRAIN],
                            .batch = c->run.batch,
                            .micro = c->run.micro};
    rp_method_order(&c->run.method, &shape);
    c->fed = (feed_plan){0};
    rp_sched_start(&c->fed.list, &shape);
}

/* After the first Ctrl-C: the boards end before the first step that nothing was sent of. */
static rp_err stop_early(controller *c) {
    uint64_t stop = rp_feed_untouched(c->feed);
    if (stop >= c->segment_end) {
        return RP_OK;
    }
    c->segment_end = stop;
    c->feeding = plan_feed(c, stop);
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_STOP;
    header.step = stop;
    return rp_ring_send_all(&c->ring, &header);
}

static rp_err pump_segment(controller *c, rp_feed *feed, rp_feed_limit limit) {
    rp_err err;
    RP_TRY(rp_feed_step(feed, limit));
    RP_TRY(rp_ring_pump(&c->ring, rp_feed_eventfd(feed), 50 * RP_NS_PER_MS));
    RP_TRY(rp_feed_step(feed, limit));
    if (rp_clock_now_ns(&c->ring.clock) - c->heard_ns > STALL_NS) {
        return rp_fail(RP_ERR_TIMEOUT, "no board has reported anything for %" PRId64 " s",
                       STALL_NS / RP_NS_PER_S);
    }
fail:
    return err;
}

static rp_err train_segment(controller *c, uint64_t end) {
    rp_err err;
    bool stopping = false;
    int64_t start_ns = rp_clock_now_ns(&c->ring.clock);
    c->segment_end = end;
    c->feeding = plan_feed(c, end);
    RP_TRY(start_segment(c, RP_KIND_START, c->position.step, end, 0));
    while (!all_finished(c) || c->position.step < c->segment_end || !rp_feed_quiet(c->feed)) {
        if (c->ring.interrupts > 0 && !stopping) {
            stopping = true;
            RP_TRY(stop_early(c));
        }
        RP_TRY(pump_segment(c, c->feed, c->feeding.limit));
    }
    c->fed = c->feeding;
fail: /* a segment that was cut off has taken its time, too */
    rp_record_segment(c->record, (double)(rp_clock_now_ns(&c->ring.clock) - start_ns) * 1e-9);
    return err;
}

static rp_err eval_segment(controller *c, rp_split split) {
    uint64_t samples = c->run.data.count[split];
    rp_feed *feed = NULL;
    rp_arena arena;
    rp_arena_init(&arena, "evaluation", 0);
    int64_t start_ns = rp_clock_now_ns(&c->ring.clock);
    uint64_t steps = (samples + c->run.batch - 1) / c->run.batch;
    rp_err err;
    c->eval_loss = 0;
    c->eval_samples = c->eval_correct = 0;
    RP_TRY(rp_feed_open(&arena, &c->ring, split, RP_FEED_EVALUATION, 0, steps, &feed));
    RP_TRY(start_segment(c, RP_KIND_EVAL, 0, samples, 0));
    while (!all_finished(c) || c->eval_samples < samples || !rp_feed_quiet(feed)) {
        if (c->ring.interrupts > 0) {
            err = rp_fail(RP_ERR_INTERRUPTED, "interrupted in an evaluation");
            goto fail;
        }
        RP_TRY(pump_segment(c, feed, (rp_feed_limit){.step = steps}));
    }
    rp_record_segment(c->record, (double)(rp_clock_now_ns(&c->ring.clock) - start_ns) * 1e-9);
    RP_TRY(rp_record_eval(c->record, c->position.step, c->eval_loss / (double)samples, samples,
                          c->eval_correct));
    c->position.evaluated = true;
fail:
    if (err != RP_OK) {
        /* parcels may still borrow batches: the links go first */
        rp_ring_close(&c->ring);
    }
    rp_feed_close(&feed);
    rp_arena_finish(&arena);
    return err;
}

/* A centre has never been trained itself, so the batch statistics are not its own: a pass over some
 * training data renews them. Training reads none of them. */
static rp_err statistics_segment(controller *c) {
    const uint64_t steps =
        c->run.recalibrate < c->run.epoch_steps ? c->run.recalibrate : c->run.epoch_steps;
    const uint64_t most = steps * c->run.batch;
    const uint64_t all = c->run.data.count[RP_SPLIT_TRAIN];
    rp_feed *feed = NULL;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "statistics", 0);
    RP_TRY(rp_feed_open(&arena, &c->ring, RP_SPLIT_TRAIN, RP_FEED_STATISTICS, 0, steps, &feed));
    RP_TRY(start_segment(c, RP_KIND_EVAL, 0, most < all ? most : all, 1));
    while (!all_finished(c) || !rp_feed_quiet(feed)) { /* short, and a checkpoint is to follow */
        RP_TRY(pump_segment(c, feed, (rp_feed_limit){.step = steps}));
    }
fail:
    if (err != RP_OK) {
        rp_ring_close(&c->ring);
    }
    rp_feed_close(&feed);
    rp_arena_finish(&arena);
    return err;
}

static bool statistics_due(const controller *c) {
    return c->run.method.kind->average != RP_AVERAGE_NONE && c->run.recalibrate > 0 &&
           c->has_statistics;
}

/* ---- a training run -------------------------------------------------------------------------- */

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Segments end at epochs' ends and where a checkpoint is due. */
static uint64_t next_boundary(const controller *c) {
    uint64_t step = c->position.step;
    uint64_t end = smaller(c->run.steps, (step / c->run.epoch_steps + 1) * c->run.epoch_steps);
    if (c->run.checkpoint_steps) {
        end = smaller(end, (step / c->run.checkpoint_steps + 1) * c->run.checkpoint_steps);
    }
    return end;
}

static bool eval_due(const controller *c) {
    uint64_t step = c->position.step;
    if (c->run.data.count[RP_SPLIT_TEST] == 0 || c->position.evaluated || step == 0) {
        return false;
    }
    if (step == c->run.steps) {
        return true;
    }
    return step % c->run.epoch_steps == 0 && c->run.eval_epochs &&
           step / c->run.epoch_steps % c->run.eval_epochs == 0;
}

static rp_err save(controller *c) {
    bool over = c->position.step == c->run.steps;
    rp_record_totals(c->record, &c->position);
    const rp_steer *steered = c->run.method.horizon == RP_HORIZON_MEASURED ? &c->steer : NULL;
    return rp_checkpoint_save(&c->ring, &c->cut, steered, &c->position, c->checkpoints,
                              over ? c->weights : NULL);
}

/* When the checkpoint of this step is written: a crash then costs an evaluation, not an epoch. */
static rp_err evaluate(controller *c) {
    rp_err err;
    RP_TRY(eval_segment(c, RP_SPLIT_TEST));
    c->position.eval_loss = c->eval_loss / (double)c->eval_samples;
    c->position.eval_samples = c->eval_samples;
    c->position.eval_correct = c->eval_correct;
    RP_TRY(rp_checkpoint_mark_evaluated(c->checkpoints, &c->position));
fail:
    return err;
}

static rp_err train_segments(controller *c) {
    rp_err err = RP_OK;
    while (c->position.step < c->run.steps && c->ring.interrupts == 0) {
        if (eval_due(c)) {
            RP_TRY(evaluate(c));
        }
        RP_TRY(train_segment(c, next_boundary(c)));
        if (statistics_due(c) && (eval_due(c) || c->position.step == c->run.steps)) {
            RP_TRY(statistics_segment(c));
        }
        RP_TRY(save(c));
    }
    if (c->ring.interrupts > 0) {
        return rp_fail(RP_ERR_INTERRUPTED, "interrupted after step %" PRIu64, c->position.step);
    }
    if (c->position.step == c->run.steps && access(c->weights, F_OK) != 0) {
        RP_TRY(save(c)); /* resumed at its end, and somebody took them away */
    }
    if (eval_due(c)) {
        RP_TRY(evaluate(c));
    }
fail:
    return err;
}

/* ---- the ring comes up ----------------------------------------------------------------------- */

static rp_err measure(controller *c) {
    rp_record_phase(c->record, "measuring every layer, to cut where the stages take equal time");
    return rp_ring_profile(&c->ring, &c->layer_seconds);
}

/* Seconds that a cut in front of `layer` costs a microbatch: activations one way, gradients the
 * other. Infinite where more tensors cross than a parcel has parts. */
static double crossing_s(const controller *c, uint32_t layer) {
    rp_boundary boundary;
    if (rp_cut_boundary_at(c->run.model, layer, &boundary) != RP_OK) {
        return (double)INFINITY;
    }
    double rate = CURVE_BYTES_PER_S;
    double emulated = c->run.link.rate_mbit * 1e6 / 8;
    rate = emulated > 0 && emulated < rate ? emulated : rate;
    return 2 * (double)boundary.sample_bytes * c->run.micro / rate;
}

static rp_err choose_cut(controller *c) {
    double *cost;
    double *crossing; /* infinite where more tensors cross than a parcel has parts */
    rp_err err;
    if (!c->run.cut_auto) {
        c->cut = c->run.cut;
        return RP_OK;
    }
    if (c->position.cut.stage_count == c->run.stages) {
        c->cut = c->position.cut; /* a measurement is never the same twice, a resumed run is */
        return RP_OK;
    }
    if (c->run.stages == 1) {
        c->cut = (rp_cut){.stage_count = 1, .first = {0, c->run.model->layer_count}};
        return RP_OK;
    }
    uint32_t layers = c->run.model->layer_count;
    RP_TRY(measure(c));
    RP_TRY(RP_ARENA_NEW(&c->arena, layers, &cost));
    RP_TRY(RP_ARENA_NEW(&c->arena, layers, &crossing));
    for (uint32_t i = 0; i < layers; i++) {
        cost[i] = c->layer_seconds[2 * (size_t)i] + c->layer_seconds[2 * (size_t)i + 1];
        crossing[i] = i == 0 ? 0 : crossing_s(c, i);
    }
    RP_TRY(rp_cut_balance(&c->arena, cost, crossing, layers, c->run.stages, &c->cut));
fail:
    return err;
}

static rp_err reach_boards(controller *c, const char *keys_folder, int signal_fd) {
    rp_err err;
    rp_record_phase(c->record, c->run.local ? "starting the agents" : "reaching the boards");
    RP_TRY(rp_ring_open(&c->arena, &c->run, c->folder, keys_folder, signal_fd, &c->ring));
    c->ring.on_message = on_message;
    c->ring.context = c;
    RP_TRY(RP_ARENA_NEW(&c->arena, c->run.model->param_count + 1, &c->sumsq));
    RP_TRY(RP_ARENA_NEW(&c->arena, c->run.model->param_count + 1, &c->trust));
    for (uint32_t p = 0; p < c->run.model->param_count; p++) {
        c->has_statistics |= c->run.model->param[p].role == RP_PARAM_STATE;
    }
fail:
    return err;
}

static rp_err bring_up(controller *c, const char *keys_folder, int signal_fd) {
    rp_err err;
    RP_TRY(reach_boards(c, keys_folder, signal_fd));
    RP_TRY(choose_cut(c));
    rp_record_phase(c->record, "building kernels and planning memory on every board");
    RP_TRY(rp_ring_assign(&c->ring, &c->cut));
fail:
    return err;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* mkdir -p */
static rp_err make_folders(const char *path) {
    char part[512];
    if (strlen(path) >= sizeof part) {
        return rp_fail(RP_ERR_USAGE, "%s: path too long", path);
    }
    for (size_t i = 1; i <= strlen(path); i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            return rp_fail(RP_ERR_IO, "%s: %s", part, strerror(errno));
        }
    }
    return RP_OK;
}

static rp_err choose_folder(controller *c, const rp_train_options *options) {
    char *path;
    rp_err err;
    if (options->resume) {
        c->folder = options->resume;
    } else if (options->out) {
        c->folder = options->out;
    } else {
        struct timespec now;
        struct tm tm;
        char stamp[32];
        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &tm);
        (void)strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
        const char *slash = strrchr(c->run.model_name, '/');
        RP_TRY(rp_arena_printf(&c->arena, &path, "runs/%s-%s-%s", stamp,
                               slash ? slash + 1 : c->run.model_name, c->run.method.kind->name));
        c->folder = path;
    }
    RP_TRY(rp_arena_printf(&c->arena, &c->checkpoints, "%s/checkpoint", c->folder));
    RP_TRY(rp_arena_printf(&c->arena, &c->weights, "%s/weights.safetensors", c->folder));
    RP_TRY(rp_arena_printf(&c->arena, &c->run_yaml, "%s/run.yaml", c->folder));
    bool used = access(c->run_yaml, F_OK) == 0;
    if (options->resume && !used) {
        return rp_fail(RP_ERR_USAGE, "%s: no run to resume: there is no run.yaml", c->folder);
    }
    if (!options->resume && used) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: holds another run; choose a new folder, or go on in it "
                       "with --resume %s",
                       c->folder, c->folder);
    }
    RP_TRY(make_folders(c->folder));
fail:
    return err;
}

/* `name` in the run folder, or standard output when there is none. */
static rp_err write_json(controller *c, const char *path, bool profile) {
    FILE *file = path ? fopen(path, "w") : stdout;
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    rp_err err = profile ? rp_profile_write(file, &c->ring, c->layer_seconds)
                         : rp_plan_write(file, &c->ring, &c->cut, c->layer_seconds);
    if ((path ? fclose(file) : fflush(file)) != 0 && err == RP_OK) {
        err = rp_fail(RP_ERR_IO, "%s: %s", path ? path : "standard output", strerror(errno));
    }
    return err;
}

static rp_err write_plan(controller *c) {
    char *path;
    rp_err err = rp_arena_printf(&c->arena, &path, "%s/plan.json", c->folder);
    return err == RP_OK ? write_json(c, path, false) : err;
}

/* The run file with every --set, beside it first and then renamed. */
static rp_err write_resolved(controller *c) {
    char *temporary;
    rp_err err;
    RP_TRY(rp_arena_printf(&c->arena, &temporary, "%s.tmp", c->run_yaml));
    FILE *file = fopen(temporary, "w");
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: %s", temporary, strerror(errno));
    }
    err = rp_config_write(c->run.root, file);
    if ((fclose(file) != 0 || rename(temporary, c->run_yaml) != 0) && err == RP_OK) {
        err = rp_fail(RP_ERR_IO, "%s: %s", c->run_yaml, strerror(errno));
    }
fail:
    return err;
}

/* A finished run that is resumed stays as it is. */
static bool nothing_left(const controller *c) {
    bool evaluated = c->position.evaluated || c->run.data.count[RP_SPLIT_TEST] == 0;
    return c->position.step > 0 && c->position.step == c->run.steps && evaluated &&
           access(c->weights, F_OK) == 0;
}

/* What to start from: a checkpoint, a weights file, or the seed. Checked before anything starts. */
static rp_err find_start(controller *c, const rp_train_options *options, char **path,
                         bool *states) {
    rp_err err = RP_OK;
    *path = NULL;
    *states = false;
    if (options->resume) {
        RP_TRY(rp_checkpoint_find(&c->arena, &c->run, c->checkpoints, path, &c->position));
        *states = *path != NULL;
    }
    if (*states) {
        RP_TRY(rp_checkpoint_check(&c->run, *path, true));
    } else if (c->run.init) {
        RP_TRY(rp_arena_string(&c->arena, c->run.init, path));
        RP_TRY(rp_checkpoint_check(&c->run, *path, false));
    }
fail:
    return err;
}

/* The boards of a resumed run hear again what is in effect and what is to come. */
static rp_err repeat_trust(controller *c) {
    rp_err err = RP_OK;
    for (uint32_t h = 0; h < c->steer.history_count; h++) {
        for (uint32_t k = 0; k < c->ring.count; k++) {
            size_t count = 0;
            uint32_t param;
            while ((param = trained_param(c, k, count)) < c->run.model->param_count) {
                c->trust[count++] = c->steer.history[h].trust[param];
            }
            if (count > 0) {
                RP_TRY(send_trust(c, k, c->steer.history[h].step, c->trust, count));
            }
        }
    }
fail:
    return err;
}

static const char *status_of(rp_err err) {
    return err == RP_OK ? "finished" : err == RP_ERR_INTERRUPTED ? "interrupted" : "failed";
}

static rp_err close_all(controller *c, rp_err result) {
    char note[512];
    (void)snprintf(note, sizeof note, "%s", result == RP_OK ? "" : rp_err_message());
    rp_err err = result;
    bool resumable =
        c->folder && c->record && rp_err_exit_code(result) > 2 && access(c->run_yaml, F_OK) == 0;
    if (c->record) {
        rp_err closed = rp_record_close(&c->record, &c->ring, &c->cut, status_of(result), note);
        if (err == RP_OK && closed != RP_OK) { /* the run itself has been done */
            err = rp_err_exit_code(closed) == 2 ? RP_ERR_FAULT : closed;
        }
    }
    if (resumable) {
        (void)fprintf(stderr, "go on with: ringpipe train %s --resume %s\n", c->run.path,
                      c->folder);
    }
    rp_ring_close(&c->ring);
    rp_feed_close(&c->feed);
    rp_runfile_close(&c->run);
    rp_arena_finish(&c->arena);
    return err;
}

static void report_ready(controller *c) {
    uint64_t device = 0;
    uint64_t slowest_ns = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        device += c->ring.board[k].device_bytes;
        slowest_ns =
            c->ring.board[k].prepare_ns > slowest_ns ? c->ring.board[k].prepare_ns : slowest_ns;
    }
    char text[160];
    (void)snprintf(text, sizeof text,
                   "%u boards are ready: kernels built in %.1f s, %.1f MiB of "
                   "device memory in use",
                   c->ring.count, (double)slowest_ns * 1e-9, (double)device / (1 << 20));
    rp_record_phase(c->record, text);
}

static rp_err run_training(controller *c, const rp_train_options *options, int signal_fd) {
    char *start;
    bool states;
    rp_err err;
    RP_TRY(find_start(c, options, &start, &states));
    c->run.step_first = c->position.step;
    if (nothing_left(c)) {
        (void)fprintf(stderr, "%s: the run is finished; nothing is left to do\n", c->folder);
        return RP_OK;
    }
    RP_TRY(
        rp_record_open(&c->arena, &c->run, c->folder, options->format, &c->position, &c->record));
    RP_TRY(bring_up(c, options->keys_folder, signal_fd));
    report_ready(c);
    RP_TRY(write_resolved(c));
    RP_TRY(write_plan(c));
    if (start) {
        RP_TRY(rp_checkpoint_load(&c->ring, &c->cut, start, states));
    }
    c->position.fill = c->position.step;
    RP_TRY(rp_steer_open(&c->arena, c->run.model->param_count, &c->steer));
    if (states && c->run.method.horizon == RP_HORIZON_MEASURED) {
        RP_TRY(rp_checkpoint_load_steer(start, &c->steer));
        RP_TRY(repeat_trust(c));
    }
    if (states) {
        RP_TRY(rp_checkpoint_load_flight(&c->ring, &c->cut, start, c->position.step,
                                         &c->position.fill));
    }
    RP_TRY(rp_feed_open(&c->arena, &c->ring, RP_SPLIT_TRAIN, RP_FEED_TRAINING, c->position.step,
                        c->run.steps, &c->feed));
    start_list(c, c->position.fill);
    c->fed = plan_feed(c, c->position.step);
    rp_feed_skip(c->feed, c->fed.limit);
    err = train_segments(c);
    if (rp_err_exit_code(err) == 2) {
        err = RP_ERR_FAULT; /* the input was good enough to start: a disk is full, say */
    }
fail:
    return err;
}

/* --dry-run: what would be done. */
static void print_checked(const rp_runfile *run, rp_format format) {
    size_t parameters =
        rp_model_param_count(run->model, RP_PARAM_TRAINED, 0, run->model->layer_count);
    (void)printf(format == RP_FORMAT_JSON
                     ? "{\"version\": 1, \"status\": \"checked\", \"model\": \"%s\", "
                       "\"parameters\": %zu, \"schedule\": \"%s\", \"stages\": %u, "
                       "\"steps\": %" PRIu64 ", \"samples\": %u}\n"
                     : "checked: %s, %zu parameters, schedule %s on %u stages, %" PRIu64
                       " steps over %u samples\n",
                 run->model_name, parameters, run->method.kind->name, run->stages, run->steps,
                 run->data.count[RP_SPLIT_TRAIN]);
}

rp_err rp_train(const rp_train_options *options) {
    controller c = {0};
    rp_arena_init(&c.arena, "run", 0);
    int signal_fd;
    rp_err err;
    RP_TRY(rp_ring_signals(&signal_fd));
    RP_TRY(rp_runfile_read(&c.arena, options->run_path, options->set, options->set_count, &c.run));
    if (options->dry_run) {
        print_checked(&c.run, options->format);
    } else {
        RP_TRY(choose_folder(&c, options));
        err = run_training(&c, options, signal_fd);
    }
fail:
    return close_all(&c, err);
}

/* ---- plan and profile ------------------------------------------------------------------------ */

rp_err rp_plan(const rp_train_options *options, bool profile_only) {
    controller c = {0};
    rp_arena_init(&c.arena, "plan", 0);
    int signal_fd;
    rp_err err;
    RP_TRY(rp_ring_signals(&signal_fd));
    RP_TRY(rp_runfile_read(&c.arena, options->run_path, options->set, options->set_count, &c.run));
    if (profile_only) {
        RP_TRY(reach_boards(&c, options->keys_folder, signal_fd));
        RP_TRY(measure(&c));
    } else {
        RP_TRY(bring_up(&c, options->keys_folder, signal_fd));
    }
    RP_TRY(write_json(&c, options->out, profile_only));
fail:
    return close_all(&c, err);
}

/* ---- evaluation ------------------------------------------------------------------------------ */

rp_err rp_eval(const rp_eval_options *options) {
    controller c = {0};
    rp_arena_init(&c.arena, "eval", 0);
    int signal_fd;
    rp_err err;
    RP_TRY(rp_ring_signals(&signal_fd));
    RP_TRY(rp_runfile_read(&c.arena, options->run_path, options->set, options->set_count, &c.run));
    RP_TRY(rp_checkpoint_check(&c.run, options->weights, false));
    if (c.run.data.count[options->split] == 0) {
        err = rp_fail(RP_ERR_USAGE, "the data set has no such split");
        goto fail;
    }
    RP_TRY(rp_record_open(&c.arena, &c.run, NULL, options->format, &c.position, &c.record));
    RP_TRY(bring_up(&c, options->keys_folder, signal_fd));
    RP_TRY(rp_checkpoint_load(&c.ring, &c.cut, options->weights, false));
    RP_TRY(eval_segment(&c, options->split));
fail:
    return close_all(&c, err);
}
