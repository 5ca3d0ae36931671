/* The workspace of a model's layers: the most for any number of samples and any length, also when
 * it is asked for again and after the shapes have changed. */
#include "golden.h"

#include "nn/fuse.h"
#include "nn/workspace.h"

static rp_arena arena;

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test workspace", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static rp_model *parse_model(const char *text, const rp_model_data *about) {
    rp_model *model;
    rp_node *root;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "m.yaml", &root));
    expect_ok(rp_model_parse(&arena, root, about, &model));
    return model;
}

static size_t bytes_at(const rp_model *model, uint32_t layer, uint32_t time, uint32_t samples,
                       rp_gemm_choice gemm) {
    const rp_model_view view = rp_model_view_at(model, time);
    const rp_layer *of = &model->layer[layer];
    return of->kind->workspace_bytes
               ? of->kind->workspace_bytes(of, &view.plan[layer], view.in[layer], samples, gemm)
               : 0;
}

static size_t most_of(const rp_model *model, uint32_t layer, uint32_t samples,
                      rp_gemm_choice gemm) {
    size_t most = 0;
    for (uint32_t k = 0; k <= model->view_count; k++) {
        for (uint32_t n = 1; n <= samples; n++) {
            const uint32_t time = k < model->view_count ? model->view[k].time : 0;
            const size_t bytes = bytes_at(model, layer, time, n, gemm);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

/* Twice the pairs that a model remembers, each asked for twice. */
static void expect_most(const rp_model *model) {
    static const uint32_t samples[] = {8, 1, 3, 64};
    for (uint32_t again = 0; again < 2; again++) {
        for (uint32_t s = 0; s < 4; s++) {
            for (uint32_t i = 0; i < model->layer_count; i++) {
                assert_int_equal(rp_model_workspace(model, i, samples[s], RP_GEMM_PANEL),
                                 most_of(model, i, samples[s], RP_GEMM_PANEL));
                assert_int_equal(rp_model_workspace(model, i, samples[s], RP_GEMM_CLBLAST),
                                 most_of(model, i, samples[s], RP_GEMM_CLBLAST));
            }
        }
    }
}

static const char image_text[] = "input: [16, 16, 16]\nlayers:\n"
                                 "  - {name: c1, kind: conv2d, out: 24, kernel: 3, pad: 1}\n"
                                 "  - {name: r1, kind: relu}\n"
                                 "  - {name: c2, kind: conv2d, out: 8, kernel: 1}\n"
                                 "  - {name: fc, kind: dense, out: 3}\n";

static void most_for_any_number_of_samples(void **state) {
    (void)state;
    const rp_model_data about = {.classes = 3};
    rp_model *model = parse_model(image_text, &about);
    const uint32_t c1 = rp_model_find(model, "c1");
    assert_true(most_of(model, c1, 8, RP_GEMM_PANEL) > bytes_at(model, c1, 0, 1, RP_GEMM_PANEL));
    assert_int_equal(rp_model_workspace(model, c1, 0, RP_GEMM_PANEL), 0);
    expect_most(model);
}

static void a_fused_model_is_asked_again(void **state) {
    (void)state;
    const rp_model_data about = {.classes = 3};
    const rp_cut cut = {.stage_count = 1, .first = (uint32_t[]){0, 4}};
    rp_model *model = parse_model(image_text, &about);
    uint32_t fused;
    expect_most(model);
    expect_ok(rp_model_fuse(model, &cut, &fused));
    assert_int_equal(fused, 1);
    expect_most(model);
}

/* Before the lengths are added, the model remembers what the planned length needs. */
static void shorter_samples_count(void **state) {
    (void)state;
    static const char text[] = "input: {shape: [80], type: i32}\nlayers:\n"
                               "  - {name: words, kind: embedding, count: tokens, out: 48}\n"
                               "  - {name: a, kind: attention, heads: 2, causal: true}\n"
                               "  - {name: out, kind: linear, out: 3}\n";
    const rp_model_data about = {.classes = 3, .tokens = 9, .type = RP_I32};
    rp_model *model = parse_model(text, &about);
    expect_most(model);
    expect_ok(rp_model_add_times(&arena, model, (const uint32_t[]){5, 33, 70}, 3));
    expect_most(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(most_for_any_number_of_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fused_model_is_asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown(shorter_samples_count, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
