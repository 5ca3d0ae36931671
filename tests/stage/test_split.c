/* A stage whose forward is on one board and its backward on another: stashes go over, weights come
 * back, and whoever is fast or slow, both have the bits of a board that does both (METHODS 12). So
 * which stages are split changes nothing. */
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
    uint32_t backward[STAGES];            /* boards with the backwards of the stages */
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

/* Lines of jobs that say what whole stages have elsewhere, or do not keep. */
static char less[80];

static const char *job_of(const char *schedule) {
    static char job[600];
    (void)snprintf(job, sizeof job,
                   "sample: [2, 6, 6]\nclasses: 3\nseed: 3\nbatch: %d\nmicrobatch: 4\n"
                   "epoch_samples: 44\nsteps: %d\nloss: cross-entropy\n"
                   "optimizer: {kind: adam, lr: 0.05}\nschedule: %s\n%s",
                   BATCH, STEPS, schedule, less);
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
    const rp_stage_piece piece = {.samples = b->op.samples, .part = in};
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
    const rp_stage_piece piece = {.samples = b->op.samples, .part = in};
    void *out[] = {room(r, 4 * FLOATS * sizeof(float))};
    const bool split = b->job.role == RP_ROLE_BACKWARD;
    if (!in[0] || (split && !r->stash[k][n])) {
        return false;
    }
    if (split) {
        expect_ok(rp_stage_write_stash(b->stage, &b->op, 0, r->stash[k][n]));
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

enum { NONE = 0, ALL = (1 << STAGES) - 1 };

/* `split`: bit k: stage k has two boards. */
static void open_ring(ring *r, const char *executor, const char *schedule, uint32_t split) {
    *r = (ring){.boards = 0};
    rp_arena_init(&r->arena, "test", 0);
    for (uint32_t k = 0; k < STAGES; k++) {
        r->backward[k] = r->boards;
        open_half(r, executor, schedule, k, split >> k & 1 ? RP_ROLE_FORWARD : RP_ROLE_BOTH);
    }
    for (uint32_t k = 0; k < STAGES; k++) {
        if (split >> k & 1) {
            r->backward[k] = r->boards;
            open_half(r, executor, schedule, k, RP_ROLE_BACKWARD);
        }
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
        out.backward[k] = r->board[r->backward[k]].stage;
    }
    return out;
}

/* Of runners, by their plan. */
static halves runners_of(const test_ring *r) {
    halves out;
    for (uint32_t k = 0; k < STAGES; k++) {
        out.forward[k] = r->board[k].stage;
        out.backward[k] = r->board[rp_method_backward_node(&r->plan->method, STAGES, k)].stage;
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

/* The real runners over links, one for each node of a plan. */
static bool ring_is_same(const char *executor, const char *schedule, const ring *joint) {
    const bool computes = strcmp(executor, "opencl") == 0;
    const rp_site site = {.device = computes ? test_device_open() : NULL, .strict = true};
    test_ring runners;
    test_ring_open_on(&runners, executor, &site, model, job_of(schedule), "[drop, out]", STAGES);
    test_ring_run(&runners);
    const halves got = runners_of(&runners);
    const bool same = same_tensors(&got, joint);
    test_ring_close(&runners);
    return same;
}

static void both_halves_are_one_stage(const char *executor) {
    static const char released[] = "{kind: pipefb, ahead: [5, 3, 1], weights: pipeoptim, "
                                   "horizon: released}";
    static const char *const schedules[] = {"pipefb",
                                            "{kind: pipefb, ahead: [5, 3, 1]}",
                                            "{kind: pipefb, ahead: 4, publish: 3}",
                                            "{kind: pipefb, weights: current, publish: 2}",
                                            "{kind: pipefb, weights: pipeoptim}",
                                            released};
    ring further;
    open_ring(&further, executor, "{kind: pipefb, ahead: 7}", NONE);
    train(&further, 1);
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        ring joint;
        open_ring(&joint, executor, schedules[i], NONE);
        train(&joint, 1);
        for (uint64_t seed = 1; seed <= 3; seed++) {
            ring split;
            open_ring(&split, executor, schedules[i], ALL);
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

/* The same schedule, with the stages split that `split` names. */
static const char *some_split(const char *options, uint32_t split) {
    static char schedule[256];
    size_t used =
        (size_t)snprintf(schedule, sizeof schedule, "{kind: pipefb, %s, split: [", options);
    for (uint32_t k = 0; k < STAGES; k++) {
        used += (size_t)snprintf(schedule + used, sizeof schedule - used, "%s%s", k ? ", " : "",
                                 split >> k & 1 ? "true" : "false");
    }
    (void)snprintf(schedule + used, sizeof schedule - used, "]}");
    return schedule;
}

/* With the same `ahead` and `publish` it is the same training, whichever stages are split. */
static void any_split_is_the_same(const char *executor) {
    static const char *const options[] = {"ahead: [5, 3, 1]", "ahead: 4, publish: 3",
                                          "ahead: [3, 2, 1], weights: current",
                                          "ahead: [6, 3, 3], weights: pipeoptim"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        ring joint;
        char schedule[256];
        (void)snprintf(schedule, sizeof schedule, "{kind: pipefb, %s}", options[i]);
        open_ring(&joint, executor, schedule, NONE);
        train(&joint, 1);
        for (uint32_t split = NONE; split <= ALL; split++) {
            ring some;
            open_ring(&some, executor, some_split(options[i], split), split);
            train(&some, 1 + split);
            const halves got = halves_of(&some);
            assert_true(same_tensors(&got, &joint));
            close_ring(&some);
            assert_true(ring_is_same(executor, some_split(options[i], split), &joint));
        }
        close_ring(&joint);
    }
}

/* From here on all whole stages are so: `recompute`, `offload`, or both. */
enum { AGAIN = 1, ELSEWHERE = 2 };
static void have_less(uint32_t split, uint32_t how) {
    char list[32] = "[";
    for (uint32_t k = 0; k < STAGES; k++) {
        if (!(split >> k & 1)) {
            (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%u",
                           list[1] ? ", " : "", k);
        }
    }
    (void)snprintf(less, sizeof less, "recompute: %s]\noffload: %s]\n", how & AGAIN ? list : "[",
                   how & ELSEWHERE ? list : "[");
}

/* A stage that is not split keeps its stashes as in any schedule: not, or elsewhere. */
static void whole_stages_may_have_less(const char *executor) {
    static const char *const options[] = {"ahead: [5, 3, 1]", "ahead: 4, publish: 3",
                                          "ahead: [5, 3, 2], weights: current"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        ring joint;
        open_ring(&joint, executor, some_split(options[i], NONE), NONE);
        const size_t plain = rp_stage_layout(joint.board[0].stage)->slot_bytes;
        train(&joint, 1);
        for (uint32_t split = NONE; split < ALL; split += trials(1, 3)) {
            ring some;
            have_less(split, 1 + (split + (uint32_t)i) % 3);
            open_ring(&some, executor, some_split(options[i], split), split);
            const rp_layout *layout = rp_stage_layout(some.board[0].stage);
            assert_true(split & 1 || !some.board[0].job.recompute || layout->slot_bytes < plain);
            assert_true(split & 1 || some.board[0].job.offload == RP_OFFLOAD_NONE ||
                        (layout->slots > 3 && layout->stashes == 3));
            train(&some, 1 + split);
            const halves got = halves_of(&some);
            assert_true(same_tensors(&got, &joint));
            close_ring(&some);
            assert_true(ring_is_same(executor, some_split(options[i], split), &joint));
            less[0] = '\0';
        }
        close_ring(&joint);
    }
}

/* What a split stage is refused, and what no stage of a kind that predicts may. */
static void split_stages_may_not(void **state) {
    static const struct {
        const char *schedule, *less, *message;
    } cases[] = {{"{kind: pipefb, split: [true, false, false]}", "recompute: [0]\n",
                  "stage 0 of schedule pipefb, which is split: its backwards are on another board"},
                 {"pipefb", "recompute: all\n", "stage 0 of schedule pipefb, which is split"},
                 {"{kind: pipefb, split: [false, false, true], weights: pipeoptim}",
                  "recompute: [0]\n", "schedule pipefb: its forwards see predicted weights"},
                 {"{kind: pipefb, split: [false, false, true]}", "recompute: [0, 1]\n", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_job job;
        rp_arena_init(&arena, "test", 0);
        (void)snprintf(less, sizeof less, "%s", cases[i].less);
        const rp_err err =
            test_parse(&arena, model, job_of(cases[i].schedule), "[drop, out]", STAGES, 0, &job);
        less[0] = '\0';
        if (cases[i].message) {
            expect_err(err, RP_ERR_USAGE);
            assert_non_null(strstr(rp_err_message(), cases[i].message));
        } else {
            expect_ok(err);
        }
        rp_arena_finish(&arena);
    }
}

/* Without a number forwards are as far ahead as boards hold stages from theirs on. */
static void default_ahead(void **state) {
    (void)state;
    ring joint, all;
    open_ring(&joint, "digest", "{kind: pipefb, ahead: [4, 3, 1]}", NONE);
    open_ring(&all, "digest", "{kind: pipefb, ahead: [6, 4, 2]}", NONE);
    train(&joint, 1);
    train(&all, 1);
    assert_true(ring_is_same("digest", "{kind: pipefb, split: [false, true, false]}", &joint));
    assert_false(ring_is_same("digest", "{kind: pipefb, split: [false, true, false]}", &all));
    assert_true(ring_is_same("digest", "{kind: pipefb, split: [true, true, true]}", &all));
    close_ring(&all);
    close_ring(&joint);
}

static void floats(void **state) {
    (void)state;
    both_halves_are_one_stage("opencl");
    any_split_is_the_same("opencl");
    whole_stages_may_have_less("opencl");
}

static void digests(void **state) {
    (void)state;
    both_halves_are_one_stage("digest");
    any_split_is_the_same("digest");
    whole_stages_may_have_less("digest");
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
static void pauses_of(const char *schedule) {
    static const uint64_t ends[] = {1, 3, 4, 11, STEPS};
    const rp_site site = {.device = test_device_open()};
    test_ring runners;
    ring joint;
    open_ring(&joint, "opencl", schedule, NONE);
    train(&joint, 1);
    test_ring_open_on(&runners, "opencl", &site, model, job_of(schedule), "[drop, out]", STAGES);
    for (uint32_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        run_to(&runners, i > 0 ? ends[i - 1] : 0, ends[i]);
        for (uint32_t n = 0; n < runners.nodes; n++) {
            assert_int_equal(rp_runner_place_of(runners.node[n].runner).step, ends[i]);
        }
    }
    const halves got = runners_of(&runners);
    assert_true(same_tensors(&got, &joint));
    test_ring_close(&runners);
    close_ring(&joint);
}

static const char every[] = "{kind: pipefb, ahead: [6, 4, 2], publish: 2}";
static const char outer[] = "{kind: pipefb, ahead: [6, 4, 2], publish: 2, split: [true, false, "
                            "true]}";
static const char inner[] = "{kind: pipefb, ahead: [6, 4, 2], publish: 2, split: [false, true, "
                            "false]}";

static void pauses_change_nothing(void **state) {
    (void)state;
    pauses_of(every);
    pauses_of(outer);
    pauses_of(inner);
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

/* Other boards go on from what these have of the microbatches, stashes and weights on their way.
 * `with`: as `less`. */
static void others_go_on_with(const char *executor, const char *schedule, const char *with,
                              uint64_t at) {
    const bool computes = strcmp(executor, "opencl") == 0;
    const rp_site site = {.device = computes ? test_device_open() : NULL, .strict = true};
    test_ring first, second;
    ring joint;
    char later[700];
    open_ring(&joint, executor, schedule, NONE);
    train(&joint, 1);
    (void)snprintf(less, sizeof less, "%s", with);
    test_ring_open_on(&first, executor, &site, model, job_of(schedule), "[drop, out]", STAGES);
    run_to(&first, 0, at);
    (void)snprintf(later, sizeof later, "%sstep_first: %llu\n", job_of(schedule),
                   (unsigned long long)at);
    test_ring_open_on(&second, executor, &site, model, later, "[drop, out]", STAGES);
    less[0] = '\0';
    for (uint32_t n = 0; n < first.nodes; n++) {
        move_board(&joint.arena, &first, &second, n);
    }
    test_ring_close(&first);
    second.label_step = at;
    second.input_step = at + 6 - 1; /* the first stage's forwards are so far */
    run_to(&second, at, STEPS);
    const halves got = runners_of(&second);
    assert_true(same_tensors(&got, &joint));
    test_ring_close(&second);
    close_ring(&joint);
}

static void others_go_on(const char *executor, const char *schedule, uint64_t at) {
    others_go_on_with(executor, schedule, "", at);
}

static void checkpoints_hold_what_is_on_its_way(void **state) {
    (void)state;
    others_go_on("opencl", every, 7);
    others_go_on("digest", every, 1);
    others_go_on("digest", every, 8);
    others_go_on("opencl", outer, 7);
    others_go_on("digest", outer, 8);
    others_go_on("opencl", inner, 8);
    others_go_on("digest", inner, 1);
    others_go_on_with("opencl", inner, "recompute: [0]\noffload: [0, 2]\n", 7);
    others_go_on_with("opencl", outer, "recompute: [1]\noffload: [1]\n", 8);
    others_go_on_with("digest", inner, "recompute: [0, 2]\n", 8);
}

/* METHODS 12.3: a forward needs one copy of the weights and no optimiser; a stash leaves its slot
 * with its forward, and comes into one with its backward. */
static void what_each_half_holds(void **state) {
    (void)state;
    ring r;
    open_ring(&r, "opencl", "pipefb", ALL);
    for (uint32_t k = 0; k < STAGES; k++) {
        const rp_layout *forward = rp_stage_layout(r.board[k].stage);
        const rp_layout *backward = rp_stage_layout(r.board[STAGES + k].stage);
        assert_int_equal(forward->copies.versions, 1);
        assert_int_equal(forward->slots, 1);
        assert_int_equal(forward->state_count, 0);
        assert_int_equal(forward->gradients, 0);
        assert_int_equal(forward->grad.pool_count, 0);
        assert_int_equal(backward->gradients, 1);
        assert_true(forward->total_bytes + 2 * forward->weight_bytes <= backward->total_bytes);
        assert_int_equal(backward->copies.versions, 2 * (STAGES - k));
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
    open_ring(&r, "opencl", "{kind: pipefb, weights: pipeoptim}", ALL);
    for (uint32_t k = 0; k < STAGES; k++) { /* no versions, and one more that is predicted */
        assert_int_equal(rp_stage_layout(r.board[k].stage)->copies.predicted, 0);
        assert_int_equal(rp_stage_layout(r.board[STAGES + k].stage)->copies.versions, 1);
        assert_int_equal(rp_stage_layout(r.board[STAGES + k].stage)->copies.predicted, 1);
    }
    close_ring(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats),
        cmocka_unit_test(digests),
        cmocka_unit_test(split_stages_may_not),
        cmocka_unit_test(default_ahead),
        cmocka_unit_test(pauses_change_nothing),
        cmocka_unit_test(checkpoints_hold_what_is_on_its_way),
        cmocka_unit_test(what_each_half_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
