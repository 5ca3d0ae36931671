/* Shapes of a model's inputs: those of the file, and those that the user gives. */
#ifndef RP_ONNX_BIND_H
#define RP_ONNX_BIND_H

#include "onnx/findings.h"
#include "onnx/view.h"

/* A shape that the user gives to an input, as in tokens=N,64. */
typedef struct {
    const char *input;
    uint32_t rank;
    int64_t dim[RP_ONNX_RANK_MAX]; /* -1: N, the size of the batch */
} rp_onnx_given_shape;

/* Parses INPUT=N,64. `name` is borrowed from an arena. errors USAGE, MEMORY */
rp_err rp_onnx_parse_shape(rp_arena *arena, const char *text,
                           rp_onnx_given_shape *out) RP_MUST_CHECK;

/* The shape of each input. The first size is that of the batch, -1 where it is free; *batch is the
 * size that the file fixes, or 0. errors USAGE: a given shape names no input; MEMORY */
rp_err rp_onnx_bind(const rp_onnx_model *model, const rp_onnx_given_shape *given, uint32_t count,
                    rp_onnx_findings *findings, rp_onnx_dims *out, int64_t *batch) RP_MUST_CHECK;

#endif
