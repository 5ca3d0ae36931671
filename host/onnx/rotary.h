/* Queries and keys that are turned by their position. Private to the room. */
#ifndef RP_ONNX_ROTARY_H
#define RP_ONNX_ROTARY_H

#include "onnx/graph.h"

typedef struct {
    double base; /* 0: values are not turned */
} rp_onnx_rotary;

/* If the view [N, heads, T, D] is all of x cos + (-x2, x1) sin, in which x1 and x2 are the halves
 * of each row of x, *x becomes the view of x. Otherwise it is the view itself, and the base is 0.
 * errors MEMORY */
rp_err rp_onnx_find_rotary(const rp_onnx_visit *visit, const rp_onnx_view *view,
                           rp_onnx_rotary *out, const rp_onnx_view **x) RP_MUST_CHECK;

#endif
