#include "nn/cut.h"

#include <math.h>

/* ---- reading -------------------------------------------------------------------------------- */

/* Why a stage that follows `before` cannot begin at the layer; NULL if it can. */
static const char *why_no_boundary(const rp_model *model, uint32_t before, uint32_t layer) {
    if (layer == model->layer_count) {
        return "is not a layer of the model";
    }
    if (layer == 0) {
        return "is the first layer, where the first stage begins anyway";
    }
    return layer <= before ? "is not after the previous cut" : NULL;
}

rp_err rp_cut_parse(rp_arena *arena, const rp_model *model, const rp_node *list, rp_cut *out) {
    uint32_t *first;
    rp_err err;
    if (!rp_node_is_list(list) || rp_node_count(list) >= RP_CUT_STAGES_MAX) {
        return rp_node_fail(list, "expected a list of at most %d layer names",
                            RP_CUT_STAGES_MAX - 1);
    }
    const uint32_t count = rp_node_count(list);
    RP_TRY(RP_ARENA_NEW(arena, (size_t)count + 2, &first));
    for (uint32_t i = 0; i < count; i++) {
        const rp_node *item = rp_node_item(list, i);
        if (!rp_node_is_scalar(item)) {
            return rp_node_fail(item, "expected the name of a layer");
        }
        first[i + 1] = rp_model_find_behind(model, first[i], rp_node_text(item));
        const char *why = why_no_boundary(model, first[i], first[i + 1]);
        if (why) {
            return rp_node_fail(item, "'%s' %s", rp_node_text(item), why);
        }
    }
    first[count + 1] = model->layer_count;
    const rp_cut cut = {.stage_count = count + 1, .first = first};
    RP_TRY(rp_cut_check(model, &cut));
    *out = cut;
fail:
    return err;
}

/* Counts what crosses each boundary in one walk, because large rings are checked often. */
static rp_err check_boundaries(const rp_model *model, const rp_cut *cut) {
    int32_t more[RP_MODEL_LAYERS_MAX + 2] = {
        0}; /* change of the number of crossing tensors before each layer */
    uint32_t last[RP_MODEL_LAYERS_MAX + 1] = {0}; /* reader; the model's input has number 0 */
    int32_t crossing = 0;
    uint32_t b = 1;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        for (uint32_t j = 0; j < model->layer[i].input_count; j++) {
            const uint32_t producer = model->layer[i].input[j];
            last[producer == RP_LAYER_DATA ? 0 : producer + 1] = i;
        }
    }
    for (uint32_t p = 0; p <= model->layer_count; p++) {
        more[p]++; /* producer p - 1 crosses from layer p on, up to its last reader */
        more[last[p] >= p ? last[p] + 1 : p]--;
    }
    for (uint32_t i = 0; i < model->layer_count && b < cut->stage_count; i++) {
        crossing += more[i];
        if (i == cut->first[b]) {
            rp_boundary boundary;
            if (crossing > RP_CUT_TENSORS_MAX) { /* fails with a message */
                return rp_cut_boundary_at(model, i, &boundary);
            }
            b++;
        }
    }
    return RP_OK;
}

bool rp_cut_is_same(const rp_cut *a, const rp_cut *b) {
    bool same = a->stage_count == b->stage_count;
    for (uint32_t k = 0; same && k < a->stage_count; k++) {
        same = a->first[k] == b->first[k];
    }
    return same;
}

rp_err rp_cut_check(const rp_model *model, const rp_cut *cut) {
    uint32_t stages = cut->stage_count;
    if (stages == 0 || stages > RP_CUT_STAGES_MAX || cut->first[0] != 0 ||
        cut->first[stages] != model->layer_count) {
        return rp_fail(RP_ERR_USAGE, "cut: expected 1 to %d stages over all %u layers",
                       RP_CUT_STAGES_MAX, model->layer_count);
    }
    for (uint32_t k = 0; k < stages; k++) {
        if (cut->first[k] >= cut->first[k + 1]) {
            return rp_fail(RP_ERR_USAGE, "cut: stage %u has no layer", k);
        }
    }
    return check_boundaries(model, cut);
}

/* ---- crossing tensors ----------------------------------------------------------------------- */

static bool is_before(uint32_t a, uint32_t b) {
    return a != b && (a == RP_LAYER_DATA || (b != RP_LAYER_DATA && a < b));
}

/* Adds each tensor once, in order. */
static rp_err add_tensor(const rp_model *model, uint32_t producer, uint32_t first,
                         rp_boundary *out) {
    uint32_t at = 0;
    while (at < out->count && is_before(out->producer[at], producer)) {
        at++;
    }
    if (at < out->count && out->producer[at] == producer) {
        return RP_OK;
    }
    if (out->count == RP_CUT_TENSORS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "cut at '%s': more than %d tensors would cross",
                       model->layer[first].name, RP_CUT_TENSORS_MAX);
    }
    for (uint32_t i = out->count++; i > at; i--) {
        out->producer[i] = out->producer[i - 1];
    }
    out->producer[at] = producer;
    out->sample_bytes += rp_shape_count(rp_model_shape(model, producer)) * sizeof(float);
    return RP_OK;
}

rp_err rp_cut_boundary_at(const rp_model *model, uint32_t first, rp_boundary *out) {
    RP_ASSERT(first > 0 && first < model->layer_count);
    rp_err err = RP_OK;
    *out = (rp_boundary){0};
    for (uint32_t i = first; i < model->layer_count; i++) {
        for (uint32_t j = 0; j < model->layer[i].input_count; j++) {
            const uint32_t producer = model->layer[i].input[j];
            if (producer == RP_LAYER_DATA || producer < first) {
                RP_TRY(add_tensor(model, producer, first, out));
            }
        }
    }
fail:
    return err;
}

const rp_layer *rp_cut_whole_layer(const rp_model *model, const rp_cut *cut, uint32_t stage) {
    uint32_t i = cut->first[stage];
    while (i < cut->first[stage + 1] && !model->plan[i].whole) {
        i++;
    }
    return i < cut->first[stage + 1] ? &model->layer[i] : NULL;
}

rp_err rp_cut_boundary(const rp_model *model, const rp_cut *cut, uint32_t b, rp_boundary *out) {
    RP_ASSERT(b > 0 && b < cut->stage_count);
    return rp_cut_boundary_at(model, cut->first[b], out);
}

/* ---- balance -------------------------------------------------------------------------------- */

typedef struct {
    const double *boundary; /* may be NULL */
    double *sum;            /* [count + 1] sum of the layers before */
    uint32_t count;
} cost_table;

static double cost_boundary(const cost_table *t, uint32_t at) {
    return t->boundary && at > 0 && at < t->count ? t->boundary[at] : 0;
}

static double cost_stage(const cost_table *t, uint32_t first, uint32_t end) {
    return t->sum[end] - t->sum[first] + cost_boundary(t, first) + cost_boundary(t, end);
}

/* best[first] = smallest possible largest cost of the layers [first, count) in `stages` stages,
 * from `less`, the same for one stage less; next[first] = start of the second of these stages. */
static void add_stage(const cost_table *t, uint32_t stages, const double *less, double *best,
                      uint32_t *next) {
    for (uint32_t first = 0; first <= t->count; first++) {
        best[first] = INFINITY;
        next[first] = t->count;
        for (uint32_t end = first + 1; end + stages - 1 <= t->count; end++) {
            double cost = fmax(cost_stage(t, first, end), less[end]);
            if (cost < best[first]) {
                best[first] = cost;
                next[first] = end;
            }
        }
    }
}

rp_err rp_cut_balance(rp_arena *arena, const double *layer_cost, const double *boundary_cost,
                      uint32_t count, uint32_t stages, rp_cut *out) {
    rp_err err;
    if (stages == 0 || stages > RP_CUT_STAGES_MAX || count < stages) {
        return rp_fail(RP_ERR_USAGE, "cut: %u layers cannot make %u stages", count, stages);
    }
    cost_table t = {.boundary = boundary_cost, .count = count};
    double *best;
    uint32_t *next;
    uint32_t *first;
    size_t row = (size_t)count + 1;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)stages + 1, &first));
    RP_TRY(RP_ARENA_NEW(arena, row, &t.sum));
    RP_TRY(RP_ARENA_NEW(arena, row * (stages + 1), &best));
    RP_TRY(RP_ARENA_NEW(arena, row * (stages + 1), &next));
    for (uint32_t i = 0; i < count; i++) {
        t.sum[i + 1] = t.sum[i] + layer_cost[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        best[i] = INFINITY; /* no stages, but layers left */
    }
    for (uint32_t s = 1; s <= stages; s++) {
        add_stage(&t, s, best + row * (s - 1), best + row * s, next + row * s);
    }
    if (!isfinite(best[row * stages])) {
        return rp_fail(RP_ERR_USAGE, "cut: no allowed cut of %u layers into %u stages", count,
                       stages);
    }
    for (uint32_t k = 0; k < stages; k++) {
        first[k + 1] = next[row * (stages - k) + first[k]];
    }
    *out = (rp_cut){.stage_count = stages, .first = first};
    return RP_OK;
fail:
    return err;
}
