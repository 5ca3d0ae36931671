/* Each reason to refuse an operator, with its sentence. */
#include "small_graph.h"

static const int64_t row[] = {-1, 4};
static const int64_t sequence[] = {-1, 5, 4};

static bytes attribute_floats(const char *name, float number) {
    bytes b = {.count = 0};
    put_text(&b, 1, name);
    put_varint(&b, 7u << 3 | 5); /* a float of `floats` */
    assert_true(b.count + sizeof number < BYTES_ROOM);
    memcpy(b.at + b.count, &number, sizeof number);
    b.count += sizeof number;
    put_number(&b, 20, 6);
    return b;
}

/* A graph as attribute, as If and Loop have. */
static bytes attribute_graph(const char *name) {
    bytes b = {.count = 0};
    const bytes inner = node("Relu", "x", "inner");
    bytes body = {.count = 0};
    put_part(&body, GRAPH_NODE, &inner);
    put_text(&b, 1, name);
    put_part(&b, 6, &body);
    put_number(&b, 20, 5);
    return b;
}

static void add_node_with(const char *op, const char *inputs, const char *outputs,
                          const bytes *attributes, uint32_t count) {
    bytes n = node(op, inputs, outputs);
    for (uint32_t i = 0; i < count; i++) {
        put_part(&n, NODE_ATTRIBUTE, &attributes[i]);
    }
    put_part(&graph, GRAPH_NODE, &n);
}

static void expect_refusal(const char *want) {
    expect_with(&(rp_onnx_options){0}, want);
}

/* ---- graphs in nodes, sequences, integers ---------------------------------------------------- */

static void graphs_in_nodes(void **state) {
    static const char *const ops[] = {"If", "Loop", "Scan"};
    for (size_t i = 0; i < 3; i++) {
        char want[200];
        (void)begin(state);
        const bytes a = attribute_graph("body");
        add_node_with(ops[i], "x", "y", &a, 1);
        add_ends(1, 2, row, "y");
        (void)snprintf(want, sizeof want,
                       "%s: a node with a graph of its own cannot be trained here: node /y/%s "
                       "(output y)\n",
                       ops[i], ops[i]);
        expect_refusal(want);
    }
}

static void sequences_of_tensors(void **state) {
    (void)state;
    add_node("SequenceConstruct", "x x", "s");
    add_node("ConcatFromSequence", "s", "y");
    add_ends(1, 2, row, "y");
    expect_refusal("SequenceConstruct: this operator cannot be trained here: node "
                   "/s/SequenceConstruct (output s)\n"
                   "ConcatFromSequence: this operator cannot be trained here: node "
                   "/y/ConcatFromSequence (output y)\n");
}

/* Token ids that the net computes with. */
static void integers_with_a_gradient(void **state) {
    (void)state;
    const bytes to = attribute_int("to", 1);
    add_tensor("a.weight", 2, (const int64_t[]){4, 4});
    add_node_with("Cast", "x", "f", &to, 1);
    add_node("MatMul", "f a.weight", "y");
    add_ends(7, 2, row, "y");
    expect_refusal("Cast: this operator cannot be trained here: node /f/Cast (output f)\n");
}

/* ---- types ----------------------------------------------------------------------------------- */

static void half_precision(void **state) {
    (void)state;
    const bytes to = attribute_int("to", 10);
    add_node_with("Cast", "x", "h", &to, 1);
    add_node("Relu", "h", "y");
    add_ends(1, 2, row, "y");
    expect_refusal("Cast: arithmetic in FLOAT16 cannot be trained here; export the net in float32: "
                   "node /h/Cast (output h)\n");
    (void)begin(state);
    add_node("Relu", "x", "y");
    add_ends(16, 2, row, "y");
    expect_refusal(
        "input: input x is BFLOAT16: arithmetic in it cannot be trained here; export the "
        "net in float32\n");
}

static void files_of_other_versions(void **state) {
    (void)state;
    add_node("Relu", "x", "y");
    add_ends(1, 2, row, "y");
    opset = 12;
    expect_refusal("file: opset 12: 13 to 23 can be read\n");
    opset = 24;
    expect_refusal("file: opset 24: 13 to 23 can be read\n");
}

/* ---- recurrent cells ------------------------------------------------------------------------- */

/* An LSTM or GRU of 3 units over x [N, 5, 4] with further attributes and inputs. */
static void add_cell(const char *op, int64_t gates, const char *more, const bytes *attributes,
                     uint32_t count) {
    bytes all[4] = {attribute_int("hidden_size", 3), attribute_int("layout", 1)};
    char inputs[100];
    assert_true(count <= 2);
    for (uint32_t i = 0; i < count; i++) {
        all[2 + i] = attributes[i];
    }
    add_tensor("r.w", 3, (const int64_t[]){1, gates * 3, 4});
    add_tensor("r.r", 3, (const int64_t[]){1, gates * 3, 3});
    add_tensor("r.b", 2, (const int64_t[]){1, gates * 6});
    (void)snprintf(inputs, sizeof inputs, "x r.w r.r r.b%s", more);
    add_node_with(op, inputs, "s h", all, 2 + count);
    add_node("Relu", "h", "y");
    add_ends(1, 3, sequence, "y");
}

static void cells_of_another_kind(void **state) {
    static const char other[] = "activations, clip, input_forget, sequence_lens and peepholes "
                                "cannot be trained here: node /s h/LSTM (output s)\n";
    const bytes clip = attribute_floats("clip", 3.0f);
    const bytes forget = attribute_int("input_forget", 1);
    char want[300];
    (void)snprintf(want, sizeof want, "LSTM: %s", other);
    add_cell("LSTM", 4, "", &clip, 1);
    expect_refusal(want);
    (void)begin(state);
    add_cell("LSTM", 4, "", &forget, 1);
    expect_refusal(want);
    (void)begin(state);
    add_tensor("peep", 2, (const int64_t[]){1, 9});
    add_cell("LSTM", 4, " - - - peep", NULL, 0);
    expect_refusal(want);
    (void)begin(state);
    add_ints("lengths", 1, (const int64_t[]){5});
    add_cell("LSTM", 4, " lengths", NULL, 0);
    expect_refusal(want);
}

static void gru_with_another_reset(void **state) {
    (void)state;
    add_cell("GRU", 3, "", NULL, 0);
    expect_refusal("GRU: linear_before_reset = 0 is another function than PyTorch's and cannot be "
                   "trained here: node /s h/GRU (output s)\n");
}

static void cells_with_a_start(void **state) {
    (void)state;
    static const float start[] = {1.0f, 2.0f, 3.0f};
    add_floats("start", 3, start);
    add_cell("LSTM", 4, " - start", NULL, 0);
    expect_refusal("LSTM: an initial state that is not zero cannot be trained here: node /s h/LSTM "
                   "(output s)\n");
}

/* ---- windows --------------------------------------------------------------------------------- */

static void windows_of_another_kind(void **state) {
    static const int64_t image[] = {-1, 3, 8, 8};
    const bytes same = attribute_text("auto_pad", "SAME_UPPER");
    add_tensor("a.weight", 4, (const int64_t[]){4, 3, 3, 3});
    add_node_with("Conv", "x a.weight", "y", &same, 1);
    add_ends(1, 4, image, "y");
    expect_refusal("Conv: auto_pad SAME_UPPER is not supported; export with pads: node /y/Conv "
                   "(output y)\n");
    (void)begin(state);
    add_tensor("a.weight", 4, (const int64_t[]){4, 3, 3, 3});
    add_node_ints("Conv", "x a.weight", "y", "pads", 4, (const int64_t[]){0, 0, 1, 1});
    add_ends(1, 4, image, "y");
    expect_refusal("Conv: pads differ between the sides of the image: node /y/Conv (output y)\n");
    (void)begin(state);
    add_ints("sides", 8, (const int64_t[]){1, 0, 1, 0, 0, 0, 0, 0});
    add_node("Pad", "x sides", "p");
    add_node("Relu", "p", "y");
    add_ends(1, 4, image, "y");
    expect_refusal("Pad: it pads the batch, or cuts: node /p/Pad (output p)\n");
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Weights that are computed are no parameters any more. */
static void computed_weights(void **state) {
    (void)state;
    static const float two = 2.0f;
    add_floats("two", 1, &two);
    add_tensor("a.weight", 2, (const int64_t[]){4, 4});
    add_node("Mul", "a.weight two", "w");
    add_node("Gemm", "x w", "y");
    add_ends(1, 2, row, "y");
    expect_refusal("Gemm: its weight is a computed constant; constants were folded: export with "
                   "do_constant_folding=False: node /y/Gemm (output y)\n");
}

/* Random numbers that are no dropout. */
static void random_numbers(void **state) {
    (void)state;
    add_node("RandomUniformLike", "x", "r");
    add_node("Add", "x r", "y");
    add_ends(1, 2, row, "y");
    expect_refusal(
        "RandomUniformLike: random numbers that are not those of dropout cannot be drawn "
        "here: node /r/RandomUniformLike (output r)\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(graphs_in_nodes, begin),
        cmocka_unit_test_setup(sequences_of_tensors, begin),
        cmocka_unit_test_setup(integers_with_a_gradient, begin),
        cmocka_unit_test_setup(half_precision, begin),
        cmocka_unit_test_setup(files_of_other_versions, begin),
        cmocka_unit_test_setup(cells_of_another_kind, begin),
        cmocka_unit_test_setup(gru_with_another_reset, begin),
        cmocka_unit_test_setup(cells_with_a_start, begin),
        cmocka_unit_test_setup(windows_of_another_kind, begin),
        cmocka_unit_test_setup(computed_weights, begin),
        cmocka_unit_test_setup(random_numbers, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
