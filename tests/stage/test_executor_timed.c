/* The timed executor behind its port: a ring in virtual time takes as long as a replay of the same
 * schedule with the same costs, and parcels have their real sizes. */
#include "agent/ring.h"

#include "sched/replay.h"

static const char model[] =
    "input: [4]\nlayers:\n"
    "  - {name: a, kind: dense, out: 5}\n  - {name: b, kind: dense, out: 7}\n"
    "  - {name: c, kind: dense, out: 5}\n"
    "  - {name: d, kind: dense, out: 3}\n";
static const char *const cuts[] = {"", "[]", "[c]", "[b, c]", "[b, c, d]"};
enum { MICRO = 4, BATCH = 14, STEPS = 3 };

/* Of a microbatch of 2 samples, so those of a full one take twice as long. */
static double seconds[] = {1e-3, 2e-3, 2e-3, 3e-3, 1e-3, 1e-3, 3e-3, 5e-3};

static void open_ring(test_ring *ring, const char *schedule, uint32_t stages, rp_clock *clock) {
    const rp_site site = {.clock = clock, .seconds = seconds, .seconds_samples = 2};
    char job[512];
    (void)snprintf(job, sizeof job,
                   "sample: [4]\nclasses: 3\nseed: 1\nbatch: %d\nmicrobatch: %d\n"
                   "epoch_samples: %d\nsteps: %d\nloss: cross-entropy\n"
                   "optimizer: {kind: sgd, lr: 0.1}\nschedule: %s\n",
                   BATCH, MICRO, BATCH * STEPS, STEPS, schedule);
    test_ring_open_on(ring, "timed", &site, model, job, cuts[stages], stages);
}

/* ---- a ring on one virtual clock --------------------------------------------------------------
 */

/* A stage's list, and the op that it is busy with: its parcel goes on when the mark has passed. */
typedef struct {
    rp_sched_state list;
    rp_op next;
    bool has_next, busy;
    rp_mark mark;
    rp_op op;
} work;

/* Ops whose output the other stages may read, by stage and direction: a bit a microbatch. */
typedef struct {
    uint64_t forward[8], backward[8];
} progress;

static uint64_t bit_of(const rp_op *op) {
    return UINT64_C(1) << (op->step * 4 + op->micro);
}

static bool may_begin(const test_ring *ring, const progress *p, uint32_t k, const rp_op *op) {
    switch (op->kind) {
    case RP_OP_FORWARD:
        return k == 0 || (p->forward[k - 1] & bit_of(op));
    case RP_OP_BACKWARD:
    case RP_OP_BACKWARD_INPUT:
        return k + 1 == ring->count || (p->backward[k + 1] & bit_of(op));
    default:
        return true;
    }
}

static void begin_work(test_ring *ring, uint32_t k, work *w) {
    rp_stage *stage = ring->board[k].stage;
    static float memory[256];
    const void *in[] = {memory};
    void *out[] = {memory};
    const rp_stage_piece piece = {.samples = w->next.samples, .part = in};
    w->op = w->next;
    w->has_next = false;
    w->busy = true;
    expect_ok(w->op.kind == RP_OP_FORWARD  ? rp_stage_forward(stage, &w->op, &piece, 1, out)
              : w->op.kind == RP_OP_UPDATE ? rp_stage_update(stage, &w->op, 1.0f, false)
                                           : rp_stage_backward(stage, &w->op, &piece, 1, out));
    expect_ok(rp_stage_mark(stage, &w->mark));
}

static void end_work(progress *p, uint32_t k, work *w) {
    w->busy = false;
    p->forward[k] |= w->op.kind == RP_OP_FORWARD ? bit_of(&w->op) : 0;
    p->backward[k] |=
        w->op.kind == RP_OP_BACKWARD || w->op.kind == RP_OP_BACKWARD_INPUT ? bit_of(&w->op) : 0;
}

/* Everything that can happen now. */
static void settle_ring(test_ring *ring, progress *p, work *w) {
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t k = 0; k < ring->count; k++) {
            bool done = false;
            int64_t end_ns;
            if (w[k].busy) {
                expect_ok(rp_stage_poll(ring->board[k].stage, &w[k].mark, &done, &end_ns));
            }
            if (done) {
                end_work(p, k, &w[k]);
                moved = true;
            }
            if (!w[k].has_next) {
                w[k].has_next = ring->board[k].job.method.kind->next(&w[k].list, &w[k].next);
            }
            if (!w[k].busy && w[k].has_next && may_begin(ring, p, k, &w[k].next)) {
                begin_work(ring, k, &w[k]);
                moved = true;
            }
        }
    }
}

/* Virtual seconds of the run. */
static double run_ring(test_ring *ring, rp_clock *clock) {
    work w[8];
    progress p;
    const int64_t start_ns = clock->stepped_ns;
    memset(w, 0, sizeof w);
    memset(&p, 0, sizeof p);
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_job *job = &ring->board[k].job;
        const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
        rp_sched_start(&w[k].list, &shape);
    }
    for (;;) {
        int64_t next_ns = INT64_MAX;
        settle_ring(ring, &p, w);
        for (uint32_t k = 0; k < ring->count; k++) {
            next_ns = w[k].busy && w[k].mark.end_ns < next_ns ? w[k].mark.end_ns : next_ns;
        }
        if (next_ns == INT64_MAX) {
            return (double)(clock->stepped_ns - start_ns) * 1e-9;
        }
        assert_true(next_ns > clock->stepped_ns);
        clock->stepped_ns = next_ns;
    }
}

static double replay_ring(const test_ring *ring) {
    double forward[8] = {0}, input[8] = {0}, weight[8] = {0};
    const rp_sched_costs costs = {
        .forward = forward, .backward_input = input, .backward_weight = weight};
    const rp_job *job = &ring->board[0].job;
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
    rp_sched_facts facts;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (uint32_t k = 0; k < ring->count; k++) {
        for (uint32_t i = job->cut.first[k]; i < job->cut.first[k + 1]; i++) {
            forward[k] += 2 * seconds[2 * i];
            input[k] += seconds[2 * i + 1];
            weight[k] += seconds[2 * i + 1];
        }
    }
    expect_ok(rp_sched_replay(&arena, job->method.kind, &shape, &costs, NULL, NULL, &facts));
    rp_arena_finish(&arena);
    return facts.makespan;
}

static void a_ring_takes_as_long_as_its_replay(void **state) {
    (void)state;
    static const char *const schedules[] = {"gpipe",     "1f1b",          "zb-h1",
                                            "pipedream", "pipedream-2bw", "ea-pipe"};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        for (uint32_t stages = 1; stages <= 4; stages++) {
            rp_clock clock = rp_clock_stepped(5);
            test_ring ring;
            open_ring(&ring, schedules[i], stages, &clock);
            expect_close(run_ring(&ring, &clock), replay_ring(&ring), 1e-6, 1e-7);
            test_ring_close(&ring);
        }
    }
}

static void times_of_layers(double factor) {
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        seconds[i] *= factor;
    }
}

/* A board that was slow while it was prepared, as by a fault, is as quick as it is now. */
static void times_are_those_of_now(void **state) {
    (void)state;
    rp_clock clock = rp_clock_stepped(5);
    test_ring ring;
    times_of_layers(64);
    open_ring(&ring, "gpipe", 3, &clock);
    times_of_layers(1.0 / 64);
    expect_close(run_ring(&ring, &clock), replay_ring(&ring), 1e-6, 1e-7);
    test_ring_close(&ring);
}

static void parcels_are_real_and_empty(void **state) {
    (void)state;
    rp_clock clock = rp_clock_stepped(5);
    test_ring ring;
    float values[5] = {1, 1, 1, 1, 1};
    open_ring(&ring, "gpipe", 3, &clock);
    for (uint32_t k = 0; k < 3; k++) {
        const rp_executor_facts facts = rp_stage_facts(ring.board[k].stage);
        const rp_boundary_tensors upper =
            rp_layout_boundary(rp_stage_layout(ring.board[k].stage), true, false);
        const char *zeros = facts.zeros;
        assert_non_null(zeros);
        for (size_t b = 0; b < upper.sample_bytes * MICRO; b++) {
            assert_int_equal(zeros[b], 0);
        }
        assert_int_equal(upper.sample_bytes, k == 0   ? 5 * sizeof(float)
                                             : k == 1 ? 7 * sizeof(float)
                                                      : 0);
        assert_true(facts.used_bytes > 0 && facts.handle == -1);
    }
    expect_ok(rp_stage_tensor_read(ring.board[0].stage, 0, 0, 5, values));
    assert_true(values[0] == 0 && values[4] == 0);
    test_ring_close(&ring);
}

static void a_profile_is_what_was_given(void **state) {
    (void)state;
    rp_clock clock = rp_clock_stepped(5);
    double forward_s, backward_s;
    test_ring ring;
    open_ring(&ring, "gpipe", 2, &clock);
    expect_ok(rp_stage_time(ring.board[1].stage, 10, &forward_s, &backward_s));
    expect_close(forward_s, 2 * (seconds[4] + seconds[6]), 1e-6, 0);
    expect_close(backward_s, 2 * (seconds[5] + seconds[7]), 1e-6, 0);
    test_ring_close(&ring);
}

static void the_real_clock_is_taken_where_none_is_given(void **state) {
    (void)state;
    const rp_clock clock = rp_clock_real();
    const int64_t start_ns = rp_clock_now_ns(&clock);
    test_ring ring;
    rp_mark mark;
    bool done = false;
    int64_t end_ns = 0;
    open_ring(&ring, "gpipe", 1, NULL);
    expect_ok(rp_stage_mark(ring.board[0].stage, &mark));
    expect_ok(rp_stage_poll(ring.board[0].stage, &mark, &done, &end_ns));
    assert_true(done && end_ns >= start_ns && end_ns <= rp_clock_now_ns(&clock));
    test_ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_takes_as_long_as_its_replay),
        cmocka_unit_test(times_are_those_of_now),
        cmocka_unit_test(parcels_are_real_and_empty),
        cmocka_unit_test(a_profile_is_what_was_given),
        cmocka_unit_test(the_real_clock_is_taken_where_none_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
