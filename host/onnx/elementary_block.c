#include "onnx/elementary.h"

/* Whether element i of the view is element start + i % count of its initialiser, for all i. */
static bool is_block(const rp_onnx_view *view, uint64_t start, uint64_t count) {
    bool same = true;
    for (uint64_t i = 0; same && i < view->dims.count; i++) {
        same = rp_onnx_view_source(view, i).index == start + i % count;
    }
    return same;
}

bool rp_onnx_find_block(rp_onnx_graph *graph, const rp_onnx_view *view, rp_onnx_block *out) {
    const uint32_t leaf = rp_onnx_view_only_leaf(view);
    const rp_onnx_view *whole = leaf == RP_ONNX_NONE ? NULL : graph->value[leaf].view;
    const uint64_t cost = view->dims.count * (view->depth + 1) * (view->dims.rank + 1);
    if (!whole || whole->dims.rank == 0 || whole->dims.count == 0 || view->dims.count == 0 ||
        !rp_onnx_view_repeats(view) || cost > graph->budget) {
        return false;
    }
    graph->budget -= cost;
    const uint64_t row = whole->dims.count / (uint64_t)whole->dims.dim[0];
    uint64_t count = 1;
    *out = (rp_onnx_block){.whole = whole, .row = row, .start = rp_onnx_view_source(view, 0).index};
    for (uint32_t axis = view->dims.rank; axis-- > 0;) {
        count *= (uint64_t)view->dims.dim[axis];
        if (out->start % row == 0 && count % row == 0 && is_block(view, out->start, count)) {
            out->count = count;
            out->axis = axis;
            return true;
        }
    }
    return false;
}
