/* Layers that an exporter writes as several nodes, or in another arrangement. */
#include "small_graph.h"

#include <math.h>

static const int64_t sequence[] = {-1, 6, 4};
static const int64_t image[] = {-1, 8, 6, 6};

static void expect_layers(const char *want) {
    expect_with(&(rp_onnx_options){0}, want);
}

static void add_mean(const char *input, const char *output) {
    add_node_ints("ReduceMean", input, output, "axes", 1, (const int64_t[]){-1});
}

/* (x - mean) / sqrt(variance + eps) * weight + bias, as below opset 17. */
static void layernorm_in_parts(void **state) {
    (void)state;
    static const float two = 2.0f;
    static const float eps = 1e-6f;
    add_floats("two", 1, &two);
    add_floats("eps", 1, &eps);
    add_tensor("n.weight", 1, (const int64_t[]){4});
    add_tensor("n.bias", 1, (const int64_t[]){4});
    add_mean("x", "m");
    add_node("Sub", "x m", "d");
    add_node("Pow", "d two", "q");
    add_mean("q", "v");
    add_node("Add", "v eps", "ve");
    add_node("Sqrt", "ve", "s");
    add_node("Div", "d s", "z");
    add_node("Mul", "z n.weight", "zw");
    add_node("Add", "zw n.bias", "y");
    add_ends(1, 3, sequence, "y");
    expect_layers("input: [6, 4]\n"
                  "layers:\n"
                  "  - {name: n, kind: layernorm, dims: 1, eps: 1e-06}\n");
}

/* The mean of another value is not the one that is subtracted. */
static void another_mean_is_no_layernorm(void **state) {
    (void)state;
    static const float two = 2.0f;
    static const float eps = 1e-6f;
    add_floats("two", 1, &two);
    add_floats("eps", 1, &eps);
    add_tensor("n.weight", 1, (const int64_t[]){4});
    add_tensor("n.bias", 1, (const int64_t[]){4});
    add_node("Relu", "x", "r");
    add_mean("r", "m");
    add_node("Sub", "x m", "d");
    add_node("Pow", "d two", "q");
    add_mean("q", "v");
    add_node("Add", "v eps", "ve");
    add_node("Sqrt", "ve", "s");
    add_node("Div", "d s", "z");
    add_node("Mul", "z n.weight", "zw");
    add_node("Add", "zw n.bias", "y");
    add_ends(1, 3, sequence, "y");
    expect_layers("input: [6, 4]\n"
                  "layers:\n"
                  "  - {name: r, kind: relu}\n"
                  "  - {name: m, kind: mean, axes: [1], keep: true}\n"
                  "  - {name: d, kind: sub, from: [data, m]}\n"
                  "  - {name: n, kind: rmsnorm, dims: 1}\n"
                  "  - {name: n_1, kind: parameter, shape: [4], names: {weight: n.bias}}\n"
                  "  - {name: y, kind: add, from: [n, n_1]}\n");
}

/* weight * (x * 1 / sqrt(mean(x x) + eps)) */
static void rmsnorm_in_parts(void **state) {
    (void)state;
    static const float eps = 1e-5f;
    add_floats("eps", 1, &eps);
    add_tensor("n.weight", 1, (const int64_t[]){4});
    add_node("Mul", "x x", "q");
    add_mean("q", "v");
    add_node("Add", "eps v", "ve");
    add_node("Sqrt", "ve", "s");
    add_node("Reciprocal", "s", "i");
    add_node("Mul", "x i", "z");
    add_node("Mul", "n.weight z", "y");
    add_ends(1, 3, sequence, "y");
    expect_layers("input: [6, 4]\n"
                  "layers:\n"
                  "  - {name: n, kind: rmsnorm, dims: 1, eps: 1e-05}\n");
}

/* Groups of channels are the channels of an instance normalisation. */
static void groupnorm_in_parts(void **state) {
    (void)state;
    static const float ones[] = {1.0f, 1.0f};
    static const float zeros[] = {0.0f, 0.0f};
    add_floats("one", 2, ones);
    add_floats("zero", 2, zeros);
    add_ints("groups", 3, (const int64_t[]){0, 2, -1});
    add_ints("whole", 4, (const int64_t[]){0, 8, 6, 6});
    add_ints("axes", 2, (const int64_t[]){1, 2});
    add_tensor("g.weight", 1, (const int64_t[]){8});
    add_tensor("g.bias", 1, (const int64_t[]){8});
    add_node("Reshape", "x groups", "a");
    add_node("InstanceNormalization", "a one zero", "b");
    add_node("Reshape", "b whole", "c");
    add_node("Unsqueeze", "g.weight axes", "w");
    add_node("Unsqueeze", "g.bias axes", "o");
    add_node("Mul", "c w", "d");
    add_node("Add", "d o", "y");
    add_ends(1, 4, image, "y");
    expect_layers("input: [8, 6, 6]\n"
                  "layers:\n"
                  "  - {name: g, kind: groupnorm, groups: 2}\n");
}

/* Channels as groups of their own, of images and of signals; constants are no weights. */
static void instancenorm(void **state) {
    (void)state;
    static const int64_t signal[] = {-1, 8, 6};
    add_tensor("n.weight", 1, (const int64_t[]){8});
    add_tensor("n.bias", 1, (const int64_t[]){8});
    add_node("InstanceNormalization", "x n.weight n.bias", "y");
    add_ends(1, 4, image, "y");
    expect_layers("input: [8, 6, 6]\n"
                  "layers:\n"
                  "  - {name: n, kind: groupnorm, groups: 8}\n");
    (void)begin(state);
    add_tensor("c.weight", 3, (const int64_t[]){8, 8, 1});
    add_tensor("n.weight", 1, (const int64_t[]){8});
    add_tensor("n.bias", 1, (const int64_t[]){8});
    add_node("Conv", "x c.weight", "c");
    add_node("InstanceNormalization", "c n.weight n.bias", "n");
    add_node("GlobalAveragePool", "n", "g");
    add_node_ints("Flatten", "g", "y", "axis", 0, (const int64_t[]){1});
    add_ends(1, 3, signal, "y");
    expect_layers("input: [8, 6]\n"
                  "layers:\n"
                  "  - {name: c.reshape, kind: reshape, shape: [8, 1, 6]}\n"
                  "  - {name: c, kind: conv2d, out: 8, kernel: 1, bias: false, names: {weight: "
                  "{name: c.weight, dims: 3}}}\n"
                  "  - {name: n, kind: groupnorm, groups: 8}\n"
                  "  - {name: g, kind: globalavgpool}\n"
                  "  - {name: y, kind: flatten}\n");
    (void)begin(state);
    add_ints("count", 1, (const int64_t[]){8});
    add_node("ConstantOfShape", "count", "w");
    add_node("InstanceNormalization", "x w w", "y");
    add_ends(1, 4, image, "y");
    expect_layers("InstanceNormalization: only images and signals with a weight and a bias that "
                  "are trained can be normalised here: node /y/InstanceNormalization (output y)\n");
}

static void add_noise(const char *like, const float *keep) {
    const bytes to = attribute_int("to", 1);
    bytes cast = node("Cast", "l", "c");
    put_part(&cast, NODE_ATTRIBUTE, &to);
    add_floats("keep", 1, keep);
    add_node("RandomUniformLike", like, "r");
    add_node("Less", "r keep", "l");
    put_part(&graph, GRAPH_NODE, &cast);
    add_node("Div", "c keep", "m");
    add_node("Mul", "x m", "y");
}

/* One draw for each sample, or one for each element. */
static void noise_that_drops(void **state) {
    static const float keep = 0.9f;
    add_tensor("ones", 4, (const int64_t[]){3, 1, 1, 1});
    add_noise("ones", &keep);
    add_ends(1, 4, (const int64_t[]){3, 8, 6, 6}, "y");
    expect_layers("input: [8, 6, 6]\n"
                  "layers:\n"
                  "  - {name: y, kind: droppath, p: 0.1}\n");
    (void)begin(state);
    add_noise("x", &keep);
    add_ends(1, 4, image, "y");
    expect_layers("input: [8, 6, 6]\n"
                  "layers:\n"
                  "  - {name: y, kind: dropout, p: 0.1}\n");
    (void)begin(state);
    add_tensor("ones", 4, (const int64_t[]){3, 8, 1, 1});
    add_noise("ones", &keep);
    add_ends(1, 4, (const int64_t[]){3, 8, 6, 6}, "y");
    expect_layers("RandomUniformLike: random numbers that are not those of dropout cannot be drawn "
                  "here: node /r/RandomUniformLike (output r)\n"

                  "Mul: only elements and samples can be dropped here: node /y/Mul (output y)\n");
}

/* Zeros of a node and of the convolution together are as many on each side. */
static void zeros_before_a_convolution(void **state) {
    (void)state;
    add_ints("sides", 8, (const int64_t[]){0, 0, 1, 2, 0, 0, 0, 1});
    add_tensor("c.weight", 4, (const int64_t[]){4, 8, 3, 3});
    add_node("Pad", "x sides", "p");
    add_node_ints("Conv", "p c.weight", "y", "pads", 4, (const int64_t[]){0, 0, 1, 1});
    add_ends(1, 4, image, "y");
    expect_layers("input: [8, 6, 6]\n"
                  "layers:\n"
                  "  - {name: c, kind: conv2d, out: 4, kernel: 3, pad: [1, 2], bias: false}\n");
}

/* A net with zeros, then an average pool with these attributes. */
static void add_pool(int64_t zeros, const char *name, int64_t number) {
    bytes n = node("AveragePool", "p", "y");
    const bytes a = attribute_ints("kernel_shape", 2, (const int64_t[]){3, 3});
    const bytes b = attribute_ints("strides", 2, (const int64_t[]){2, 2});
    const bytes c = attribute_int(name, number);
    add_ints("sides", 8, (const int64_t[]){0, 0, zeros, zeros, 0, 0, zeros, zeros});
    add_node("Pad", "x sides", "p");
    put_part(&n, NODE_ATTRIBUTE, &a);
    put_part(&n, NODE_ATTRIBUTE, &b);
    put_part(&n, NODE_ATTRIBUTE, &c);
    put_part(&graph, GRAPH_NODE, &n);
    add_ends(1, 4, image, "y");
}

/* PyTorch 1.13 writes the zeros of an average pool as a node. Those that the pool's kind does not
 * have stay a layer. */
static void zeros_before_a_pool(void **state) {
    (void)state;
    add_pool(1, "count_include_pad", 1);
    expect_layers("input: [8, 6, 6]\n"
                  "layers:\n"
                  "  - {name: y, kind: avgpool, kernel: 3, stride: 2, pad: 1}\n");
    (void)begin(state);
    add_pool(2, "count_include_pad", 0);
    expect_layers("input: [8, 6, 6]\n"
                  "layers:\n"
                  "  - {name: p, kind: pad, pads: [0, 2, 2, 0, 2, 2]}\n"
                  "  - {name: y, kind: avgpool, kernel: 3, stride: 2}\n");
    (void)begin(state);
    add_pool(1, "ceil_mode", 1);
    expect_layers("input: [8, 6, 6]\n"
                  "layers:\n"
                  "  - {name: p, kind: pad, pads: [0, 1, 1, 0, 1, 1]}\n"
                  "  - {name: y, kind: avgpool, kernel: 3, stride: 2, ceil_mode: true}\n");
}

/* nn.Transformer computes with the time first, and joins time and batch for a product. */
static void time_first(void **state) {
    (void)state;
    static const int64_t turn[] = {1, 0, 2};
    add_tensor("a.weight", 2, (const int64_t[]){5, 4});
    add_tensor("a.bias", 1, (const int64_t[]){5});
    add_tensor("b.weight", 2, (const int64_t[]){4, 5});
    add_tensor("n.weight", 1, (const int64_t[]){4});
    add_tensor("n.bias", 1, (const int64_t[]){4});
    add_ints("joined", 2, (const int64_t[]){-1, 5});
    add_ints("split", 3, (const int64_t[]){6, -1, 4});
    add_node_ints("Transpose", "x", "t", "perm", 3, turn);
    add_node("Transpose", "a.weight", "aw");
    add_node("MatMul", "t aw", "p");
    add_node("Add", "a.bias p", "q");
    add_node("Relu", "q", "r");
    add_node("Reshape", "r joined", "j");
    add_node_ints("Gemm", "j b.weight", "g", "transB", 0, (const int64_t[]){1});
    add_node("Reshape", "g split", "k");
    add_node("Add", "t k", "s");
    add_node("LayerNormalization", "s n.weight n.bias", "l");
    add_ints("first", 1, (const int64_t[]){0});
    add_node_ints("ReduceMean", "l", "m", "axes", 1, (const int64_t[]){0});
    add_node("Squeeze", "m first", "y");
    add_ends(1, 3, sequence, "y");
    expect_layers("input: [6, 4]\n"
                  "layers:\n"
                  "  - {name: a, kind: linear, out: 5}\n"
                  "  - {name: r, kind: relu}\n"
                  "  - {name: b, kind: linear, out: 4, bias: false}\n"
                  "  - {name: s, kind: add, from: [data, b]}\n"
                  "  - {name: n, kind: layernorm, dims: 1}\n"
                  "  - {name: m, kind: seqpool}\n");
}

/* Rows of a table that a constant index chooses one after the other are positions. */
static void positions_by_an_index(void **state) {
    (void)state;
    const bytes ids =
        tensor("ids", 7, 2, (const int64_t[]){1, 6}, (const int64_t[]){0, 1, 2, 3, 4, 5});
    put_part(&graph, GRAPH_INITIALISER, &ids);
    add_tensor("p.weight", 2, (const int64_t[]){9, 4});
    add_node("Gather", "p.weight ids", "p");
    add_node("Add", "x p", "y");
    add_ends(1, 3, sequence, "y");
    expect_layers("input: [6, 4]\n"
                  "layers:\n"
                  "  - {name: p, kind: position, length: 9}\n");
}

/* One row of a table for all tokens, as BERT adds the type of its sentence: the table stays whole,
 * and its row is not a weight for each token. */
static void one_row_for_all_tokens(void **state) {
    (void)state;
    const bytes ids =
        tensor("ids", 7, 2, (const int64_t[]){1, 6}, (const int64_t[]){1, 1, 1, 1, 1, 1});
    put_part(&graph, GRAPH_INITIALISER, &ids);
    add_tensor("p.weight", 2, (const int64_t[]){2, 4});
    add_node("Gather", "p.weight ids", "p");
    add_node("Add", "x p", "y");
    add_ends(1, 3, sequence, "y");
    expect_layers("input: [6, 4]\n"
                  "layers:\n"
                  "  - {name: p, kind: parameter, shape: [2, 4]}\n"
                  "  - {name: p.slice, kind: slice, axis: 0, start: 1, end: 2}\n"
                  "  - {name: p.slice.expand, kind: expand, shape: [6, 4]}\n"
                  "  - {name: y, kind: add, from: [data, p.slice.expand]}\n");
}

/* Scores of tokens with each other, whose mask is computed from the ids. */
static void add_padded_attention(int64_t padding) {
    const bytes id = tensor("id", 7, 0, NULL, &padding);
    static const float least = -1e30f;
    put_part(&graph, GRAPH_INITIALISER, &id);
    add_floats("least", 1, &least);
    add_ints("axis", 1, (const int64_t[]){1});
    add_tensor("e.weight", 2, (const int64_t[]){9, 4});
    add_node("Gather", "e.weight x", "h");
    add_node_ints("Transpose", "h", "k", "perm", 3, (const int64_t[]){0, 2, 1});
    add_node("Equal", "x id", "m");
    add_node("Unsqueeze", "m axis", "mm");
    add_node("MatMul", "h k", "s");
}

static void masks_hide_ids(void **state) {
    add_padded_attention(3);
    add_node("Where", "mm least s", "w");
    add_node("Softmax", "w", "p");
    add_node("MatMul", "p h", "y");
    add_ends(7, 2, (const int64_t[]){-1, 6}, "y");
    expect_layers("input: {shape: [6], type: i32}\n"
                  "layers:\n"
                  "  - {name: e, kind: embedding, count: 9, out: 4}\n"
                  "  - {name: y, kind: attention, from: [e, e, e, data], heads: 1, scale: 1, "
                  "padding: 3}\n");
    (void)begin(state); /* the mask is added, and a second one is causal */
    add_padded_attention(0);
    float later[36];
    for (uint32_t i = 0; i < 36; i++) {
        later[i] = i % 6 > i / 6 ? -1e30f : 0.0f;
    }
    const bytes causal = tensor("later", 1, 2, (const int64_t[]){6, 6}, later);
    static const float zero = 0.0f;
    put_part(&graph, GRAPH_INITIALISER, &causal);
    add_floats("zero", 1, &zero);
    add_node("Where", "mm least zero", "a");
    add_node("Add", "s later", "t");
    add_node("Add", "a t", "w");
    add_node("Softmax", "w", "p");
    add_node("MatMul", "p h", "y");
    add_ends(7, 2, (const int64_t[]){-1, 6}, "y");
    expect_layers("input: {shape: [6], type: i32}\n"
                  "layers:\n"
                  "  - {name: e, kind: embedding, count: 9, out: 4}\n"
                  "  - {name: y, kind: attention, from: [e, e, e, data], heads: 1, causal: true, "
                  "scale: 1, padding: 0}\n");
}

/* A mask that hides the queries' own ids is no padding of keys. */
static void masks_of_queries_are_layers(void **state) {
    (void)state;
    add_padded_attention(3);
    add_ints("last", 1, (const int64_t[]){2});
    add_node("Unsqueeze", "m last", "rows");
    add_node("Where", "rows least s", "w");
    add_node("Softmax", "w", "p");
    add_node("MatMul", "p h", "y");
    add_ends(7, 2, (const int64_t[]){-1, 6}, "y");
    expect_layers("input: {shape: [6], type: i32}\n"
                  "layers:\n"
                  "  - {name: e, kind: embedding, count: 9, out: 4}\n"
                  "  - {name: id, kind: constant, shape: [1], value: 3, names: {weight: id}}\n"
                  "  - {name: m, kind: equal, from: [data, id]}\n"
                  "  - {name: s, kind: matmul, from: [e, e], transpose: true}\n"
                  "  - {name: w.reshape, kind: reshape, from: [m], shape: [6, 1]}\n"
                  "  - {name: least, kind: constant, shape: [1], names: {weight: least}}\n"
                  "  - {name: w.where, kind: where, from: [w.reshape, least, s]}\n"
                  "  - {name: p, kind: softmax}\n"
                  "  - {name: y, kind: matmul, from: [p, e]}\n");
}

/* Attention whose scores get a sum with an initialiser [6, 6]. */
static void add_biased_attention(const char *name, const float *bias) {
    char inputs[40];
    const bytes added = tensor(name, 1, 2, (const int64_t[]){6, 6}, bias);
    (void)snprintf(inputs, sizeof inputs, "s %s", name);
    add_padded_attention(3);
    put_part(&graph, GRAPH_INITIALISER, &added);
    add_node("Add", inputs, "w");
    add_node("Softmax", "w", "p");
    add_node("MatMul", "p h", "y");
    add_ends(7, 2, (const int64_t[]){-1, 6}, "y");
}

/* A causal mask with a bias of distance (ALiBi), or a weight of zeros, is more than a mask. */
static void biases_are_no_masks(void **state) {
    float bias[36] = {0};
    bytes entry = {.count = 0};
    add_biased_attention("a.bias", bias);
    put_text(&entry, 1, "pkg.torch.export.ExportedProgram.graph_signature");
    put_text(&entry, 2, "p_e: PARAMETER target='e.weight'\np_a: PARAMETER target='a.bias'\n");
    put_part(&graph, 16, &entry);
    expect_layers("input: {shape: [6], type: i32}\n"
                  "layers:\n"
                  "  - {name: e, kind: embedding, count: 9, out: 4}\n"
                  "  - {name: s, kind: matmul, from: [e, e], transpose: true}\n"
                  "  - {name: a, kind: position, length: 6, names: {weight: a.bias}}\n"
                  "  - {name: p, kind: softmax}\n"
                  "  - {name: y, kind: matmul, from: [p, e]}\n");
    (void)begin(state);
    for (uint32_t i = 0; i < 36; i++) {
        bias[i] = i % 6 > i / 6 ? -1e30f : -0.5f * (float)(i / 6 - i % 6);
    }
    add_biased_attention("val_1", bias);
    expect_layers("parameter: initialiser val_1 has no name of a module: constants were folded; "
                  "export again with ringpipe_export.py, or do_constant_folding=False; "
                  "--accept-folded trains it as it is\n");
}

/* Two ids that are hidden are no padding. */
static void masks_of_two_ids_are_layers(void **state) {
    (void)state;
    static const int64_t other = 5;
    const bytes id = tensor("id2", 7, 0, NULL, &other);
    add_padded_attention(3);
    put_part(&graph, GRAPH_INITIALISER, &id);
    add_node("Equal", "x id2", "m2");
    add_node("Or", "m m2", "both");
    add_node("Unsqueeze", "both axis", "rows");
    add_node("Where", "rows least s", "w");
    add_node("Softmax", "w", "p");
    add_node("MatMul", "p h", "y");
    add_ends(7, 2, (const int64_t[]){-1, 6}, "y");
    expect_layers("input: {shape: [6], type: i32}\n"
                  "layers:\n"
                  "  - {name: e, kind: embedding, count: 9, out: 4}\n"
                  "  - {name: id, kind: constant, shape: [1], value: 3, names: {weight: id}}\n"
                  "  - {name: m, kind: equal, from: [data, id]}\n"
                  "  - {name: s, kind: matmul, from: [e, e], transpose: true}\n"
                  "  - {name: id2, kind: constant, shape: [1], value: 5, names: {weight: id2}}\n"
                  "  - {name: m2, kind: equal, from: [data, id2]}\n"
                  "  - {name: both, kind: or, from: [m, m2]}\n"
                  "  - {name: w.reshape, kind: reshape, shape: [1, 6]}\n"
                  "  - {name: least, kind: constant, shape: [1], names: {weight: least}}\n"
                  "  - {name: w.where, kind: where, from: [w.reshape, least, s]}\n"
                  "  - {name: p, kind: softmax}\n"
                  "  - {name: y, kind: matmul, from: [p, e]}\n");
}

/* `name` with its halves turned by position: [N, heads, 3, 4]. */
static void add_rotary(const char *name) {
    static const char *const nodes[][3] = {{"Slice", "%s low mid last", "%sa"},
                                           {"Slice", "%s mid high last", "%sb"},
                                           {"Neg", "%sb", "%sn"},
                                           {"Concat", "%sn %sa", "%st"},
                                           {"Mul", "%s cos", "%sc"},
                                           {"Mul", "%st sin", "%ss"},
                                           {"Add", "%sc %ss", "%sr"}};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        char text[2][60] = {"", ""};
        for (uint32_t k = 0; k < 2; k++) {
            for (const char *at = nodes[i][k + 1]; *at;) {
                const bool here = at[0] == '%';
                const size_t used = strlen(text[k]);
                (void)snprintf(text[k] + used, sizeof text[k] - used, "%.*s",
                               here ? (int)strlen(name) : 1, here ? name : at);
                at += here ? 2 : 1;
            }
        }
        if (strcmp(nodes[i][0], "Concat") == 0) {
            add_node_ints("Concat", text[0], text[1], "axis", 0, (const int64_t[]){3});
        } else {
            add_node(nodes[i][0], text[0], text[1]);
        }
    }
}

/* Two heads of queries share one of keys and values; both are turned by their position. */
static void add_rotary_attention(double fastest) {
    float angles[2][12];
    for (uint32_t i = 0; i < 12; i++) {
        const double angle = i / 4 * (i % 2 == 0 ? fastest : 0.01);
        angles[0][i] = (float)cos(angle);
        angles[1][i] = (float)sin(angle);
    }
    const bytes cosines = tensor("cos", 1, 2, (const int64_t[]){3, 4}, angles[0]);
    const bytes sines = tensor("sin", 1, 2, (const int64_t[]){3, 4}, angles[1]);
    put_part(&graph, GRAPH_INITIALISER, &cosines);
    put_part(&graph, GRAPH_INITIALISER, &sines);
    add_ints("low", 1, (const int64_t[]){0});
    add_ints("mid", 1, (const int64_t[]){2});
    add_ints("high", 1, (const int64_t[]){4});
    add_ints("last", 1, (const int64_t[]){3});
    add_ints("parts", 3, (const int64_t[]){8, 4, 4});
    add_ints("two", 4, (const int64_t[]){0, 3, 2, 4});
    add_ints("one", 4, (const int64_t[]){0, 3, 1, 4});
    add_ints("added", 1, (const int64_t[]){2});
    add_ints("twice", 5, (const int64_t[]){1, 1, 2, 1, 1});
    add_ints("heads", 4, (const int64_t[]){0, 2, 3, 4});
    add_node_ints("Split", "x parts", "q k v", "axis", 0, (const int64_t[]){2});
    add_node("Reshape", "q two", "qh");
    add_node("Reshape", "k one", "kh");
    add_node("Reshape", "v one", "vh");
    add_node_ints("Transpose", "qh", "Q", "perm", 4, (const int64_t[]){0, 2, 1, 3});
    add_node_ints("Transpose", "kh", "K", "perm", 4, (const int64_t[]){0, 2, 1, 3});
    add_node_ints("Transpose", "vh", "V", "perm", 4, (const int64_t[]){0, 2, 1, 3});
    add_rotary("Q");
    add_rotary("K");
    add_node("Unsqueeze", "Kr added", "Ku");
    add_node("Expand", "Ku twice", "Ke");
    add_node("Reshape", "Ke heads", "Kk");
    add_node("Unsqueeze", "V added", "Vu");
    add_node("Expand", "Vu twice", "Ve");
    add_node("Reshape", "Ve heads", "Vv");
    add_node_ints("Transpose", "Kk", "Kx", "perm", 4, (const int64_t[]){0, 1, 3, 2});
    add_node("MatMul", "Qr Kx", "s");
    add_node("Softmax", "s", "p");
    add_node("MatMul", "p Vv", "o");
    add_node_ints("Transpose", "o", "ot", "perm", 4, (const int64_t[]){0, 2, 1, 3});
    add_ints("joined", 3, (const int64_t[]){0, 3, 8});
    add_node("Reshape", "ot joined", "oj");
    add_node("Relu", "oj", "y");
    add_ends(1, 3, (const int64_t[]){-1, 3, 16}, "y");
}

static void rotary_embedding_and_shared_heads(void **state) {
    (void)state;
    add_rotary_attention(1.0);
    expect_layers("input: [3, 16]\n"
                  "layers:\n"
                  "  - {name: o, kind: attention, heads: 2, kv_heads: 1, scale: 1, rotary: {base: "
                  "10000}}\n"
                  "  - {name: y, kind: relu}\n");
}

/* Other angles are not those of one base. */
static void other_angles_are_refused(void **state) {
    (void)state;
    add_rotary_attention(0.5);
    rp_arena arena;
    rp_onnx_model *model;
    rp_onnx_import import;
    const bytes b = model_of(&graph, opset);
    const rp_onnx_options options = {.budget = RP_ONNX_BUDGET};
    rp_arena_init(&arena, "test", 64 << 20);
    assert_int_equal(rp_onnx_open_bytes(&arena, b.at, b.count, "net.onnx", &model), RP_OK);
    assert_int_equal(rp_onnx_analyse(&arena, model, &options, &import), RP_OK);
    assert_true(!import.text || !strstr(import.text, "rotary"));
    rp_onnx_close(&model);
    rp_arena_finish(&arena);
}

/* Constants of shapes and positions: their result is an index that chooses rows. */
static void constants_are_folded(void **state) {
    (void)state;
    add_ints("ones", 6, (const int64_t[]){1, 1, 1, 1, 1, 1});
    add_ints("zero", 1, (const int64_t[]){0});
    add_ints("one", 1, (const int64_t[]){1});
    add_ints("column", 2, (const int64_t[]){6, 1});
    add_ints("table", 6, (const int64_t[]){0, 1, 2, 3, 4, 5});
    add_ints("empty", 1, (const int64_t[]){6});
    add_tensor("p.weight", 2, (const int64_t[]){9, 4});
    add_node("CumSum", "ones zero", "c");          /* 1 2 3 4 5 6 */
    add_node("Sub", "c one", "d");                 /* 0 1 2 3 4 5 */
    add_node("GatherElements", "table d", "e");    /* the same */
    add_node("Reshape", "e column", "f");          /* [6, 1] */
    add_node("GatherND", "table f", "g");          /* [6] */
    add_node("Slice", "g empty empty", "nothing"); /* [0] */
    add_node_ints("Concat", "nothing g", "h", "axis", 0, (const int64_t[]){0});
    add_node("Gather", "p.weight h", "p");
    add_node("Add", "x p", "y");
    add_ends(1, 3, sequence, "y");
    expect_layers("input: [6, 4]\n"
                  "layers:\n"
                  "  - {name: p, kind: position, length: 9}\n");
}

static void a_product_with_one_is_nothing(void **state) {
    (void)state;
    static const float one = 1.0f;
    add_floats("one", 1, &one);
    add_node("Mul", "x one", "m");
    add_node("Elu", "m", "e");
    add_node("Mul", "one e", "y");
    add_ends(1, 3, sequence, "y");
    expect_layers("input: [6, 4]\n"
                  "layers:\n"
                  "  - {name: e, kind: elu}\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(layernorm_in_parts, begin),
        cmocka_unit_test_setup(another_mean_is_no_layernorm, begin),
        cmocka_unit_test_setup(rmsnorm_in_parts, begin),
        cmocka_unit_test_setup(groupnorm_in_parts, begin),
        cmocka_unit_test_setup(instancenorm, begin),
        cmocka_unit_test_setup(noise_that_drops, begin),
        cmocka_unit_test_setup(zeros_before_a_convolution, begin),
        cmocka_unit_test_setup(zeros_before_a_pool, begin),
        cmocka_unit_test_setup(time_first, begin),
        cmocka_unit_test_setup(positions_by_an_index, begin),
        cmocka_unit_test_setup(one_row_for_all_tokens, begin),
        cmocka_unit_test_setup(masks_hide_ids, begin),
        cmocka_unit_test_setup(masks_of_queries_are_layers, begin),
        cmocka_unit_test_setup(biases_are_no_masks, begin),
        cmocka_unit_test_setup(masks_of_two_ids_are_layers, begin),
        cmocka_unit_test_setup(rotary_embedding_and_shared_heads, begin),
        cmocka_unit_test_setup(other_angles_are_refused, begin),
        cmocka_unit_test_setup(constants_are_folded, begin),
        cmocka_unit_test_setup(a_product_with_one_is_nothing, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
