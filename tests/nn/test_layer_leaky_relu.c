#include "activation.h"

static void negative_slope_is_refused(void **state) {
    (void)state;
    const char text[] = "{kind: leaky_relu, slope: -0.1}";
    rp_arena arena;
    rp_node *node;
    struct {
        float slope;
    } spec;
    rp_layer layer = {.kind = rp_layer_find("leaky_relu"), .name = "l", .spec = &spec};
    assert_int_equal(layer.kind->spec_bytes, sizeof spec);
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_config_read_text(&arena, text, sizeof text - 1, "test", &node));
    expect_err(layer.kind->parse(&layer, node, &(rp_model_data){.classes = 10, .tokens = 10}),
               RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(negative_slope_is_refused)};
    return test_activation("{kind: leaky_relu, slope: 0.25}", "leaky_relu",
                           (const float[]){-25.0f, 100.0f, -INFINITY, INFINITY}) +
           cmocka_run_group_tests(tests, NULL, NULL);
}
