/* A ring of three boards whose ends of the links the test holds, a plan with a stage for each, and
 * the room `train` on them. Time is stepped; what boards say is handed in by the test. */
#ifndef RP_TESTS_TRAIN_SEGMENT_H
#define RP_TESTS_TRAIN_SEGMENT_H

#include "far_run.h"

#include <math.h>

#include "train/train.h"
#include "train/verify.h"

enum { BOARDS = 3, LAST = BOARDS - 1, BATCH = 16, EPOCH = 4, STEPS = 8, TEST = 24 };

static rp_position position;
static rp_train *train;

/* Both ends of a board's feed. */
static inline void open_feed(uint32_t k) {
    char endpoint[64];
    (void)snprintf(endpoint, sizeof endpoint, "tcp://board%u:2", k);
    rp_link_options options = {.name = "feed",
                               .bind = endpoint,
                               .window = 64,
                               .send_window = 1,
                               .part_bytes_max = 1 << 20,
                               .wire = RP_WIRE_MAX};
    expect_ok(rp_link_open(host.links, &options, &far[k].feed));
    options.bind = NULL;
    options.connect = endpoint;
    options.peer_public = host.keys.public_text;
    options.window = 1;
    options.send_window = 64;
    expect_ok(rp_link_open(host.links, &options, &ring.board[k].feed));
}

/* A board more than run_of.h's, and these assignments. */
static inline void read_run_with(const char *const *set, uint32_t count) {
    const char *all[8] = {"ring.boards=3"};
    assert_true(count < sizeof all / sizeof *all);
    for (uint32_t i = 0; i < count; i++) {
        all[i + 1] = set[i];
    }
    read_gpipe(all, count + 1);
    assert_int_equal(run.steps, STEPS);
}

/* Two stages: boards 0 and 1 share the first one, half of the samples each. */
static inline void make_shared_plan(void) {
    static const uint32_t first[] = {0, 2, 3};
    static const char *const names[] = {"0", "2"};
    static rp_plan_node node[BOARDS];
    static rp_plan_hold hold[BOARDS];
    const rp_cut cut = {.stage_count = 2, .first = first};
    const rp_plan_options options = {.model_name = run.model_name,
                                     .model = run.model,
                                     .cut = &cut,
                                     .method = &run.method,
                                     .boards = names,
                                     .batch = run.batch,
                                     .micro = run.micro,
                                     .epoch_samples = run.data.count[RP_SPLIT_TRAIN],
                                     .steps = run.steps};
    expect_ok(rp_plan_make(&arena, &options, &plan));
    for (uint32_t k = 0; k < BOARDS; k++) {
        node[k] = plan->node[k / 2];
        node[k].name = k == 1 ? "1" : node[k].name;
        node[k].hold_first = k;
        hold[k] = plan->hold[k / 2];
        hold[k].node = k;
        hold[k].share[0] = k == 1 ? 0.5 : 0;
        hold[k].share[1] = k == 0 ? 0.5 : 1;
    }
    plan->node = node;
    plan->hold = hold;
    plan->node_count = plan->hold_count = BOARDS;
    expect_ok(rp_plan_connect(&arena, run.model, &cut, plan));
    expect_ok(rp_plan_measure(plan));
}

/* The boards have their stages and are loaded. */
static inline void open_train_as(const char *const *set, uint32_t count, bool shared) {
    static const uint32_t first[] = {0, 1, 2, 3};
    position = (rp_position){0};
    read_run_with(set, count);
    open_host(false);
    open_ring_of(&run);
    ring.features = RP_WIRE_FEATURES;
    for (uint32_t k = 0; k < BOARDS; k++) {
        open_feed(k);
    }
    connect_ring();
    open_run_folder();
    if (shared) {
        make_shared_plan();
    } else {
        make_plan(&(rp_cut){.stage_count = BOARDS, .first = first}, NULL);
    }
    const rp_train_needs needs = {.run = &run,
                                  .ring = &ring,
                                  .folder = run_folder,
                                  .position = &position,
                                  .feeder = RP_FEEDER_DIRECT};
    expect_ok(rp_train_open(&arena, &needs, &train));
    expect_ok(rp_train_open_plan(train, plan));
    expect_ok(rp_train_open_gains(train, &arena));
    assert_false(rp_train_has_feed(train));
    expect_ok(rp_train_open_feed(train));
    pass_ms(5);
}

static inline void open_train_with(const char *const *set, uint32_t count) {
    open_train_as(set, count, false);
}

static inline void open_train(void) {
    open_train_with(NULL, 0);
}

static inline void close_train(void) {
    rp_ring_disconnect(&ring); /* links borrow batches of the feed */
    rp_train_close(train);
    rp_train_close(train); /* once more does nothing */
    train = NULL;
    close_far_run();
}

/* ---- what boards say ------------------------------------------------------------------------- */

static inline rp_err say_done(uint32_t board, uint64_t step, uint32_t samples, double loss_sum) {
    const rp_message message = {
        .frame = {.which_body = RP_KIND_STEP_DONE,
                  .body.step_done = {.step = step, .samples = samples, .loss_sum = loss_sum}}};
    return rp_train_on_step_done(train, board, &message);
}

/* The last board has done the position's step, and it is counted. */
static inline rp_err do_step(double loss_sum) {
    rp_loss_sum sum;
    expect_ok(say_done(LAST, position.step, BATCH, loss_sum));
    assert_true(rp_train_take_step(train, &sum));
    assert_true(sum.loss == loss_sum || isnan(loss_sum));
    return rp_train_end_step(train, &sum);
}

/* All boards pause, with the plan's ledger from `from` on. */
static inline void finish_boards(uint64_t from) {
    const rp_sched_shape shape = rp_runfile_sched_shape(&run, 0);
    rp_run_ledger due = {.digest = position.ledger.digest};
    rp_run_ledger_add_steps(&due, &shape, from, position.step);
    for (uint32_t k = 0; k < BOARDS; k++) {
        ring.board[k].train.finished = true;
        ring.board[k].train.ledger = due;
    }
}

/* Steps the room and the links until the segment has paused, or for 200 rounds. */
static inline bool reach_pause(bool stop) {
    bool paused = false;
    rp_FaultClass fault_class = RP_FAULT_UNKNOWN;
    for (uint32_t i = 0; i < 200 && !paused; i++) {
        expect_ok(rp_train_step(train, stop, &paused, &fault_class));
        pass_ms(1);
    }
    assert_int_equal(fault_class, RP_FAULT_UNKNOWN);
    return paused;
}

/* A whole segment of training. */
static inline void train_to(uint64_t end) {
    const uint64_t from = position.step;
    expect_ok(rp_train_begin(train, end));
    while (position.step < end) {
        expect_ok(do_step(BATCH));
    }
    finish_boards(from);
    assert_true(reach_pause(false));
    expect_ok(rp_train_end_segment(train));
}

#endif
