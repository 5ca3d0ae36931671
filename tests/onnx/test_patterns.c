/* Layers that an exporter writes as several nodes, or in another arrangement. */
#include "small_graph.h"

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
    expect_layers(
        "ReduceMean: only the mean of an image's pixels or of a sequence's rows can be trained "
        "here: node /m/ReduceMean (output m)\n"
        "Sub: this operator cannot be trained here: node /d/Sub (output d)\n"
        "Pow: this operator cannot be trained here: node /q/Pow (output q)\n"
        "Sqrt: this operator cannot be trained here: node /s/Sqrt (output s)\n"
        "Mul: a product with a constant or a weight of this shape cannot be trained here: node "
        "/zw/Mul (output zw)\n");
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
                  "Less: this operator cannot be trained here: node /l/Less (output l)\n"
                  "Cast: this operator cannot be trained here: node /c/Cast (output c)\n"
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
        cmocka_unit_test_setup(noise_that_drops, begin),
        cmocka_unit_test_setup(zeros_before_a_convolution, begin),
        cmocka_unit_test_setup(time_first, begin),
        cmocka_unit_test_setup(positions_by_an_index, begin),
        cmocka_unit_test_setup(a_product_with_one_is_nothing, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
