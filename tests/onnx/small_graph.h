/* Small graphs for tests: encoded by hand, analysed, and compared with a text. */
#ifndef RP_TESTS_ONNX_SMALL_GRAPH_H
#define RP_TESTS_ONNX_SMALL_GRAPH_H

#include "onnx_bytes.h"

#include "onnx/import.h"

static bytes graph;
static int64_t opset = 17;
static bool no_fuse;

static inline int begin(void **state) {
    (void)state;
    graph.count = 0;
    opset = 17;
    no_fuse = false;
    return 0;
}

static inline void add_tensor(const char *name, uint32_t rank, const int64_t *dim) {
    const bytes t = tensor(name, 1, rank, dim, NULL);
    put_part(&graph, GRAPH_INITIALISER, &t);
}

static inline void add_floats(const char *name, uint32_t count, const float *data) {
    const bytes t = tensor(name, 1, count == 1 ? 0 : 1, (const int64_t[]){count}, data);
    put_part(&graph, GRAPH_INITIALISER, &t);
}

static inline void add_ints(const char *name, uint32_t count, const int64_t *data) {
    const bytes t = tensor(name, 7, 1, (const int64_t[]){count}, data);
    put_part(&graph, GRAPH_INITIALISER, &t);
}

static inline void add_node(const char *op, const char *inputs, const char *outputs) {
    const bytes n = node(op, inputs, outputs);
    put_part(&graph, GRAPH_NODE, &n);
}

static inline void add_node_ints(const char *op, const char *inputs, const char *outputs,
                                 const char *name, uint32_t count, const int64_t *list) {
    bytes n = node(op, inputs, outputs);
    const bytes a = count == 0 ? attribute_int(name, *list) : attribute_ints(name, count, list);
    put_part(&n, NODE_ATTRIBUTE, &a);
    put_part(&graph, GRAPH_NODE, &n);
}

static inline void add_ends(int32_t type, uint32_t rank, const int64_t *dim, const char *output) {
    const bytes in = value("x", type, rank, dim);
    const bytes out = value(output, 1, 0, NULL);
    put_part(&graph, GRAPH_INPUT, &in);
    put_part(&graph, GRAPH_OUTPUT, &out);
}

/* Analyses the graph; the text of the layers is compared without its comments and the names of
 * inputs and output, and with every reason otherwise. */
static inline void expect_with(const rp_onnx_options *given, const char *want) {
    const bytes b = model_of(&graph, opset);
    rp_onnx_options options = *given;
    rp_arena arena;
    rp_onnx_model *model;
    rp_onnx_import import;
    static char found[1 << 14];
    size_t used = 0;
    options.budget = RP_ONNX_BUDGET;
    options.no_fuse = no_fuse;
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

#endif
