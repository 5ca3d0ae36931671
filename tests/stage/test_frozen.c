/* Layers with `train: false`: their weights stay, and no gradient costs memory or a kernel. */
#include "agent/ring.h"

#define HEAD "input: [2, 9, 9]\nlayers:\n"
#define FROZEN ", train: false}\n"

/* Everything up to `flat` is frozen: nothing below fc1 has a gradient. */
static const char backbone[] =
    HEAD "  - {name: conv1, kind: conv2d, out: 5, kernel: 3, pad: 1" FROZEN
         "  - {name: bn1, kind: batchnorm" FROZEN "  - {name: relu1, kind: relu}\n"
         "  - {name: conv2, kind: conv2d, out: 5, kernel: 3, pad: 1" FROZEN
         "  - {name: drop, kind: dropout, p: 0.3" FROZEN
         "  - {name: add, kind: add, from: [relu1, drop]}\n"
         "  - {name: pool, kind: maxpool, kernel: 3}\n"
         "  - {name: flat, kind: flatten}\n"
         "  - {name: fc1, kind: dense, out: 7}\n"
         "  - {name: relu2, kind: relu}\n"
         "  - {name: fc2, kind: dense, out: 3}\n";

/* Trained layers below and above: the gradient goes through. */
static const char middle[] =
    HEAD "  - {name: conv1, kind: conv2d, out: 5, kernel: 3, pad: 1, stride: 2}\n"
         "  - {name: bn1, kind: batchnorm, deferred: true" FROZEN "  - {name: relu1, kind: relu}\n"
         "  - {name: conv2, kind: conv2d, out: 6, kernel: 3, pad: 1" FROZEN
         "  - {name: relu2, kind: relu}\n"
         "  - {name: gn, kind: groupnorm, groups: 2" FROZEN "  - {name: drop, kind: dropout" FROZEN
         "  - {name: flat, kind: flatten}\n"
         "  - {name: bn2, kind: batchnorm" FROZEN "  - {name: ln, kind: layernorm}\n"
         "  - {name: fc1, kind: dense, out: 7" FROZEN "  - {name: relu3, kind: relu}\n"
         "  - {name: fc2, kind: dense, out: 3}\n";

static const char job_format[] =
    "sample: [2, 9, 9]\nclasses: 3\nseed: 3\nbatch: 10\nmicrobatch: 4\nepoch_samples: 30\n"
    "steps: 4\nloss: cross-entropy\noptimizer: {kind: adamw, lr: 0.05, weight_decay: 0.1}\n"
    "schedule: %s\n";

enum { FLOATS = 1 << 16, LAYERS_MAX = 16 };

static void open_ring(test_ring *ring, const char *model, const char *schedule, const char *cut,
                      uint32_t stages) {
    char job[1024];
    (void)snprintf(job, sizeof job, job_format, schedule);
    test_ring_open(ring, RP_GEMM_PANEL, model, job, cut, stages);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Each exported tensor has its start value, bit for bit, exactly if its layer is frozen. */
static void expect_frozen_stay(test_ring *ring) {
    const rp_model *model = ring->board[0].job.model;
    static float got[FLOATS];
    static float start[FLOATS];
    uint32_t seen = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_stage *stage = ring->board[k].stage;
        for (uint32_t i = 0; i < rp_stage_tensor_count(stage, false); i++) {
            char name[256];
            rp_shape shape;
            uint32_t p = 0;
            expect_ok(rp_stage_tensor_at(stage, i, name, sizeof name, &shape));
            while (strcmp(model->param[p].name, name) != 0) {
                p++;
                assert_true(p < model->param_count);
            }
            const size_t bytes = model->param[p].count * sizeof(float);
            expect_ok(rp_stage_tensor_read(stage, i, 0, model->param[p].count, got));
            rp_model_init_param(model, p, 3, start);
            const bool stayed = memcmp(got, start, bytes) == 0;
            if (stayed != model->layer[model->param[p].layer].frozen) {
                fail_msg("%s %s", name, stayed ? "was not trained" : "was changed");
            }
            seen++;
        }
    }
    assert_int_equal(seen, model->param_count); /* frozen, they have no step statistics */
}

static void compare_cuts(const char *model, const char *schedule, const char *const *cuts) {
    static float one[FLOATS];
    static float many[FLOATS];
    size_t count = 0;
    for (uint32_t stages = 1; cuts[stages - 1]; stages++) {
        test_ring ring;
        float *to = stages == 1 ? one : many;
        open_ring(&ring, model, schedule, cuts[stages - 1], stages);
        test_ring_run(&ring);
        expect_frozen_stay(&ring);
        const size_t now = test_ring_weights(&ring, to, FLOATS);
        count = stages == 1 ? now : count;
        assert_int_equal(now, count);
        assert_memory_equal(one, to, count * sizeof *one);
        test_ring_close(&ring);
    }
}

static void a_frozen_part_below_stays(void **state) {
    (void)state;
    static const char *const cuts[] = {"[]", "[flat]", "[conv2, fc2]", "[relu1, pool, fc1]", NULL};
    compare_cuts(backbone, "1f1b", cuts);
    compare_cuts(backbone, "gpipe", cuts);
    compare_cuts(backbone, "zb-h1", cuts);
}

static void a_frozen_part_between_stays(void **state) {
    (void)state;
    static const char *const cuts[] = {"[]", "[conv2]", "[relu1, flat]", "[bn1, gn, fc1]", NULL};
    compare_cuts(middle, "1f1b", cuts);
    compare_cuts(middle, "zb-h1", cuts);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static struct {
    rp_layer_kind kind[LAYERS_MAX];
    const rp_layer_kind *real[LAYERS_MAX];
    uint32_t forwards[LAYERS_MAX], backwards[LAYERS_MAX], with_dx[LAYERS_MAX], with_dw[LAYERS_MAX];
} counter;

static rp_err count_forward(const rp_layer_call *call) {
    const size_t i = (size_t)(call->layer->kind - counter.kind);
    counter.forwards[i]++;
    return counter.real[i]->forward(call);
}

static rp_err count_backward(const rp_layer_call *call) {
    const size_t i = (size_t)(call->layer->kind - counter.kind);
    counter.backwards[i]++;
    counter.with_dx[i] += call->want_dx;
    counter.with_dw[i] += call->want_dw;
    return counter.real[i]->backward(call);
}

/* From now on the ring's only stage counts what its layers are asked for. */
static void count_calls(test_ring *ring) {
    rp_model *model = ring->board[0].job.model;
    memset(&counter, 0, sizeof counter);
    assert_true(ring->count == 1 && model->layer_count <= LAYERS_MAX);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        counter.real[i] = model->layer[i].kind;
        counter.kind[i] = *model->layer[i].kind;
        counter.kind[i].forward = count_forward;
        counter.kind[i].backward = count_backward;
        model->layer[i].kind = &counter.kind[i];
    }
}

enum { MICROBATCHES = 4 * 3 }; /* steps of 10 samples by 4 */

static void nothing_runs_for_gradients_that_nobody_wants(void **state) {
    (void)state;
    test_ring ring;
    open_ring(&ring, backbone, "1f1b", "[]", 1);
    count_calls(&ring);
    test_ring_run(&ring);
    const rp_model *model = ring.board[0].job.model;
    const uint32_t fc1 = rp_model_find(model, "fc1");
    for (uint32_t i = 0; i < model->layer_count; i++) {
        assert_int_equal(counter.forwards[i], MICROBATCHES);
        assert_int_equal(counter.backwards[i], i < fc1 ? 0 : MICROBATCHES);
        assert_int_equal(counter.with_dx[i], i <= fc1 ? 0 : MICROBATCHES);
    }
    test_ring_close(&ring);
}

static void a_frozen_layer_between_gives_dx_only(void **state) {
    (void)state;
    test_ring ring;
    open_ring(&ring, middle, "1f1b", "[]", 1);
    count_calls(&ring);
    test_ring_run(&ring);
    const rp_model *model = ring.board[0].job.model;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        assert_int_equal(counter.with_dx[i], i > 0 ? MICROBATCHES : 0);
        assert_int_equal(counter.with_dw[i], rp_layer_trains(&model->plan[i]) ? MICROBATCHES : 0);
    }
    test_ring_close(&ring);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static rp_layout *layout_of(rp_arena *arena, const char *model, const char *cut, uint32_t stages,
                            uint32_t stage) {
    char job[1024];
    rp_job *parsed;
    rp_layout *layout;
    (void)snprintf(job, sizeof job, job_format, "1f1b");
    expect_ok(RP_ARENA_NEW(arena, 1, &parsed));
    expect_ok(test_parse(arena, model, job, cut, stages, stage, parsed));
    expect_ok(rp_layout_make(arena, parsed, RP_GEMM_PANEL, 64, &layout));
    return layout;
}

/* The same text with every layer trained. */
static char *trained(rp_arena *arena, const char *model) {
    char *text;
    expect_ok(rp_arena_string(arena, model, &text));
    for (char *at; (at = strstr(text, ", train: false"));) {
        memmove(at, at + strlen(", train: false"), strlen(at + strlen(", train: false")) + 1);
    }
    return text;
}

static void a_frozen_first_stage_keeps_nothing(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "layouts", 0);
    const rp_layout *frozen = layout_of(&arena, backbone, "[flat]", 2, 0);
    const rp_layout *plain = layout_of(&arena, trained(&arena, backbone), "[flat]", 2, 0);
    assert_int_equal(frozen->trained_count, 0);
    assert_int_equal(frozen->weight_bytes, 0);
    assert_int_equal(frozen->grad.storage_count, 0);
    assert_int_equal(frozen->grad.pool_count + frozen->grad.kept_count, 0);
    assert_int_equal(frozen->value.kept_count, 0);
    assert_int_equal(frozen->slot_bytes, 0);
    assert_int_equal(rp_layout_boundary(frozen, true, true).count, 0);
    assert_int_equal(rp_layout_boundary(frozen, true, false).count, 1);
    assert_int_equal(
        rp_layout_boundary(layout_of(&arena, backbone, "[flat]", 2, 1), false, true).count, 0);
    /* trained, it would hold weights, gradients, two states of adamw, and slots */
    assert_true(plain->weight_bytes > 0 && plain->slot_bytes > 0);
    assert_true(plain->grad.pool_count > 0);
    assert_int_equal(rp_layout_boundary(plain, true, true).count, 1);
    assert_true(plain->total_bytes - frozen->total_bytes >=
                3 * plain->weight_bytes + plain->slots * plain->slot_bytes);
    rp_arena_finish(&arena);
}

static void frozen_layers_between_keep_less(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "layouts", 0);
    const rp_layout *frozen = layout_of(&arena, middle, "[]", 1, 0);
    const rp_layout *plain = layout_of(&arena, trained(&arena, middle), "[]", 1, 0);
    assert_int_equal(frozen->trained_count, 6); /* conv1, ln, fc2 */
    assert_int_equal(plain->trained_count, 16);
    assert_true(frozen->weight_bytes < plain->weight_bytes);
    assert_true(frozen->slot_bytes < plain->slot_bytes); /* no x of conv2, fc1 and the norms */
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frozen_part_below_stays),
        cmocka_unit_test(a_frozen_part_between_stays),
        cmocka_unit_test(nothing_runs_for_gradients_that_nobody_wants),
        cmocka_unit_test(a_frozen_layer_between_gives_dx_only),
        cmocka_unit_test(a_frozen_first_stage_keeps_nothing),
        cmocka_unit_test(frozen_layers_between_keep_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
