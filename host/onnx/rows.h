/* Values in arrangements that a layer can compute with all the same, because it treats samples,
 * rows or elements alike: the time first, or rows of all samples joined. Private to the room. */
#ifndef RP_ONNX_ROWS_H
#define RP_ONNX_ROWS_H

#include "onnx/graph.h"

typedef enum {
    RP_ONNX_ROWS_LINE,        /* [N, C, L] of a layer's output [C, 1, L] */
    RP_ONNX_ROWS_PLAIN,       /* [N, ..] as it is */
    RP_ONNX_ROWS_TIME_FIRST,  /* [T, N, ..] */
    RP_ONNX_ROWS_JOINED,      /* [N T, C] */
    RP_ONNX_ROWS_TIME_JOINED, /* [T N, C] */
    RP_ONNX_ROWS_IMAGE,       /* [N, H, W, C] as [N, H W, C] */
    RP_ONNX_ROWS_FORMS
} rp_onnx_rows_form;

typedef struct {
    rp_onnx_rows_form form;
    rp_onnx_dims dims; /* of the value */
    uint32_t from;     /* the layer that has it in its plain form */
} rp_onnx_rows;

/* The layer that has the value of input `i` in one of the forms; *done is false, and the node is
 * refused, if none has. errors MEMORY */
rp_err rp_onnx_read_rows(const rp_onnx_visit *visit, uint32_t i, rp_onnx_rows *out,
                         bool *done) RP_MUST_CHECK;
/* rp_onnx_read_rows() of a view of a dynamic value. */
rp_err rp_onnx_read_view_rows(const rp_onnx_visit *visit, const rp_onnx_view *view,
                              rp_onnx_rows *out, bool *done) RP_MUST_CHECK;
/* The layer that has the value of input `i` in the form of other rows. errors MEMORY */
rp_err rp_onnx_read_rows_like(const rp_onnx_visit *visit, uint32_t i, const rp_onnx_rows *like,
                              uint32_t *from, bool *done) RP_MUST_CHECK;

/* Emits the layer, which keeps all axes but perhaps the size of the last one, and gives its output
 * to output 0 in the form of the rows. errors MEMORY */
rp_err rp_onnx_emit_rows(const rp_onnx_visit *visit, const rp_onnx_layer *draft,
                         const rp_onnx_rows *rows, bool *done) RP_MUST_CHECK;

#endif
