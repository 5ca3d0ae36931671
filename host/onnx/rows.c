#include "onnx/rows.h"

#include "onnx/layers.h"
#include "onnx/line.h"

/* Axes 0 and 1 change places. */
static rp_err swap_first(rp_arena *arena, const rp_onnx_view *view, const rp_onnx_view **out) {
    int64_t perm[RP_ONNX_RANK_MAX];
    for (uint32_t i = 0; i < view->dims.rank; i++) {
        perm[i] = i < 2 ? 1 - i : i;
    }
    return rp_onnx_view_transpose(arena, view, perm, out);
}

static rp_err reshape_to(rp_arena *arena, const rp_onnx_view *view, int64_t a, int64_t b, int64_t c,
                         const rp_onnx_view **out) {
    rp_onnx_dims dims;
    *out = NULL;
    return rp_onnx_dims_of(3, (const int64_t[]){a, b, c}, &dims)
               ? rp_onnx_view_reshape(arena, view, &dims, out)
               : RP_OK;
}

/* The value in its plain form, if it may have this form; otherwise NULL. */
static rp_err find_plain(const rp_onnx_graph *graph, const rp_onnx_view *view,
                         rp_onnx_rows_form form, const rp_onnx_view **out) {
    const int64_t *dim = view->dims.dim;
    const int64_t n = graph->batch;
    const bool joined = view->dims.rank == 2 && dim[0] > n && dim[0] % n == 0;
    rp_err err = RP_OK;
    *out = NULL;
    switch (form) {
    case RP_ONNX_ROWS_LINE:
        *out = rp_onnx_line_layer(graph, view) != RP_ONNX_NONE ? view : NULL;
        break;
    case RP_ONNX_ROWS_PLAIN:
        *out = view->dims.rank > 0 && dim[0] == n ? view : NULL;
        break;
    case RP_ONNX_ROWS_TIME_FIRST:
        err = view->dims.rank >= 2 && dim[1] == n ? swap_first(graph->arena, view, out) : RP_OK;
        break;
    case RP_ONNX_ROWS_JOINED:
        err = joined ? reshape_to(graph->arena, view, n, dim[0] / n, dim[1], out) : RP_OK;
        break;
    case RP_ONNX_ROWS_TIME_JOINED:
        err = joined ? reshape_to(graph->arena, view, dim[0] / n, n, dim[1], out) : RP_OK;
        if (err == RP_OK && *out) {
            err = swap_first(graph->arena, *out, out);
        }
        break;
    default:
        err = view->dims.rank == 4 && dim[0] == n
                  ? reshape_to(graph->arena, view, n, dim[1] * dim[2], dim[3], out)
                  : RP_OK;
        break;
    }
    return err;
}

/* Reads the form of a view, which is input `i` of the node unless that is RP_ONNX_NONE: a
 * layer that arranges is then called by the node that gives the input. */
static rp_err read_plain(const rp_onnx_visit *visit, rp_onnx_rows_form form,
                         const rp_onnx_view *plain, uint32_t i, uint32_t *from, bool *done) {
    if (form == RP_ONNX_ROWS_LINE) {
        *from = rp_onnx_line_layer(visit->graph, plain);
        *done = true;
        return RP_OK;
    }
    const bool is_input = i != RP_ONNX_NONE && rp_onnx_in(visit, i)->view == plain;
    return is_input ? rp_onnx_read_input(visit, i, from, done)
                    : rp_onnx_read_layer(visit, plain, from, done);
}

static rp_err read_forms(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t i,
                         rp_onnx_rows *out, bool *done) {
    rp_err err = RP_OK;
    *done = false;
    for (uint32_t form = 0; form < RP_ONNX_ROWS_FORMS && !*done; form++) {
        const rp_onnx_view *plain;
        *out = (rp_onnx_rows){.form = (rp_onnx_rows_form)form, .dims = view->dims};
        RP_TRY(find_plain(visit->graph, view, out->form, &plain));
        if (plain) {
            RP_TRY(read_plain(visit, out->form, plain, i, &out->from, done));
        }
    }
    if (!*done) { /* for the reason */
        RP_TRY(read_plain(visit, RP_ONNX_ROWS_PLAIN, view, i, &out->from, done));
    }
fail:
    return err;
}

rp_err rp_onnx_read_view_rows(const rp_onnx_visit *visit, const rp_onnx_view *view,
                              rp_onnx_rows *out, bool *done) {
    return read_forms(visit, view, RP_ONNX_NONE, out, done);
}

rp_err rp_onnx_read_rows(const rp_onnx_visit *visit, uint32_t i, rp_onnx_rows *out, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    *done = false;
    return in && in->state == RP_ONNX_DYNAMIC ? read_forms(visit, in->view, i, out, done) : RP_OK;
}

rp_err rp_onnx_read_rows_like(const rp_onnx_visit *visit, uint32_t i, const rp_onnx_rows *like,
                              uint32_t *from, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    const rp_onnx_view *plain;
    rp_err err = RP_OK;
    *done = false;
    if (in && in->state == RP_ONNX_DYNAMIC) {
        RP_TRY(find_plain(visit->graph, in->view, like->form, &plain));
        if (plain) {
            RP_TRY(read_plain(visit, like->form, plain, i, from, done));
        }
    }
fail:
    return err;
}

/* The output of a layer in a form. */
static rp_err arrange(rp_arena *arena, const rp_onnx_rows *rows, const rp_onnx_dims *dims,
                      const rp_onnx_view *view, const rp_onnx_view **out) {
    const bool swapped =
        rows->form == RP_ONNX_ROWS_TIME_FIRST || rows->form == RP_ONNX_ROWS_TIME_JOINED;
    const rp_err err = swapped ? swap_first(arena, view, &view) : RP_OK;
    *out = NULL;
    return err == RP_OK && view ? rp_onnx_view_reshape(arena, view, dims, out) : err;
}

rp_err rp_onnx_emit_rows(const rp_onnx_visit *visit, const rp_onnx_layer *draft,
                         const rp_onnx_rows *rows, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_view *view;
    rp_onnx_dims dims = rows->dims;
    uint32_t layer;
    rp_err err;
    if (rows->form == RP_ONNX_ROWS_LINE) {
        return rp_onnx_emit_line(visit, draft, done);
    }
    RP_TRY(rp_onnx_emit(visit, draft, &layer, done));
    if (!*done) {
        return RP_OK;
    }
    const rp_shape *out = &graph->layer[layer].out;
    if (rows->form == RP_ONNX_ROWS_PLAIN && out->dims + 1 == dims.rank) {
        return rp_onnx_give_layer(visit, 0, layer);
    }
    dims.dim[dims.rank - 1] = out->dim[out->dims - 1];
    RP_TRY(rp_onnx_add_value(graph, layer, &view));
    if (view && rp_onnx_dims_of(dims.rank, dims.dim, &dims)) {
        RP_TRY(arrange(graph->arena, rows, &dims, view, &view));
    }
    *done = view != NULL;
    if (*done) {
        rp_onnx_give_view(visit, 0, RP_ONNX_DYNAMIC, false, view);
    }
fail:
    return err;
}
