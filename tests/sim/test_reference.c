/* Rings of stages on the digest executor end with the digests of the reference, and with others
 * when one op is not what it should be. */
#include "agent/ring.h"

#include "sim/reference.h"

/* Skips over one and over two boundaries, dropout, batch statistics; parameters under 16 bytes. */
static const char branched[] =
    "input: [2, 5, 5]\nlayers:\n"
    "  - {name: conv1, kind: conv2d, out: 3, kernel: 3, pad: 1, bias: false}\n"
    "  - {name: bn1, kind: batchnorm}\n"
    "  - {name: relu1, kind: relu}\n"
    "  - {name: conv2, kind: conv2d, out: 3, kernel: 3, pad: 1}\n"
    "  - {name: drop, kind: dropout, p: 0.3}\n"
    "  - {name: add1, kind: add, from: [relu1, drop]}\n"
    "  - {name: conv3, kind: conv2d, out: 3, kernel: 1}\n"
    "  - {name: cat, kind: concat, from: [relu1, conv3, add1]}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: fc1, kind: dense, out: 7}\n"
    "  - {name: fc2, kind: dense, out: 3}\n";
static const char *const branched_cuts[] = {
    "", "[]", "[add1]", "[conv2, cat]", "[relu1, conv3, flat]", "[bn1, drop, conv3, fc2]"};

/* No layer looks at other samples: microbatches do not matter. */
static const char chain[] =
    "input: [4]\nlayers:\n"
    "  - {name: a, kind: dense, out: 5}\n  - {name: a1, kind: tanh}\n"
    "  - {name: b, kind: dense, out: 5}\n  - {name: drop, kind: dropout}\n"
    "  - {name: c, kind: dense, out: 5}\n  - {name: d, kind: dense, out: 5}\n"
    "  - {name: e, kind: dense, out: 5}\n  - {name: f, kind: dense, out: 3}\n";
static const char *const chain_cuts[] = {
    "", "[]", "[c]", "[b, d]", "[b, c, e]", "[b, c, d, e]", "[b, c, d, e, f]"};

/* Frozen layers of every sort: below everything, between, with batch statistics and dropout. */
static const char frozen[] =
    "input: [2, 5, 5]\nlayers:\n"
    "  - {name: conv1, kind: conv2d, out: 3, kernel: 3, pad: 1, train: false}\n"
    "  - {name: bn1, kind: batchnorm, train: false}\n"
    "  - {name: relu1, kind: relu}\n"
    "  - {name: conv2, kind: conv2d, out: 3, kernel: 3, pad: 1}\n"
    "  - {name: bn2, kind: batchnorm, deferred: true, train: false}\n"
    "  - {name: drop, kind: dropout, p: 0.3, train: false}\n"
    "  - {name: add1, kind: add, from: [relu1, drop]}\n"
    "  - {name: conv3, kind: conv2d, out: 3, kernel: 1, train: false}\n"
    "  - {name: cat, kind: concat, from: [relu1, conv3, add1]}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: fc1, kind: dense, out: 7, train: false}\n"
    "  - {name: fc2, kind: dense, out: 3}\n";
static const char *const frozen_cuts[] = {
    "", "[]", "[add1]", "[conv2, cat]", "[relu1, conv3, flat]", "[relu1, drop, conv3, fc2]"};

typedef struct {
    const char *model;
    const char *const *cuts;
    const char *schedule;
    const char *optimizer;
    const char *more; /* keys of the optimizer, or NULL */
    uint32_t stages, micro, steps;
    bool strict;
} test_case;

enum { PARAMS_MAX = 64, EPOCH_SAMPLES = 42, BATCH = 12 };

static void write_job(const test_case *c, char *out, size_t bytes) {
    (void)snprintf(
        out, bytes,
        "sample: %s\nclasses: 3\nseed: 5\nbatch: %d\nmicrobatch: %u\n"
        "epoch_samples: %d\nsteps: %u\nloss: cross-entropy\n"
        "optimizer: {kind: %s, lr: 0.1%s}\nlr_schedule: {kind: cosine, warmup_steps: 3}\n"
        "schedule: %s\n",
        c->model == chain ? "[4]" : "[2, 5, 5]", BATCH, c->micro, EPOCH_SAMPLES, c->steps,
        c->optimizer, c->more ? c->more : "", c->schedule);
}

/* The data of test_feed_inputs() and test_feed_labels(). */
static void sample_of(void *context, uint64_t step, uint32_t index, rp_digest *data,
                      rp_digest *target) {
    const rp_job *job = context;
    const uint64_t number = step * job->batch + index;
    const size_t count = rp_shape_count(&job->model->input);
    const int32_t label = (int32_t)(number % 3);
    float x[64];
    for (size_t i = 0; i < count; i++) {
        x[i] = test_input(number, i);
    }
    *data = rp_digest_of_bytes(x, count * sizeof *x);
    *target = rp_digest_of_bytes(&label, sizeof label);
}

static void run_reference(const test_case *c, rp_digest *out) {
    rp_arena arena;
    rp_job job;
    char text[1024];
    rp_arena_init(&arena, "test", 0);
    write_job(c, text, sizeof text);
    expect_ok(test_parse(&arena, c->model, text, c->cuts[c->stages], c->stages, 0, &job));
    assert_true(job.model->param_count <= PARAMS_MAX);
    const rp_reference reference = {&job, c->strict, sample_of, &job};
    memset(out, 0, PARAMS_MAX * sizeof *out);
    expect_ok(rp_reference_run(&reference, out));
    rp_arena_finish(&arena);
}

static uint32_t param_named(const rp_model *model, const char *name) {
    uint32_t p = 0;
    while (strcmp(model->param[p].name, name) != 0) {
        p++;
        assert_true(p < model->param_count);
    }
    return p;
}

/* The digests of the evaluated model, by parameter of the model. */
static void read_ring(test_ring *ring, rp_digest *out) {
    const rp_model *model = ring->board[0].job.model;
    memset(out, 0, PARAMS_MAX * sizeof *out);
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_stage *stage = ring->board[k].stage;
        for (uint32_t i = 0; i < rp_stage_tensor_count(stage, false); i++) {
            char name[256];
            rp_shape shape;
            expect_ok(rp_stage_tensor_at(stage, i, name, sizeof name, &shape));
            const size_t floats = rp_shape_count(&shape) < 4 ? rp_shape_count(&shape) : 4;
            rp_digest *to = &out[param_named(model, name)];
            expect_ok(rp_stage_tensor_read(stage, i, 0, floats, (float *)(void *)to));
        }
    }
}

static void open_ring(test_ring *ring, const test_case *c) {
    const rp_site site = {.strict = c->strict};
    char text[1024];
    write_job(c, text, sizeof text);
    test_ring_open_on(ring, "digest", &site, c->model, text, c->cuts[c->stages], c->stages);
}

static void run_ring(const test_case *c, rp_digest *out) {
    test_ring ring;
    open_ring(&ring, c);
    test_ring_run(&ring);
    assert_true(ring.loss > 0 && ring.loss <= 1);
    read_ring(&ring, out);
    test_ring_close(&ring);
}

static void expect_reference(const test_case *c) {
    rp_digest want[PARAMS_MAX], got[PARAMS_MAX];
    run_reference(c, want);
    run_ring(c, got);
    if (memcmp(want, got, sizeof want) != 0) {
        fail_msg("%s on %u stages with microbatches of %u is not the reference", c->schedule,
                 c->stages, c->micro);
    }
}

static const char *const schedules[] = {
    "gpipe",
    "umpipe",
    "1f1b",
    "zb-h1",
    "async",
    "{kind: async, drain: true}",
    "{kind: async, advance: 2}",
    "pipedream",
    "{kind: pipedream, drain: true}",
    "{kind: pipedream, vertical_sync: true}",
    "pipedream-2bw",
    "spectrain",
    "{kind: spectrain, drain: true}",
    "pipeoptim",
    "{kind: pipeoptim, horizon: exact}",
    "{kind: pipeoptim, horizon: released}",
    "{kind: pipeoptim, probe: 1}",
    "xpipe",
    "ea-pipe",
    "{kind: ea-pipe, period: 2, order: before}",
    "{kind: ea-pipe, lean: true, evaluate: latest}",
    "{kind: ea-pipe, evaluate: mean}",
    "{kind: ea-pipe, replicas: 2, weights: pipeoptim}",
    "avgpipe",
    "{kind: avgpipe, replicas: 3, evaluate: mean}",
    "{kind: async, weights: stash, advance: 1}",
};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

/* Other weights than a schedule's own are refused where no update could come between. */
static uint32_t least_stages(const char *schedule) {
    return strstr(schedule, "weights:") ? 3 : 1;
}

static void every_method_is_its_definition(void **state) {
    (void)state;
    static const char *const optimizers[] = {"sgd", "adam", "sgd, momentum: 0.9"};
    static const uint32_t micros[] = {12, 5, 4, 1};
    uint32_t turn = 0;
    for (uint32_t i = 0; i < SCHEDULES; i++) {
        for (uint32_t stages = least_stages(schedules[i]); stages <= 6; stages += trials(1, 2)) {
            for (uint32_t m = 0; m < sizeof micros / sizeof *micros; m++) {
                test_case c = {.model = chain,
                               .cuts = chain_cuts,
                               .schedule = schedules[i],
                               .optimizer = optimizers[turn++ % 3],
                               .stages = stages,
                               .micro = micros[m],
                               .steps =
                                   11}; /* ends within the third epoch; its 4th steps are short */
                expect_reference(&c);
            }
        }
    }
}

/* METHODS 11: both change every weight where they act, and nothing where they do not. */
static void rates_and_norms_of_stages(void **state) {
    (void)state;
    static const char *const keys[] = {NULL, ", staleness_power: 1", ", clip_norm_stage: 0.7",
                                       ", staleness_power: 0.75, clip_norm_stage: 0.7"};
    enum { KEYS = sizeof keys / sizeof *keys };
    for (uint32_t i = 0; i < 2 * SCHEDULES; i++) {
        rp_digest want[KEYS][PARAMS_MAX];
        const char *schedule = schedules[i / 2];
        test_case c = {.model = chain,
                       .cuts = chain_cuts,
                       .schedule = schedule,
                       .optimizer = "sgd, momentum: 0.9",
                       .stages = 4,
                       .micro = i % 2 ? 5 : BATCH,
                       .steps = 9};
        for (uint32_t k = 0; k < KEYS; k++) {
            c.more = keys[k];
            run_reference(&c, want[k]);
            expect_reference(&c);
        }
        /* replicas see no update between a forward and its backward, but for `weights:` */
        const bool replicas = strstr(schedule, "ea-pipe") || strstr(schedule, "avgpipe");
        const bool stale = i >= 8 && (!replicas || strstr(schedule, "weights:"));
        assert_true(i % 2 || (memcmp(want[0], want[1], sizeof want[0]) != 0) == stale);
        assert_memory_not_equal(want[0], want[2], sizeof want[0]);
    }
}

/* The anchor's term changes every weight, clips see it, and replicas are refused. */
static void anchors(void **state) {
    (void)state;
    static const char *const anchor[] = {"", "\nanchor: 0.1", "\nanchor: {mu: 0.1, drift: true}",
                                         "\nanchor: {drift: true}"};
    enum { ANCHORS = sizeof anchor / sizeof *anchor };
    for (uint32_t i = 0; i < SCHEDULES; i++) {
        rp_digest want[ANCHORS][PARAMS_MAX];
        if (strstr(schedules[i], "ea-pipe") || strstr(schedules[i], "avgpipe")) {
            continue;
        }
        for (uint32_t k = 0; k < ANCHORS; k++) {
            char schedule[160];
            (void)snprintf(schedule, sizeof schedule, "%s%s", schedules[i], anchor[k]);
            const test_case c = {.model = chain,
                                 .cuts = chain_cuts,
                                 .schedule = schedule,
                                 .optimizer = k >= 2 ? "sgd" : "sgd, momentum: 0.9",
                                 .more = i % 2 ? ", clip_norm_stage: 0.7" : NULL,
                                 .stages = least_stages(schedules[i]) + i % 3,
                                 .micro = 5,
                                 .steps = 9};
            run_reference(&c, want[k]);
            expect_reference(&c);
        }
        for (uint32_t k = 1; k < ANCHORS; k++) {
            assert_memory_not_equal(want[0], want[k], sizeof want[0]);
        }
    }
}

/* METHODS 11: what is said in place of the order's staleness is that of the order where it is the
 * same, gives rates to a schedule that flushes, and is what the boards go by. */
static void rates_as_of_another_order(void **state) {
    (void)state;
    static const struct {
        const char *schedule, *more;
    } cases[] = {{"{kind: async, advance: 2}", ", staleness_power: 1"},
                 {"{kind: async, advance: 2}", ", staleness_power: 1, staleness_per_stage: 3"},
                 {"{kind: async, advance: 2}", ", staleness_power: 1, staleness_per_stage: 2"},
                 {"gpipe", ""},
                 {"gpipe", ", staleness_power: 1, staleness_per_stage: 3"}};
    enum { CASES = sizeof cases / sizeof *cases };
    rp_digest want[CASES][PARAMS_MAX];
    for (uint32_t i = 0; i < CASES; i++) {
        const test_case c = {.model = chain,
                             .cuts = chain_cuts,
                             .schedule = cases[i].schedule,
                             .optimizer = "sgd, momentum: 0.9",
                             .more = cases[i].more,
                             .stages = 4,
                             .micro = BATCH,
                             .steps = 9};
        run_reference(&c, want[i]);
        expect_reference(&c);
    }
    assert_memory_equal(want[0], want[1], sizeof want[0]);
    assert_memory_not_equal(want[0], want[2], sizeof want[0]);
    assert_memory_not_equal(want[3], want[4], sizeof want[0]);
}

static void frozen_layers(void **state) {
    (void)state;
    for (uint32_t i = 0; i < SCHEDULES; i++) {
        for (uint32_t stages = least_stages(schedules[i]); stages <= 5; stages += trials(1, 2)) {
            test_case c = {.model = frozen,
                           .cuts = frozen_cuts,
                           .schedule = schedules[i],
                           .optimizer = "adam",
                           .stages = stages,
                           .micro = 5,
                           .steps = 6};
            expect_reference(&c);
        }
    }
}

static void skips_and_statistics(void **state) {
    (void)state;
    for (uint32_t i = 0; i < SCHEDULES; i++) {
        for (uint32_t stages = least_stages(schedules[i]); stages <= 5; stages += trials(1, 2)) {
            test_case c = {.model = branched,
                           .cuts = branched_cuts,
                           .schedule = schedules[i],
                           .optimizer = "adam",
                           .stages = stages,
                           .micro = 3 + stages,
                           .steps = 9};
            expect_reference(&c);
            c.strict = true;
            expect_reference(&c);
        }
    }
}

/* Sizes by stage and direction; only a strict sum can tell them. */
static void sizes_by_stage(void **state) {
    (void)state;
    static const char *const forward[] = {"", "[5]", "[1, 12]", "[7, 3, 5]", "[2, 9, 4, 12]"};
    static const char *const backward[] = {"", "[7]", "[5, 2]", "[3, 12, 1]", "[8, 1, 7, 5]"};
    rp_digest loose[PARAMS_MAX], strict[PARAMS_MAX], equal[PARAMS_MAX];
    for (uint32_t stages = 1; stages <= 4; stages++) {
        char schedule[128];
        (void)snprintf(schedule, sizeof schedule, "{kind: umpipe, forward: %s, backward: %s}",
                       forward[stages], backward[stages]);
        test_case c = {.model = chain,
                       .cuts = chain_cuts,
                       .schedule = schedule,
                       .optimizer = "adam",
                       .stages = stages,
                       .micro = 4,
                       .steps = 11};
        expect_reference(&c);
        run_ring(&c, loose);
        c.strict = true;
        expect_reference(&c);
        run_ring(&c, strict);
        c.schedule = "umpipe";
        expect_reference(&c);
        run_ring(&c, equal);
        assert_memory_not_equal(strict, equal, sizeof equal);
        c.strict = false;
        run_ring(&c, equal);
        assert_memory_equal(loose, equal, sizeof equal);
    }
    /* of stages with batch statistics the microbatch; [conv1, bn1, ..] is one of them */
    for (uint32_t i = 0; i < 2; i++) {
        const test_case c = {.model = branched,
                             .cuts = branched_cuts,
                             .schedule = "{kind: umpipe, forward: [5, 7, 2], backward: [5, 4, 11]}",
                             .optimizer = "adam",
                             .stages = 3,
                             .micro = 5,
                             .steps = 9,
                             .strict = i};
        expect_reference(&c);
    }
}

/* Two or three stages a node. */
static void stages_that_share_a_node(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        uint32_t stages;
    } rings[] = {{"{kind: interleaved-1f1b, chunks: 2}", 4},
                 {"{kind: interleaved-1f1b, chunks: 2}", 6},
                 {"{kind: interleaved-1f1b, chunks: 3}", 6},
                 {"{kind: interleaved-1f1b, chunks: 3}", 3}};
    for (uint32_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        for (uint32_t strict = 0; strict < 2; strict++) {
            const test_case c = {.model = chain,
                                 .cuts = chain_cuts,
                                 .schedule = rings[i].schedule,
                                 .optimizer = "adam",
                                 .stages = rings[i].stages,
                                 .micro = 1,
                                 .steps = 7,
                                 .strict = strict};
            expect_reference(&c);
        }
    }
}

/* Neither cut nor microbatch shows where a step ends with empty pipes; the order of the sums only
 * where it is asked for. */
static void flushed_runs_are_one_run(void **state) {
    (void)state;
    static const char *const flushed[] = {"gpipe", "1f1b", "zb-h1", "umpipe"};
    rp_digest first[PARAMS_MAX], got[PARAMS_MAX];
    test_case c = {.model = chain,
                   .cuts = chain_cuts,
                   .schedule = "gpipe",
                   .optimizer = "adam",
                   .stages = 1,
                   .micro = 12,
                   .steps = 7};
    run_ring(&c, first);
    for (uint32_t i = 0; i < 4; i++) {
        for (c.stages = 1; c.stages <= 6; c.stages++) {
            c.schedule = flushed[i];
            c.micro = 1 + c.stages;
            run_ring(&c, got);
            assert_memory_equal(got, first, sizeof got);
        }
    }
    c.strict = true;
    c.stages = 3;
    c.micro = 4;
    c.schedule = "1f1b";
    run_ring(&c, first);
    c.schedule = "zb-h1";
    run_ring(&c, got);
    assert_memory_equal(got, first, sizeof got);
    c.schedule = "gpipe";
    run_ring(&c, got);
    assert_memory_not_equal(got, first, sizeof got);
}

/* ---- canaries -------------------------------------------------------------------------------- */

/* One command of stage 0 goes wrong: which one, and how. */
typedef enum { NOTHING, OTHER_VERSION, TWICE, NEVER, OTHER_RATE, OTHER_STEP } sabotage_kind;
static struct {
    sabotage_kind kind;
    uint32_t at, seen;
    rp_executor_kind executor;
    rp_err (*issue)(rp_executor *executor, const rp_command *command);
} sabotage;

static rp_err issue_wrongly(rp_executor *executor, const rp_command *command) {
    const bool update = command->kind == RP_COMMAND_UPDATE;
    const bool forward = command->kind == RP_COMMAND_FORWARD;
    const bool backward = command->kind == RP_COMMAND_BACKWARD;
    const bool due = sabotage.kind == OTHER_VERSION                               ? forward
                     : sabotage.kind == OTHER_RATE || sabotage.kind == OTHER_STEP ? update
                                                                                  : backward;
    rp_command wrong = *command;
    if (!due || sabotage.seen++ != sabotage.at || sabotage.kind == NOTHING) {
        return sabotage.issue(executor, command);
    }
    switch (sabotage.kind) {
    case OTHER_VERSION:
        wrong.pass.weights.index =
            (wrong.pass.weights.index + 1) % executor->layout->copies.versions;
        break;
    case TWICE:
        expect_ok(sabotage.issue(executor, command));
        wrong.pass.accumulate = true;
        break;
    case NEVER:
        return RP_OK;
    case OTHER_RATE:
        wrong.optimise.rate *= 1.5f;
        break;
    default:
        wrong.optimise.applied++;
    }
    return sabotage.issue(executor, &wrong);
}

static bool sabotage_is_seen(sabotage_kind kind, uint32_t at, const char *schedule) {
    rp_digest want[PARAMS_MAX], got[PARAMS_MAX];
    const test_case c = {.model = chain,
                         .cuts = chain_cuts,
                         .schedule = schedule,
                         .optimizer = "sgd",
                         .stages = 3,
                         .micro = 4,
                         .steps = 8};
    test_ring ring;
    run_reference(&c, want);
    open_ring(&ring, &c);
    rp_executor *executor = rp_stage_executor(ring.board[0].stage);
    sabotage.kind = kind;
    sabotage.at = at;
    sabotage.seen = 0;
    sabotage.executor = *executor->kind;
    sabotage.issue = sabotage.executor.issue;
    sabotage.executor.issue = issue_wrongly;
    executor->kind = &sabotage.executor;
    test_ring_run(&ring);
    read_ring(&ring, got);
    test_ring_close(&ring);
    assert_true(sabotage.seen > at);
    return memcmp(want, got, sizeof want) != 0;
}

static void one_wrong_command_is_seen(void **state) {
    (void)state;
    static const sabotage_kind kinds[] = {OTHER_VERSION, TWICE, NEVER, OTHER_RATE, OTHER_STEP};
    assert_false(sabotage_is_seen(NOTHING, 3, "pipedream"));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_true(sabotage_is_seen(kinds[i], 7, "pipedream"));
        assert_true(sabotage_is_seen(kinds[i], 6, "{kind: pipedream, vertical_sync: true}"));
    }
}

static void what_has_no_definition_is_refused(void **state) {
    (void)state;
    rp_digest out[PARAMS_MAX];
    rp_arena arena;
    rp_job job;
    char text[1024];
    const test_case c = {.model = chain,
                         .cuts = chain_cuts,
                         .schedule = "{kind: pipeoptim, horizon: measured}",
                         .optimizer = "sgd",
                         .stages = 2,
                         .micro = 4,
                         .steps = 8};
    rp_arena_init(&arena, "test", 0);
    write_job(&c, text, sizeof text);
    expect_ok(test_parse(&arena, c.model, text, c.cuts[2], 2, 0, &job));
    const rp_reference reference = {&job, false, sample_of, &job};
    expect_err(rp_reference_run(&reference, out), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_is_its_definition),
        cmocka_unit_test(rates_and_norms_of_stages),
        cmocka_unit_test(anchors),
        cmocka_unit_test(rates_as_of_another_order),
        cmocka_unit_test(frozen_layers),
        cmocka_unit_test(skips_and_statistics),
        cmocka_unit_test(sizes_by_stage),
        cmocka_unit_test(stages_that_share_a_node),
        cmocka_unit_test(flushed_runs_are_one_run),
        cmocka_unit_test(one_wrong_command_is_seen),
        cmocka_unit_test(what_has_no_definition_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
