/* Windows over signals [N, C, L], which become those of images of height 1. */
#include "small_graph.h"

#include <math.h>

static const int64_t signal[] = {-1, 4, 16};

static void expect_layers(const char *want) {
    expect_with(&(rp_onnx_options){0}, want);
}

static void add_batchnorm(const char *input, const char *output) {
    char inputs[100];
    for (size_t i = 0; i < 4; i++) {
        static const char *const names[] = {"n.weight", "n.bias", "n.running_mean",
                                            "n.running_var"};
        add_tensor(names[i], 1, (const int64_t[]){8});
    }
    (void)snprintf(inputs, sizeof inputs, "%s n.weight n.bias n.running_mean n.running_var", input);
    add_node("BatchNormalization", inputs, output);
}

/* A Conv with attributes of one size each. */
static void add_conv(const char *inputs, const char *output, int64_t stride, int64_t pad) {
    bytes n = node("Conv", inputs, output);
    const bytes a = attribute_ints("strides", 1, &stride);
    const bytes b = attribute_ints("pads", 2, (const int64_t[]){pad, pad});
    put_part(&n, NODE_ATTRIBUTE, &a);
    put_part(&n, NODE_ATTRIBUTE, &b);
    put_part(&graph, GRAPH_NODE, &n);
}

/* Layers follow each other without an arrangement; weights keep the shapes of the file. */
static void a_chain_of_layers(void **state) {
    (void)state;
    add_tensor("a.weight", 3, (const int64_t[]){8, 4, 5});
    add_tensor("a.bias", 1, (const int64_t[]){8});
    add_tensor("b.weight", 3, (const int64_t[]){6, 8, 3});
    add_conv("x a.weight a.bias", "c", 1, 2);
    add_batchnorm("c", "n");
    add_node("Relu", "n", "r");
    add_node_ints("MaxPool", "r", "m", "kernel_shape", 1, (const int64_t[]){2});
    add_conv("m b.weight", "d", 2, 1);
    add_node("Sigmoid", "d", "s");
    add_node("Mul", "d s", "silu");
    add_node("GlobalAveragePool", "silu", "g");
    add_node_ints("Flatten", "g", "y", "axis", 0, (const int64_t[]){1});
    add_ends(1, 3, signal, "y");
    expect_layers("input: [4, 16]\n"
                  "layers:\n"
                  "  - {name: c, kind: reshape, shape: [4, 1, 16]}\n"
                  "  - {name: a, kind: conv2d, out: 8, kernel: [1, 5], pad: [0, 2], names: "
                  "{weight: {name: a.weight, dims: 3}}}\n"
                  "  - {name: n, kind: batchnorm}\n"
                  "  - {name: r, kind: relu}\n"
                  "  - {name: m, kind: maxpool, kernel: [1, 2], stride: 1}\n"
                  "  - {name: b, kind: conv2d, out: 6, kernel: [1, 3], stride: [1, 2], pad: [0, "
                  "1], bias: false, names: {weight: {name: b.weight, dims: 3}}}\n"
                  "  - {name: silu, kind: silu}\n"
                  "  - {name: g, kind: globalavgpool}\n"
                  "  - {name: y, kind: flatten}\n");
}

/* The mean of AdaptiveAvgPool1d as dynamo writes it; a sum, a product and a concatenation. */
static void operators_of_two_signals(void **state) {
    (void)state;
    add_tensor("a.weight", 3, (const int64_t[]){4, 4, 1});
    add_tensor("b.weight", 3, (const int64_t[]){4, 4, 1});
    add_node("Conv", "x a.weight", "a");
    add_node("Conv", "x b.weight", "b");
    add_node("Add", "a b", "s");
    add_node_ints("ReduceMean", "s", "g", "axes", 1, (const int64_t[]){2});
    add_node("Mul", "s g", "p");
    add_node_ints("Concat", "p a", "c", "axis", 0, (const int64_t[]){1});
    add_node_ints("ReduceMean", "c", "y", "axes", 1, (const int64_t[]){-1});
    add_ends(1, 3, signal, "y");
    expect_layers(
        "input: [4, 16]\n"
        "layers:\n"
        "  - {name: a.reshape, kind: reshape, shape: [4, 1, 16]}\n"
        "  - {name: a, kind: conv2d, out: 4, kernel: 1, bias: false, names: {weight: {name: "
        "a.weight, dims: 3}}}\n"
        "  - {name: b, kind: conv2d, from: [a.reshape], out: 4, kernel: 1, bias: false, names: "
        "{weight: {name: b.weight, dims: 3}}}\n"
        "  - {name: s, kind: add, from: [a, b]}\n"
        "  - {name: g, kind: globalavgpool}\n"
        "  - {name: p, kind: mul, from: [s, g]}\n"
        "  - {name: c, kind: concat, from: [p, a]}\n"
        "  - {name: y, kind: globalavgpool}\n"
        "  - {name: reshape, kind: reshape, shape: [8, 1]}\n");
}

/* Zeros of a node join those of the convolution; a transposed one has sizes of one axis, too. */
static void zeros_and_a_transposed_convolution(void **state) {
    static const int64_t one = 1;
    static const int64_t two = 2;
    bytes n;
    add_tensor("a.weight", 3, (const int64_t[]){8, 4, 3});
    add_ints("around", 6, (const int64_t[]){0, 0, 1, 0, 0, 2});
    add_node("Pad", "x around", "p");
    add_node_ints("Conv", "p a.weight", "y", "pads", 2, (const int64_t[]){1, 0});
    add_ends(1, 3, signal, "y");
    expect_layers("input: [4, 16]\n"
                  "layers:\n"
                  "  - {name: p, kind: reshape, shape: [4, 1, 16]}\n"
                  "  - {name: a, kind: conv2d, out: 8, kernel: [1, 3], pad: [0, 2], bias: false, "
                  "names: {weight: {name: a.weight, dims: 3}}}\n"
                  "  - {name: reshape, kind: reshape, shape: [8, 18]}\n");
    (void)begin(state);
    add_tensor("t.weight", 3, (const int64_t[]){4, 3, 5});
    n = node("ConvTranspose", "x t.weight", "y");
    const bytes a = attribute_ints("strides", 1, &two);
    const bytes b = attribute_ints("pads", 2, (const int64_t[]){2, 2});
    const bytes c = attribute_ints("output_padding", 1, &one);
    put_part(&n, NODE_ATTRIBUTE, &a);
    put_part(&n, NODE_ATTRIBUTE, &b);
    put_part(&n, NODE_ATTRIBUTE, &c);
    put_part(&graph, GRAPH_NODE, &n);
    add_node("Relu", "y", "z");
    add_node_ints("Flatten", "z", "f", "axis", 0, &one);
    add_ends(1, 3, signal, "f");
    expect_layers("input: [4, 16]\n"
                  "layers:\n"
                  "  - {name: y, kind: reshape, shape: [4, 1, 16]}\n"
                  "  - {name: t, kind: convtranspose2d, out: 3, kernel: [1, 5], stride: [1, 2], "
                  "pad: [0, 2], output_pad: [0, 1], bias: false, names: {weight: {name: t.weight, "
                  "dims: 3}}}\n"
                  "  - {name: z, kind: relu}\n"
                  "  - {name: f, kind: flatten}\n");
}

/* Channels of a sequence [N, T, C] come first, and last again after the convolution. */
static void sequences(void **state) {
    (void)state;
    static const int64_t turn[] = {0, 2, 1};
    static const int64_t sequence[] = {-1, 6, 4};
    add_tensor("a.weight", 3, (const int64_t[]){4, 4, 3});
    add_node_ints("Transpose", "x", "t", "perm", 3, turn);
    add_conv("t a.weight", "c", 1, 1);
    add_node_ints("Transpose", "c", "y", "perm", 3, turn);
    add_ends(1, 3, sequence, "y");
    expect_layers("input: [6, 4]\n"
                  "layers:\n"
                  "  - {name: c.transpose, kind: transpose, perm: [1, 0]}\n"
                  "  - {name: c.reshape, kind: reshape, shape: [4, 1, 6]}\n"
                  "  - {name: a, kind: conv2d, out: 4, kernel: [1, 3], pad: [0, 1], bias: false, "
                  "names: {weight: {name: a.weight, dims: 3}}}\n"
                  "  - {name: y, kind: sequence}\n");
}

/* The largest of each channel, as text nets with convolutions have it. */
static void the_largest_of_a_signal(void **state) {
    (void)state;
    for (int64_t keep = 0; keep < 2; keep++) {
        bytes n = node("ReduceMax", "c", "m");
        const bytes a = attribute_ints("axes", 1, (const int64_t[]){-1});
        const bytes b = attribute_int("keepdims", keep);
        (void)begin(state);
        put_part(&n, NODE_ATTRIBUTE, &a);
        put_part(&n, NODE_ATTRIBUTE, &b);
        add_tensor("a.weight", 3, (const int64_t[]){4, 4, 1});
        add_tensor("b.weight", 2, (const int64_t[]){2, 4});
        add_node("Conv", "x a.weight", "c");
        put_part(&graph, GRAPH_NODE, &n);
        add_node_ints("Flatten", "m", "f", "axis", 0, (const int64_t[]){1});
        add_node_ints("Gemm", "f b.weight", "y", "transB", 0, (const int64_t[]){1});
        add_ends(1, 3, signal, "y");
        expect_layers(
            keep ? "input: [4, 16]\n"
                   "layers:\n"
                   "  - {name: c, kind: reshape, shape: [4, 1, 16]}\n"
                   "  - {name: a, kind: conv2d, out: 4, kernel: 1, bias: false, names: {weight: "
                   "{name: a.weight, dims: 3}}}\n"
                   "  - {name: m, kind: max-over, axes: [1, 2], keep: true}\n"
                   "  - {name: f, kind: flatten}\n"
                   "  - {name: b, kind: dense, out: 2, bias: false}\n"
                 : "input: [4, 16]\n"
                   "layers:\n"
                   "  - {name: c, kind: reshape, shape: [4, 1, 16]}\n"
                   "  - {name: a, kind: conv2d, out: 4, kernel: 1, bias: false, names: {weight: "
                   "{name: a.weight, dims: 3}}}\n"
                   "  - {name: m, kind: max-over, axes: [1, 2]}\n"
                   "  - {name: b, kind: dense, out: 2, bias: false}\n");
    }
}

/* Two axes of a signal are not the last two of an image. */
static void a_norm_over_two_axes(void **state) {
    (void)state;
    add_tensor("a.weight", 3, (const int64_t[]){4, 4, 1});
    add_tensor("n.weight", 2, (const int64_t[]){4, 16});
    add_tensor("n.bias", 2, (const int64_t[]){4, 16});
    add_node("Conv", "x a.weight", "c");
    add_node_ints("LayerNormalization", "c n.weight n.bias", "y", "axis", 0, (const int64_t[]){1});
    add_ends(1, 3, signal, "y");
    expect_layers("input: [4, 16]\n"
                  "layers:\n"
                  "  - {name: c, kind: reshape, shape: [4, 1, 16]}\n"
                  "  - {name: a, kind: conv2d, out: 4, kernel: 1, bias: false, names: {weight: "
                  "{name: a.weight, dims: 3}}}\n"
                  "  - {name: y, kind: reshape, shape: [4, 16]}\n"
                  "  - {name: n, kind: layernorm, dims: 2}\n");
}

/* Resize as PyTorch writes it: by scales, or by sizes if `sizes`; `mode` with its place of pixels.
 */
static void add_resize(const char *sizes, const char *mode, const char *place) {
    char inputs[40];
    (void)snprintf(inputs, sizeof inputs, "x - %s", sizes);
    bytes n = node("Resize", inputs, "y");
    const bytes a = attribute_text("mode", mode);
    const bytes b = attribute_text("coordinate_transformation_mode", place);
    const bytes c = attribute_text("nearest_mode", "floor");
    put_part(&n, NODE_ATTRIBUTE, &a);
    put_part(&n, NODE_ATTRIBUTE, &b);
    put_part(&n, NODE_ATTRIBUTE, &c);
    put_part(&graph, GRAPH_NODE, &n);
}

/* Each axis of an image has a factor of its own; a signal has one. */
static void sizes_that_grow(void **state) {
    (void)state;
    add_floats("by", 3, (const float[]){1, 1, 3});
    add_resize("by", "linear", "half_pixel");
    add_node("Relu", "y", "z");
    add_node_ints("Flatten", "z", "f", "axis", 0, (const int64_t[]){1});
    add_ends(1, 3, signal, "f");
    expect_layers("input: [4, 16]\n"
                  "layers:\n"
                  "  - {name: y.reshape, kind: reshape, shape: [4, 1, 16]}\n"
                  "  - {name: y.upsample, kind: upsample, scale: [1, 3], mode: bilinear}\n"
                  "  - {name: z, kind: relu}\n"
                  "  - {name: f, kind: flatten}\n");
    (void)begin(state);
    add_ints("to", 4, (const int64_t[]){5, 4, 4, 24});
    add_resize("- to", "nearest", "asymmetric");
    add_ends(1, 4, (const int64_t[]){5, 4, 2, 8}, "y");
    expect_layers("input: [4, 2, 8]\n"
                  "layers:\n"
                  "  - {name: y, kind: upsample, scale: [2, 3], mode: nearest}\n");
}

static void sizes_that_are_refused(void **state) {
    static const char whole[] = "Resize: only images and signals are enlarged here, by whole "
                                "factors: node /y/Resize (output y)\n";
    static const float scales[][3] = {{1, 2, 2},    {2, 1, 2},  {1, 1, 1.5f},
                                      {1, 1, 0.5f}, {1, 1, 65}, {1, 1, NAN}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        (void)begin(state);
        add_floats("by", 3, scales[i]);
        add_resize("by", "linear", "half_pixel");
        add_ends(1, 3, signal, "y");
        expect_layers(whole);
    }
    (void)begin(state);
    add_ints("to", 3, (const int64_t[]){5, 4, 33});
    add_resize("- to", "nearest", "asymmetric");
    add_ends(1, 3, (const int64_t[]){5, 4, 16}, "y");
    expect_layers(whole);
    (void)begin(state);
    add_floats("by", 3, (const float[]){1, 1, 2});
    add_resize("by", "cubic", "half_pixel");
    add_ends(1, 3, signal, "y");
    expect_layers("Resize: mode cubic with half_pixel cannot be trained here; supported are "
                  "nearest (asymmetric, floor) and linear (half_pixel, align_corners): node "
                  "/y/Resize (output y)\n");
}

static void refusals(void **state) {
    add_tensor("a.weight", 3, (const int64_t[]){8, 4, 5});
    add_node_ints("Conv", "x a.weight", "y", "pads", 4, (const int64_t[]){1, 1, 1, 1});
    add_ends(1, 3, signal, "y");
    expect_layers("Conv: its windows have another number of sizes than its input: node /y/Conv "
                  "(output y)\n");
    (void)begin(state);
    add_tensor("a.weight", 3, (const int64_t[]){8, 4, 5});
    add_node_ints("Conv", "x a.weight", "y", "pads", 2, (const int64_t[]){INT64_MAX, 0});
    add_ends(1, 3, signal, "y");
    expect_layers("Conv: pads are expected to be 0 to 255: node /y/Conv (output y)\n");
    (void)begin(state);
    add_tensor("a.weight", 4, (const int64_t[]){8, 4, 1, 5});
    add_node("Conv", "x a.weight", "y");
    add_ends(1, 3, signal, "y");
    expect_layers("Conv: expected a weight of 3 dimensions: node /y/Conv (output y)\n");
    (void)begin(state);
    add_node("GlobalAveragePool", "x", "y");
    add_ends(1, 2, signal, "y");
    expect_layers("GlobalAveragePool: only images [N, C, H, W] and signals [N, C, L] have a mean "
                  "of their pixels here: node /y/GlobalAveragePool (output y)\n");
    (void)begin(state);
    add_tensor("a.weight", 5, (const int64_t[]){8, 4, 1, 1, 1});
    add_node("Conv", "x a.weight", "y");
    add_ends(1, 5, (const int64_t[]){-1, 4, 2, 2, 2}, "y");
    expect_layers("Conv: only windows of images [N, C, H, W] or signals [N, C, L] can be trained "
                  "here: node /y/Conv (output y)\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_chain_of_layers, begin),
        cmocka_unit_test_setup(operators_of_two_signals, begin),
        cmocka_unit_test_setup(zeros_and_a_transposed_convolution, begin),
        cmocka_unit_test_setup(sequences, begin),
        cmocka_unit_test_setup(the_largest_of_a_signal, begin),
        cmocka_unit_test_setup(a_norm_over_two_axes, begin),
        cmocka_unit_test_setup(sizes_that_grow, begin),
        cmocka_unit_test_setup(sizes_that_are_refused, begin),
        cmocka_unit_test_setup(refusals, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
