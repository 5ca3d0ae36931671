#include "onnx/mask.h"

#include "onnx/constants.h"
#include "onnx/evaluate.h"

/* Samples that are compared, with as many draws of ids. */
enum { PADDING_MOST = 127, SEEDS = 2, SAMPLES = 2 };

/* An id that is hidden and one that is seen, in the bits of a seed. */
#define HIDDEN_BITS 32

/* A mask with its axes. */
typedef struct {
    const rp_onnx_view *view;
    rp_onnx_mask_kind kind;
    uint64_t rows, keys;  /* T, or 1 for all queries; S */
    uint64_t each_sample; /* rows of one sample */
} mask_of;

static bool is_hidden(rp_onnx_mask_kind kind, double value) {
    return kind == RP_ONNX_MASK_ADDED       ? value <= -1e4
           : kind == RP_ONNX_MASK_TRUE_SEES ? value == 0.0
                                            : value != 0.0;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static int64_t same_id(uint64_t seed, uint64_t index) {
    (void)index;
    return (int64_t)seed;
}

/* One of the two ids in the seed's halves, by chance. */
static int64_t either_id(uint64_t seed, uint64_t index) {
    const uint64_t mixed = (index + seed) * UINT64_C(0x9e3779b97f4a7c15);
    return (int64_t)((mixed >> 40 & 1) ? seed & UINT32_MAX : seed >> HIDDEN_BITS & 0xffff);
}

static uint64_t seed_of(int64_t hidden, uint32_t number) {
    return (uint64_t)hidden << HIDDEN_BITS | (uint64_t)(hidden + 1) |
           (uint64_t)number << (HIDDEN_BITS + 16);
}

/* ---- comparison ------------------------------------------------------------------------------ */

static bool find_axes(const rp_onnx_graph *graph, const rp_onnx_view *view, mask_of *out) {
    const rp_onnx_dims *dims = &view->dims;
    if (dims->rank < 2 || dims->count == 0) {
        return false;
    }
    out->view = view;
    out->rows = (uint64_t)dims->dim[dims->rank - 2];
    out->keys = (uint64_t)dims->dim[dims->rank - 1];
    const uint64_t all = dims->count / out->keys;
    const uint64_t batch = (uint64_t)graph->batch;
    const bool samples = dims->rank > 2 && (uint64_t)dims->dim[0] % batch == 0;
    out->each_sample = samples ? all / batch : all;
    return true;
}

/* Whether key `index` is hidden because it comes after the query. */
static bool is_later(const mask_of *m, uint64_t index) {
    return index % m->keys > index / m->keys % m->rows + m->keys - m->rows;
}

/* Whether the mask hides exactly later keys (causal) and keys with the id. */
static bool fits(rp_onnx_graph *graph, const mask_of *m, bool causal, int64_t hidden,
                 uint32_t *input) {
    if (causal && (m->rows < 2 || m->rows > m->keys)) {
        return false;
    }
    for (uint32_t s = 0; s < SEEDS; s++) {
        rp_onnx_evaluation e = {.graph = graph,
                                .id = either_id,
                                .seed = seed_of(hidden, s),
                                .input = RP_ONNX_NONE,
                                .good = true};
        const uint64_t some = SAMPLES * m->each_sample * m->keys;
        const uint64_t count = m->view->dims.count < some ? m->view->dims.count : some;
        bool same = true;
        for (uint64_t i = 0; i < count && same; i++) {
            const uint64_t sample = i / m->keys / m->each_sample;
            const uint64_t id = sample * m->keys + i % m->keys;
            const bool padded = either_id(e.seed, id) == hidden;
            const double value = rp_onnx_evaluate(&e, m->view, i);
            const bool is = is_hidden(m->kind, value);
            same = e.good && is == (padded || (causal && is_later(m, i))) &&
                   (m->kind != RP_ONNX_MASK_ADDED || is || value == 0.0);
        }
        graph->budget -= e.steps < graph->budget ? e.steps : graph->budget;
        if (!same) {
            return false;
        }
        *input = e.input;
    }
    return true;
}

/* The only id that hides the first key from the last query, of the small ones and of some ends of
 * vocabularies; -1: none of the small ones does, or several ids do. */
static int64_t find_hidden(rp_onnx_graph *graph, const mask_of *m) {
    static const int64_t ends[] = {255, 256, 30522, 32000, 50256, 50257, 65535};
    const uint64_t index = (m->rows - 1) * m->keys;
    const int64_t ids = PADDING_MOST + 1 + (int64_t)(sizeof ends / sizeof *ends);
    int64_t found = -1;
    for (int64_t k = 0; k < ids; k++) {
        const int64_t id = k <= PADDING_MOST ? k : ends[k - PADDING_MOST - 1];
        rp_onnx_evaluation e = {.graph = graph,
                                .id = same_id,
                                .seed = (uint64_t)id,
                                .input = RP_ONNX_NONE,
                                .good = true};
        const double value = rp_onnx_evaluate(&e, m->view, index);
        graph->budget -= e.steps < graph->budget ? e.steps : graph->budget;
        if (!e.good) {
            return -1;
        }
        if (is_hidden(m->kind, value) && found >= 0) {
            return -1;
        }
        found = is_hidden(m->kind, value) ? id : found;
    }
    return found <= PADDING_MOST ? found : -1;
}

/* ---- constant masks -------------------------------------------------------------------------- */

static bool is_constant_mask(const rp_onnx_value *value, const mask_of *m, bool causal) {
    const rp_onnx_dims *dims = &value->view->dims;
    if (causal && m->rows > m->keys) {
        return false;
    }
    for (uint64_t i = 0; i < dims->count; i++) {
        const double number = value->whole ? (double)value->ints[i] : (double)value->floats[i];
        const bool hidden = is_hidden(m->kind, number);
        if (hidden != (causal && is_later(m, i)) ||
            (m->kind == RP_ONNX_MASK_ADDED && !hidden && number != 0.0)) {
            return false;
        }
    }
    return true;
}

static bool join_constant(const rp_onnx_graph *graph, const rp_onnx_value *value, mask_of *m,
                          rp_onnx_mask *mask) {
    if (!find_axes(graph, value->view, m) || value->whole == (m->kind == RP_ONNX_MASK_ADDED)) {
        return false;
    }
    if (is_constant_mask(value, m, false)) {
        return true;
    }
    const bool causal = is_constant_mask(value, m, true);
    mask->causal |= causal;
    return causal;
}

/* ---- all masks ------------------------------------------------------------------------------- */

static bool join_computed(rp_onnx_graph *graph, const rp_onnx_view *view, mask_of *m,
                          rp_onnx_mask *mask) {
    uint32_t input = RP_ONNX_NONE;
    const int64_t hidden = find_axes(graph, view, m) ? find_hidden(graph, m) : -1;
    if (hidden < 0 || mask->ids != RP_ONNX_NONE) {
        return false;
    }
    const bool causal = fits(graph, m, true, hidden, &input);
    if (!causal && !fits(graph, m, false, hidden, &input)) {
        return false;
    }
    const rp_shape *ids = input == RP_ONNX_NONE ? NULL : &graph->layer[input].out;
    if (!ids || ids->dims != 1 || ids->dim[0] != m->keys) {
        return false;
    }
    mask->causal |= causal;
    mask->ids = input;
    mask->padding = (int32_t)hidden;
    return true;
}

rp_err rp_onnx_join_mask(const rp_onnx_visit *visit, uint32_t i, rp_onnx_mask_kind kind,
                         rp_onnx_mask *mask, bool *done) {
    const rp_onnx_value *value = rp_onnx_in(visit, i);
    mask_of m = {.kind = kind};
    rp_err err = RP_OK;
    *done = true;
    if (!value) {
        return RP_OK;
    }
    const rp_onnx_value before = *value;
    RP_TRY(rp_onnx_make_const(visit, i)); /* masks that are initialisers are no parameters */
    if (value->state == RP_ONNX_CONST) {
        *done = join_constant(visit->graph, value, &m, mask);
    } else {
        *done =
            value->state == RP_ONNX_DYNAMIC && join_computed(visit->graph, value->view, &m, mask);
    }
    if (!*done) {
        visit->graph->value[visit->node->input[i]] = before; /* a weight that is added stays one */
    }
fail:
    return err;
}
