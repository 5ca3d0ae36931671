/* Tied weights: layers that share tensors on one stage, on several stages, and on several stages of
 * one node train the same. */
#include "agent/ring.h"
#include "base/safetensors.h"
#include "nn/names.h"

static const char model[] =
    "input: [4]\nlayers:\n"
    "  - {name: a, kind: dense, out: 5}\n  - {name: a1, kind: tanh}\n"
    "  - {name: b, kind: dense, out: 5}\n  - {name: b1, kind: tanh}\n"
    "  - {name: c, kind: dense, out: 5, names: {weight: b.weight}}\n"
    "  - {name: c1, kind: tanh}\n"
    "  - {name: d, kind: dense, out: 5, names: {weight: b.weight, bias: a.bias}}\n"
    "  - {name: e, kind: dense, out: 3}\n";

enum { FLOATS = 1 << 12, STEPS = 5 };

static void write_job(char *out, size_t bytes, const char *schedule) {
    (void)snprintf(out, bytes,
                   "sample: [4]\nclasses: 3\nseed: 5\nbatch: 16\nmicrobatch: 2\nguard: true\n"
                   "epoch_samples: 76\nsteps: %d\nloss: cross-entropy\n" /* a short last step */
                   "optimizer: {kind: adamw, lr: 0.02, eps: 0.01}\nschedule: %s\n",
                   STEPS, schedule);
}

/* Trains, and gives the values of all tensors that the stages save. */
static size_t train_ring(const char *schedule, const char *cut, uint32_t stages, float *out) {
    char job[512];
    test_ring ring;
    size_t used = 0;
    write_job(job, sizeof job, schedule);
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, cut, stages);
    test_ring_run(&ring);
    for (uint32_t k = 0; k < ring.count; k++) {
        rp_stage *stage = ring.board[k].stage;
        for (uint32_t i = 0; i < rp_stage_tensor_count(stage, false); i++) {
            char name[256];
            rp_shape shape;
            expect_ok(rp_stage_tensor_at(stage, i, name, sizeof name, &shape));
            const size_t count = rp_shape_count(&shape);
            assert_true(used + count <= FLOATS);
            if (rp_stage_tensor_is_saved(stage, i)) {
                expect_ok(rp_stage_tensor_read(stage, i, 0, count, out + used));
                used += count;
            }
        }
    }
    test_ring_close(&ring);
    return used;
}

static void every_cut_is_one_stage(void **state) {
    (void)state;
    static const struct {
        const char *cut;
        uint32_t stages;
    } cuts[] = {{"[b1]", 2}, {"[b, c]", 3}, {"[b1, c1]", 3}, {"[b, c, d]", 4}};
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1"};
    for (size_t s = 0; s < sizeof schedules / sizeof *schedules; s++) {
        float one[FLOATS];
        const size_t count = train_ring(schedules[s], "[]", 1, one);
        /* a: 20 + 5, b: 25 + 5, c: bias 5, e: 15 + 3 */
        assert_int_equal(count, 20 + 5 + 25 + 5 + 5 + 15 + 3);
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            float got[FLOATS];
            assert_int_equal(train_ring(schedules[s], cuts[c].cut, cuts[c].stages, got), count);
            assert_memory_equal(got, one, count * sizeof *got);
        }
    }
}

/* Stages of one node exchange their rows by memory. */
static void stages_of_a_node(void **state) {
    (void)state;
    float one[FLOATS], got[FLOATS];
    const size_t count = train_ring("1f1b", "[]", 1, one);
    assert_int_equal(train_ring("{kind: interleaved-1f1b, chunks: 4}", "[b, c, d]", 4, got), count);
    assert_memory_equal(got, one, count * sizeof *got);
    assert_int_equal(train_ring("{kind: interleaved-1f1b, chunks: 2}", "[b, c, d]", 4, got), count);
    assert_memory_equal(got, one, count * sizeof *got);
}

/* A tensor that is written by name is that of all uses; only the first one is saved. */
static void a_write_reaches_every_use(void **state) {
    (void)state;
    static const char *const executors[] = {"opencl", "digest"};
    float values[25];
    for (uint32_t i = 0; i < 25; i++) {
        values[i] = 0.5f + (float)i;
    }
    for (size_t x = 0; x < 2; x++) {
        const rp_site site = {.device = x == 0 ? test_device_open() : NULL};
        char text[512];
        rp_arena arena;
        rp_job job;
        rp_stage *stage;
        uint32_t uses = 0;
        uint32_t saved = 0;
        float first[25];
        rp_arena_init(&arena, "test", 0);
        write_job(text, sizeof text, "gpipe");
        expect_ok(test_parse(&arena, model, text, "[]", 1, 0, &job));
        expect_ok(rp_stage_prepare(&arena, rp_executor_find(executors[x]), &site, &job, &stage));
        expect_ok(rp_stage_tensor_write(stage, "b.weight", 0, 10, values));
        expect_ok(rp_stage_tensor_write(stage, "b.weight", 10, 15, values + 10));
        for (uint32_t i = 0; i < rp_stage_tensor_count(stage, false); i++) {
            char name[256];
            rp_shape shape;
            float got[25];
            expect_ok(rp_stage_tensor_at(stage, i, name, sizeof name, &shape));
            if (strcmp(name, "b.weight") == 0) {
                expect_ok(rp_stage_tensor_read(stage, i, 0, 25, got));
                memcpy(first, uses++ == 0 ? got : first, sizeof first);
                assert_memory_equal(got, first, sizeof got);
                saved += rp_stage_tensor_is_saved(stage, i);
            }
        }
        assert_int_equal(uses, 3);
        assert_int_equal(saved, 1);
        if (x == 0) {
            assert_memory_equal(first, values, sizeof values);
        }
        rp_stage_destroy(&stage);
        rp_arena_finish(&arena);
    }
}

/* The values of the tensor's use on a stage that does not save it; the tensor has 25 elements. */
static void read_copy(const test_ring *ring, uint32_t stage, const char *tensor, float *out) {
    rp_stage *at = ring->board[stage].stage;
    for (uint32_t i = 0; i < rp_stage_tensor_count(at, false); i++) {
        char name[256];
        rp_shape shape;
        expect_ok(rp_stage_tensor_at(at, i, name, sizeof name, &shape));
        if (strcmp(name, tensor) == 0) {
            expect_ok(rp_stage_tensor_read(at, i, 0, 25, out));
            return;
        }
    }
    fail_msg("stage %u has no tensor %s", stage, tensor);
}

/* Without a flush only the owner, stage 1, updates b.weight: the copies of stages 2 and 3, which
 * nothing reads, stay. */
static void copies_of_far_tensors_stay(void **state) {
    (void)state;
    static const char *const schedules[] = {"pipedream", "pipeoptim"};
    for (size_t s = 0; s < sizeof schedules / sizeof *schedules; s++) {
        float before[25], after[25];
        char job[512];
        test_ring ring;
        write_job(job, sizeof job, schedules[s]);
        test_ring_open(&ring, RP_GEMM_PANEL, model, job, "[b, c, d]", 4);
        read_copy(&ring, 1, "b.weight", before);
        test_ring_run(&ring);
        for (uint32_t k = 1; k < 4; k++) {
            read_copy(&ring, k, "b.weight", after);
            assert_int_equal(memcmp(before, after, sizeof before) == 0, k > 1);
        }
        test_ring_close(&ring);
    }
}

/* A board that has added all rows waits for the host's decision, no longer for its neighbour. */
static void a_wait_after_the_exchange(void **state) {
    (void)state;
    char job[512];
    test_ring ring;
    write_job(job, sizeof job, "gpipe");
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, "[b1]", 2);
    test_ring_start(&ring);
    rp_runner *runner = ring.node[0].runner;
    const int64_t end_ns = rp_clock_now_ns(&ring.clock) + 60 * RP_NS_PER_S;
    rp_runner_place place = {0};
    while (!(place.waits && place.settled)) { /* nobody reads the boards' reports */
        assert_true(rp_clock_now_ns(&ring.clock) < end_ns);
        test_ring_feed(&ring);
        for (uint32_t n = 0; n < ring.nodes; n++) {
            test_node *node = &ring.node[n];
            test_step_pair(&node->control);
            test_step_pair(&node->feed);
            test_step_pair(&node->hop[1 - n]);
            expect_ok(rp_runner_step(node->runner, &node->active));
        }
        place = rp_runner_place_of(runner);
    }
    assert_int_equal(rp_runner_wait_of(runner).what, RP_WAITING_DECISION);
    while (test_ring_step(&ring)) {
    }
    test_ring_close(&ring);
}

static const rp_layout *layout_of(rp_arena *arena, const char *schedule, uint32_t stage) {
    char text[512];
    rp_job *job;
    rp_layout *layout;
    write_job(text, sizeof text, schedule);
    expect_ok(RP_ARENA_NEW(arena, 1, &job));
    expect_ok(test_parse(arena, model, text, "[b, c, d]", 4, stage, job));
    expect_ok(rp_layout_make(arena, job, RP_GEMM_PANEL, 64, &layout));
    return layout;
}

/* Stage 0 has a.bias, 1 to 3 have b.weight, and 3 has both. */
static void memory_of_uses(void **state) {
    (void)state;
    const size_t weight = 25 * sizeof(float);
    const size_t bias = 5 * sizeof(float);
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (uint32_t k = 0; k < 4; k++) {
        const rp_layout *flush = layout_of(&arena, "gpipe", k);
        const rp_layout *late = layout_of(&arena, "pipedream", k);
        const size_t row = (k > 0 ? weight : 0) + (k == 0 || k == 3 ? bias : 0);
        assert_int_equal(flush->tie_row_bytes, row);
        assert_int_equal(late->tie_row_bytes, row);
        assert_true(flush->tie_waits);
        assert_int_equal(flush->tie_bytes, k == 0 ? bias : weight);
        assert_int_equal(flush->far_count, 0);
        /* only owners wait for gradients: stage 0 for a.bias, 1 for b.weight */
        assert_int_equal(late->tie_waits, k < 2);
        assert_int_equal(late->far_count, k < 2 ? 0 : k - 1);
        assert_int_equal(late->part_count, flush->part_count + late->far_count);
    }
    rp_arena_finish(&arena);
}

/* What cannot stay equal is refused. */
static void refusals(void **state) {
    (void)state;
    static const uint32_t first[] = {0, 2, 8};
    const rp_cut apart = {.stage_count = 2, .first = first};
    char text[512];
    rp_arena arena;
    rp_job job;
    rp_arena_init(&arena, "test", 0);
    write_job(text, sizeof text, "gpipe");
    expect_ok(test_parse(&arena, model, text, "[]", 1, 0, &job));
    expect_ok(rp_method_fit_ties(&job.method, &job.optim, job.model, &apart));
    job.optim.clip_norm_stage = 1;
    expect_ok(rp_method_fit_ties(&job.method, &job.optim, job.model, &job.cut));
    assert_int_equal(rp_method_fit_ties(&job.method, &job.optim, job.model, &apart), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "layers 'a' (stage 0) and 'd' (stage 1) share "
                                             "'a.bias', which schedule gpipe cannot keep equal"));
    rp_arena_finish(&arena);
}

/* A model cannot give a name that begins like those of another set or of a state, and the longest
 * one fits, after its prefixes, into files and messages. */
static void names_in_checkpoints(void **state) {
    (void)state;
    const rp_method methods[] = {{.weights = RP_WEIGHTS_DOUBLE}, {.replicas = RP_REPLICAS_MAX}};
    size_t longest_set = 0;
    size_t longest_state = 0;
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        for (uint32_t set = 0; set <= methods[m].replicas; set++) {
            char prefix[32];
            rp_method_set_prefix(&methods[m], set, prefix, sizeof prefix);
            assert_non_null(rp_names_reserved(prefix));
            longest_set = strlen(prefix) > longest_set ? strlen(prefix) : longest_set;
        }
    }
    for (const rp_optim_kind *const *kind = rp_optim_kinds; *kind; kind++) {
        for (const char *const *name = (*kind)->state_names; *name; name++) {
            longest_state = strlen(*name) > longest_state ? strlen(*name) : longest_state;
        }
    }
    const size_t longest =
        longest_set + strlen("optim.") + longest_state + strlen(".") + RP_PARAM_NAME_MAX - 1;
    assert_non_null(rp_names_reserved("optim.w"));
    assert_true(longest <= RP_ST_NAME_MAX);
    assert_true(longest < sizeof((rp_Tensor *)0)->name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_is_one_stage),
        cmocka_unit_test(stages_of_a_node),
        cmocka_unit_test(a_write_reaches_every_use),
        cmocka_unit_test(copies_of_far_tensors_stay),
        cmocka_unit_test(a_wait_after_the_exchange),
        cmocka_unit_test(memory_of_uses),
        cmocka_unit_test(refusals),
        cmocka_unit_test(names_in_checkpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
