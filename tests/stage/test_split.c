/* A stage whose forward is on one board and its backward on another: stashes go over, weights come
 * back, and whoever is fast or slow, both have the bits of a board that does both (METHODS 12). */
#include "agent/ring.h"

#include "sched/split.h"

enum { STAGES = 3, STEPS = 20, MICROS = 2, PASSES = STEPS * MICROS, BATCH = 8, FLOATS = 72 };

static const char model[] = "input: [2, 6, 6]\nlayers:\n"
                            "  - {name: conv, kind: conv2d, out: 3, kernel: 3}\n"
                            "  - {name: bn, kind: batchnorm}\n"
                            "  - {name: relu, kind: relu}\n"
                            "  - {name: drop, kind: dropout, p: 0.3}\n"
                            "  - {name: flat, kind: flatten}\n"
                            "  - {name: fc, kind: dense, out: 7}\n"
                            "  - {name: tanh, kind: tanh}\n"
                            "  - {name: out, kind: dense, out: 3}\n";

/* One board. */
typedef struct {
    rp_job job;
    rp_stage *stage;
    rp_sched_state list;
    rp_op op;
    bool over;
} half;

/* What has been sent; NULL: not yet. */
typedef struct {
    rp_arena arena;
    rp_sched_shape shape;
    half board[2 * STAGES];
    uint32_t boards;
    void *activation[STAGES + 1][PASSES]; /* towards the stage */
    void *gradient[STAGES + 1][PASSES];
    void *stash[STAGES][PASSES];
    void *weights[STAGES][STEPS + 1]; /* by updates */
} ring;

static void *room(ring *r, size_t bytes) {
    char *out;
    expect_ok(RP_ARENA_NEW(&r->arena, bytes + 1, &out));
    return out;
}

static void advance(half *b) {
    b->over = !rp_job_next(&b->job, &b->list, &b->op);
}

static const char *job_of(const char *schedule) {
    static char job[512];
    (void)snprintf(job, sizeof job,
                   "sample: [2, 6, 6]\nclasses: 3\nseed: 3\nbatch: %d\nmicrobatch: 4\n"
                   "epoch_samples: 44\nsteps: %d\nloss: cross-entropy\n"
                   "optimizer: {kind: adam, lr: 0.05}\nschedule: %s\n",
                   BATCH, STEPS, schedule);
    return job;
}

static void open_half(ring *r, const char *executor, const char *schedule, uint32_t stage,
                      rp_role role) {
    const bool computes = strcmp(executor, "opencl") == 0;
    const rp_site site = {.device = computes ? test_device_open() : NULL, .strict = true};
    half *b = &r->board[r->boards++];
    expect_ok(
        test_parse(&r->arena, model, job_of(schedule), "[drop, out]", STAGES, stage, &b->job));
    b->job.role = role;
    expect_ok(rp_stage_prepare(&r->arena, rp_executor_find(executor), &site, &b->job, &b->stage));
    r->shape = rp_job_sched_shape(&b->job, 0, STEPS);
    rp_sched_start(&b->list, &r->shape);
    advance(b);
}

static uint32_t pass_of(const rp_op *op) {
    return (uint32_t)op->step * MICROS + op->micro;
}

/* Does the forward wait for weights? Else they are there. */
static bool take_weights(ring *r, half *b) {
    rp_sched_shape shape = r->shape;
    shape.stage = b->job.stage;
    if (b->job.role != RP_ROLE_FORWARD || b->op.micro > 0 ||
        !rp_sched_split_takes(&shape, b->op.step)) {
        return true;
    }
    const void *from = r->weights[b->job.stage][rp_sched_split_version(&shape, b->op.step)];
    if (from) {
        expect_ok(rp_stage_write_newest(b->stage, from));
    }
    return from != NULL;
}

static bool run_forward(ring *r, half *b) {
    const uint32_t k = b->job.stage;
    const uint32_t n = pass_of(&b->op);
    float x[4 * FLOATS];
    const void *in[] = {r->activation[k][n]};
    const rp_stage_piece piece = {b->op.samples, in};
    void *out[] = {room(r, 4 * FLOATS * sizeof(float))};
    const uint64_t sample = b->op.step * BATCH + b->op.samples.first;
    for (size_t i = 0; k == 0 && i < 4 * (size_t)FLOATS; i++) {
        x[i] = test_input(sample + i / FLOATS, i % FLOATS);
        in[0] = x;
    }
    if (!in[0] || !take_weights(r, b)) {
        return false;
    }
    expect_ok(rp_stage_forward(b->stage, &b->op, &piece, 1, out));
    if (b->job.role == RP_ROLE_FORWARD) {
        void *stash = room(r, rp_stage_stash_bytes(b->stage));
        expect_ok(rp_stage_read_stash(b->stage, &b->op, stash));
        r->stash[k][n] = stash;
    }
    expect_ok(rp_stage_drain(b->stage));
    r->activation[k + 1][n] = out[0];
    return true;
}

static bool run_backward(ring *r, half *b) {
    const uint32_t k = b->job.stage;
    const uint32_t n = pass_of(&b->op);
    const uint64_t sample = b->op.step * BATCH + b->op.samples.first;
    int32_t labels[4];
    for (uint32_t i = 0; i < 4; i++) {
        labels[i] = (int32_t)((sample + i) % 3);
    }
    const void *in[] = {k + 1 == STAGES ? labels : r->gradient[k + 1][n]};
    const rp_stage_piece piece = {b->op.samples, in};
    void *out[] = {room(r, 4 * FLOATS * sizeof(float))};
    const bool split = b->job.role == RP_ROLE_BACKWARD;
    if (!in[0] || (split && !r->stash[k][n])) {
        return false;
    }
    if (split) {
        expect_ok(rp_stage_write_stash(b->stage, &b->op, r->stash[k][n]));
    }
    expect_ok(rp_stage_backward(b->stage, &b->op, &piece, 1, out));
    expect_ok(rp_stage_drain(b->stage));
    r->gradient[k][n] = out[0];
    return true;
}

static void run_update(ring *r, half *b) {
    expect_ok(rp_stage_update(b->stage, &b->op, 1, false));
    if (b->job.role == RP_ROLE_BACKWARD) {
        void *newest = room(r, rp_stage_layout(b->stage)->gradient_bytes);
        expect_ok(rp_stage_read_published(b->stage, newest));
        r->weights[b->job.stage][b->op.step + 1] = newest;
    }
    expect_ok(rp_stage_drain(b->stage));
}

/* The boards take turns as chance says, each as far as it gets. */
static void train(ring *r, uint64_t seed) {
    rp_rng rng = rp_rng_named(seed, "test/turns");
    for (uint32_t idle = 0; idle < 10000; idle++) {
        half *b = &r->board[rp_rng_below(&rng, r->boards)];
        bool moved = !b->over;
        if (b->over) {
            continue;
        }
        switch (b->op.kind) {
        case RP_OP_FORWARD:
            moved = run_forward(r, b);
            break;
        case RP_OP_BACKWARD:
            moved = run_backward(r, b);
            break;
        default:
            run_update(r, b);
        }
        if (moved) {
            advance(b);
            idle = 0;
        }
    }
    for (uint32_t i = 0; i < r->boards; i++) {
        assert_true(r->board[i].over);
    }
}

static void open_ring(ring *r, const char *executor, const char *schedule, bool split) {
    *r = (ring){.boards = 0};
    rp_arena_init(&r->arena, "test", 0);
    for (uint32_t k = 0; k < STAGES; k++) {
        open_half(r, executor, schedule, k, split ? RP_ROLE_FORWARD : RP_ROLE_BOTH);
    }
    for (uint32_t k = 0; split && k < STAGES; k++) {
        open_half(r, executor, schedule, k, RP_ROLE_BACKWARD);
    }
}

static void close_ring(ring *r) {
    for (uint32_t i = 0; i < r->boards; i++) {
        rp_stage_destroy(&r->board[i].stage);
    }
    rp_arena_finish(&r->arena);
}

typedef struct {
    rp_stage *forward[STAGES], *backward[STAGES];
} halves;

static halves halves_of(const ring *r) {
    halves out;
    for (uint32_t k = 0; k < STAGES; k++) {
        out.forward[k] = r->board[k].stage;
        out.backward[k] = r->board[r->boards > STAGES ? STAGES + k : k].stage;
    }
    return out;
}

/* Every tensor of the boards that do both: statistics are where forwards are, all else where
 * updates are. */
static bool same_tensors(const halves *got, const ring *joint) {
    float a[1024], b[1024];
    bool same = true;
    for (uint32_t k = 0; k < STAGES; k++) {
        rp_stage *whole = joint->board[k].stage;
        for (uint32_t i = 0; i < rp_stage_tensor_count(whole, true); i++) {
            char name[256], other[256];
            rp_shape shape;
            expect_ok(rp_stage_tensor_at(whole, i, name, sizeof name, &shape));
            rp_stage *has = strstr(name, "running_") ? got->forward[k] : got->backward[k];
            const size_t count = rp_shape_count(&shape);
            expect_ok(rp_stage_tensor_at(has, i, other, sizeof other, &shape));
            assert_string_equal(name, other);
            assert_true(count <= 1024 && count == rp_shape_count(&shape));
            expect_ok(rp_stage_tensor_read(whole, i, 0, count, a));
            expect_ok(rp_stage_tensor_read(has, i, 0, count, b));
            same = same && memcmp(a, b, count * sizeof *a) == 0;
        }
    }
    return same;
}

/* The real runners over links, 2 D nodes of a plan. */
static bool ring_is_same(const char *executor, const char *schedule, const ring *joint) {
    const bool computes = strcmp(executor, "opencl") == 0;
    const rp_site site = {.device = computes ? test_device_open() : NULL, .strict = true};
    test_ring runners;
    halves got;
    test_ring_open_on(&runners, executor, &site, model, job_of(schedule), "[drop, out]", STAGES);
    test_ring_run(&runners);
    for (uint32_t k = 0; k < STAGES; k++) {
        got.forward[k] = runners.board[k].stage;
        got.backward[k] = runners.board[2 * STAGES - 1 - k].stage;
    }
    const bool same = same_tensors(&got, joint);
    test_ring_close(&runners);
    return same;
}

static void both_halves_are_one_stage(const char *executor) {
    static const char released[] = "{kind: pipefb, ahead: [5, 3, 1], weights: pipeoptim, "
                                   "horizon: released}";
    static const char *const schedules[] = {"pipefb", "{kind: pipefb, ahead: [5, 3, 1]}",
                                            "{kind: pipefb, ahead: 4, publish: 3}",
                                            "{kind: pipefb, weights: current, publish: 2}",
                                            "{kind: pipefb, weights: pipeoptim}",
                                            released};
    ring further;
    open_ring(&further, executor, "{kind: pipefb, ahead: 7}", false);
    train(&further, 1);
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        ring joint;
        open_ring(&joint, executor, schedules[i], false);
        train(&joint, 1);
        for (uint64_t seed = 1; seed <= 3; seed++) {
            ring split;
            open_ring(&split, executor, schedules[i], true);
            train(&split, seed);
            const halves got = halves_of(&split);
            assert_true(same_tensors(&got, &joint));
            assert_false(same_tensors(&got, &further));
            close_ring(&split);
        }
        assert_true(ring_is_same(executor, schedules[i], &joint));
        assert_false(ring_is_same(executor, schedules[i], &further));
        close_ring(&joint);
    }
    close_ring(&further);
}

static void floats(void **state) {
    (void)state;
    both_halves_are_one_stage("opencl");
}

static void digests(void **state) {
    (void)state;
    both_halves_are_one_stage("digest");
}

/* To the step, all boards of the ring. */
static void run_to(test_ring *r, uint64_t from, uint64_t end) {
    const int64_t start_ns = rp_clock_now_ns(&r->clock);
    bool active = true;
    for (uint32_t n = 0; n < r->nodes; n++) {
        expect_ok(rp_runner_train(r->node[n].runner, from, end, false));
        r->node[n].active = true;
    }
    while (active) {
        test_ring_feed(r);
        (void)test_ring_step_nodes(r);
        active = false;
        for (uint32_t n = 0; n < r->nodes; n++) {
            active |= r->node[n].active;
        }
        assert_true(rp_clock_now_ns(&r->clock) - start_ns < 50 * RP_NS_PER_S);
    }
}

/* Segments: a pause behind an update leaves forwards, stashes and weights of later steps on their
 * way, and the next segment goes on with them. */
static void pauses_change_nothing(void **state) {
    (void)state;
    static const uint64_t ends[] = {1, 3, 4, 11, STEPS};
    const char *schedule = "{kind: pipefb, ahead: [6, 4, 2], publish: 2}";
    const rp_site site = {.device = test_device_open()};
    test_ring runners;
    halves got;
    ring joint;
    open_ring(&joint, "opencl", schedule, false);
    train(&joint, 1);
    test_ring_open_on(&runners, "opencl", &site, model, job_of(schedule), "[drop, out]", STAGES);
    for (uint32_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        run_to(&runners, i > 0 ? ends[i - 1] : 0, ends[i]);
        for (uint32_t n = 0; n < runners.nodes; n++) {
            assert_int_equal(rp_runner_place_of(runners.node[n].runner).step, ends[i]);
        }
    }
    for (uint32_t k = 0; k < STAGES; k++) {
        got.forward[k] = runners.board[k].stage;
        got.backward[k] = runners.board[2 * STAGES - 1 - k].stage;
    }
    assert_true(same_tensors(&got, &joint));
    test_ring_close(&runners);
    close_ring(&joint);
}

/* What a checkpoint has of a board. */
static void move_board(rp_arena *arena, test_ring *from, test_ring *to, uint32_t n) {
    float values[1024];
    rp_stage *a = from->board[n].stage, *b = to->board[n].stage;
    const size_t count = rp_runner_in_flight_bytes(from->node[n].runner);
    char *bytes;
    for (uint32_t i = 0; i < rp_stage_tensor_count(a, true); i++) {
        char name[256];
        rp_shape shape;
        expect_ok(rp_stage_tensor_at(a, i, name, sizeof name, &shape));
        const size_t floats = rp_shape_count(&shape);
        expect_ok(rp_stage_tensor_read(a, i, 0, floats, values));
        expect_ok(rp_stage_tensor_write(b, name, 0, floats, values));
    }
    rp_stage_set_applied(b, 0, rp_stage_applied(a, 0));
    assert_true(count > 0);
    expect_ok(RP_ARENA_NEW(arena, count, &bytes));
    expect_ok(rp_runner_in_flight_read(from->node[n].runner, 0, count, bytes));
    expect_ok(
        rp_runner_resume(to->node[n].runner, rp_runner_fill_step(from->node[n].runner), count));
    expect_ok(rp_runner_in_flight_write(to->node[n].runner, 0, count / 8 * 4, bytes));
    expect_ok(rp_runner_in_flight_write(to->node[n].runner, count / 8 * 4, count - count / 8 * 4,
                                        bytes + count / 8 * 4));
}

/* Other boards go on from what these have of the microbatches, stashes and weights on their way. */
static void others_go_on(const char *executor, uint64_t at) {
    const char *schedule = "{kind: pipefb, ahead: [6, 4, 2], publish: 2}";
    const bool computes = strcmp(executor, "opencl") == 0;
    const rp_site site = {.device = computes ? test_device_open() : NULL, .strict = true};
    test_ring first, second;
    halves got;
    ring joint;
    char later[600];
    open_ring(&joint, executor, schedule, false);
    train(&joint, 1);
    test_ring_open_on(&first, executor, &site, model, job_of(schedule), "[drop, out]", STAGES);
    run_to(&first, 0, at);
    (void)snprintf(later, sizeof later, "%sstep_first: %llu\n", job_of(schedule),
                   (unsigned long long)at);
    test_ring_open_on(&second, executor, &site, model, later, "[drop, out]", STAGES);
    for (uint32_t n = 0; n < first.nodes; n++) {
        move_board(&joint.arena, &first, &second, n);
    }
    test_ring_close(&first);
    second.label_step = at;
    second.input_step = at + 6 - 1; /* the first stage's forwards are so far */
    run_to(&second, at, STEPS);
    for (uint32_t k = 0; k < STAGES; k++) {
        got.forward[k] = second.board[k].stage;
        got.backward[k] = second.board[2 * STAGES - 1 - k].stage;
    }
    assert_true(same_tensors(&got, &joint));
    test_ring_close(&second);
    close_ring(&joint);
}

static void checkpoints_hold_what_is_on_its_way(void **state) {
    (void)state;
    others_go_on("opencl", 7);
    others_go_on("digest", 1);
    others_go_on("digest", 8);
}

/* METHODS 12.3: a forward needs one copy of the weights and no optimiser; a stash leaves its slot
 * with its forward, and comes into one with its backward. */
static void what_each_half_holds(void **state) {
    (void)state;
    ring r;
    open_ring(&r, "opencl", "pipefb", true);
    for (uint32_t k = 0; k < STAGES; k++) {
        const rp_layout *forward = rp_stage_layout(r.board[k].stage);
        const rp_layout *backward = rp_stage_layout(r.board[STAGES + k].stage);
        assert_int_equal(forward->versions, 1);
        assert_int_equal(forward->slots, 1);
        assert_int_equal(forward->state_count, 0);
        assert_int_equal(backward->versions, 2 * (STAGES - k));
        assert_int_equal(backward->slots, 1);
        assert_int_equal(backward->state_count, 2);
        assert_int_equal(rp_stage_stash_bytes(r.board[k].stage),
                         rp_stage_stash_bytes(r.board[STAGES + k].stage));
    }
    train(&r, 5);
    for (uint32_t k = 0; k < STAGES; k++) {
        assert_int_equal(rp_stage_staleness_max(r.board[STAGES + k].stage), 2 * (STAGES - k) - 1);
    }
    close_ring(&r);
    open_ring(&r, "opencl", "{kind: pipefb, weights: pipeoptim}", true);
    for (uint32_t k = 0; k < STAGES; k++) { /* no versions, and one more that is predicted */
        assert_int_equal(rp_stage_layout(r.board[k].stage)->predicted, 0);
        assert_int_equal(rp_stage_layout(r.board[STAGES + k].stage)->versions, 1);
        assert_int_equal(rp_stage_layout(r.board[STAGES + k].stage)->predicted, 1);
    }
    close_ring(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats),
        cmocka_unit_test(digests),
        cmocka_unit_test(pauses_change_nothing),
        cmocka_unit_test(checkpoints_hold_what_is_on_its_way),
        cmocka_unit_test(what_each_half_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
