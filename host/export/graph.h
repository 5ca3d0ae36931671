/* An ONNX graph that is made: nodes in order, initialisers, inputs and the output. Private to the
 * room.
 *
 * The first error is kept, and later calls do nothing, so writers need not check each call. */
#ifndef RP_EXPORT_GRAPH_H
#define RP_EXPORT_GRAPH_H

#include "export/net.h"
#include "onnx/model.h"

typedef struct {
    const char *name;
    rp_onnx_attribute_type type; /* F, I, S, TENSOR or INTS */
    float f;
    int64_t i;
    const char *s;
    const rp_onnx_tensor *tensor;
    uint32_t int_count;
    const int64_t *ints;
} rp_export_attribute;

enum { RP_EXPORT_ATTRIBUTES_MAX = 10, RP_EXPORT_OUTPUTS_MAX = 8 };

typedef struct {
    const char *op, *name;
    uint32_t input_count, output_count, attribute_count;
    const char **input; /* values; "": an optional one that is absent */
    const char *output[RP_EXPORT_OUTPUTS_MAX];
    rp_export_attribute attribute[RP_EXPORT_ATTRIBUTES_MAX];
} rp_export_node;

/* An input or output: float numbers, or token ids (INT64), of a batch of any size. */
typedef struct {
    const char *name;
    bool ids;
    rp_shape sample;
} rp_export_value;

struct rp_export_graph {
    const rp_export_net *net;
    rp_export_form form;
    rp_onnx_findings *refusals;
    rp_err err;
    uint32_t node_count, node_room;
    rp_export_node *node;
    uint32_t tensor_count;
    rp_onnx_tensor *tensor; /* [param_count of the model] the initialisers */
    bool *has_tensor;       /* by parameter of the model: it is an initialiser */
    uint32_t input_count;
    rp_export_value input[RP_LAYER_INPUTS_MAX];
    rp_export_value output;
    /* the mask of causal attention that was made last; NULL: not made yet */
    const char *triangle;
    uint32_t triangle_queries, triangle_keys;
};

/* Memory in the net's arena for `count` objects, or NULL after an error. */
#define RP_EXPORT_NEW(graph, count, out)                                                           \
    (void)((graph)->err = (graph)->err == RP_OK                                                    \
                              ? RP_ARENA_NEW((graph)->net->arena, (count), (out))                  \
                              : (graph)->err)

/* Adds a node with one output, "<name>_output_0". Returns NULL after an error. */
rp_export_node *rp_export_add_node(rp_export_graph *graph, const char *op, const char *name,
                                   uint32_t input_count, const char *const *input);
/* The initialiser of a parameter of the model, which is added at its first use. */
const char *rp_export_add_param(rp_export_graph *graph, uint32_t param);
/* Makes the value the graph's output: its name becomes that of the output. */
void rp_export_name_output(rp_export_graph *graph, const char *value);

#endif
