#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("matmul", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape plain[] = {rp_shape_2(3, 5), rp_shape_2(5, 4)};
    const rp_shape turned[] = {rp_shape_3(2, 3, 5), rp_shape_2(4, 5)};
    const rp_shape many[] = {rp_shape_2(3, 5), rp_shape_3(2, 5, 4)};
    golden_differences("{kind: matmul}", 2, plain, 2, 1e-2f, 1e-3);
    if (expect_small()) {
        return; /* the golden cases run the same kernels on these shapes */
    }
    golden_differences("{kind: matmul, transpose: true}", 2, turned, 2, 1e-2f, 1e-3);
    golden_differences("{kind: matmul}", 2, many, 2, 1e-2f, 1e-3);
}

/* The message of a plan that is refused. */
static void expect_refused(const char *kind, const char *keys, const rp_shape *in, uint32_t count,
                           const char *says) {
    rp_layer layer = {.kind = rp_layer_find(kind), .name = "l", .input_count = count};
    rp_arena arena;
    rp_node *node;
    rp_layer_plan plan;
    rp_arena_init(&arena, "refused", 0);
    expect_ok(rp_config_read_text(&arena, keys, strlen(keys), "m.yaml", &node));
    expect_ok(rp_arena_alloc(&arena, 1, layer.kind->spec_bytes + 1, &layer.spec));
    rp_err err = layer.kind->parse(&layer, node, &(rp_model_data){0});
    err = err == RP_OK ? layer.kind->plan(&layer, in, &plan) : err;
    assert_int_not_equal(err, RP_OK);
    if (!strstr(rp_err_message(), says)) {
        fail_msg("'%s' is not in '%s'", says, rp_err_message());
    }
    rp_arena_finish(&arena);
}

static void refusals(void **state) {
    (void)state;
    const rp_shape inner[] = {rp_shape_2(3, 5), rp_shape_2(4, 5)};
    const rp_shape axes[] = {{3, {2, 3, 5}}, {3, {3, 5, 4}}};
    const rp_shape row[] = {{2, {3, 5}}, {1, {5}}};
    expect_refused("matmul", "{}", inner, 2, "matmul cannot multiply [3, 5] by [4, 5]");
    expect_refused("matmul", "{}", axes, 2, "matmul cannot multiply [2, 3, 5] by [3, 5, 4]");
    expect_refused("matmul", "{transpose: true}", row, 2, "by [5], transposed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
