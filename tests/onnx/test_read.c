/* Reading an ONNX file: what it contains, and hostile files. */
#include "onnx_bytes.h"

#include "onnx/model.h"
#include "onnx/tensor.h"

static const int64_t four_by_three[] = {4, 3};
static const int64_t row[] = {-1, 3};

/* x [batch, 3] times w [4, 3]', the only node being the given one. */
static bytes graph_with(const bytes *extra, uint32_t field) {
    bytes graph = {.count = 0};
    const bytes w = tensor("fc.weight", 1, 2, four_by_three, NULL);
    const bytes in = value("x", 1, 2, row);
    const bytes out = value("y", 1, 2, (const int64_t[]){-1, 4});
    bytes gemm = node("Gemm", "x fc.weight", "y");
    const bytes turn = attribute_int("transB", 1);
    put_part(&gemm, NODE_ATTRIBUTE, &turn);
    put_part(&graph, GRAPH_NODE, &gemm);
    put_part(&graph, GRAPH_INITIALISER, &w);
    put_part(&graph, GRAPH_INPUT, &in);
    put_part(&graph, GRAPH_OUTPUT, &out);
    if (extra) {
        put_part(&graph, field, extra);
    }
    return graph;
}

static rp_err open_bytes(rp_arena *arena, const bytes *b, rp_onnx_model **out) {
    rp_arena_init(arena, "test", 64 << 20);
    return rp_onnx_open_bytes(arena, b->at, b->count, "net.onnx", out);
}

static void expect_refused(const bytes *b, rp_err err, const char *words) {
    rp_arena arena;
    rp_onnx_model *model;
    assert_int_equal(open_bytes(&arena, b, &model), err);
    assert_null(model);
    if (!strstr(rp_err_message(), words)) {
        print_error("%s\n", rp_err_message());
    }
    assert_non_null(strstr(rp_err_message(), words));
    rp_arena_finish(&arena);
}

static void expect_graph_refused(const bytes *extra, uint32_t field, rp_err err,
                                 const char *words) {
    const bytes graph = graph_with(extra, field);
    const bytes model = model_of(&graph, 17);
    expect_refused(&model, err, words);
}

static void a_small_model_is_read(void **state) {
    (void)state;
    const bytes graph = graph_with(NULL, 0);
    const bytes b = model_of(&graph, 17);
    rp_arena arena;
    rp_onnx_model *model;
    assert_int_equal(open_bytes(&arena, &b, &model), RP_OK);
    assert_int_equal(model->opset, 17);
    assert_int_equal(model->ir_version, 8);
    assert_string_equal(model->producer, "hand");
    assert_int_equal(model->node_count, 1);
    assert_string_equal(model->node[0].op, "Gemm");
    assert_int_equal(model->node[0].attribute[0].i, 1);
    assert_int_equal(model->input_count, 1);
    const rp_onnx_info *info = &model->info[model->input[0]];
    assert_true(info->dim[0] == -1 && info->dim[1] == 3);
    assert_string_equal(info->symbol[0], "batch");
    assert_int_equal(model->tensor_count, 1);
    assert_int_equal(model->tensor[0].count, 12);
    /* the weights stay in the file */
    assert_true(model->tensor[0].data > b.at && model->tensor[0].data < b.at + b.count);
    rp_onnx_close(&model);
    rp_arena_finish(&arena);
}

static void elements_of_all_types_are_converted(void **state) {
    (void)state;
    const uint8_t raw[] = {0, 0x3c, 0, 0xc0, 0x01, 0, 0xff, 0x80}; /* at an odd address below */
    uint8_t odd[9];
    memcpy(odd + 1, raw, sizeof raw);
    rp_onnx_tensor t = {.type = RP_ONNX_FLOAT16, .count = 3, .data = odd + 1};
    assert_true(rp_onnx_float_at(&t, 0) == 1.0f);
    assert_true(rp_onnx_float_at(&t, 1) == -2.0f);
    assert_true(rp_onnx_float_at(&t, 2) == 0x1p-24f);
    t.type = RP_ONNX_INT8;
    assert_int_equal(rp_onnx_whole_at(&t, 6), -1);
    t.type = RP_ONNX_BFLOAT16;
    assert_true(rp_onnx_float_at(&t, 1) == -2.0f);
    t.type = RP_ONNX_INT32;
    assert_int_equal(rp_onnx_whole_at(&t, 0), (int32_t)0xc0003c00u);
    assert_int_equal(rp_onnx_type_bytes(RP_ONNX_STRING), 0);
    assert_int_equal(rp_onnx_type_bytes(99), 0);
}

static void lengths_that_do_not_fit_are_refused(void **state) {
    (void)state;
    bytes b = {.count = 0};
    put_number(&b, 1, 2);
    put_number(&b, 1, 3);
    put_number(&b, 2, 1);
    put_text(&b, 8, "w");
    put_bytes(&b, 9, "1234567890123456789012", 22);
    expect_graph_refused(&b, GRAPH_INITIALISER, RP_ERR_FORMAT,
                         "tensor w: raw data has 22 bytes, the shape [2, 3] of FLOAT needs 24");
}

static void shapes_that_overflow_are_refused(void **state) {
    (void)state;
    bytes b = {.count = 0};
    for (int i = 0; i < 4; i++) {
        put_number(&b, 1, INT64_C(1) << 32);
    }
    put_number(&b, 2, 1);
    put_text(&b, 8, "w");
    expect_graph_refused(&b, GRAPH_INITIALISER, RP_ERR_FORMAT, "tensor w: its shape");
    b.count = 0;
    put_number(&b, 1, -1);
    put_number(&b, 2, 1);
    put_text(&b, 8, "w");
    expect_graph_refused(&b, GRAPH_INITIALISER, RP_ERR_FORMAT, "tensor w: its shape is negative");
    b.count = 0;
    for (int i = 0; i < 9; i++) {
        put_number(&b, 1, 1);
    }
    expect_graph_refused(&b, GRAPH_INITIALISER, RP_ERR_LIMIT, "more than 8 dimensions");
}

static void a_claim_of_two_gigabytes_is_refused(void **state) {
    (void)state;
    const bytes graph = graph_with(NULL, 0);
    bytes b = model_of(&graph, 17);
    put_varint(&b, 7 << 3 | 2);
    put_varint(&b, UINT64_C(0x7fffffff));
    expect_refused(&b, RP_ERR_FORMAT, "is no valid protobuf");
}

static void cycles_and_unknown_values_are_refused(void **state) {
    (void)state;
    const bytes early = node("Relu", "later", "z");
    expect_graph_refused(&early, GRAPH_NODE, RP_ERR_FORMAT,
                         "node /z/Relu (Relu) reads later, which no earlier node gives");
    const bytes itself = node("Relu", "z", "z");
    expect_graph_refused(&itself, GRAPH_NODE, RP_ERR_FORMAT, "reads z");
    const bytes again = node("Relu", "x", "y");
    expect_graph_refused(&again, GRAPH_NODE, RP_ERR_FORMAT,
                         "gives y, which has another source already");
    const bytes twice = tensor("fc.weight", 1, 1, (const int64_t[]){1}, NULL);
    expect_graph_refused(&twice, GRAPH_INITIALISER, RP_ERR_FORMAT,
                         "two initialisers are called fc.weight");
    const bytes output = value("nothing", 1, 2, row);
    expect_graph_refused(&output, GRAPH_OUTPUT, RP_ERR_FORMAT, "no node gives the output nothing");
}

/* A graph in an attribute is skipped, however deep it is. */
static void nested_graphs_are_not_followed(void **state) {
    (void)state;
    bytes deep = {.count = 0};
    for (int i = 0; i < 500; i++) {
        bytes attribute = {.count = 0};
        bytes outer = {.count = 0};
        bytes nodes = {.count = 0};
        put_text(&attribute, 1, "body");
        put_part(&attribute, 6, &deep);
        put_part(&nodes, NODE_ATTRIBUTE, &attribute);
        put_part(&outer, GRAPH_NODE, &nodes);
        deep = outer;
    }
    bytes loop = node("Loop", "x", "z");
    bytes attribute = {.count = 0};
    put_text(&attribute, 1, "body");
    put_part(&attribute, 6, &deep);
    put_part(&loop, NODE_ATTRIBUTE, &attribute);
    const bytes graph = graph_with(&loop, GRAPH_NODE);
    const bytes b = model_of(&graph, 17);
    rp_arena arena;
    rp_onnx_model *model;
    assert_int_equal(open_bytes(&arena, &b, &model), RP_OK);
    assert_true(model->node[1].has_graph);
    rp_onnx_close(&model);
    rp_arena_finish(&arena);
}

static void external_data_need_a_folder(void **state) {
    (void)state;
    bytes b = {.count = 0};
    bytes entry = {.count = 0};
    put_number(&b, 1, 2);
    put_number(&b, 2, 1);
    put_text(&b, 8, "w");
    put_text(&entry, 1, "location");
    put_text(&entry, 2, "w.bin");
    put_part(&b, 13, &entry);
    put_number(&b, 14, 1);
    expect_graph_refused(&b, GRAPH_INITIALISER, RP_ERR_FORMAT, "external data without a folder");
}

static void texts_are_checked(void **state) {
    (void)state;
    bytes b = {.count = 0};
    put_text(&b, 3, "a\xff");
    expect_graph_refused(&b, GRAPH_NODE, RP_ERR_FORMAT, "is not UTF-8");
    b.count = 0;
    put_bytes(&b, 3, "a\0b", 3);
    expect_graph_refused(&b, GRAPH_NODE, RP_ERR_FORMAT, "is not UTF-8");
    static char large[600];
    memset(large, 'a', sizeof large - 1);
    b.count = 0;
    put_text(&b, 3, large);
    expect_graph_refused(&b, GRAPH_NODE, RP_ERR_LIMIT, "has 599 bytes");
    const bytes nothing = {.count = 0};
    expect_refused(&nothing, RP_ERR_FORMAT, "it has no graph");
}

/* Every allocation may fail. */
static void no_memory_is_an_error(void **state) {
    (void)state;
    const bytes graph = graph_with(NULL, 0);
    const bytes b = model_of(&graph, 17);
    bool failed = true;
    for (long n = 1; failed; n++) {
        rp_arena arena;
        rp_onnx_model *model;
        rp_arena_fail_at(n);
        const rp_err err = open_bytes(&arena, &b, &model);
        failed = rp_arena_has_failed();
        rp_arena_fail_at(0);
        assert_int_equal(err, failed ? RP_ERR_MEMORY : RP_OK);
        rp_onnx_close(&model);
        rp_arena_finish(&arena);
        assert_true(n < 1000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_model_is_read),
        cmocka_unit_test(elements_of_all_types_are_converted),
        cmocka_unit_test(lengths_that_do_not_fit_are_refused),
        cmocka_unit_test(shapes_that_overflow_are_refused),
        cmocka_unit_test(a_claim_of_two_gigabytes_is_refused),
        cmocka_unit_test(cycles_and_unknown_values_are_refused),
        cmocka_unit_test(nested_graphs_are_not_followed),
        cmocka_unit_test(external_data_need_a_folder),
        cmocka_unit_test(texts_are_checked),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
