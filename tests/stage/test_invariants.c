/* What must hold of the methods whatever the numbers are (METHODS 17), on rings of 1 to 8 stages in
 * one process, with every optimiser and microbatches of 5, 5 and 2 samples. */
#include "agent/ring.h"

static const char model[] =
    "input: [4]\nlayers:\n"
    "  - {name: a, kind: dense, out: 5}\n  - {name: a1, kind: tanh}\n"
    "  - {name: b, kind: dense, out: 5}\n  - {name: b1, kind: tanh}\n"
    "  - {name: c, kind: dense, out: 5}\n  - {name: d, kind: dense, out: 5}\n"
    "  - {name: e, kind: dense, out: 5}\n  - {name: f, kind: dense, out: 5}\n"
    "  - {name: g, kind: dense, out: 5}\n  - {name: h, kind: dense, out: 3}\n";
static const char *const cuts[] = {"",
                                   "[]",
                                   "[c]",
                                   "[b, d]",
                                   "[b, c, e]",
                                   "[b, c, d, f]",
                                   "[b, c, d, e, g]",
                                   "[b, c, d, e, f, g]",
                                   "[b, c, d, e, f, g, h]"};
enum { STAGES_MAX = 8, FLOATS = 1 << 12 };

static const char *const optimizers[] = {
    "sgd, lr: %g, weight_decay: 0.1",
    "sgd, lr: %g, momentum: 0.9, dampening: 0.1",
    "sgd, lr: %g, momentum: 0.9, nesterov: true",
    "adam, lr: %g, eps: 0.01",
    "adamw, lr: %g, weight_decay: 0.1, eps: 0.01",
    "rmsprop, lr: %g, momentum: 0.5, eps: 0.01",
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

typedef struct {
    const char *schedule;
    const char *optimizer;
    double lr;
    uint32_t stages, steps, epoch_steps, micro;
    uint64_t first, stride;
} test_case;

/* The optimisers take turns. */
static test_case make_case(const char *schedule, uint32_t turn, uint32_t stages, uint32_t steps) {
    return (test_case){.schedule = schedule,
                       .optimizer = optimizers[turn % OPTIMIZERS],
                       .lr = 0.05,
                       .stages = stages,
                       .steps = steps,
                       .epoch_steps = 1000,
                       .micro = 5,
                       .stride = 1};
}

static void open_ring(test_ring *ring, const test_case *c) {
    char optimizer[128];
    char job[512];
    (void)snprintf(optimizer, sizeof optimizer, c->optimizer, c->lr);
    (void)snprintf(job, sizeof job,
                   "sample: [4]\nclasses: 3\nseed: 5\nbatch: 12\nmicrobatch: %u\n"
                   "epoch_samples: %u\nsteps: %u\nloss: cross-entropy\noptimizer: {kind: %s}\n"
                   "schedule: %s\n",
                   c->micro, 12 * c->epoch_steps, c->steps, optimizer, c->schedule);
    test_ring_open(ring, RP_GEMM_PANEL, model, job, cuts[c->stages], c->stages);
    ring->first = c->first;
    ring->stride = c->stride;
}

/* The tensors whose names begin with the prefix, as they come: "" is the model that is evaluated,
 * "replica.1." another, "optim." and "replica.1.optim." are their optimisers' states. */
static size_t read_tensors(test_ring *ring, const char *prefix, float *out) {
    size_t used = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_stage *stage = ring->board[k].stage;
        const uint32_t count = rp_stage_tensor_count(stage, *prefix != '\0');
        for (uint32_t i = 0; i < count; i++) {
            char name[256];
            rp_shape shape;
            expect_ok(rp_stage_tensor_at(stage, i, name, sizeof name, &shape));
            if (strncmp(name, prefix, strlen(prefix)) == 0 &&
                strncmp(name + strlen(prefix), "optim.", strlen("optim.")) != 0) {
                const size_t floats = rp_shape_count(&shape);
                assert_true(used + floats <= FLOATS);
                expect_ok(rp_stage_tensor_read(stage, i, 0, floats, out + used));
                used += floats;
            }
        }
    }
    return used;
}

/* The evaluated model behind a run. */
static size_t train_stages(const test_case *c, float *out) {
    test_ring ring;
    open_ring(&ring, c);
    test_ring_run(&ring);
    const size_t count = read_tensors(&ring, "", out);
    test_ring_close(&ring);
    for (size_t i = 0; i < count; i++) {
        assert_true(expect_finite_bits((double)out[i]));
    }
    return count;
}

static void expect_same(const test_case *c, const float *got, const float *want, size_t count,
                        bool same) {
    if ((memcmp(got, want, count * sizeof *got) == 0) != same) {
        fail_msg("%s on %u stages with %s is%s the sequential run", c->schedule, c->stages,
                 c->optimizer, same ? " not" : "");
    }
}

/* One stage has no pipe: what a method does about one does nothing. Four do more than that. */
static void one_stage_is_sequential(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        uint32_t micro;
        bool same;
    } cases[] = {
        {"async", 5, true},
        {"pipedream", 5, true},
        {"{kind: pipedream, vertical_sync: true}", 5, true},
        {"spectrain", 5, true},
        {"pipeoptim", 5, true},
        {"{kind: pipeoptim, horizon: exact}", 5, true},
        {"{kind: pipeoptim, horizon: measured}", 5, true},
        {"{kind: pipeoptim, horizon: released}", 5, false}, /* looks one update further */
        {"pipedream-2bw", 5, false},                        /* is a step late by design */
        {"xpipe", 12, true},
        {"xpipe", 7, true},
        {"xpipe", 5, false}, /* T = 3: the formula of METHODS 6 says 1 ahead */
        {"{kind: ea-pipe, alpha: 0, evaluate: latest}", 5, true},
        {"ea-pipe", 5, false}, /* evaluates a centre, which is drawn behind */
        {"{kind: avgpipe, replicas: 1, alpha: 0, evaluate: latest}", 5, true},
        {"avgpipe", 5, false}, /* two models */
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float want[FLOATS], got[FLOATS];
        test_case c = make_case("1f1b", i, 1, 6);
        c.micro = cases[i].micro;
        const size_t count = train_stages(&c, want);
        c.schedule = cases[i].schedule;
        assert_int_equal(train_stages(&c, got), count);
        expect_same(&c, got, want, count, cases[i].same);
    }
}

/* Pipes that are emptied behind every step leave no update between a forward and its backward: s is
 * 0, so PipeOptim is async, stashing keeps nothing, and all are the sequential run. A horizon that
 * is typed predicts all the same. */
static void without_a_gap_there_is_nothing_to_correct(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        bool same;
    } cases[] = {
        {"1f1b", true},
        {"zb-h1", true},
        {"{kind: async, drain: true}", true},
        {"{kind: pipeoptim, horizon: exact, drain: true}", true},
        {"{kind: pipeoptim, horizon: exact, drain: true}", true}, /* so that it has each ring */
        {"{kind: pipeoptim, horizon: exact, drain: true}", true},
        {"{kind: pipedream, drain: true}", true},
        {"{kind: pipedream, vertical_sync: true, drain: true}", true},
        {"{kind: ea-pipe, replicas: 1, alpha: 0, evaluate: latest, drain: true}", true},
        {"{kind: pipeoptim, drain: true}", false},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t stages = 2 + i % 3; stages <= STAGES_MAX; stages += 3) {
            float want[FLOATS], got[FLOATS];
            test_case c = make_case("1f1b", stages + i, 1, 5);
            c.epoch_steps = 1;
            const size_t count = train_stages(&c, want);
            c.schedule = cases[i].schedule;
            c.stages = stages;
            assert_int_equal(train_stages(&c, got), count);
            expect_same(&c, got, want, count, cases[i].same);
        }
    }
}

/* But for the order of its sums, which is that of its backwards. */
static void gpipe_is_flush(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= STAGES_MAX; stages++) {
        float want[FLOATS], got[FLOATS];
        test_case c = make_case("1f1b", stages, stages, 6);
        const size_t count = train_stages(&c, want);
        c.schedule = "gpipe";
        assert_int_equal(train_stages(&c, got), count);
        expect_close_all(got, want, count, 1e-4, 1e-5);
    }
}

/* The weights of replica r, then the states of its optimiser, are those of a run of its own on
 * every R-th minibatch. */
static void expect_stream(test_ring *ring, const test_case *c, uint32_t r) {
    float want[FLOATS], got[FLOATS];
    char prefix[2][32];
    test_case alone = *c;
    test_ring single;
    alone.schedule = "1f1b";
    alone.stages = 1;
    alone.steps = (c->steps - r + c->stages - 1) / c->stages;
    alone.first = r;
    alone.stride = c->stages;
    (void)snprintf(prefix[0], sizeof prefix[0], "replica.%u.", r);
    (void)snprintf(prefix[1], sizeof prefix[1], "replica.%u.optim.", r);
    open_ring(&single, &alone);
    test_ring_run(&single);
    for (int states = 0; states < 2; states++) {
        const size_t count = read_tensors(&single, states ? "optim." : "", want);
        assert_true(states || count > 0);
        assert_int_equal(read_tensors(ring, prefix[states], got), count);
        expect_same(c, got, want, count, true);
    }
    test_ring_close(&single);
}

/* alpha 0: R = D replicas are R sequential runs, and the centre is where all began. */
static void alpha_0_is_independent_runs(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= STAGES_MAX; stages++) {
        float start[FLOATS], centre[FLOATS];
        const test_case c =
            make_case("{kind: ea-pipe, alpha: 0}", stages, stages, 2 * stages + stages / 2);
        test_ring ring;
        open_ring(&ring, &c);
        const size_t count = read_tensors(&ring, "", start);
        test_ring_run(&ring);
        assert_int_equal(read_tensors(&ring, "", centre), count);
        assert_memory_equal(centre, start, count * sizeof *start);
        for (uint32_t r = 0; r < stages; r += 1 + stages / 4) {
            expect_stream(&ring, &c, r);
        }
        test_ring_close(&ring);
    }
}

/* R = 1, alpha = 1/2 behind the step: replica and centre meet half way, which is half the rate. */
static void one_replica_half_way_is_half_the_rate(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= STAGES_MAX; stages++) {
        float centre[FLOATS], replica[FLOATS], want[FLOATS];
        test_case c = make_case("{kind: ea-pipe, replicas: 1, alpha: 0.5}", stages, stages, 6);
        test_ring ring;
        open_ring(&ring, &c);
        test_ring_run(&ring);
        const size_t count = read_tensors(&ring, "", centre);
        assert_int_equal(read_tensors(&ring, "replica.0.", replica), count);
        test_ring_close(&ring);
        c.schedule = "1f1b";
        c.stages = 1;
        c.lr /= 2;
        assert_int_equal(train_stages(&c, want), count);
        expect_close_all(centre, want, count, 1e-4, 1e-5);
        expect_close_all(replica, centre, count, 1e-6, 1e-7);
    }
}

/* ||W^ - W_true|| < ||W_t - W_true|| wherever something is predicted, on a minibatch that comes
 * again and again, so that there is a direction to follow. */
static void predictions_are_nearer_than_stale_weights(void **state) {
    (void)state;
    for (uint32_t stages = 2; stages <= STAGES_MAX; stages++) {
        test_case c = make_case("{kind: pipeoptim, probe: 1}", stages, stages, 24);
        test_ring ring;
        c.lr = 0.005;
        c.stride = 0;
        open_ring(&ring, &c);
        test_ring_run(&ring);
        for (uint32_t k = 0; k + 1 < stages; k++) {
            rp_stage *stage = ring.board[k].stage;
            const uint32_t tensors = rp_stage_norm_count(stage);
            float squares[64];
            rp_stage_probe about;
            double error = 0, stale = 0;
            expect_ok(rp_stage_probe_read(stage, squares, &about)); /* of the last step */
            expect_ok(rp_device_drain(ring.device));
            for (uint32_t i = 0; i < tensors; i++) {
                error += (double)squares[i];
                stale += (double)squares[tensors + i];
            }
            if (!(error < stale)) {
                fail_msg("stage %u of %u with %s: error %g, stale %g", k, stages, c.optimizer,
                         error, stale);
            }
        }
        test_ring_close(&ring);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stage_is_sequential),
        cmocka_unit_test(without_a_gap_there_is_nothing_to_correct),
        cmocka_unit_test(gpipe_is_flush),
        cmocka_unit_test(alpha_0_is_independent_runs),
        cmocka_unit_test(one_replica_half_way_is_half_the_rate),
        cmocka_unit_test(predictions_are_nearer_than_stale_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
