/* A ring of three boards whose ends of the links the test holds, a plan with a stage for each, and
 * the room `train` on them. Time is stepped; what boards say is handed in by the test. */
#ifndef RP_TESTS_TRAIN_SEGMENT_H
#define RP_TESTS_TRAIN_SEGMENT_H

#include "folder.h"

#include <ftw.h>
#include <math.h>

#include "planning/planfile.h"
#include "run_of.h"
#include "train/train.h"
#include "train/verify.h"
#include "transport/inproc.h"

enum { BOARDS = 3, LAST = BOARDS - 1, BATCH = 16, EPOCH = 4, STEPS = 8, TEST = 24 };

/* The end of a board: the orders that it has got. */
typedef struct {
    rp_link *control, *feed;
    uint32_t orders[64]; /* by kind */
    rp_Frame last[64];   /* the newest, by kind */
    double part[8];      /* floats of the newest message that had a part */
    uint64_t inputs, labels;
    bool is_cut; /* it does not step its feed link */
} far_board;

static rp_clock test_clock;
static rp_keypair keys;
static rp_hub *hub;
static rp_transport *transport;
static rp_links *links;
static rp_runfile run;
static rp_ring ring;
static far_board far[BOARDS];
static rp_folder *run_folder;
static rp_position position;
static rp_plan *plan;
static rp_train *train;

static inline void take_orders(far_board *board) {
    rp_message *message;
    while (rp_link_recv(board->control, &message) == RP_OK) {
        const rp_kind kind = rp_frame_kind(&message->frame);
        assert_true(kind < sizeof board->orders / sizeof *board->orders);
        board->orders[kind]++;
        board->last[kind] = message->frame;
        if (message->part_count > 0) {
            const size_t bytes = message->part[0].bytes;
            memcpy(board->part, message->part[0].data,
                   bytes < sizeof board->part ? bytes : sizeof board->part);
        }
        rp_link_release(board->control, &message);
    }
}

static inline void take_parcels(far_board *board) {
    rp_message *message;
    while (rp_link_recv(board->feed, &message) == RP_OK) {
        board->inputs += rp_frame_kind(&message->frame) == RP_KIND_INPUT;
        board->labels += rp_frame_kind(&message->frame) == RP_KIND_LABEL;
        rp_link_release(board->feed, &message);
    }
}

/* Rounds of a millisecond, in which links move; the room does nothing. */
static inline void pass_ms(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        rp_ring_begin_round(&ring, rp_clock_now_ns(&test_clock));
        for (uint32_t k = 0; k < BOARDS; k++) {
            expect_ok(rp_ring_step(&ring, k));
            expect_ok(rp_link_step(far[k].control));
            take_orders(&far[k]);
            if (!far[k].is_cut) {
                expect_ok(rp_link_step(far[k].feed));
                take_parcels(&far[k]);
            }
        }
        test_clock.stepped_ns += RP_NS_PER_MS;
    }
    rp_ring_begin_round(&ring, rp_clock_now_ns(&test_clock));
}

static inline void open_board(uint32_t k) {
    char endpoint[64];
    (void)snprintf(endpoint, sizeof endpoint, "tcp://board%u:1", k);
    rp_link_options options = {.name = "control",
                               .bind = endpoint,
                               .window = 1,
                               .send_window = 1,
                               .part_bytes_max = 1 << 20};
    expect_ok(rp_link_open(links, &options, &far[k].control));
    rp_ring_set_address(&ring, k, endpoint, keys.public_text);
    (void)snprintf(endpoint, sizeof endpoint, "tcp://board%u:2", k);
    options = (rp_link_options){.name = "feed",
                                .bind = endpoint,
                                .window = 64,
                                .send_window = 1,
                                .part_bytes_max = 1 << 20,
                                .wire = RP_WIRE_MAX};
    expect_ok(rp_link_open(links, &options, &far[k].feed));
    options.bind = NULL;
    options.connect = endpoint;
    options.peer_public = keys.public_text;
    options.window = 1;
    options.send_window = 64;
    expect_ok(rp_link_open(links, &options, &ring.board[k].feed));
}

static inline void open_links(void) {
    test_clock = rp_clock_stepped(RP_NS_PER_S);
    expect_ok(rp_keys_make(&keys));
    expect_ok(rp_hub_new(&arena, 0, &hub));
    const rp_transport_options inproc = {.clock = &test_clock, .hub = hub};
    expect_ok(rp_transport_start(&arena, "inproc", &inproc, &transport));
    const rp_links_options options = {.clock = &test_clock, .transport = transport};
    expect_ok(rp_links_open(&arena, &options, &links));
}

static inline void open_folder(void) {
    const rp_folder_choice choice = {
        .out = in_folder("out"), .model = "m", .schedule = "gpipe", .temporary = true};
    const rp_record_totals start = {0};
    rp_sched_shape shape = rp_runfile_sched_shape(&run, 0);
    shape.stages = BOARDS;
    expect_ok(rp_folder_open(&arena, &run_folder));
    expect_ok(rp_folder_choose(run_folder, &choice));
    const rp_record_run record = {.model = "m",
                                  .schedule = "gpipe",
                                  .shape = shape,
                                  .classes = true,
                                  .folder = rp_folder_paths_of(run_folder)->folder,
                                  .clock = &test_clock};
    expect_ok(rp_folder_open_record(run_folder, &record, &start));
}

/* A run file like run_of.h's, with a board more and these assignments. */
static inline void read_run_with(const char *const *set, uint32_t count) {
    const char *all[8] = {"ring.boards=3"};
    char path[512];
    assert_true(count < sizeof all / sizeof *all);
    for (uint32_t i = 0; i < count; i++) {
        all[i + 1] = set[i];
    }
    read_run(&run, "schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\n");
    rp_runfile_close(&run);
    (void)snprintf(path, sizeof path, "%s", in_folder("run.yaml"));
    expect_ok(rp_runfile_read(&arena, path, all, count + 1, &run));
    assert_int_equal(run.steps, STEPS);
}

static inline void make_plan(void) {
    static const uint32_t first[] = {0, 1, 2, 3};
    static const char *const names[] = {"0", "1", "2"};
    const rp_cut cut = {.stage_count = BOARDS, .first = first};
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names};
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
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
    memset(far, 0, sizeof far);
    position = (rp_position){0};
    read_run_with(set, count);
    open_links();
    ring = (rp_ring){0};
    expect_ok(rp_ring_open(&arena, &(rp_ring_needs){.run = &run, .clock = &test_clock}, &ring));
    ring.features = RP_WIRE_FEATURES;
    for (uint32_t k = 0; k < BOARDS; k++) {
        open_board(k);
    }
    expect_ok(rp_ring_connect(&ring, links, false));
    open_folder();
    if (shared) {
        make_shared_plan();
    } else {
        make_plan();
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

static inline int remove_entry(const char *path, const struct stat *status, int type,
                               struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void close_train(void) {
    rp_ring_disconnect(&ring);
    for (uint32_t k = 0; k < BOARDS; k++) {
        rp_link_close(&far[k].control);
        rp_link_close(&far[k].feed);
    }
    rp_train_close(train);
    rp_train_close(train); /* once more does nothing */
    train = NULL;
    expect_ok(
        rp_folder_close_record(run_folder, &(rp_record_end){.status = "finished", .note = ""}));
    rp_folder_leave(run_folder);
    rp_runfile_close(&run);
    rp_links_close(&links);
    rp_transport_finish(&transport);
    rp_hub_finish(&hub);
    (void)nftw(in_folder("out"), remove_entry, 8, FTW_DEPTH | FTW_PHYS);
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
    double sum;
    expect_ok(say_done(LAST, position.step, BATCH, loss_sum));
    assert_true(rp_train_take_step(train, &sum));
    assert_true(sum == loss_sum || isnan(loss_sum));
    return rp_train_end_step(train, sum);
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

static inline bool is_logged(const char *text) {
    return strstr(slurp("out/log.jsonl", NULL), text) != NULL;
}

#endif
