/* METHODS 13: copies of the weights and stashes by stage, as the memory plan counts them and as the
 * device has them, and that no op ever sees a block that was written over. */
#include "agent/ring.h"

#include "stage/versions.h"

static const char model[] = /* a copy of the weights is large, and so is an activation */
    "input: [256]\nlayers:\n"
    "  - {name: a, kind: dense, out: 256}\n  - {name: b, kind: dense, out: 256}\n"
    "  - {name: c, kind: dense, out: 256}\n  - {name: d, kind: dense, out: 256}\n"
    "  - {name: e, kind: dense, out: 256}\n  - {name: f, kind: dense, out: 256}\n"
    "  - {name: g, kind: dense, out: 256}\n  - {name: h, kind: dense, out: 3}\n";
static const char *const cuts[] = {"[]",
                                   "[b]",
                                   "[b, c]",
                                   "[b, c, d]",
                                   "[b, c, d, e]",
                                   "[b, c, d, e, f]",
                                   "[b, c, d, e, f, g]",
                                   "[b, c, d, e, f, g, h]"};

static rp_layout *layout_of(rp_arena *arena, const char *schedule, uint32_t micro, uint32_t stages,
                            uint32_t stage, rp_job *job) {
    char text[512];
    rp_layout *layout;
    (void)snprintf(text, sizeof text,
                   "sample: [256]\nclasses: 3\nseed: 1\nbatch: 12\nmicrobatch: %u\n"
                   "epoch_samples: 470\nsteps: 100\nloss: cross-entropy\n"
                   "optimizer: {kind: adam, lr: 0.1}\nschedule: %s\n",
                   micro, schedule);
    expect_ok(test_parse(arena, model, text, cuts[stages - 1], stages, stage, job));
    expect_ok(rp_layout_make(arena, job, RP_GEMM_PANEL, 128, &layout));
    return layout;
}

/* By hand from the tables of METHODS 13: D stages, this is stage k. */
typedef uint32_t (*table)(uint32_t d, uint32_t k);
#define TABLE(name, number)                                                                        \
    static uint32_t name(uint32_t d, uint32_t k) {                                                 \
        (void)d;                                                                                   \
        (void)k;                                                                                   \
        return number;                                                                             \
    }
TABLE(one, 1)
TABLE(two, 2)
TABLE(three, 3)
TABLE(four, 4)
TABLE(five, 5)
TABLE(each, d)                                     /* D on every stage */
TABLE(behind, d - k)                               /* D - k */
TABLE(behind_or_four, d - k < 4 ? d - k : 4)       /* min(D - k, M), M = 4 */
TABLE(advanced, 2 * (d - 1 - k) + 1)               /* (1 + a) (D - 1 - k) + 1, a = 1 */
TABLE(advanced_twice, 3 * (d - 1 - k) + 1)         /* a = 2 */
TABLE(ahead, k + 1 < d ? 2 : 1)                    /* one predicted, but for the last stage */
TABLE(spectrain, k / 2 + d - 1 - k > 0 ? 2 : 1)    /* but where nothing is predicted */
TABLE(behind_and_centre, d - k + 1)                /* lean: R = D - k */
TABLE(replicas_and_centre, d + 1)                  /* R = D */
TABLE(replicas_centre_and_one, d + 2)              /* with a mean, or a step's elastic term */
TABLE(two_centre_and_ahead, d - 1 - k > 1 ? 4 : 3) /* every second update is its own */

static const struct {
    const char *schedule;
    uint32_t micro, least; /* of a step of 12 samples; stages */
    table copies, stashes, replicas;
    uint32_t probe; /* copies more that it takes */
} rows[] = {
    {"gpipe", 3, 1, one, four, one, 0},
    {"{kind: umpipe, forward: 5, backward: 4}", 3, 1, one, one, one, 0}, /* of a step */
    {"1f1b", 3, 1, one, behind_or_four, one, 0},
    {"async", 12, 1, one, behind, one, 0},
    {"{kind: async, probe: 20}", 12, 1, one, behind, one, 2},
    {"pipedream", 12, 1, behind, behind, one, 0},
    {"{kind: pipedream, vertical_sync: true}", 12, 1, each, behind, one, 0},
    {"pipedream-2bw", 1, 1, two, behind, one, 0},
    {"{kind: pipedream-2bw, weights: pipeoptim}", 1, 1, ahead, behind, one, 0},
    {"spectrain", 12, 1, spectrain, behind, one, 0},
    {"pipeoptim", 12, 1, ahead, behind, one, 0},
    {"{kind: pipeoptim, horizon: released}", 12, 1, two, behind, one, 0},
    {"{kind: pipeoptim, horizon: exact}", 12, 1, ahead, behind, one, 0},
    {"{kind: pipeoptim, horizon: measured}", 12, 1, ahead, behind, one, 2},
    {"{kind: pipeoptim, advance: 1}", 12, 1, ahead, advanced, one, 0},
    {"xpipe", 1, 1, three, behind, one, 0},
    {"ea-pipe", 12, 1, replicas_and_centre, behind, each, 0},
    {"{kind: ea-pipe, lean: true}", 12, 1, behind_and_centre, behind, behind, 0},
    {"{kind: ea-pipe, order: before}", 12, 1, replicas_centre_and_one, behind, each, 0},
    {"{kind: ea-pipe, evaluate: latest}", 12, 1, replicas_and_centre, behind, each, 0},
    {"{kind: ea-pipe, evaluate: mean}", 12, 1, replicas_centre_and_one, behind, each, 0},
    {"{kind: ea-pipe, replicas: 2, weights: pipeoptim}", 12, 3, two_centre_and_ahead, behind, two,
     0},
    {"avgpipe", 1, 1, four, advanced, two, 0},
    {"{kind: avgpipe, replicas: 3, advance: 2}", 1, 1, five, advanced_twice, three, 0},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void expect_count(size_t row, uint32_t d, uint32_t k, const char *what, uint32_t got,
                         table want) {
    if (got != want(d, k)) {
        fail_msg("%s, stage %u of %u: %u %s, not %u", rows[row].schedule, k, d, got, what,
                 want(d, k));
    }
}

static void planned(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        for (uint32_t d = rows[i].least; d <= 8; d++) {
            for (uint32_t k = 0; k < d; k++) {
                rp_arena arena;
                rp_job job;
                rp_arena_init(&arena, "test", 0);
                const rp_layout *layout =
                    layout_of(&arena, rows[i].schedule, rows[i].micro, d, k, &job);
                expect_count(i, d, k, "copies", rp_layout_weight_copies(layout), rows[i].copies);
                expect_count(i, d, k, "stashes", layout->slots, rows[i].stashes);
                expect_count(i, d, k, "replicas", layout->replicas, rows[i].replicas);
                assert_int_equal(layout->probes, rows[i].probe);
                rp_arena_finish(&arena);
            }
        }
    }
}

/* One board for both halves of a stage, as the replay of pipefb has it: what forwards under way
 * have seen, and the newest. */
static void planned_of_split_stages(void **state) {
    (void)state;
    for (uint32_t d = 1; d <= 8; d++) {
        for (uint32_t k = 0; k < d; k++) {
            rp_arena arena;
            rp_job job;
            rp_arena_init(&arena, "test", 0);
            const rp_layout *layout = layout_of(&arena, "pipefb", 12, d, k, &job);
            assert_int_equal(rp_layout_weight_copies(layout), 2 * (d - k));
            assert_int_equal(layout->slots, 2 * (d - k));
            rp_arena_finish(&arena);
        }
    }
}

/* Walks a run of ops; every backward must see the version of the weights that its rule says, told
 * from what each block held when it was last written. */
static void walk_ops(const char *schedule, uint32_t micro, uint32_t stages, uint32_t stage) {
    rp_arena arena;
    rp_job job;
    rp_versions v;
    rp_op op;
    uint64_t held[64] = {0};          /* version in a block */
    static uint64_t forward[128][16]; /* version that a forward saw */
    rp_arena_init(&arena, "test", 0);
    const rp_layout *layout = layout_of(&arena, schedule, micro, stages, stage, &job);
    expect_ok(rp_versions_open(&arena, &job, layout->slots, &v));
    for (rp_sched_state list = v.list; job.method.kind->next(&list, &op);) {
        if (op.kind == RP_OP_FORWARD) {
            const rp_weight_view view = rp_versions_forward(&v, &op);
            forward[op.step][op.micro] = held[view.block];
            if (job.method.weights == RP_WEIGHTS_DOUBLE) {
                assert_int_equal(held[view.block], op.step > 0 ? op.step - 1 : 0);
            }
        } else if (op.kind == RP_OP_UPDATE) {
            const rp_version_step by = rp_versions_update(&v, &op);
            held[by.to] = op.step + 1;
        } else {
            const rp_weight_view view = rp_versions_backward(&v, &op);
            if (job.method.weights != RP_WEIGHTS_CURRENT ||
                job.method.kind->average != RP_AVERAGE_NONE) {
                assert_int_equal(held[view.block], forward[op.step][op.micro]);
            }
        }
    }
    assert_int_equal(v.list.step, job.steps);
    rp_arena_finish(&arena);
}

static void a_backward_sees_its_forwards_weights(void **state) {
    (void)state;
    static const char *const schedules[] = {"pipedream",
                                            "{kind: pipedream, vertical_sync: true}",
                                            "pipedream-2bw",
                                            "{kind: pipedream, drain: true}",
                                            "{kind: pipedream, advance: 2}",
                                            "{kind: pipedream-2bw, drain: true}",
                                            "{kind: ea-pipe, replicas: 2, weights: stash}",
                                            "ea-pipe",
                                            "avgpipe"};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        for (uint32_t stages = 3; stages <= 8; stages++) {
            for (uint32_t k = 0; k < stages; k++) {
                walk_ops(schedules[i], 12, stages, k);
                walk_ops(schedules[i], 5, stages, k);
                walk_ops(schedules[i], 1, stages, k);
            }
        }
    }
}

/* The plan rounds each buffer up to the device's alignment, but the device does not round a buffer
 * that is no part of a chunk. A stage here has up to eight of these. With NVIDIA's alignment of 512
 * bytes a slot of the smallest rows is less than that. */
static size_t slack_of(const rp_device *device, const rp_layout *layout) {
    const size_t rounding = 8 * (size_t)rp_device_facts_of(device)->align_bytes;
    return rounding > layout->slot_bytes / 2 ? rounding : layout->slot_bytes / 2;
}

/* The device's own accounting is the table's: gradients, copies, Adam's two moments of each
 * replica, and slots. One of them more or less is seen. */
static void expect_held(rp_device *device, size_t row, uint32_t d, uint32_t k) {
    const size_t before = rp_device_used_bytes(device);
    rp_arena arena;
    rp_job job;
    rp_stage *stage;
    const rp_site site = {.device = device};
    rp_arena_init(&arena, "test", 0);
    (void)layout_of(&arena, rows[row].schedule, rows[row].micro, d, k, &job);
    expect_ok(rp_stage_prepare(&arena, rp_executor_find("opencl"), &site, &job, &stage));
    const rp_layout *layout = rp_stage_layout(stage);
    const rp_executor_facts held = rp_stage_facts(stage);
    expect_count(row, d, k, "copies", held.weight_copies, rows[row].copies);
    assert_int_equal(held.probe_copies, rows[row].probe);
    const size_t flats =
        1 + rows[row].copies(d, k) + rows[row].probe + 2 * rows[row].replicas(d, k);
    const size_t want = flats * layout->weight_bytes +
                        rows[row].stashes(d, k) * layout->slot_bytes + layout->scratch_bytes;
    const size_t used = rp_device_used_bytes(device) - before;
    const size_t slack = slack_of(device, layout);
    if (used > want || want - used > slack) {
        fail_msg("%s, stage %u of %u: %zu bytes used, not %zu; a copy is %zu, a slot %zu",
                 rows[row].schedule, k, d, used, want, layout->weight_bytes, layout->slot_bytes);
    }
    assert_true(layout->weight_bytes > 2 * slack);
    rp_stage_destroy(&stage);
    assert_int_equal(rp_device_used_bytes(device), before);
    rp_arena_finish(&arena);
}

/* Of the half with the forwards: one copy of the weights, no gradients of them or of activations,
 * no moments. */
static void expect_forward_half(rp_device *device, uint32_t k) {
    const size_t before = rp_device_used_bytes(device);
    rp_arena arena;
    rp_job job;
    rp_stage *stage;
    const rp_site site = {.device = device};
    rp_arena_init(&arena, "test", 0);
    (void)layout_of(&arena, "pipefb", 2, 4, k, &job);
    job.role = RP_ROLE_FORWARD;
    expect_ok(rp_stage_prepare(&arena, rp_executor_find("opencl"), &site, &job, &stage));
    const rp_layout *layout = rp_stage_layout(stage);
    const size_t want = layout->weight_bytes + layout->slot_bytes + layout->scratch_bytes;
    const size_t used = rp_device_used_bytes(device) - before;
    assert_int_equal(layout->total_bytes, want + layout->running_bytes);
    const size_t slack = slack_of(device, layout);
    assert_true(used <= want && want - used <= slack);
    assert_true(layout->weight_bytes > 2 * slack);
    assert_int_equal(layout->grad.storage_count, 0);
    rp_stage_destroy(&stage);
    rp_arena_finish(&arena);
}

static void device_bytes(void **state) {
    (void)state;
    rp_arena arena;
    rp_device *device;
    rp_device_options options = {.threads = 1};
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_device_open(&arena, &options, &device));
    for (size_t i = 0; i < ROWS; i++) {
        for (uint32_t k = 0; k < 4; k++) {
            expect_held(device, i, 4, k);
        }
    }
    for (uint32_t k = 0; k < 4; k++) {
        expect_forward_half(device, k);
    }
    rp_device_close(&device);
    rp_arena_finish(&arena);
}

/* XPipe, METHODS 6 and 13: D = 4, T = 2 gives 2, 2, 2, 1 ahead in the forward. */
static void xpipe_horizons(void **state) {
    (void)state;
    static const uint32_t want[] = {2, 2, 2, 1};
    for (uint32_t k = 0; k < 4; k++) {
        rp_arena arena;
        rp_job job;
        rp_versions v;
        rp_arena_init(&arena, "test", 0);
        const rp_layout *layout = layout_of(&arena, "xpipe", 6, 4, k, &job);
        expect_ok(rp_versions_open(&arena, &job, layout->slots, &v));
        assert_int_equal(v.forward_ahead, want[k]);
        rp_arena_finish(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned),
        cmocka_unit_test(planned_of_split_stages),
        cmocka_unit_test(a_backward_sees_its_forwards_weights),
        cmocka_unit_test(device_bytes),
        cmocka_unit_test(xpipe_horizons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
