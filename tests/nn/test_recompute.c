/* `recompute: blocks`: where groups of layers begin. */
#include "nn/recompute.h"

#include "expect.h"
#include "nn/model.h"

enum { LAYERS_MAX = 32, TEXT_BYTES = 400 };

/* The names of the layers at which groups begin, in order. */
static void read_blocks(const char *layers, const char *input, char text[TEXT_BYTES]) {
    char file[2000];
    rp_arena arena;
    rp_node *root;
    rp_node *keys;
    rp_model *model;
    bool stage[1] = {false};
    bool begins[LAYERS_MAX] = {false};
    bool is_auto = true;
    size_t used = 0;
    static const char run[] = "recompute: blocks";
    rp_arena_init(&arena, "model", 0);
    (void)snprintf(file, sizeof file, "input: %s\nlayers:\n%s", input, layers);
    expect_ok(rp_config_read_text(&arena, file, strlen(file), "net.yaml", &root));
    expect_ok(rp_model_parse(&arena, root, &(rp_model_data){.classes = 5, .tokens = 9}, &model));
    assert_true(model->layer_count <= LAYERS_MAX);
    expect_ok(rp_config_read_text(&arena, run, strlen(run), "run.yaml", &keys));
    const uint32_t first[] = {0, model->layer_count};
    const rp_cut cut = {.stage_count = 1, .first = first};
    expect_ok(rp_recompute_read(keys, model, &cut, stage, begins, &is_auto));
    assert_true(stage[0] && !is_auto);
    text[0] = '\0';
    for (uint32_t i = 0; i < model->layer_count; i++) {
        used += begins[i] ? (size_t)snprintf(text + used, TEXT_BYTES - used, "%s%s",
                                             used > 0 ? " " : "", model->layer[i].name)
                          : 0;
    }
    rp_arena_finish(&arena);
}

static void halves_of_a_transformer_block(void **state) {
    (void)state;
    char text[TEXT_BYTES];
    read_blocks("  - {name: embed, kind: embedding, count: tokens, out: 12}\n"
                "  - {name: place, kind: position, length: 16}\n"
                "  - {name: norm1, kind: layernorm, dims: 1}\n"
                "  - {name: qkv, kind: linear, out: 36}\n"
                "  - {name: attention, kind: attention, heads: 3, causal: true}\n"
                "  - {name: proj, kind: linear, out: 12}\n"
                "  - {name: add1, kind: add, from: [place, proj]}\n"
                "  - {name: norm2, kind: rmsnorm}\n"
                "  - {name: fc1, kind: linear, out: 48}\n"
                "  - {name: act, kind: gelu}\n"
                "  - {name: fc2, kind: linear, out: 12}\n"
                "  - {name: add2, kind: add, from: [add1, fc2]}\n"
                "  - {name: norm3, kind: rmsnorm}\n"
                "  - {name: head, kind: linear, out: classes}\n",
                "{shape: [16], type: i32}", text);
    assert_string_equal(text, "norm1 norm2");
}

/* The relu after a unit belongs to it; a chain without skips is no block. */
static void residual_units(void **state) {
    (void)state;
    char text[TEXT_BYTES];
    read_blocks("  - {name: stem, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                "  - {name: relu0, kind: relu}\n"
                "  - {name: conv1, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                "  - {name: relu1, kind: relu}\n"
                "  - {name: conv2, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                "  - {name: add1, kind: add, from: [relu0, conv2]}\n"
                "  - {name: relu2, kind: relu}\n"
                "  - {name: conv3, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                "  - {name: add2, kind: add, from: [relu2, conv3]}\n"
                "  - {name: flat, kind: flatten}\n"
                "  - {name: fc, kind: dense, out: classes}\n",
                "[3, 8, 8]", text);
    assert_string_equal(text, "conv1 conv3");
}

static void recurrent_layers(void **state) {
    (void)state;
    char text[TEXT_BYTES];
    read_blocks("  - {name: embed, kind: embedding, count: tokens, out: 8}\n"
                "  - {name: lstm1, kind: lstm, hidden: 8}\n"
                "  - {name: drop, kind: dropout}\n"
                "  - {name: lstm2, kind: lstm, hidden: 8}\n"
                "  - {name: gru, kind: gru, hidden: 8}\n"
                "  - {name: head, kind: linear, out: classes}\n",
                "{shape: [16], type: i32}", text);
    assert_string_equal(text, "lstm1 lstm2 gru");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_of_a_transformer_block),
        cmocka_unit_test(residual_units),
        cmocka_unit_test(recurrent_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
