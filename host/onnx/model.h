/* An ONNX file as it stands: nodes, initialisers, inputs, outputs. Weights stay in the mapped file.
 *
 * Every count, length and shape is checked against the file and against the limits below before
 * it is used. Graphs inside of nodes (If, Loop) are skipped without a look, so nothing nests.
 *
 * source  onnx.proto3; numbers of fields in onnx_read.proto */
#ifndef RP_ONNX_MODEL_H
#define RP_ONNX_MODEL_H

#include "base/arena.h"

enum {
    RP_ONNX_NODES_MAX = 65536,
    RP_ONNX_TENSORS_MAX = 65536,
    RP_ONNX_VALUES_MAX = 1 << 20,
    RP_ONNX_INPUTS_MAX = 1024, /* of a node */
    RP_ONNX_NAME_MAX = 512,    /* bytes of a name, with its final 0 */
    RP_ONNX_RANK_MAX = 8,
    RP_ONNX_LIST_MAX = 4096, /* numbers of an attribute */
    RP_ONNX_OPSET_FIRST = 13,
    RP_ONNX_OPSET_LAST = 23,
    RP_ONNX_IR_LAST = 14
};

#define RP_ONNX_NONE UINT32_MAX /* as a value: an optional input that is absent */

/* Types of elements, numbered as in the format. */
typedef enum {
    RP_ONNX_FLOAT = 1,
    RP_ONNX_UINT8,
    RP_ONNX_INT8,
    RP_ONNX_UINT16,
    RP_ONNX_INT16,
    RP_ONNX_INT32,
    RP_ONNX_INT64,
    RP_ONNX_STRING,
    RP_ONNX_BOOL,
    RP_ONNX_FLOAT16,
    RP_ONNX_DOUBLE,
    RP_ONNX_UINT32,
    RP_ONNX_UINT64,
    RP_ONNX_COMPLEX64,
    RP_ONNX_COMPLEX128,
    RP_ONNX_BFLOAT16
} rp_onnx_type;

typedef struct {
    const char *name; /* "" in an attribute */
    int32_t type;     /* an rp_onnx_type, or a number that is unknown here */
    uint32_t rank;
    int64_t dim[RP_ONNX_RANK_MAX];
    uint64_t count; /* elements */
    /* count elements, little-endian, at any address; NULL if the type is unsupported */
    const uint8_t *data;
} rp_onnx_tensor;

typedef enum {
    RP_ONNX_HAS_F = 1,
    RP_ONNX_HAS_I,
    RP_ONNX_HAS_S,
    RP_ONNX_HAS_TENSOR,
    RP_ONNX_HAS_GRAPH,
    RP_ONNX_HAS_FLOATS,
    RP_ONNX_HAS_INTS
} rp_onnx_attribute_type;

typedef struct {
    const char *name;
    int32_t type; /* an rp_onnx_attribute_type, or a number that is unknown here */
    float f;
    int64_t i;
    const char *s; /* "" if it is absent */
    const rp_onnx_tensor *tensor;
    const int64_t *ints;
    const float *floats;
    uint32_t int_count, float_count;
} rp_onnx_attribute;

typedef struct {
    const char *name; /* "" if it has none */
    const char *op, *domain;
    uint32_t input_count, output_count, attribute_count;
    uint32_t *input, *output; /* values; RP_ONNX_NONE: absent */
    rp_onnx_attribute *attribute;
    bool has_graph;     /* an attribute is a graph */
    const char *scopes; /* PyTorch's list of modules that the node is in; NULL: unknown */
} rp_onnx_node;

/* Type and shape that the file states for a value. */
typedef struct {
    bool known; /* it states a type of tensors */
    int32_t type;
    bool shaped;
    uint32_t rank;
    int64_t dim[RP_ONNX_RANK_MAX];        /* -1: free */
    const char *symbol[RP_ONNX_RANK_MAX]; /* name of a free size; "" if it has none */
} rp_onnx_info;

typedef struct {
    const char *file; /* for messages */
    const char *producer, *producer_version;
    int64_t ir_version;
    int64_t opset;         /* of the domain ai.onnx; 0: not stated */
    uint32_t functions;    /* functions that the file defines */
    uint32_t sparse;       /* sparse initialisers */
    const char *signature; /* text in which torch.export lists the state_dict; not 0-terminated */
    size_t signature_bytes;

    uint32_t value_count;
    const char **value; /* names */
    rp_onnx_info *info; /* by value */
    /* by value: the initialiser with this name, or RP_ONNX_NONE */
    uint32_t *tensor_of;
    uint32_t tensor_count;
    rp_onnx_tensor *tensor; /* the initialisers */
    uint32_t *tensor_value; /* and their values */
    uint32_t node_count;
    rp_onnx_node *node; /* each reads inputs, initialisers and outputs of earlier nodes */
    uint32_t input_count, output_count;
    uint32_t *input, *output; /* values; inputs without initialisers */

    struct rp_onnx_maps *maps; /* mapped files */
} rp_onnx_model;

/* Opens a file; close it before the arena ends. External data must be in the file's folder.
 * errors  IO; FORMAT naming the file, and the node or tensor; LIMIT */
rp_err rp_onnx_open(rp_arena *arena, const char *path, rp_onnx_model **out) RP_MUST_CHECK;
/* Like rp_onnx_open(), from memory that the caller keeps until close (fuzzing, tests). There is no
 * folder for external data. */
rp_err rp_onnx_open_bytes(rp_arena *arena, const void *bytes, size_t count, const char *name,
                          rp_onnx_model **out) RP_MUST_CHECK;
void rp_onnx_close(rp_onnx_model **model); /* *model may be NULL */

#endif
