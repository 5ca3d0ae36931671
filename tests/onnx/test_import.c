/* The passes on small graphs: shapes, constants, names, layers, and all reasons at once. */
#include "onnx_bytes.h"

#include "onnx/import.h"

static const int64_t image[] = {-1, 3, 8, 8};

static bytes graph;

static int begin(void **state) {
    (void)state;
    graph.count = 0;
    return 0;
}

static void add_tensor(const char *name, uint32_t rank, const int64_t *dim) {
    const bytes t = tensor(name, 1, rank, dim, NULL);
    put_part(&graph, GRAPH_INITIALISER, &t);
}

static void add_floats(const char *name, uint32_t count, const float *data) {
    const bytes t = tensor(name, 1, count == 1 ? 0 : 1, (const int64_t[]){count}, data);
    put_part(&graph, GRAPH_INITIALISER, &t);
}

static void add_ints(const char *name, uint32_t count, const int64_t *data) {
    const bytes t = tensor(name, 7, 1, (const int64_t[]){count}, data);
    put_part(&graph, GRAPH_INITIALISER, &t);
}

static void add_node(const char *op, const char *inputs, const char *outputs) {
    const bytes n = node(op, inputs, outputs);
    put_part(&graph, GRAPH_NODE, &n);
}

static void add_node_ints(const char *op, const char *inputs, const char *outputs, const char *name,
                          uint32_t count, const int64_t *list) {
    bytes n = node(op, inputs, outputs);
    const bytes a = count == 0 ? attribute_int(name, *list) : attribute_ints(name, count, list);
    put_part(&n, NODE_ATTRIBUTE, &a);
    put_part(&graph, GRAPH_NODE, &n);
}

static void add_ends(int32_t type, uint32_t rank, const int64_t *dim, const char *output) {
    const bytes in = value("x", type, rank, dim);
    const bytes out = value(output, 1, 0, NULL);
    put_part(&graph, GRAPH_INPUT, &in);
    put_part(&graph, GRAPH_OUTPUT, &out);
}

/* Analyses the graph; the text of the layers is compared without its comments and the names of
 * inputs and output, and with every reason otherwise. */
static void expect_import(const rp_onnx_given_shape *shape, const char *want) {
    const bytes b = model_of(&graph, 17);
    const rp_onnx_options options = {
        .shapes = shape, .shape_count = shape != NULL, .budget = RP_ONNX_BUDGET};
    rp_arena arena;
    rp_onnx_model *model;
    rp_onnx_import import;
    static char found[1 << 14];
    size_t used = 0;
    rp_arena_init(&arena, "test", 64 << 20);
    assert_int_equal(rp_onnx_open_bytes(&arena, b.at, b.count, "net.onnx", &model), RP_OK);
    assert_int_equal(rp_onnx_analyse(&arena, model, &options, &import), RP_OK);
    assert_true((import.text != NULL) == (import.refusals.count == 0));
    for (const char *at = import.text ? import.text : ""; *at;) {
        const size_t line = strcspn(at, "\n");
        size_t length = strcspn(at, "#\n");
        while (length > 0 && at[length - 1] == ' ') {
            length--;
        }
        if (length > 0 && strncmp(at, "onnx: ", 6) != 0) {
            used += (size_t)snprintf(found + used, sizeof found - used, "%.*s\n", (int)length, at);
        }
        at += line + (at[line] == '\n');
    }
    for (uint32_t i = 0; i < import.refusals.count; i++) {
        const rp_onnx_finding *f = &import.refusals.item[i];
        used += (size_t)snprintf(found + used, sizeof found - used, "%s: %s\n",
                                 f->op ? f->op : f->topic, f->text);
    }
    found[used] = '\0';
    assert_string_equal(found, want);
    rp_onnx_close(&model);
    rp_arena_finish(&arena);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static void a_net_of_images(void **state) {
    (void)state;
    add_tensor("net.0.weight", 4, (const int64_t[]){4, 3, 3, 3});
    add_tensor("net.0.bias", 1, (const int64_t[]){4});
    add_tensor("head.weight", 2, (const int64_t[]){5, 4});
    add_tensor("head.bias", 1, (const int64_t[]){5});
    add_node_ints("Conv", "x net.0.weight net.0.bias", "c", "pads", 4,
                  (const int64_t[]){1, 1, 1, 1});
    add_node("Relu", "c", "r");
    add_node("GlobalAveragePool", "r", "g");
    add_node("Flatten", "g", "f");
    add_node_ints("Gemm", "f head.weight head.bias", "y", "transB", 0, (const int64_t[]){1});
    add_ends(1, 4, image, "y");
    expect_import(NULL, "input: [3, 8, 8]\n"
                        "layers:\n"
                        "  - {name: net.0, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                        "  - {name: r, kind: relu}\n"
                        "  - {name: g, kind: globalavgpool}\n"
                        "  - {name: f, kind: flatten}\n"
                        "  - {name: head, kind: dense, out: 5}\n");
}

/* Shape, Gather and Concat compute the target of a Reshape, with the batch in it. */
static void shapes_are_computed(void **state) {
    (void)state;
    add_ints("zero", 1, (const int64_t[]){0});
    add_ints("rest", 1, (const int64_t[]){-1});
    add_tensor("head.weight", 2, (const int64_t[]){2, 192});
    add_node("Shape", "x", "s");
    add_node("Gather", "s zero", "n");
    add_node_ints("Concat", "n rest", "t", "axis", 0, (const int64_t[]){0});
    add_node("Reshape", "x t", "f");
    add_node_ints("Gemm", "f head.weight", "y", "transB", 0, (const int64_t[]){1});
    add_ends(1, 4, image, "y");
    expect_import(NULL, "input: [3, 8, 8]\n"
                        "layers:\n"
                        "  - {name: f, kind: flatten}\n"
                        "  - {name: head, kind: dense, out: 2, bias: false}\n");
}

/* A target that has the size of the batch in it is one for this batch only. */
static void a_batch_in_constants_is_refused(void **state) {
    (void)state;
    add_ints("t", 2, (const int64_t[]){5, 192});
    add_tensor("head.weight", 2, (const int64_t[]){2, 192});
    add_node("Reshape", "x t", "f");
    add_node_ints("Gemm", "f head.weight", "y", "transB", 0, (const int64_t[]){1});
    add_ends(1, 4, image, "y");
    expect_import(NULL, "input: the net depends on the size of the batch: export it with a fixed "
                        "batch, or without sizes of the batch in it\n");
}

static void a_fixed_batch_is_any_batch(void **state) {
    (void)state;
    add_ints("t", 2, (const int64_t[]){4, 192});
    add_tensor("head.weight", 2, (const int64_t[]){2, 192});
    add_node("Reshape", "x t", "f");
    add_node_ints("Gemm", "f head.weight", "y", "transB", 0, (const int64_t[]){1});
    add_ends(1, 4, (const int64_t[]){4, 3, 8, 8}, "y");
    expect_import(NULL, "input: [3, 8, 8]\n"
                        "layers:\n"
                        "  - {name: f, kind: flatten}\n"
                        "  - {name: head, kind: dense, out: 2, bias: false}\n");
}

/* A transposed weight, a bias that is added, and a weight as it is. */
static void products_become_linear_layers(void **state) {
    (void)state;
    add_tensor("a.weight", 2, (const int64_t[]){6, 4});
    add_tensor("a.bias", 1, (const int64_t[]){6});
    add_tensor("b.kernel", 2, (const int64_t[]){6, 2});
    add_node("Transpose", "a.weight", "t");
    add_node("MatMul", "x t", "m");
    add_node("Add", "a.bias m", "s");
    add_node("MatMul", "s b.kernel", "y");
    add_ends(1, 3, (const int64_t[]){-1, 7, 4}, "y");
    expect_import(NULL, "input: [7, 4]\n"
                        "layers:\n"
                        "  - {name: a, kind: linear, out: 6}\n"
                        "  - {name: b, kind: linear, out: 2, layout: in-out, bias: false, names: "
                        "{weight: b.kernel}}\n");
}

/* The formula is compared, not the nodes. */
static void formulas_become_activations(void **state) {
    (void)state;
    static const float numbers[] = {1.41421356f, 1.0f, 0.5f};
    add_floats("root", 1, &numbers[0]);
    add_floats("one", 1, &numbers[1]);
    add_floats("half", 1, &numbers[2]);
    add_node("Div", "x root", "a");
    add_node("Erf", "a", "b");
    add_node("Add", "b one", "c");
    add_node("Mul", "x c", "d");
    add_node("Mul", "d half", "e");
    add_node("Sigmoid", "e", "f");
    add_node("Mul", "e f", "y");
    add_ends(1, 2, (const int64_t[]){-1, 4}, "y");
    expect_import(NULL, "input: [4]\n"
                        "layers:\n"
                        "  - {name: e, kind: gelu}\n"
                        "  - {name: y, kind: silu}\n");
}

/* Heads are split and joined by Reshape and Transpose; q, k and v are parts of one tensor. */
static void packed_attention(void **state) {
    (void)state;
    static const float scale = 0.5f;
    float mask[9];
    for (uint32_t i = 0; i < 9; i++) {
        mask[i] = i % 3 > i / 3 ? -1e9f : 0.0f;
    }
    const bytes m = tensor("mask", 1, 2, (const int64_t[]){3, 3}, mask);
    put_part(&graph, GRAPH_INITIALISER, &m);
    add_floats("scale", 1, &scale);
    add_ints("split", 4, (const int64_t[]){0, 3, 2, 4});
    add_ints("join", 3, (const int64_t[]){0, 3, 8});
    add_tensor("qkv.weight", 2, (const int64_t[]){8, 24});
    add_node("MatMul", "x qkv.weight", "p");
    add_node_ints("Split", "p", "q k v", "axis", 0, (const int64_t[]){2});
    for (const char *part = "qkv"; *part; part++) {
        const char in[] = {*part, ' ', 's', 'p', 'l', 'i', 't', '\0'};
        const char split[] = {*part, 's', '\0'};
        const char heads[] = {*part, 'h', '\0'};
        add_node("Reshape", in, split);
        add_node_ints("Transpose", split, heads, "perm", 4,
                      *part == 'k' ? (const int64_t[]){0, 2, 3, 1} : (const int64_t[]){0, 2, 1, 3});
    }
    add_node("MatMul", "qh kh", "s");
    add_node("Mul", "s scale", "ss");
    add_node("Add", "ss mask", "sm");
    add_node("Softmax", "sm", "pr");
    add_node("MatMul", "pr vh", "o");
    add_node_ints("Transpose", "o", "ot", "perm", 4, (const int64_t[]){0, 2, 1, 3});
    add_node("Reshape", "ot join", "oj");
    add_node("Relu", "oj", "y");
    add_ends(1, 3, (const int64_t[]){-1, 3, 8}, "y");
    /* the mask is a float initialiser, which is read as a constant */
    expect_import(NULL, "input: [3, 8]\n"
                        "layers:\n"
                        "  - {name: qkv, kind: linear, out: 24, layout: in-out, bias: false}\n"
                        "  - {name: o, kind: attention, heads: 2, causal: true}\n"
                        "  - {name: y, kind: relu}\n");
}

/* torch.split as one of PyTorch's exporters writes it: parts of 4, the last one smaller. */
static void sequences_of_parts(void **state) {
    (void)state;
    const bytes four = tensor("four", 7, 0, NULL, (const int64_t[]){4});
    const bytes last = tensor("last", 7, 0, NULL, (const int64_t[]){-1});
    put_part(&graph, GRAPH_INITIALISER, &four);
    put_part(&graph, GRAPH_INITIALISER, &last);
    add_node_ints("SplitToSequence", "x four", "s", "axis", 0, (const int64_t[]){2});
    add_node("SequenceAt", "s last", "p");
    add_node("Relu", "p", "y");
    add_ends(1, 3, (const int64_t[]){-1, 7, 10}, "y");
    expect_import(NULL, "input: [7, 10]\n"
                        "layers:\n"
                        "  - {name: p, kind: slice, axis: 1, start: 8, end: 10}\n"
                        "  - {name: y, kind: relu}\n");
}

/* A class token: a weight that is repeated for each sample, in front of the sequence. */
static void a_row_before_the_sequence(void **state) {
    (void)state;
    add_tensor("token", 3, (const int64_t[]){1, 1, 4});
    add_tensor("table", 3, (const int64_t[]){1, 8, 4});
    add_ints("shape", 3, (const int64_t[]){2, 1, 4});
    add_node("Expand", "token shape", "t");
    add_node_ints("Concat", "t x", "c", "axis", 0, (const int64_t[]){1});
    add_node("Add", "c table", "y");
    add_ends(1, 3, (const int64_t[]){2, 7, 4}, "y");
    expect_import(NULL, "input: [7, 4]\n"
                        "layers:\n"
                        "  - {name: token, kind: prepend, names: {weight: token}}\n"
                        "  - {name: table, kind: position, length: 8, names: {weight: table}}\n");
}

static void a_long_concatenation_is_a_chain(void **state) {
    (void)state;
    char inputs[200] = "";
    for (uint32_t i = 0; i < 10; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "c%u", i);
        add_node(i % 2 ? "Relu" : "Tanh",
                 i > 0 ? (const char[]){'c', (char)('0' + i - 1), '\0'} : "x", name);
        (void)snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), "%s%s",
                       i > 0 ? " " : "", name);
    }
    add_node_ints("Concat", inputs, "y", "axis", 0, (const int64_t[]){1});
    add_ends(1, 2, (const int64_t[]){-1, 4}, "y");
    expect_import(NULL, "input: [4]\n"
                        "layers:\n"
                        "  - {name: c0, kind: tanh}\n"
                        "  - {name: c1, kind: relu}\n"
                        "  - {name: c2, kind: tanh}\n"
                        "  - {name: c3, kind: relu}\n"
                        "  - {name: c4, kind: tanh}\n"
                        "  - {name: c5, kind: relu}\n"
                        "  - {name: c6, kind: tanh}\n"
                        "  - {name: c7, kind: relu}\n"
                        "  - {name: c8, kind: tanh}\n"
                        "  - {name: c9, kind: relu}\n"
                        "  - {name: y.concat, kind: concat, from: [c0, c1, c2, c3, c4, c5, c6, "
                        "c7]}\n"
                        "  - {name: y.concat_1, kind: concat, from: [y.concat, c8, c9]}\n");
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void all_reasons_come_at_once(void **state) {
    (void)state;
    add_node("GridSample", "x", "a");
    add_node("Relu", "a", "b");
    add_node("Einsum", "b", "c");
    add_node("Einsum", "c", "d");
    add_node("Softsign", "d", "dead");
    add_node("Cos", "d", "y");
    add_ends(1, 2, (const int64_t[]){-1, 4}, "y");
    expect_import(
        NULL, "GridSample: this operator cannot be trained here: node /a/GridSample (output a)\n"
              "Einsum: this operator cannot be trained here: node /c/Einsum (output c)\n");
}

static void free_sizes_are_asked_for(void **state) {
    (void)state;
    const rp_onnx_given_shape shape = {.input = "x", .rank = 2, .dim = {-1, 6}};
    add_tensor("e.weight", 2, (const int64_t[]){9, 4});
    add_node("Gather", "e.weight x", "y");
    add_ends(7, 2, (const int64_t[]){-1, -1}, "y");
    expect_import(NULL, "input: input x has a free dimension `batch`: give it, --shape x=N,...\n");
    expect_import(&shape, "input: {shape: [6], type: i32}\n"
                          "layers:\n"
                          "  - {name: e, kind: embedding, count: 9, out: 4}\n");
}

static void folded_weights_are_named(void **state) {
    (void)state;
    add_tensor("onnx::Gemm_7", 2, (const int64_t[]){2, 4});
    add_node_ints("Gemm", "x onnx::Gemm_7", "y", "transB", 0, (const int64_t[]){1});
    add_ends(1, 2, (const int64_t[]){-1, 4}, "y");
    expect_import(NULL, "parameter: initialiser onnx::Gemm_7 has no name of a module: constants "
                        "were folded (export with do_constant_folding=False)\n");
}

static void merged_weights_are_named(void **state) {
    (void)state;
    add_tensor("a.weight", 2, (const int64_t[]){4, 4});
    add_tensor("a.bias", 1, (const int64_t[]){4});
    add_tensor("b.bias", 1, (const int64_t[]){4});
    add_node_ints("Gemm", "x a.weight a.bias", "h", "transB", 0, (const int64_t[]){1});
    add_node_ints("Gemm", "h a.weight b.bias", "y", "transB", 0, (const int64_t[]){1});
    add_ends(1, 2, (const int64_t[]){-1, 4}, "y");
    expect_import(NULL,
                  "parameter: a.weight is the weight of layers a and dense: equal values were "
                  "merged by the exporter, or the net shares it in a way that cannot be "
                  "trained here\n");
}

static void a_missing_parameter_is_named(void **state) {
    (void)state;
    bytes entry = {.count = 0};
    add_tensor("a.weight", 2, (const int64_t[]){4, 4});
    add_node_ints("Gemm", "x a.weight", "y", "transB", 0, (const int64_t[]){1});
    add_ends(1, 2, (const int64_t[]){-1, 4}, "y");
    put_text(&entry, 1, "pkg.torch.export.ExportedProgram.graph_signature");
    put_text(&entry, 2,
             "# inputs\np_a_weight: PARAMETER target='a.weight'\np_n_weight: PARAMETER "
             "target='n.weight'\nb_bn: BUFFER target='bn.running_mean' persistent=True\n");
    put_part(&graph, 16, &entry);
    expect_import(NULL,
                  "parameter: 1 batch normalisations were folded into convolutions (bn): export "
                  "again with torch.onnx.export(..., dynamo=True, optimize=False)\n"
                  "parameter: 1 parameters are not in the file (n.weight): the exporter folded "
                  "them, or merged equal values: export again with torch.onnx.export(..., "
                  "dynamo=True, optimize=False)\n");
}

static void arrangements_without_a_layer_are_refused(void **state) {
    (void)state;
    add_node_ints("Transpose", "x", "t", "perm", 4, (const int64_t[]){0, 1, 3, 2});
    add_node("Relu", "t", "y");
    add_ends(1, 4, (const int64_t[]){-1, 3, 4, 5}, "y");
    expect_import(NULL, "Relu: it reads [5, 3, 4, 5] arranged as [5, 3, 5, 4], which no layer does "
                        "here: node /y/Relu (output y)\n");
}

static void given_shapes_are_parsed(void **state) {
    (void)state;
    rp_arena arena;
    rp_onnx_given_shape shape;
    rp_arena_init(&arena, "test", 1 << 20);
    assert_int_equal(rp_onnx_parse_shape(&arena, "a=b=N,3,64", &shape), RP_OK);
    assert_string_equal(shape.input, "a=b");
    assert_true(shape.rank == 3 && shape.dim[0] == -1 && shape.dim[1] == 3 && shape.dim[2] == 64);
    static const char *const wrong[] = {"",
                                        "x",
                                        "=N,3",
                                        "x=",
                                        "x=N,",
                                        "x=N,0",
                                        "x=N,-3",
                                        "x=N,3a",
                                        "x=N,1e9",
                                        "x=1,1,1,1,1,1,1,1,1",
                                        "x=99999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(rp_onnx_parse_shape(&arena, wrong[i], &shape), RP_ERR_USAGE);
    }
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_net_of_images, begin),
        cmocka_unit_test_setup(shapes_are_computed, begin),
        cmocka_unit_test_setup(a_batch_in_constants_is_refused, begin),
        cmocka_unit_test_setup(a_fixed_batch_is_any_batch, begin),
        cmocka_unit_test_setup(products_become_linear_layers, begin),
        cmocka_unit_test_setup(formulas_become_activations, begin),
        cmocka_unit_test_setup(packed_attention, begin),
        cmocka_unit_test_setup(sequences_of_parts, begin),
        cmocka_unit_test_setup(a_row_before_the_sequence, begin),
        cmocka_unit_test_setup(a_long_concatenation_is_a_chain, begin),
        cmocka_unit_test_setup(all_reasons_come_at_once, begin),
        cmocka_unit_test_setup(free_sizes_are_asked_for, begin),
        cmocka_unit_test_setup(folded_weights_are_named, begin),
        cmocka_unit_test_setup(merged_weights_are_named, begin),
        cmocka_unit_test_setup(a_missing_parameter_is_named, begin),
        cmocka_unit_test_setup(arrangements_without_a_layer_are_refused, begin),
        cmocka_unit_test_setup(given_shapes_are_parsed, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
