/* What is known of each value of a model while its nodes are visited in order, and the layers that
 * were found. Private to the room: passes and handlers of operators share it. */
#ifndef RP_ONNX_GRAPH_H
#define RP_ONNX_GRAPH_H

#include "nn/layer.h"
#include "onnx/findings.h"
#include "onnx/symbols.h"
#include "onnx/view.h"

/* Layers that are found, also those that nothing reads in the end. */
enum { RP_ONNX_LAYERS_MAX = 16384 };

typedef enum {
    RP_ONNX_UNKNOWN, /* nothing, because an unsupported node gives it */
    RP_ONNX_CONST,   /* its elements */
    RP_ONNX_PARAM,   /* elements of initialisers that may be trained */
    RP_ONNX_DYNAMIC  /* depends on an input; its first size is that of the batch */
} rp_onnx_state;

typedef struct {
    rp_onnx_state state;
    bool whole; /* integers or booleans, otherwise floats */
    bool named; /* an initialiser that a list says is a parameter */
    /* A value of CONST, or one that a node computes, is the leaf of its own view. NULL: UNKNOWN. */
    const rp_onnx_view *view;
    uint32_t node;       /* that gives it; RP_ONNX_NONE for inputs and initialisers */
    uint32_t layer;      /* DYNAMIC leaf: the layer that computes it; RP_ONNX_NONE: none does */
    const int64_t *ints; /* CONST, whole */
    const float *floats; /* CONST, not whole */
} rp_onnx_value;

/* A parameter of a layer: values in the order in which the layer stores them. */
typedef struct {
    const char *suffix;
    const rp_onnx_view *view; /* over initialisers */
    const char *name;         /* in weights files; set by rp_onnx_name_layers() */
    rp_shape shape;           /* as the layer has it */
    uint32_t
        dims; /* axes in weights files, see rp_names_shape(); 0: the layer's. Set with `name` */
    bool constant; /* it is never trained; an infinity is stored as the largest number */
} rp_onnx_param;

/* A layer of the model file. The first ones stand for the inputs and have no kind. */
typedef struct {
    const char *kind;
    const char *keys; /* its own keys as in a model file: "out: 6, kernel: 5"; may be "" */
    const char *name; /* set by rp_onnx_name_layers(); of an input at once */
    uint32_t from_count, param_count;
    uint32_t from[RP_LAYER_INPUTS_MAX];
    rp_onnx_param param[RP_LAYER_PARAMS_MAX];
    rp_shape out;     /* of one sample */
    bool ids;         /* its output is token ids */
    uint32_t node;    /* the last of the nodes that it stands for; RP_ONNX_NONE for an input */
    bool live;        /* the output depends on it */
    bool frozen;      /* the user wants it not to be trained */
    bool elementary;  /* its kind is that of one operator, for want of a pattern */
    bool named_after; /* its name begins with that of the layer that it reads */
} rp_onnx_layer;

/* When a node becomes the layer of its operator: never, if it is no other layer, or always. */
typedef enum {
    RP_ONNX_NO_ELEMENTS,
    RP_ONNX_ELEMENTS_LAST,
    RP_ONNX_ELEMENTS_FIRST
} rp_onnx_elements;

typedef struct rp_onnx_graph rp_onnx_graph;
typedef struct rp_onnx_visit rp_onnx_visit;

/* Finds layers that arrange the value like the view, step by step. errors MEMORY */
typedef rp_err rp_onnx_reader(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t *layer,
                              bool *done);

struct rp_onnx_graph {
    rp_arena *arena;
    const rp_onnx_model *model;
    rp_onnx_elements elements;
    rp_onnx_reader *read_steps; /* for arrangements that are no single layer; NULL: none are read */
    int64_t batch;              /* first size of every dynamic value */
    uint32_t value_count, value_room;
    rp_onnx_value *value; /* those of the model, then those that layers add */
    uint32_t layer_count, layer_room;
    rp_onnx_layer *layer;
    /* by node: why no layer computes it. NULL: one does, or a node before it is the reason */
    const char **why;
    bool *refused;                /* by node: it was visited and no layer computes it */
    uint64_t budget;              /* steps of maps that may still be computed */
    const rp_onnx_symbols *names; /* initialisers that are parameters; NULL: no list is given */
    /* Softmax or LogSoftmax at the end, which the loss computes; NULL: neither */
    const char *end;
    rp_onnx_findings *notes;
};

/* A visit of a node. */
struct rp_onnx_visit {
    rp_onnx_graph *graph;
    const rp_onnx_node *node;
    uint32_t index;
};

/* Handles a node. *done is false if it could not; the reason, if any, is in graph->why.
 * errors  MEMORY */
typedef rp_err rp_onnx_handler(const rp_onnx_visit *visit, bool *done);

/* States the values of the inputs and initialisers. `inputs` has the shape of each input; a first
 * size of -1 becomes `batch`. Float initialisers in `names`, which may be NULL, are never
 * constants. errors MEMORY */
rp_err rp_onnx_graph_init(rp_arena *arena, const rp_onnx_model *model, const rp_onnx_dims *inputs,
                          int64_t batch, uint64_t budget, const rp_onnx_symbols *names,
                          rp_onnx_findings *notes, rp_onnx_graph *out) RP_MUST_CHECK;

/* Input `i` of a node; NULL: absent. */
const rp_onnx_value *rp_onnx_in(const rp_onnx_visit *visit, uint32_t i);
bool rp_onnx_in_is(const rp_onnx_visit *visit, uint32_t i, rp_onnx_state state);

/* An attribute of a node, or NULL. */
const rp_onnx_attribute *rp_onnx_find(const rp_onnx_node *node, const char *name);
/* Values of attributes, or a default. */
int64_t rp_onnx_int(const rp_onnx_node *node, const char *name, int64_t usual);
float rp_onnx_float(const rp_onnx_node *node, const char *name, float usual);
const char *rp_onnx_text(const rp_onnx_node *node, const char *name, const char *usual);

/* Sets output `i` of the node. */
rp_err rp_onnx_give_const(const rp_onnx_visit *visit, uint32_t i, bool whole,
                          const rp_onnx_dims *dims, const int64_t *ints,
                          const float *floats) RP_MUST_CHECK;
void rp_onnx_give_view(const rp_onnx_visit *visit, uint32_t i, rp_onnx_state state, bool whole,
                       const rp_onnx_view *view);
/* A dynamic value that no layer computes. */
rp_err rp_onnx_give_expression(const rp_onnx_visit *visit, uint32_t i, bool whole,
                               const rp_onnx_dims *dims) RP_MUST_CHECK;
/* A dynamic value that a layer computes: output `i` is the layer's output itself. */
rp_err rp_onnx_give_layer(const rp_onnx_visit *visit, uint32_t i, uint32_t layer) RP_MUST_CHECK;
/* The view of a layer's output in a value of its own, for outputs that arrange it in another way.
 */
rp_err rp_onnx_add_value(rp_onnx_graph *graph, uint32_t layer,
                         const rp_onnx_view **out) RP_MUST_CHECK;

/* Notes why no layer computes the node, unless a reason is there already. Always returns OK or
 * MEMORY. */
rp_err rp_onnx_refuse(const rp_onnx_visit *visit, const char *format, ...) RP_PRINTF(2, 3);

/* The elements of a value as floats or whole numbers, if it is CONST or has elements of
 * initialisers that are not named as parameters; *out is NULL otherwise. errors MEMORY */
rp_err rp_onnx_const_ints(const rp_onnx_visit *visit, uint32_t i, const int64_t **out,
                          uint64_t *count) RP_MUST_CHECK;
rp_err rp_onnx_const_floats(const rp_onnx_visit *visit, uint32_t i, const float **out,
                            uint64_t *count) RP_MUST_CHECK;
/* Likewise, but only of initialisers, those that the file lists as parameters included. */
rp_err rp_onnx_folded_floats(const rp_onnx_visit *visit, uint32_t i, const float **out,
                             uint64_t *count) RP_MUST_CHECK;
/* One number. False: the value, or input `i`, is no constant and no initialiser of one element. */
bool rp_onnx_number_of(const rp_onnx_graph *graph, const rp_onnx_value *value, float *out);
bool rp_onnx_const_number(const rp_onnx_visit *visit, uint32_t i, float *out);

#endif
