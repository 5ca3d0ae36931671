/* Which outputs of a model are stored in 16 bits: those that a backward of the model reads. */
#include "nn/rounding.h"

#include "expect.h"
#include "nn/fuse.h"

enum { TEXT_BYTES = 400 };

/* Names of the layers whose outputs are rounded, in order. `cut`: the second stage's first layer,
 * or NULL; then fused layers are fused, as on a board. */
static void read_rounded(const char *layers, const char *input, const char *cut,
                         char text[TEXT_BYTES]) {
    char file[2000];
    rp_arena arena;
    rp_node *root;
    rp_model *model;
    uint32_t fused;
    size_t used = 0;
    rp_arena_init(&arena, "model", 0);
    (void)snprintf(file, sizeof file, "input: %s\nlayers:\n%s", input, layers);
    expect_ok(rp_config_read_text(&arena, file, strlen(file), "net.yaml", &root));
    expect_ok(rp_model_parse(&arena, root, &(rp_model_data){.classes = 5, .tokens = 9}, &model));
    if (cut) {
        const uint32_t first[] = {0, rp_model_find(model, cut), model->layer_count};
        expect_ok(rp_model_fuse(model, &(rp_cut){.stage_count = 2, .first = first}, &fused));
    }
    text[0] = '\0';
    assert_false(rp_rounds_output(model, RP_LAYER_DATA));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        used += rp_rounds_output(model, i)
                    ? (size_t)snprintf(text + used, TEXT_BYTES - used, "%s%s", used > 0 ? " " : "",
                                       model->layer[i].name)
                    : 0;
    }
    rp_arena_finish(&arena);
}

static void expect_rounded(const char *layers, const char *input, const char *cut,
                           const char *want) {
    char text[TEXT_BYTES];
    read_rounded(layers, input, cut, text);
    assert_string_equal(text, want);
}

/* Neither the ids nor the sums of embeddings before the first norm, which no backward reads; nor
 * the model's output. */
static void a_transformer_block(void **state) {
    (void)state;
    expect_rounded("  - {name: embed, kind: embedding, count: tokens, out: 12}\n"
                   "  - {name: place, kind: position, length: 16}\n"
                   "  - {name: norm1, kind: layernorm, dims: 1}\n"
                   "  - {name: qkv, kind: linear, out: 36}\n"
                   "  - {name: attention, kind: attention, heads: 3, causal: true}\n"
                   "  - {name: proj, kind: linear, out: 12}\n"
                   "  - {name: drop, kind: dropout, p: 0.1}\n"
                   "  - {name: add1, kind: add, from: [place, drop]}\n"
                   "  - {name: norm2, kind: rmsnorm}\n"
                   "  - {name: fc1, kind: linear, out: 48}\n"
                   "  - {name: act, kind: gelu}\n"
                   "  - {name: fc2, kind: linear, out: 12}\n"
                   "  - {name: add2, kind: add, from: [add1, fc2]}\n"
                   "  - {name: head, kind: linear, out: classes}\n",
                   "{shape: [16], type: i32}", NULL,
                   "place norm1 qkv attention add1 norm2 fc1 act add2");
}

static const char convs[] = "  - {name: conv1, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                            "  - {name: relu1, kind: relu}\n"
                            "  - {name: conv2, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                            "  - {name: bn, kind: batchnorm}\n"
                            "  - {name: add, kind: add, from: [relu1, bn]}\n"
                            "  - {name: relu2, kind: relu}\n"
                            "  - {name: pool, kind: maxpool, kernel: 2}\n"
                            "  - {name: flat, kind: flatten}\n"
                            "  - {name: fc1, kind: dense, out: classes}\n"
                            "  - {name: relu3, kind: relu}\n";

/* A fused layer writes what the relu after it would write, so the same values are rounded. Where
 * the relu is the last layer, neither is. */
static void fused_layers_round_the_same_values(void **state) {
    (void)state;
    expect_rounded(convs, "[2, 8, 8]", NULL, "relu1 conv2 relu2 flat");
    expect_rounded(convs, "[2, 8, 8]", "conv2", "conv1 relu1 conv2 relu2 flat");
    expect_rounded(convs, "[2, 8, 8]", "relu1", "relu1 conv2 relu2 flat");
    expect_rounded(convs, "[2, 8, 8]", "relu3", "conv1 relu1 conv2 relu2 flat");
}

/* No backward runs there. */
static void frozen_layers_keep_nothing(void **state) {
    (void)state;
    expect_rounded("  - {name: fc1, kind: dense, out: 7, train: false}\n"
                   "  - {name: tanh1, kind: tanh}\n"
                   "  - {name: fc2, kind: dense, out: 7}\n"
                   "  - {name: tanh2, kind: tanh}\n"
                   "  - {name: fc3, kind: dense, out: classes, train: false}\n"
                   "  - {name: tanh3, kind: tanh}\n",
                   "[6]", NULL, "tanh1 tanh2");
}

/* A frozen dropout computes nothing, so the layer before it has the model's output. A flatten of a
 * tensor that a backward reads is a copy. */
static void the_last_layers_may_share_the_output(void **state) {
    (void)state;
    expect_rounded("  - {name: fc, kind: dense, out: 5}\n"
                   "  - {name: tanh, kind: tanh}\n"
                   "  - {name: drop, kind: dropout, p: 0.5, train: false}\n",
                   "[2]", NULL, "");
    expect_rounded("  - {name: conv, kind: conv2d, out: 5, kernel: 1}\n"
                   "  - {name: tanh, kind: tanh}\n"
                   "  - {name: flat, kind: flatten}\n",
                   "[2, 1, 1]", NULL, "tanh");
}

static void formats_are_words(void **state) {
    (void)state;
    static const struct {
        const char *text;
        rp_dtype format;
    } cases[] = {{"a: f32", RP_F32}, {"a: bf16", RP_BF16}, {"a: f16", RP_F16}, {"b: 1", RP_BF16}};
    rp_arena arena;
    rp_node *root;
    rp_dtype format;
    rp_arena_init(&arena, "words", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        format = RP_BF16;
        expect_ok(rp_config_read_text(&arena, cases[i].text, strlen(cases[i].text), "t", &root));
        expect_ok(rp_rounding_read(root, "a", &format));
        assert_int_equal(format, cases[i].format);
    }
    expect_ok(rp_config_read_text(&arena, "a: u8", 5, "t", &root));
    expect_err(rp_rounding_read(root, "a", &format), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "bf16"));
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transformer_block),
        cmocka_unit_test(fused_layers_round_the_same_values),
        cmocka_unit_test(frozen_layers_keep_nothing),
        cmocka_unit_test(the_last_layers_may_share_the_output),
        cmocka_unit_test(formats_are_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
