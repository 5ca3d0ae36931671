/* METHODS 13: copies of the weights and gaps by stage, as the memory plan counts them, and that no
 * op ever sees a block that was written over. */
#include "ring.h"

#include "stage/versions.h"

static const char model[] =
    "input: [4]\nlayers:\n"
    "  - {name: a, kind: dense, out: 4}\n  - {name: b, kind: dense, out: 4}\n"
    "  - {name: c, kind: dense, out: 4}\n  - {name: d, kind: dense, out: 4}\n"
    "  - {name: e, kind: dense, out: 4}\n  - {name: f, kind: dense, out: 4}\n"
    "  - {name: g, kind: dense, out: 4}\n  - {name: h, kind: dense, out: 3}\n";
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
                   "sample: [4]\nclasses: 3\nseed: 1\nbatch: 12\nmicrobatch: %u\n"
                   "epoch_samples: 470\nsteps: 100\nloss: cross-entropy\n"
                   "optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}\nschedule: %s\n",
                   micro, schedule);
    expect_ok(test_parse(arena, model, text, cuts[stages - 1], stages, stage, job));
    expect_ok(rp_layout_make(arena, job, RP_GEMM_PANEL, 128, &layout));
    return layout;
}

typedef uint32_t (*copies_of)(uint32_t stages, uint32_t stage);

static uint32_t one(uint32_t stages, uint32_t stage) {
    (void)stages;
    (void)stage;
    return 1;
}

static uint32_t behind(uint32_t stages, uint32_t stage) { /* D - k */
    return stages - stage;
}

static uint32_t entry(uint32_t stages, uint32_t stage) { /* D on every stage but the last alike */
    (void)stage;
    return stages;
}

static uint32_t two_but_for_the_last(uint32_t stages, uint32_t stage) {
    return stage + 1 < stages ? 2 : 1;
}

static uint32_t two(uint32_t stages, uint32_t stage) {
    (void)stages;
    (void)stage;
    return 2;
}

static uint32_t spectrain(uint32_t stages, uint32_t stage) {
    return stage / 2 + stages - 1 - stage > 0 ? 2 : 1;
}

static uint32_t replicas_and_centre(uint32_t stages, uint32_t stage) {
    (void)stage;
    return stages + 1;
}

static uint32_t replicas_centre_and_mean(uint32_t stages, uint32_t stage) {
    return replicas_and_centre(stages, stage) + 1;
}

static uint32_t lean(uint32_t stages, uint32_t stage) {
    return stages - stage + 1;
}

static void copies(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        uint32_t micro;
        copies_of want;
    } cases[] = {
        {"gpipe", 3, one},
        {"1f1b", 3, one},
        {"zb-h1", 3, one},
        {"async", 12, one},
        {"pipedream", 12, behind},
        {"{kind: pipedream, vertical_sync: true}", 12, entry},
        {"pipedream-2bw", 1, two},
        {"spectrain", 12, spectrain},
        {"pipeoptim", 12, two_but_for_the_last},
        {"{kind: pipeoptim, horizon: released}", 12, two},
        {"ea-pipe", 12, replicas_and_centre},
        {"{kind: ea-pipe, lean: true}", 12, lean},
        {"{kind: ea-pipe, evaluate: latest}", 12, replicas_and_centre},
        {"{kind: ea-pipe, evaluate: mean}", 12, replicas_centre_and_mean},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t stages = 1; stages <= 8; stages++) {
            for (uint32_t k = 0; k < stages; k++) {
                rp_arena arena;
                rp_job job;
                rp_arena_init(&arena, "test", 0);
                const rp_layout *layout =
                    layout_of(&arena, cases[i].schedule, cases[i].micro, stages, k, &job);
                const uint32_t got = rp_layout_weight_copies(layout);
                const uint32_t want = cases[i].want(stages, k);
                if (got != want) {
                    print_error("%s, stage %u of %u: %u copies, not %u\n", cases[i].schedule, k,
                                stages, got, want);
                }
                assert_int_equal(got, want);
                rp_arena_finish(&arena);
            }
        }
    }
}

/* Stashed activations: D - k of every schedule without a flush, min(D - k, M) of those with 1F1B.
 */
static void stashes(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= 8; stages++) {
        for (uint32_t k = 0; k < stages; k++) {
            rp_arena arena;
            rp_job job;
            rp_arena_init(&arena, "test", 0);
            assert_int_equal(layout_of(&arena, "async", 12, stages, k, &job)->slots, stages - k);
            const uint32_t flushed = layout_of(&arena, "1f1b", 3, stages, k, &job)->slots;
            assert_int_equal(flushed, stages - k < 4 ? stages - k : 4);
            rp_arena_finish(&arena);
        }
    }
}

/* Walks a run of ops; every backward must see the version of the weights that its rule says, told
 * from what each block held when it was last written. */
static void walk(const char *schedule, uint32_t micro, uint32_t stages, uint32_t stage) {
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
            const rp_sight sight = rp_versions_forward(&v, &op);
            forward[op.step][op.micro] = held[sight.block];
            if (job.method.weights == RP_WEIGHTS_DOUBLE) {
                assert_int_equal(held[sight.block], op.step > 0 ? op.step - 1 : 0);
            }
        } else if (op.kind == RP_OP_UPDATE) {
            const rp_version_step by = rp_versions_update(&v, &op);
            held[by.to] = op.step + 1;
        } else {
            const rp_sight sight = rp_versions_backward(&v, &op);
            if (job.method.weights != RP_WEIGHTS_CURRENT ||
                job.method.kind->average != RP_AVERAGE_NONE) {
                assert_int_equal(held[sight.block], forward[op.step][op.micro]);
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
                walk(schedules[i], 12, stages, k);
                walk(schedules[i], 5, stages, k);
                walk(schedules[i], 1, stages, k);
            }
        }
    }
}

/* The device's own accounting says what the plan said: copies, optimisers of replicas, slots. */
static void device_bytes(void **state) {
    (void)state;
    static const char *const schedules[] = {
        "gpipe",     "async",     "pipedream", "pipedream-2bw",
        "spectrain", "pipeoptim", "xpipe",     "{kind: ea-pipe, lean: true, order: before}",
        "ea-pipe",   "avgpipe"};
    rp_arena arena;
    rp_device *device;
    rp_device_options options = {.threads = 1};
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_device_open(&arena, &options, &device));
    const uint32_t align = rp_device_facts_of(device)->align_bytes;
    const size_t before = rp_device_used_bytes(device);
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        rp_job job;
        rp_stage *stage;
        (void)layout_of(&arena, schedules[i], 3, 4, 1, &job);
        expect_ok(rp_stage_prepare(&arena, device, &job, &stage));
        const rp_layout *layout = rp_stage_layout(stage);
        const size_t used = rp_device_used_bytes(device) - before;
        if (used > layout->total_bytes || layout->total_bytes - used > 64 * (size_t)align) {
            print_error("%s: %zu bytes used, %zu planned\n", schedules[i], used,
                        layout->total_bytes);
        }
        /* unrounded takes of a buffer each: less than the plan by less than an alignment each */
        assert_true(used <= layout->total_bytes);
        assert_true(layout->total_bytes - used <= 64 * (size_t)align);
        rp_stage_destroy(&stage);
        assert_int_equal(rp_device_used_bytes(device), before);
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
        assert_int_equal(rp_layout_weight_copies(layout), 3);
        rp_arena_finish(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies),
        cmocka_unit_test(stashes),
        cmocka_unit_test(a_backward_sees_its_forwards_weights),
        cmocka_unit_test(device_bytes),
        cmocka_unit_test(xpipe_horizons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
