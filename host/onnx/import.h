/* An ONNX model as a model file and weights of this program.
 *
 * The passes: shapes of the inputs are bound (bind.h); the nodes are visited in order, which
 * computes constants, follows arrangements and finds layers (visit.h); what the output does not
 * depend on is dropped; layers get names (names.h). With a free batch all of this happens for two
 * batch sizes, and a net that differs between them is refused. */
#ifndef RP_ONNX_IMPORT_H
#define RP_ONNX_IMPORT_H

#include "onnx/bind.h"
#include "onnx/graph.h"

/* Steps of maps of elements for one import, some seconds. */
#define RP_ONNX_BUDGET (UINT64_C(1) << 30)

typedef struct {
    const rp_onnx_given_shape *shapes;
    uint32_t shape_count;
    uint64_t budget;
    /* Names of parameters, those of a state_dict; NULL: only the file says what is one. */
    const char *const *names;
    uint32_t name_count;
    const char *names_file;    /* for messages */
    const char *const *freeze; /* shell patterns of names of layers */
    uint32_t freeze_count;
    bool untie;         /* no two layers share a tensor */
    bool accept_tied;   /* any layers may share a tensor */
    bool accept_folded; /* parameters that the exporter folded are left out */
    bool no_fuse;       /* each node is the layer of its operator, if there is such a kind */
} rp_onnx_options;

typedef struct {
    const rp_onnx_model *model;
    /* Reasons to refuse; the rest is complete only without a refusal. */
    rp_onnx_findings refusals;
    rp_onnx_findings notes;
    const rp_onnx_graph *graph; /* its live layers are the model's */
    const char *text;           /* the model file; NULL if it is refused */
    uint32_t output;            /* the layer that gives the output; RP_ONNX_NONE: none */
    uint32_t layers;            /* without inputs */
    uint32_t tensors;           /* in the weights file */
    uint64_t parameters;        /* elements that are trained */
} rp_onnx_import;

/* Finds the layers of a model, or everything that prevents it. The model is borrowed.
 * errors  USAGE: an option names no input; MEMORY */
rp_err rp_onnx_analyse(rp_arena *arena, const rp_onnx_model *model, const rp_onnx_options *options,
                       rp_onnx_import *out) RP_MUST_CHECK;

/* Element `i` of a layer's tensor, which has elements of initialisers or is a computed constant. */
float rp_onnx_weight_at(const rp_onnx_import *import, const rp_onnx_view *view, uint64_t i);

/* Writes the files of an import that is not refused: the weights first. Each file is replaced as a
 * whole. errors  IO; FORMAT: a weight is not finite */
rp_err rp_onnx_write(rp_arena *arena, const rp_onnx_import *import, const char *model_path,
                     const char *weights_path) RP_MUST_CHECK;

#endif
