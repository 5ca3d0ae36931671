#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("arrange", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 3, 5);
    golden_differences("{kind: transpose, perm: [2, 0, 1]}", 2, &in, 1, 0.25f, 1e-4);
    golden_differences("{kind: gather, axis: 1, indices: [2, 0, 2, 2]}", 2, &in, 1, 0.25f, 1e-4);
    golden_differences("{kind: pad, pads: [0, 1, 0, 2, 0, 1]}", 2, &in, 1, 0.25f, 1e-4);
    golden_differences("{kind: expand, shape: [4, 2, 3, 5]}", 2, &in, 1, 0.25f, 1e-3);
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
    const rp_shape in = rp_shape_2(3, 4);
    expect_refused("transpose", "{perm: [0]}", &in, 1, "`perm` needs as many axes");
    expect_refused("transpose", "{perm: [0, 2]}", &in, 1, "from 0 to 1, found '2'");
    expect_refused("reshape", "{shape: [5, 2]}", &in, 1, "`shape` needs as many elements");
    expect_refused("expand", "{shape: [4, 4]}", &in, 1, "it cannot be broadcast to `shape`");
    expect_refused("pad", "{pads: [1, 1]}", &in, 1, "`pads` needs two numbers for each axis");
    expect_refused("pad", "{pads: [1, 1, 1]}", &in, 1, "expected a list of the elements before");
    expect_refused("gather", "{axis: 1, indices: [4]}", &in, 1, "an index is not within the axis");
    expect_refused("gather", "{axis: 2, indices: [0]}", &in, 1, "gather of axis 2, but its input");
    expect_refused("reshape", "{shape: [70000, 70000]}", &in, 1, "less than 2^31 elements");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
