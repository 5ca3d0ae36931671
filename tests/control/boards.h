/* Boards that follow a script, for tests of the controller: each is the other end of a control link
 * (and of a feed) over inproc, stepped by the test, without sockets, processes and numbers. */
#ifndef RP_TESTS_CONTROL_BOARDS_H
#define RP_TESTS_CONTROL_BOARDS_H

#include "events.h"

#include <math.h>

#include "checkpoint/checkpoint_own.h"
#include "control/controller_own.h"
#include "process.h"

enum { BOARDS = 2, BATCH = 16, TRAIN = 64, TEST = 24, FEED_WINDOW_MAX = 64 };
static const int64_t SLOW_NS = 80 * RP_NS_PER_MS; /* a round over slow links */

typedef struct {
    rp_link *control, *feed;
    char endpoint[64];
    rp_run_identity run;
    rp_wire_range wire;   /* that it speaks */
    uint64_t features;    /* that it has */
    uint64_t step, pause; /* of the segment; step == pause: none is under way */
    uint64_t samples;     /* of a pass: still to be reported */
    bool training, passing, scored;
    rp_run_ledger ledger;
    uint32_t orders[64]; /* by kind: how often it has come */
    uint32_t builds;     /* PROFILEs in which nothing is measured */
    uint32_t warm_s;     /* of its last order; it does not know what that is when it is `old` */
    bool old;
    uint64_t inputs;
    bool feed_is_cut; /* it does not step its feed link: no parcel is taken from it */
    bool away;        /* it does nothing */
    uint64_t busy;    /* with this run, of somebody else; 0: it is not */
    float rate;       /* bytes a second to the other board, as it says; its wire is full then */
    char device;      /* a letter behind the name of its device; 0: none */
    bool has_no_record;
    uint64_t verified;             /* bit by bit: which verify_micro it has been told, below 64 */
    uint64_t recorded, recomputed; /* digests of what it computed first, and of others' records */
    uint64_t plan;                 /* digest, of its assignment */
    /* What it says that it holds when it is asked; 0: nothing. */
    uint64_t held_step, asked;
    bool held_paused, held_is_dirty, held_is_restless;
    bool held_waits;    /* for a decision on that step, which the other board knows */
    uint64_t copy_step; /* that it has copies of, its own and its neighbour's; 0: none */
    uint32_t copy_term;
} test_board;

/* What a board says that contributed to a step: others than its samples. */
typedef enum { SKEW_NONE, SKEW_LOST, SKEW_TWICE, SKEW_SWAPPED } test_skew;

typedef struct {
    rp_arena arena;
    rp_clock clock;
    rp_hub *hub;
    far_process process; /* of the controller and the boards */
    test_board board[BOARDS];
    rp_controller *c;
    int64_t round_ns;             /* of ring_reach(), as long as a trip to a board and back */
    bool deaf;                    /* boards do not step their links */
    bool idle;                    /* boards answer, and do no step */
    bool feed_is_cut;             /* nor those that feed them */
    rp_kind mute;                 /* boards do not answer this kind */
    bool up;                      /* the spawner's boards listen */
    uint64_t machine_bytes;       /* that the spawner has for them; 0: it does not say */
    uint64_t board_bytes[BOARDS]; /* of the machine's memory, as they say */
    uint32_t cores;               /* that they share; 0: each has its own */
    test_skew skew;               /* of board 1, in step `skewed_step` */
    uint64_t skewed_step;
    bool diverged;     /* weights are not finite */
    bool bad_score;    /* nor is the loss of an evaluation */
    uint64_t bad_from; /* nor are those of steps from 1 + this one on; 0: they are */
    rp_err lost;       /* what the spawner says of a child's end */
    uint32_t spawned;  /* boards that run */
    uint32_t restarts; /* asked of the spawner */
    bool hung[BOARDS]; /* as the last of them said */
    rp_controller_options options;
    const char *set[16];
    char run_path[512], out[512];
    rp_controller_fault fault; /* of the run, noted before it is dealt with */
    rp_control_state_id failed;
    char trail[512]; /* names of the states in order */
    const rp_cause *(*find_cause)(void *self, const rp_roster_entry *board, const rp_keypair *keys);
} test_ring;

static inline void test_on_state(void *context, const char *state) {
    test_ring *t = context;
    const size_t used = strlen(t->trail);
    (void)snprintf(t->trail + used, sizeof t->trail - used, "%s%s", used ? " " : "", state);
}

/* ---- the spawner ----------------------------------------------------------------------------- */

static inline rp_err test_start(void *self, const rp_spawn_order *order) {
    test_ring *t = self;
    assert_int_equal(order->count, BOARDS);
    t->spawned = order->count;
    return RP_OK;
}

static inline rp_err test_restart(void *self, const rp_spawn_order *order) {
    test_ring *t = self;
    assert_int_equal(order->count, BOARDS);
    for (uint32_t k = 0; k < BOARDS; k++) {
        t->hung[k] = order->hung[k];
    }
    t->restarts++;
    return RP_OK;
}

static inline rp_err test_spawn_step(void *self, bool *up) {
    const test_ring *t = self;
    *up = t->up;
    return RP_OK;
}

static inline void test_address(void *self, uint32_t board, const char **endpoint,
                                const char **public_text) {
    test_ring *t = self;
    *endpoint = t->board[board].endpoint;
    *public_text = t->process.keys.public_text;
}

static inline int test_fd(void *self) {
    (void)self;
    return -1;
}

static inline rp_err test_reap(void *self, uint32_t *board) {
    test_ring *t = self;
    *board = t->lost == RP_OK ? BOARDS : 1;
    return t->lost == RP_OK ? RP_OK : rp_fail(t->lost, "agent 1 ended");
}

static inline bool test_end(void *self, int64_t now_ns) {
    test_ring *t = self;
    (void)now_ns;
    t->spawned = 0;
    return true;
}

static inline void test_spawn_close(void *self) {
    test_ring *t = self;
    t->spawned = 0;
}

static const rp_spawner_kind test_spawner = {"test",          test_start,   test_restart,
                                             test_spawn_step, test_address, test_fd,
                                             test_reap,       test_end,     test_spawn_close};

/* ---- a board --------------------------------------------------------------------------------- */

static bool test_torture; /* memory may fail boards, too: they then say nothing */

static inline bool board_may(rp_err err) {
    assert_true(err == RP_OK || test_torture);
    return err == RP_OK;
}

static inline void board_send(test_board *b, rp_Frame frame, const rp_part *part) {
    frame.run_id = b->run.id;
    frame.term = b->run.term;
    (void)board_may(rp_link_send(b->control, &frame, part, part != NULL, true, NULL, NULL));
}

/* As in a roster. */
static inline void board_at(uint32_t k, uint32_t port, char *out, size_t bytes) {
    (void)snprintf(out, bytes, "tcp://board%u:%u", k, port);
}

static inline void board_ready(test_ring *t, uint32_t k) {
    char endpoint[80];
    const rp_link_options options = {.name = "feed",
                                     .bind = endpoint,
                                     .window = FEED_WINDOW_MAX,
                                     .send_window = 1,
                                     .part_bytes_max = 1 << 20,
                                     .run = t->board[k].run,
                                     .wire = RP_WIRE_MAX};
    board_at(k, 10 + t->board[k].run.term, endpoint, sizeof endpoint);
    rp_link_close(&t->board[k].feed);
    if (!board_may(rp_link_open(t->process.links, &options, &t->board[k].feed))) {
        return;
    }
    const rp_Frame frame = {
        .which_body = RP_KIND_READY,
        .body.ready = {.feed_port = 10 + t->board[k].run.term,
                       .slots = 4,
                       .weight_copies = 1,
                       /* the board before dials it, in a run */
                       .hop_port_count = k > 0 && (t->board[k].warm_s == 0 || t->board[k].old),
                       .hop_port = {20}}};
    board_send(&t->board[k], frame, NULL);
}

/* As a new process. */
static inline void board_begin(test_ring *t, uint32_t k) {
    test_board *b = &t->board[k];
    const rp_link_options options = {.name = "control",
                                     .bind = b->endpoint,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = 1 << 20};
    rp_link_close(&b->control);
    rp_link_close(&b->feed);
    expect_ok(rp_link_open(t->process.links, &options, &b->control));
    b->run = (rp_run_identity){0};
    b->training = b->passing = b->away = false;
}

/* Of the plan that it has: boards may share a stage. */
static inline const rp_plan_hold *board_hold(const test_ring *t, uint32_t k) {
    return &rp_arrangement_plan(t->c->setup)
                ->hold[rp_arrangement_plan(t->c->setup)->node[k].hold_first];
}

/* Its samples of a step. */
static inline rp_range board_samples(const test_ring *t, uint32_t k, uint64_t step) {
    const rp_sched_shape shape = rp_runfile_sched_shape(t->c->run, 0);
    return rp_sched_share(board_hold(t, k)->share, rp_sched_step_samples(&shape, step));
}

/* Zeros for every tensor of the stage: what a checkpoint must have. `diverged`: a NaN in front. */
static inline void board_save(test_ring *t, uint32_t k, uint32_t stage) {
    static float zeros[1 << 16];
    const rp_Frame end = {.which_body = RP_KIND_TENSORS_END};
    rp_arena lists;
    rp_checkpoint_list list;
    zeros[0] = t->diverged ? (float)NAN : 0;
    rp_arena_init(&lists, "list", 0);
    if (!board_may(rp_checkpoint_make_list(&lists, t->c->run, true, &list))) {
        list.count = 0;
    }
    for (uint32_t i = 0; i < list.count; i++) {
        const uint32_t layer = t->c->run->model->param[list.param[i]].layer;
        const size_t count = list.entry[i].bytes / sizeof *zeros;
        rp_Frame frame = {.which_body = RP_KIND_TENSOR, .body.tensor = {.total = count}};
        rp_Tensor *tensor = &frame.body.tensor;
        if (layer < rp_arrangement_plan_cut(t->c->setup)->first[stage] ||
            layer >= rp_arrangement_plan_cut(t->c->setup)->first[stage + 1]) {
            continue;
        }
        assert_true(count <= sizeof zeros / sizeof *zeros);
        const rp_part part = rp_part_of_array(RP_DTYPE_F32, zeros, count);
        (void)snprintf(tensor->name, sizeof tensor->name, "%s", list.entry[i].name);
        board_send(&t->board[k], frame, &part);
    }
    board_send(&t->board[k], end, NULL);
    rp_arena_finish(&lists);
}

/* Both boards of a ring keep what the other holds. */
static inline void board_tell_copies(test_board *b) {
    for (uint32_t node = 0; node < BOARDS; node++) {
        board_send(b,
                   (rp_Frame){.which_body = RP_KIND_COPIED,
                              .body.copied = {b->copy_term, b->copy_step, node}},
                   NULL);
    }
}

static inline void board_hello(test_ring *t, test_board *b) {
    rp_Frame frame = {.which_body = RP_KIND_HELLO,
                      .body.hello = {.name = "b",
                                     .software = "7.0",
                                     .device = "test device",
                                     .clock_ns = 1,
                                     .wire_min = b->wire.min,
                                     .wire_max = b->wire.max,
                                     .features = b->features,
                                     .memory_bytes = t->board_bytes[b - t->board],
                                     .device_memory = RP_DEVICE_MEMORY_SHARED,
                                     .busy = b->busy != 0}};
    frame.body.hello.device[strlen("test device")] = b->device;
    b->run = (rp_run_identity){.id = b->busy};
    b->training = b->passing = false;
    if (b->copy_step > 0) {
        board_tell_copies(b);
    }
    board_send(b, frame, NULL);
}

static inline void board_profile(test_ring *t, uint32_t k, double layer_s) {
    double seconds[512];
    const uint32_t count = 2 * t->c->run->model->layer_count;
    for (uint32_t i = 0; i < count; i++) {
        seconds[i] = layer_s;
    }
    const rp_part part = rp_part_of_array(RP_DTYPE_F64, seconds, count);
    board_send(&t->board[k], (rp_Frame){.which_body = RP_KIND_PROFILE_DONE}, &part);
}

/* Asked for its record, or with one to compute again. */
static inline void board_record(test_board *b, const rp_Record *asked, bool has_part) {
    static const char bytes[] = "record";
    rp_Frame frame = {
        .which_body = RP_KIND_RECORD,
        .body.record = {.stage = asked->stage, .total = sizeof bytes, .forward = b->recorded}};
    const rp_part part = rp_part_of_bytes(bytes, sizeof bytes);
    if (has_part) {
        frame = (rp_Frame){.which_body = RP_KIND_RECOMPUTED,
                           .body.recomputed = {.stage = asked->stage, .forward = b->recomputed}};
    } else if (b->has_no_record) {
        frame.body.record.total = 0;
    }
    board_send(b, frame, has_part || b->has_no_record ? NULL : &part);
}
static inline void board_held(test_ring *t, uint32_t k, const rp_Frame *asked);

static inline void board_take(test_ring *t, uint32_t k, const rp_Frame *frame) {
    test_board *b = &t->board[k];
    const rp_kind kind = rp_frame_kind(frame);
    b->orders[kind]++;
    if (kind == t->mute) {
        return;
    }
    if (kind == RP_KIND_ASSIGN || kind == RP_KIND_PROFILE) {
        b->run = (rp_run_identity){frame->run_id, frame->term};
        b->plan = kind == RP_KIND_ASSIGN ? rp_plan_digest(rp_arrangement_plan(t->c->setup)) : 0;
        b->warm_s = kind == RP_KIND_ASSIGN ? frame->body.assign.warm_s : frame->body.profile.warm_s;
    }
    switch (kind) {
    case RP_KIND_HELLO:
        if (frame->body.hello.hold > 0) {
            board_held(t, k, frame);
        } else {
            board_hello(t, b);
        }
        break;
    case RP_KIND_PROFILE:
        b->builds += frame->body.profile.build_only;
        board_profile(t, k, frame->body.profile.build_only ? 0 : 1e-3);
        break;
    case RP_KIND_ASSIGN:
        board_ready(t, k);
        break;
    case RP_KIND_START:
        b->step = frame->body.start.step_first;
        b->pause = frame->body.start.pause;
        if (frame->body.start.verify) {
            assert_true(frame->body.start.verify_micro < 64);
            b->verified |= UINT64_C(1) << frame->body.start.verify_micro;
        }
        b->ledger = (rp_run_ledger){.digest = frame->body.start.ledger};
        b->training = true;
        break;
    case RP_KIND_STOP:
        b->pause = frame->body.stop.step;
        break;
    case RP_KIND_EVALUATE:
        b->samples = frame->body.evaluate.samples;
        b->scored = !frame->body.evaluate.renew_statistics;
        b->passing = true;
        break;
    case RP_KIND_SAVE:
        board_save(t, k, board_hold(t, k)->stage);
        break;
    case RP_KIND_COPY:
        b->copy_step = frame->body.copy.step;
        b->copy_term = b->run.term;
        board_tell_copies(b);
        break;
    case RP_KIND_FETCH: /* behind a HELLO it has no run of its own */
        assert_int_equal(frame->body.fetch.step, b->copy_step);
        b->run = (rp_run_identity){frame->run_id, frame->term};
        board_save(t, k, frame->body.fetch.node);
        break;
    case RP_KIND_RECORD:
        board_record(b, &frame->body.record, frame->part_count > 0);
        break;
    case RP_KIND_STEP_DECISION: /* the step is done with it */
        assert_true(!b->held_waits || frame->body.step_decision.scale == 0.5);
        b->held_step += b->held_waits;
        b->held_waits = false;
        break;
    default:
        break;
    }
}

static inline void board_finish(test_ring *t, uint32_t k) {
    test_board *b = &t->board[k];
    uint64_t applied[RP_REPLICAS_MAX];
    const uint32_t replicas = rp_method_replicas(&t->c->run->method, t->c->ring.count, k);
    for (uint32_t r = 0; r < replicas; r++) {
        applied[r] = b->step;
    }
    const rp_part part = rp_part_of_array(RP_DTYPE_U64, applied, replicas);
    b->training = b->passing = false;
    board_send(b,
               (rp_Frame){.which_body = RP_KIND_FINISHED,
                          .body.finished = {.ledger = b->ledger.digest,
                                            .ledger_samples = b->ledger.samples,
                                            .link_count = 1,
                                            .link = {{.peer = 1 - k,
                                                      .rate = b->rate,
                                                      .busy_s = b->rate > 0 ? 1e9 : 0}}}},
               &part);
}

/* The step's samples, those of boards that share the stage among them, but where a test has them
 * otherwise. */
static inline void board_account(test_ring *t, uint32_t k) {
    test_board *b = &t->board[k];
    const rp_sched_shape shape = rp_runfile_sched_shape(t->c->run, 0);
    const uint32_t samples = rp_sched_step_samples(&shape, b->step);
    const test_skew skew = k == 1 && b->step == t->skewed_step ? t->skew : SKEW_NONE;
    const uint32_t missing = skew == SKEW_LOST || skew == SKEW_SWAPPED;
    rp_contributions done = {0};
    rp_contributions_add(&done, b->step, (rp_range){0, samples - missing});
    if (skew == SKEW_TWICE || skew == SKEW_SWAPPED) {
        rp_contributions_add(&done, b->step, (rp_range){3, 1});
    }
    rp_run_ledger_add(&b->ledger, b->step, done);
}

/* As if it had been trained up to there from the beginning. */
static inline void board_held(test_ring *t, uint32_t k, const rp_Frame *asked) {
    test_board *b = &t->board[k];
    const double loss = BATCH;
    uint64_t applied[RP_REPLICAS_MAX] = {b->held_step};
    uint64_t told[TRAIN][2];
    rp_Frame hello = {.which_body = RP_KIND_HELLO, .body.hello = {.busy = b->held_step > 0}};
    b->run = (rp_run_identity){0};
    if (b->held_step > 0) {
        b->run = (rp_run_identity){asked->run_id, asked->term};
    }
    b->training = b->passing = false;
    board_send(b, hello, NULL);
    if (b->held_step == 0) {
        return;
    }
    for (uint64_t i = 0; i < b->held_step; i++) {
        memcpy(&told[i][0], &loss, sizeof loss);
        told[i][1] = BATCH;
    }
    b->ledger = (rp_run_ledger){0};
    for (b->step = 0; b->step < b->held_step; b->step++) {
        board_account(t, k);
    }
    rp_Frame held = {.which_body = RP_KIND_HELD,
                     .run_id = b->run.id,
                     .term = b->run.term,
                     .body.held = {.step = b->held_step,
                                   .plan = b->plan,
                                   .node = k,
                                   .ledger = b->ledger.digest,
                                   .ops = b->held_is_restless ? ++b->asked : b->held_step,
                                   .settled = !b->held_is_restless,
                                   .paused = b->held_paused,
                                   .waits = b->held_waits,
                                   .decided_end = b->held_step,
                                   .scale = 0.5,
                                   .clean = !b->held_is_dirty,
                                   .stopped = asked->body.hello.hold > 1}};
    const rp_part parts[] = {rp_part_of_array(RP_DTYPE_U64, applied, 1),
                             rp_part_of_array(RP_DTYPE_U64, told, 2 * b->held_step)};
    const bool tells = held.body.held.stopped && k + 1 == BOARDS;
    (void)board_may(rp_link_send(b->control, &held, parts, tells ? 2 : 1, true, NULL, NULL));
}

/* One step of a segment a round. */
static inline void board_work(test_ring *t, uint32_t k) {
    test_board *b = &t->board[k];
    if (t->idle) {
        return;
    }
    if ((!b->training && !b->passing) || rp_controller_has_ended(t->c) ||
        !rp_arrangement_plan(t->c->setup)) {
        return; /* the plan goes with the run */
    }
    const bool last = board_hold(t, k)->stage + 1 == rp_arrangement_plan(t->c->setup)->stage_count;
    if (b->training && b->step < b->pause) {
        const uint32_t own = board_samples(t, k, b->step).count;
        const bool bad = t->bad_from > 0 && b->step + 1 >= t->bad_from;
        const rp_Frame done = {.which_body = RP_KIND_STEP_DONE,
                               .body.step_done = {.step = b->step,
                                                  .samples = own,
                                                  .loss_sum = bad ? (double)NAN : own}};
        if (last) {
            board_send(b, done, NULL);
        }
        board_account(t, k);
        b->step++;
    } else if (b->training) {
        board_finish(t, k);
    } else if (b->passing && b->samples > 0) {
        const uint32_t count = b->samples < BATCH ? (uint32_t)b->samples : BATCH;
        const uint32_t own = rp_sched_share(board_hold(t, k)->share, count).count;
        const rp_Frame done = {
            .which_body = RP_KIND_EVALUATE_DONE,
            .body.evaluate_done = {.samples = own,
                                   .loss_sum = t->bad_score ? (double)INFINITY : own}};
        if (last && b->scored) {
            board_send(b, done, NULL);
        }
        b->samples -= count;
    } else if (b->passing) {
        board_finish(t, k);
    }
}

static inline void board_step(test_ring *t, uint32_t k) {
    test_board *b = &t->board[k];
    rp_message *message;
    if (b->away) {
        return;
    }
    (void)board_may(rp_link_step(b->control));
    while (rp_link_recv(b->control, &message) == RP_OK) {
        const rp_Frame frame = message->frame;
        rp_link_release(b->control, &message);
        board_take(t, k, &frame);
    }
    if (b->feed && !t->feed_is_cut && !b->feed_is_cut) {
        (void)board_may(rp_link_step(b->feed));
        while (rp_link_recv(b->feed, &message) == RP_OK) {
            b->inputs += rp_frame_kind(&message->frame) == RP_KIND_INPUT;
            rp_link_release(b->feed, &message);
        }
    }
    board_work(t, k);
}

/* ---- the ring -------------------------------------------------------------------------------- */

/* `layers` hidden ones; with statistics of batches in front. */
static inline void write_model(uint32_t layers) {
    char line[80];
    write_text("model.yaml", "input: data\nlayers:\n"
                             "  - {name: fc, kind: dense, out: 8}\n"
                             "  - {name: bn, kind: batchnorm}\n");
    for (uint32_t i = 0; i < layers; i++) {
        const int used =
            snprintf(line, sizeof line, "  - {name: dense_layer_%u, kind: dense, out: 8}\n", i);
        append("model.yaml", line, (size_t)used);
    }
    static const char tail[] = "  - {name: out, kind: dense, out: classes}\n";
    append("model.yaml", tail, sizeof tail - 1);
}

/* `name`: of the run folder, one a ring. */
static inline void ring_prepare_deep(test_ring *t, const char *name, uint32_t layers) {
    static const char yaml[] = "data: {set: glyphs, train: 64, test: 24, size: 12}\n"
                               "ring: {boards: 2, wait: 0}\n"
                               "train: {epochs: 2, batch: 16, microbatch: 8, seed: 1}\n"
                               "loss: cross-entropy\n"
                               "optimizer: {kind: sgd, lr: 0.1}\n"
                               "schedule: gpipe\n"
                               "cut: auto\n";
    char text[1024];
    *t = (test_ring){.clock = rp_clock_stepped(RP_NS_PER_S), .up = true, .round_ns = RP_NS_PER_MS};
    for (uint32_t k = 0; k < BOARDS; k++) {
        t->board[k].wire = (rp_wire_range){RP_WIRE_MIN, RP_WIRE_MAX};
        t->board[k].features = RP_WIRE_FEATURES;
    }
    rp_arena_init(&t->arena, "test ring", 0);
    write_model(layers);
    (void)snprintf(text, sizeof text, "model: %s/model.yaml\n%s", folder, yaml);
    (void)snprintf(t->run_path, sizeof t->run_path, "%s", write_text("run.yaml", text));
    (void)snprintf(t->out, sizeof t->out, "%s", in_folder(name));
    expect_ok(rp_hub_new(&t->arena, 0, &t->hub));
    open_process(&t->arena, &t->clock, t->hub, false, &t->process);
    for (uint32_t k = 0; k < BOARDS; k++) {
        board_at(k, 1, t->board[k].endpoint, sizeof t->board[k].endpoint);
        board_begin(t, k);
    }
    t->options = (rp_controller_options){
        .purpose = RP_PURPOSE_TRAIN, .run_path = t->run_path, .set = t->set, .out = t->out};
}

static inline void ring_prepare(test_ring *t, const char *name) {
    ring_prepare_deep(t, name, 1);
}

static inline void ring_set(test_ring *t, const char *assignment) {
    t->set[t->options.set_count++] = assignment;
}

/* Boards of a roster, that nobody here starts; `more`: other keys of the ring. */
static inline void ring_set_roster(test_ring *t, const char *more) {
    static char assignment[640];
    char text[400];
    rp_keypair other; /* the hub asks for no keys */
    expect_ok(rp_keys_make(&other));
    (void)snprintf(text, sizeof text,
                   "boards:\n"
                   "  - {name: one, address: 'tcp://board0:1', key: '%s'}\n"
                   "  - {name: two, address: 'tcp://board1:1', key: '%s'}\n",
                   t->process.keys.public_text, other.public_text);
    write_text("lab.yaml", text);
    (void)snprintf(assignment, sizeof assignment, "ring={roster: %s/lab.yaml, %s}", folder, more);
    ring_set(t, assignment);
}

static inline rp_err ring_try_open(test_ring *t) {
    const rp_controller_env env = {.clock = &t->clock,
                                   .links = t->process.links,
                                   .keys = &t->process.keys,
                                   .spawner = {.kind = &test_spawner,
                                               .self = t,
                                               .memory_bytes = t->machine_bytes,
                                               .cores = t->cores},
                                   .feeder = RP_FEEDER_DIRECT,
                                   .find_cause = t->find_cause,
                                   .find_self = t,
                                   .on_state = test_on_state,
                                   .context = t};
    return rp_controller_open(&env, &t->options, &t->c);
}

static inline void ring_open(test_ring *t) {
    expect_ok(ring_try_open(t));
}

static inline void ring_step_controller(test_ring *t) {
    (void)rp_controller_step(t->c, rp_clock_now_ns(&t->clock));
    if (t->c->machine.state == RP_CONTROL_CLOSE || t->c->machine.state == RP_CONTROL_ENDED) {
        t->fault = t->c->machine.fault;
        t->failed = t->c->machine.failed;
    }
}

static inline void ring_step_boards(test_ring *t, int64_t ns) {
    for (uint32_t k = 0; k < BOARDS && !t->deaf; k++) {
        board_step(t, k);
    }
    t->clock.stepped_ns += ns;
}

/* The controller once, then each board once; then `ns` go by. */
static inline void ring_step(test_ring *t, int64_t ns) {
    ring_step_controller(t);
    ring_step_boards(t, ns);
}

/* Until the controller waits in `state`, and no board has heard of it; false: it has ended. */
static inline bool ring_reach(test_ring *t, rp_control_state_id state) {
    for (uint32_t i = 0; i < 2000; i++) {
        ring_step_controller(t);
        if (t->c->machine.state == state || rp_controller_has_ended(t->c)) {
            return t->c->machine.state == state;
        }
        ring_step_boards(t, t->round_ns);
    }
    return false;
}

/* To the end; a second a round, so that time-outs come. */
static inline rp_err ring_end(test_ring *t, uint32_t rounds) {
    for (uint32_t i = 0; i < rounds && !rp_controller_has_ended(t->c); i++) {
        ring_step(t, RP_NS_PER_S);
    }
    assert_true(rp_controller_has_ended(t->c));
    assert_int_equal(t->spawned, 0);
    return rp_controller_close(&t->c);
}

static inline void ring_close(test_ring *t) {
    (void)!rp_controller_close(&t->c);
    close_process(&t->process);
    rp_hub_finish(&t->hub);
    rp_arena_finish(&t->arena);
    if (t->out[0]) {
        (void)remove_tree(t->out);
    }
}

#endif
