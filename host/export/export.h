/* A trained net as files of other frameworks: weights under their names, or an ONNX model.
 *
 * source  onnx.proto3 and ONNX's lists of operators, 13 to 23; huggingface/safetensors */
#ifndef RP_EXPORT_EXPORT_H
#define RP_EXPORT_EXPORT_H

#include "base/config.h"
#include "nn/model.h"
#include "onnx/findings.h"

enum { RP_EXPORT_OPSET = 17 /* by default */ };

/* Weights of an ONNX file that is larger are in a file of their own, because a protobuf has at most
 * 2 GiB. */
#define RP_EXPORT_INLINE_BYTES UINT64_C(2040109465) /* 1.9 GiB */

typedef struct {
    rp_node *model;      /* a model file's tree */
    rp_model_data data;  /* of the set that the net was trained with; may be empty */
    const char *weights; /* path of a safetensors file with at least the model's tensors */
    bool merge;          /* W + scale B A of layers with lora, without the corrections */
} rp_export_options;

typedef struct rp_export_net rp_export_net;

/* Reads and checks the files. The net is stored in `arena` and borrows the options' tree.
 * errors  USAGE, SHAPE naming the model's line; IO, FORMAT naming file and tensor */
rp_err rp_export_open(rp_arena *arena, const rp_export_options *options,
                      rp_export_net **out) RP_MUST_CHECK;
void rp_export_close(rp_export_net **net); /* before the arena ends; *net may be NULL */

/* What was written. */
typedef struct {
    uint32_t tensors;        /* with weights */
    uint32_t tied;           /* second names of tensors, which are only in the metadata */
    uint64_t elements;       /* of all tensors */
    uint32_t nodes;          /* of an ONNX model */
    uint64_t bytes;          /* of the file */
    uint64_t external_bytes; /* of the file with the weights; 0: no such file */
} rp_export_report;

/* Writes the weights as safetensors. The file is replaced as a whole. errors IO, MEMORY */
rp_err rp_export_weights(const rp_export_net *net, const char *path,
                         rp_export_report *out) RP_MUST_CHECK;

typedef struct {
    uint32_t opset; /* RP_ONNX_OPSET_FIRST to RP_ONNX_OPSET_LAST */
    /* Dropout and batch statistics as in training; otherwise the net evaluates. */
    bool train;
    uint64_t inline_bytes; /* RP_EXPORT_INLINE_BYTES; fewer for tests */
} rp_export_form;

typedef struct rp_export_graph rp_export_graph;

/* Makes the nodes of an ONNX model. `refusals`, which is initialised here, has every reason why the
 * net cannot be written; the graph is complete only without one. errors MEMORY */
rp_err rp_export_build(const rp_export_net *net, const rp_export_form *form,
                       rp_onnx_findings *refusals, rp_export_graph **out) RP_MUST_CHECK;
/* Whether the weights will be in a file of their own, `path`.data. */
bool rp_export_is_split(const rp_export_graph *graph);
/* Writes the model. Each file is replaced as a whole; after an error no new file is left.
 * errors  IO, MEMORY */
rp_err rp_export_onnx(const rp_export_graph *graph, const char *path,
                      rp_export_report *out) RP_MUST_CHECK;

/* Names of the inputs and of the output as the ONNX model has them: those of the key `onnx` of the
 * model file, or else of the model's inputs. */
uint32_t rp_export_input_count(const rp_export_net *net);
const char *rp_export_input_name(const rp_export_net *net, uint32_t input);
const char *rp_export_output_name(const rp_export_net *net);

#endif
