/* The passes on small graphs: shapes, constants, names, layers, and all reasons at once. */
#include "small_graph.h"

static const int64_t image[] = {-1, 3, 8, 8};

static void expect_import(const rp_onnx_given_shape *shape, const char *want) {
    expect_with(&(rp_onnx_options){.shapes = shape, .shape_count = shape != NULL}, want);
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
    expect_import(
        NULL, "input: [7, 4]\n"
              "layers:\n"
              "  - {name: token, kind: prepend, names: {weight: {name: token, dims: 3}}}\n"
              "  - {name: table, kind: position, length: 8, names: {weight: {name: table, dims: "
              "3}}}\n");
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

/* Repetitions, blocks of channels as pixels, and a transposition of a transposition. */
static void arrangements_by_blocks(void **state) {
    static const int64_t blocks[] = {-1, 4, 2, 4};
    static const int64_t turn[] = {0, 2, 1, 3};
    (void)state;
    add_ints("times", 4, (const int64_t[]){1, 1, 1, 2});
    add_node("Tile", "x times", "t");
    add_node("Relu", "t", "y");
    add_ends(1, 4, blocks, "y");
    expect_import(NULL, "input: [4, 2, 4]\n"
                        "layers:\n"
                        "  - {name: y.reshape, kind: reshape, shape: [4, 2, 1, 4]}\n"
                        "  - {name: y.expand, kind: expand, shape: [4, 2, 2, 4]}\n"
                        "  - {name: y.reshape_1, kind: reshape, shape: [4, 2, 8]}\n"
                        "  - {name: y.relu, kind: relu}\n");
    (void)begin(state);
    bytes n = node("DepthToSpace", "x", "y");
    const bytes size = attribute_int("blocksize", 2);
    const bytes mode = attribute_text("mode", "CRD");
    put_part(&n, NODE_ATTRIBUTE, &size);
    put_part(&n, NODE_ATTRIBUTE, &mode);
    put_part(&graph, GRAPH_NODE, &n);
    add_ends(1, 4, blocks, "y");
    expect_import(NULL, "input: [4, 2, 4]\n"
                        "layers:\n"
                        "  - {name: reshape, kind: reshape, shape: [1, 2, 2, 2, 4]}\n"
                        "  - {name: transpose, kind: transpose, perm: [0, 3, 1, 4, 2]}\n"
                        "  - {name: reshape_1, kind: reshape, shape: [1, 4, 8]}\n");
    (void)begin(state);
    add_node_ints("SpaceToDepth", "x", "y", "blocksize", 0, (const int64_t[]){2});
    add_ends(1, 4, blocks, "y");
    expect_import(NULL, "input: [4, 2, 4]\n"
                        "layers:\n"
                        "  - {name: reshape, kind: reshape, shape: [4, 1, 2, 2, 2]}\n"
                        "  - {name: transpose, kind: transpose, perm: [2, 4, 0, 1, 3]}\n"
                        "  - {name: reshape_1, kind: reshape, shape: [16, 1, 2]}\n");
    (void)begin(state);
    add_node_ints("Transpose", "x", "a", "perm", 4, turn);
    add_node_ints("Transpose", "a", "b", "perm", 4, turn);
    add_node("Relu", "b", "y");
    add_ends(1, 4, blocks, "y");
    expect_import(NULL, "input: [4, 2, 4]\n"
                        "layers:\n"
                        "  - {name: y, kind: relu}\n");
}

/* One table of queries for all samples, as pooling by attention has; ids that are columns. */
static void weights_of_all_samples(void **state) {
    static const int64_t pair[] = {-1, 2};
    (void)state;
    add_tensor("query", 3, (const int64_t[]){1, 3, 4});
    add_ints("shape", 3, (const int64_t[]){5, 3, 4});
    add_node("Expand", "query shape", "q");
    add_node_ints("Transpose", "x", "k", "perm", 3, (const int64_t[]){0, 2, 1});
    add_node("MatMul", "q k", "y");
    add_ends(1, 3, (const int64_t[]){5, 5, 4}, "y");
    expect_import(NULL, "input: [5, 4]\n"
                        "layers:\n"
                        "  - {name: query, kind: parameter, shape: [3, 4], names: {weight: {name: "
                        "query, dims: 3}}}\n"
                        "  - {name: y, kind: matmul, from: [query, data], transpose: true}\n");
    (void)begin(state);
    add_tensor("a.weight", 2, (const int64_t[]){9, 4});
    add_tensor("b.weight", 2, (const int64_t[]){3, 4});
    const bytes first = tensor("first", 7, 0, NULL, (const int64_t[]){0});
    put_part(&graph, GRAPH_INITIALISER, &first);
    add_node_ints("Gather", "x first", "id", "axis", 0, (const int64_t[]){1});
    add_node("Gather", "a.weight id", "e");
    add_node_ints("Gemm", "e b.weight", "y", "transB", 0, (const int64_t[]){1});
    add_ends(7, 2, pair, "y");
    expect_import(NULL, "input: {shape: [2], type: i32}\n"
                        "layers:\n"
                        "  - {name: e.slice, kind: slice, axis: 0, start: 0, end: 1}\n"
                        "  - {name: a, kind: embedding, count: 9, out: 4}\n"
                        "  - {name: e.flatten, kind: flatten}\n"
                        "  - {name: b, kind: dense, out: 3, bias: false}\n");
}

/* An LSTM of 3 units in both directions over `x` [5, N, wide], with the time first. */
static void add_cell(const char *name, const char *x, int64_t wide, const char *outputs) {
    static const char *const suffix[] = {"w", "r", "b"};
    const int64_t dims[][3] = {{2, 12, wide}, {2, 12, 3}, {2, 24}};
    char inputs[60];
    char tensor[20];
    const bytes hidden = attribute_int("hidden_size", 3);
    const bytes both = attribute_text("direction", "bidirectional");
    for (uint32_t i = 0; i < 3; i++) {
        (void)snprintf(tensor, sizeof tensor, "%s.%s", name, suffix[i]);
        add_tensor(tensor, i < 2 ? 3 : 2, dims[i]);
    }
    (void)snprintf(inputs, sizeof inputs, "%s %s.w %s.r %s.b", x, name, name, name);
    bytes n = node("LSTM", inputs, outputs);
    put_part(&n, NODE_ATTRIBUTE, &hidden);
    put_part(&n, NODE_ATTRIBUTE, &both);
    put_part(&graph, GRAPH_NODE, &n);
}

/* Two of them in a stack; h [4, N, 3] are the last states of all, as PyTorch returns them. */
static void add_stack(void) {
    static const int64_t time_first[] = {1, 0, 2};
    static const int64_t rows[] = {0, 2, 1, 3};
    add_ints("join", 3, (const int64_t[]){0, 0, -1});
    add_ints("two", 1, (const int64_t[]){-2});
    add_ints("one", 1, (const int64_t[]){-1});
    add_ints("zero", 1, (const int64_t[]){0});
    add_node_ints("Transpose", "x", "t", "perm", 3, time_first);
    add_cell("a", "t", 4, "s0 h0");
    add_node_ints("Transpose", "s0", "s1", "perm", 4, rows);
    add_node("Reshape", "s1 join", "s2");
    add_cell("b", "s2", 6, "s3 h1 c1");
    add_node_ints("Concat", "h0 h1", "h", "axis", 0, (const int64_t[]){0});
}

/* The last states of both directions are the output of a layer; one of them is a part of it. */
static void last_states_of_a_stack(void **state) {
    static const int64_t sequence[] = {-1, 5, 4};
    (void)state;
    add_stack();
    add_node("Gather", "h two", "f0");
    add_node("Gather", "h one", "f1");
    add_node_ints("Squeeze", "f0 zero", "f", "axis", 0, (const int64_t[]){0});
    add_node_ints("Squeeze", "f1 zero", "g", "axis", 0, (const int64_t[]){0});
    add_node_ints("Concat", "f g", "y", "axis", 0, (const int64_t[]){1});
    add_ends(1, 3, sequence, "y");
    expect_import(
        NULL, "input: [5, 4]\n"
              "layers:\n"
              "  - {name: s0_h0, kind: lstm, hidden: 3, bidirectional: true}\n"
              "  - {name: s3_h1_c1, kind: lstm, hidden: 3, bidirectional: true, output: last}\n");
    (void)begin(state);
    add_stack();
    add_node("Gather", "h zero", "f0");
    add_node("Gather", "h one", "f1");
    add_node("Squeeze", "f0 zero", "f");
    add_node("Squeeze", "f1 zero", "g");
    add_node("Add", "f g", "y");
    add_ends(1, 3, sequence, "y");
    expect_import(NULL, "input: [5, 4]\n"
                        "layers:\n"
                        "  - {name: s0_h0.lstm, kind: lstm, hidden: 3, bidirectional: true}\n"
                        "  - {name: s0_h0.lstm_1, kind: lstm, from: [data], hidden: 3, "
                        "bidirectional: true, output: last}\n"
                        "  - {name: s3_h1_c1, kind: lstm, from: [s0_h0.lstm], hidden: 3, "
                        "bidirectional: true, output: last}\n"
                        "  - {name: f, kind: slice, from: [s0_h0.lstm_1], axis: 0, start: 0, end: "
                        "3}\n"
                        "  - {name: g, kind: slice, from: [s3_h1_c1], axis: 0, start: 3, end: 6}\n"
                        "  - {name: y, kind: add, from: [f, g]}\n");
    (void)begin(state);
    add_stack();
    add_node("Relu", "h", "y");
    add_ends(1, 3, sequence, "y");
    expect_import(NULL, "Relu: it reads a concatenation along the batch, or before it, which no "
                        "layer computes: node /y/Relu (output y)\n");
    (void)begin(state);
    add_stack();
    add_node("Relu", "c1", "y");
    add_ends(1, 3, sequence, "y");
    expect_import(NULL, "LSTM: one of its further outputs is used, which no layer gives here: node "
                        "/s3 h1 c1/LSTM (output s3)\n");
}

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
                        "were folded; export again with ringpipe_export.py, or "
                        "do_constant_folding=False; --accept-folded trains it as it is\n");
    expect_with(&(rp_onnx_options){.accept_folded = true},
                "input: [4]\n"
                "layers:\n"
                "  - {name: y, kind: dense, out: 2, bias: false}\n");
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
                  "parameter: a.weight is the weight of layers a and y: equal values were merged "
                  "by the exporter (export again with ringpipe_export.py), or the net shares it "
                  "(--tied accept)\n");
    expect_with(&(rp_onnx_options){.accept_tied = true},
                "input: [4]\n"
                "layers:\n"
                "  - {name: a, kind: dense, out: 4}\n"
                "  - {name: y, kind: dense, out: 4, names: {weight: a.weight, bias: b.bias}}\n");
    expect_with(&(rp_onnx_options){.untie = true},
                "input: [4]\n"
                "layers:\n"
                "  - {name: a, kind: dense, out: 4}\n"
                "  - {name: y, kind: dense, out: 4, names: {bias: b.bias}}\n");
}

/* An exporter keeps one name of a tied tensor, perhaps the second one; each layer still has the
 * name of its module, so that the other name can be given back. */
static void either_name_of_a_tied_tensor(void **state) {
    static const char *const kept[] = {"wte.weight", "head.weight"};
    for (size_t i = 0; i < 2; i++) {
        char inputs[40];
        (void)begin(state);
        add_tensor(kept[i], 2, (const int64_t[]){5, 4});
        (void)snprintf(inputs, sizeof inputs, "%s x", kept[i]);
        add_node("Gather", inputs, "wte");
        add_node_ints("Transpose", kept[i], "t", "perm", 2, (const int64_t[]){1, 0});
        add_node("MatMul", "wte t", "head");
        add_ends(7, 2, (const int64_t[]){-1, 3}, "head");
        expect_with(&(rp_onnx_options){0},
                    i == 0 ? "input: {shape: [3], type: i32}\n"
                             "layers:\n"
                             "  - {name: wte, kind: embedding, count: 5, out: 4}\n"
                             "  - {name: head, kind: linear, out: 5, bias: false, names: "
                             "{weight: wte.weight}}\n"
                           : "input: {shape: [3], type: i32}\n"
                             "layers:\n"
                             "  - {name: wte, kind: embedding, count: 5, out: 4, names: {weight: "
                             "head.weight}}\n"
                             "  - {name: head, kind: linear, out: 5, bias: false}\n");
    }
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
             "target='n.weight'\np_bn_weight: PARAMETER target='bn.weight'\nb_bn: BUFFER "
             "target='bn.running_mean' persistent=True\n");
    put_part(&graph, 16, &entry);
    expect_import(NULL,
                  "parameter: 1 batch normalisations were folded into convolutions (bn): export "
                  "again with ringpipe_export.py, or torch.onnx.export(..., dynamo=True, "
                  "optimize=False); --accept-folded trains what is left\n"
                  "parameter: 1 parameters are not in the file (n.weight): the exporter folded "
                  "them, or merged equal values: export again with ringpipe_export.py, or "
                  "torch.onnx.export(..., dynamo=True, optimize=False)\n");
    expect_with(&(rp_onnx_options){.accept_folded = true},
                "input: [4]\n"
                "layers:\n"
                "  - {name: a, kind: dense, out: 4, bias: false}\n");
}

/* A list of names says what is a parameter, and what the file should have. */
static void names_of_a_state(void **state) {
    (void)state;
    static const float two[] = {2.0f, 2.0f, 2.0f, 2.0f};
    static const char *const names[] = {"a.weight", "gain", "n.weight"};
    add_floats("gain", 4, two);
    add_tensor("a.weight", 2, (const int64_t[]){4, 4});
    add_node("Neg", "gain", "g");
    add_node("Mul", "x g", "m");
    add_node_ints("Gemm", "m a.weight", "y", "transB", 0, (const int64_t[]){1});
    add_ends(1, 2, (const int64_t[]){-1, 4}, "y");
    expect_with(&(rp_onnx_options){.names = names, .name_count = 3, .names_file = "s.safetensors"},
                "Neg: it computes with weights before a layer, or with constants that are too "
                "large: node /g/Neg (output g)\n"
                "parameter: 1 parameters of s.safetensors are not in the file (n.weight): the "
                "exporter folded them, or merged equal values: export again with "
                "ringpipe_export.py, or torch.onnx.export(..., dynamo=True, optimize=False)\n");
}

static void layers_are_frozen(void **state) {
    (void)state;
    static const char *const patterns[] = {"a", "b*"};
    add_tensor("a.weight", 2, (const int64_t[]){4, 4});
    add_tensor("b.1.weight", 2, (const int64_t[]){4, 4});
    add_tensor("c.weight", 2, (const int64_t[]){4, 4});
    add_node_ints("Gemm", "x a.weight", "s", "transB", 0, (const int64_t[]){1});
    add_node_ints("Gemm", "s b.1.weight", "t", "transB", 0, (const int64_t[]){1});
    add_node_ints("Gemm", "t c.weight", "y", "transB", 0, (const int64_t[]){1});
    add_ends(1, 2, (const int64_t[]){-1, 4}, "y");
    expect_with(&(rp_onnx_options){.freeze = patterns, .freeze_count = 2},
                "input: [4]\n"
                "layers:\n"
                "  - {name: a, kind: dense, out: 4, bias: false, train: false}\n"
                "  - {name: b.1, kind: dense, out: 4, bias: false, train: false}\n"
                "  - {name: c, kind: dense, out: 4, bias: false}\n");
    expect_with(&(rp_onnx_options){.freeze = (const char *const[]){"d*"}, .freeze_count = 1},
                "option: --freeze: 'd*' matches no layer of the model\n");
}

static void the_batch_is_not_moved(void **state) {
    (void)state;
    add_node_ints("Transpose", "x", "t", "perm", 3, (const int64_t[]){1, 0, 2});
    add_node("Relu", "t", "r");
    add_ints("axes", 1, (const int64_t[]){0});
    add_node("ReduceSum", "x axes", "s");
    add_node("Add", "r s", "y");
    add_ends(1, 3, (const int64_t[]){-1, 4, 5}, "y");
    expect_import(NULL, "ReduceSum: it sums over the batch: node /s/ReduceSum (output s)\n"
                        "Add: it moves, divides or joins samples of the batch: node /y/Add "
                        "(output y)\n");
}

/* Also where the axis that moves is as long as the batch. */
static void a_batch_like_another_axis_is_not_moved(void **state) {
    (void)state;
    add_node_ints("Transpose", "x", "t", "perm", 3, (const int64_t[]){1, 0, 2});
    add_node("Exp", "t", "y");
    add_ends(1, 3, (const int64_t[]){4, 4, 5}, "y");
    expect_import(NULL, "Exp: it moves, divides or joins samples of the batch: node /y/Exp "
                        "(output y)\n");
}

/* A parameter that is 1 is no constant where torch.export says so. */
static void a_parameter_of_one_is_trained(void **state) {
    (void)state;
    static const float one = 1.0f;
    bytes entry = {.count = 0};
    add_floats("scale", 1, &one);
    add_node("Relu", "x", "r");
    add_node("Mul", "r scale", "y");
    add_ends(1, 2, (const int64_t[]){-1, 4}, "y");
    put_text(&entry, 1, "pkg.torch.export.ExportedProgram.graph_signature");
    put_text(&entry, 2, "p_scale: PARAMETER target='scale'\n");
    put_part(&graph, 16, &entry);
    expect_import(NULL, "input: [4]\n"
                        "layers:\n"
                        "  - {name: r, kind: relu}\n"
                        "  - {name: scale, kind: parameter, shape: [1], names: {weight: scale}}\n"
                        "  - {name: y, kind: mul, from: [r, scale]}\n");
}

/* A node without an input that it needs is no part of a pattern. */
static void bad_nodes_are_no_patterns(void **state) {
    (void)state;
    const bytes shape = value("n", 1, 3, (const int64_t[]){2, 4, 6});
    bytes alien = node("InstanceNormalization", " w b", "n");
    add_tensor("w", 1, (const int64_t[]){4});
    add_tensor("b", 1, (const int64_t[]){4});
    put_part(&graph, GRAPH_NODE, &alien);
    put_part(&graph, 13, &shape);
    add_node("Mul", "n w", "m");
    add_node("Add", "m b", "y");
    add_ends(1, 3, (const int64_t[]){2, 4, 6}, "y");
    expect_import(NULL, "InstanceNormalization: it has an unexpected number of inputs: node "
                        "/n/InstanceNormalization (output n)\n"
                        "Mul: a product with a constant or a weight of this shape cannot be "
                        "trained here: node /m/Mul (output m)\n");
}

/* ---- elementary layers ----------------------------------------------------------------------- */

static void arrangements_become_layers(void **state) {
    (void)state;
    add_ints("starts", 2, (const int64_t[]){1, -1});
    add_ints("ends", 2, (const int64_t[]){3, -9});
    add_ints("axes", 2, (const int64_t[]){1, 2});
    add_ints("steps", 2, (const int64_t[]){1, -2});
    add_node_ints("Transpose", "x", "t", "perm", 4, (const int64_t[]){0, 1, 3, 2});
    add_node("Slice", "t starts ends axes steps", "p");
    add_node("Relu", "p", "y");
    add_ends(1, 4, (const int64_t[]){-1, 3, 4, 5}, "y");
    expect_import(NULL, "input: [3, 4, 5]\n"
                        "layers:\n"
                        "  - {name: y.transpose, kind: transpose, perm: [0, 2, 1]}\n"
                        "  - {name: y.slice, kind: slice, axis: 0, start: 1, end: 3}\n"
                        "  - {name: y.gather, kind: gather, axis: 1, indices: [4, 2, 0]}\n"
                        "  - {name: y.relu, kind: relu}\n");
}

/* A weight is a layer of its own, and a constant that all samples share has no batch. */
static void operators_become_layers(void **state) {
    (void)state;
    add_tensor("net.scale", 3, (const int64_t[]){1, 3, 1});
    add_floats("val_2", 1, (const float[]){2.0f});
    add_ints("axes", 1, (const int64_t[]){-1});
    add_node("Exp", "x", "e");
    add_node("Div", "e net.scale", "d");
    add_node("Pow", "d val_2", "p");
    add_node("ReduceSum", "p axes", "s");
    add_node("Max", "s val_2", "m");
    add_node("Sub", "d m", "y");
    add_ends(1, 3, (const int64_t[]){-1, 3, 4}, "y");
    expect_import(NULL, "input: [3, 4]\n"
                        "layers:\n"
                        "  - {name: e, kind: exp}\n"
                        "  - {name: net, kind: parameter, shape: [3, 1], names: {weight: "
                        "{name: net.scale, dims: 3}}}\n"
                        "  - {name: d, kind: div, from: [e, net]}\n"
                        "  - {name: p, kind: pow, exponent: 2}\n"
                        "  - {name: s, kind: sum, axes: [1], keep: true}\n"
                        "  - {name: m.constant, kind: constant, shape: [1], value: 2}\n"
                        "  - {name: m.max, kind: max, from: [s, m.constant]}\n"
                        "  - {name: y, kind: sub, from: [d, m.max]}\n");
}

/* A product with a weight is one layer, or two with --no-fuse. */
static void nothing_is_fused(void **state) {
    (void)state;
    no_fuse = true;
    add_tensor("fc.weight", 2, (const int64_t[]){6, 4});
    add_tensor("fc.bias", 1, (const int64_t[]){6});
    add_node_ints("Transpose", "fc.weight", "t", "perm", 2, (const int64_t[]){1, 0});
    add_node("MatMul", "x t", "p");
    add_node("Add", "p fc.bias", "y");
    add_ends(1, 3, (const int64_t[]){-1, 3, 4}, "y");
    expect_import(NULL, "input: [3, 4]\n"
                        "layers:\n"
                        "  - {name: fc, kind: parameter, shape: [6, 4]}\n"
                        "  - {name: p, kind: matmul, from: [data, fc], transpose: true}\n"
                        "  - {name: fc_1, kind: parameter, shape: [6], names: {weight: "
                        "fc.bias}}\n"
                        "  - {name: y, kind: add, from: [p, fc_1]}\n");
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
        cmocka_unit_test_setup(arrangements_by_blocks, begin),
        cmocka_unit_test_setup(weights_of_all_samples, begin),
        cmocka_unit_test_setup(last_states_of_a_stack, begin),
        cmocka_unit_test_setup(all_reasons_come_at_once, begin),
        cmocka_unit_test_setup(free_sizes_are_asked_for, begin),
        cmocka_unit_test_setup(folded_weights_are_named, begin),
        cmocka_unit_test_setup(merged_weights_are_named, begin),
        cmocka_unit_test_setup(either_name_of_a_tied_tensor, begin),
        cmocka_unit_test_setup(a_missing_parameter_is_named, begin),
        cmocka_unit_test_setup(the_batch_is_not_moved, begin),
        cmocka_unit_test_setup(a_batch_like_another_axis_is_not_moved, begin),
        cmocka_unit_test_setup(a_parameter_of_one_is_trained, begin),
        cmocka_unit_test_setup(bad_nodes_are_no_patterns, begin),
        cmocka_unit_test_setup(arrangements_become_layers, begin),
        cmocka_unit_test_setup(operators_become_layers, begin),
        cmocka_unit_test_setup(nothing_is_fused, begin),
        cmocka_unit_test_setup(names_of_a_state, begin),
        cmocka_unit_test_setup(layers_are_frozen, begin),
        cmocka_unit_test_setup(given_shapes_are_parsed, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
