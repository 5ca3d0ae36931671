#include "nn/cut.h"

#include <math.h>

/* ---- reading -------------------------------------------------------------------------------- */

/* One more boundary, at `layer`; says in `why` what is wrong with it. */
static bool add_boundary(const rp_model *model, rp_cut *cut, const char *name, const char **why) {
    uint32_t layer = rp_model_find(model, name);
    if (layer == model->layer_count) {
        *why = "is no layer of the model";
    } else if (layer == 0) {
        *why = "is the first layer: the first stage begins there anyway";
    } else if (layer <= cut->first[cut->stage_count - 1]) {
        *why = "does not come behind the cut before it";
    } else {
        cut->first[cut->stage_count++] = layer;
        return true;
    }
    return false;
}

static rp_err finish_cut(const rp_model *model, rp_cut *cut, rp_cut *out) {
    cut->first[cut->stage_count] = model->layer_count;
    rp_err err = rp_cut_check(model, cut);
    if (err == RP_OK) {
        *out = *cut;
    }
    return err;
}

rp_err rp_cut_parse(const rp_model *model, const rp_node *list, rp_cut *out) {
    rp_cut cut = {.stage_count = 1};
    if (!rp_node_is_list(list) || rp_node_count(list) >= RP_CUT_STAGES_MAX) {
        return rp_node_fail(list, "expected a list of at most %d layer names",
                            RP_CUT_STAGES_MAX - 1);
    }
    for (uint32_t i = 0; i < rp_node_count(list); i++) {
        const rp_node *item = rp_node_item(list, i);
        const char *why = NULL;
        if (!rp_node_is_scalar(item)) {
            return rp_node_fail(item, "expected the name of a layer");
        }
        if (!add_boundary(model, &cut, rp_node_text(item), &why)) {
            return rp_node_fail(item, "'%s' %s", rp_node_text(item), why);
        }
    }
    return finish_cut(model, &cut, out);
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
    for (uint32_t k = 1; k < stages; k++) {
        rp_boundary boundary;
        rp_err err = rp_cut_boundary_at(model, cut->first[k], &boundary);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

/* ---- what crosses --------------------------------------------------------------------------- */

static rp_err add_tensor(const rp_model *model, uint32_t producer, uint32_t first,
                         rp_boundary *out) {
    if (rp_model_readers(model, producer, first, model->layer_count) == 0) {
        return RP_OK;
    }
    if (out->count == RP_CUT_TENSORS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "cut at '%s': more than %d tensors would cross",
                       model->layer[first].name, RP_CUT_TENSORS_MAX);
    }
    out->producer[out->count++] = producer;
    out->sample_bytes += rp_shape_count(rp_model_shape(model, producer)) * sizeof(float);
    return RP_OK;
}

rp_err rp_cut_boundary_at(const rp_model *model, uint32_t first, rp_boundary *out) {
    RP_ASSERT(first > 0 && first < model->layer_count);
    *out = (rp_boundary){0};
    rp_err err = add_tensor(model, RP_LAYER_DATA, first, out);
    for (uint32_t i = 0; err == RP_OK && i < first; i++) {
        err = add_tensor(model, i, first, out);
    }
    return err;
}

rp_err rp_cut_boundary(const rp_model *model, const rp_cut *cut, uint32_t b, rp_boundary *out) {
    RP_ASSERT(b > 0 && b < cut->stage_count);
    return rp_cut_boundary_at(model, cut->first[b], out);
}

/* ---- balance -------------------------------------------------------------------------------- */

typedef struct {
    const double *boundary; /* may be NULL */
    double *sum;            /* [count + 1] of the layers before */
    uint32_t count;
} cost_table;

static double cost_boundary(const cost_table *t, uint32_t at) {
    return t->boundary && at > 0 && at < t->count ? t->boundary[at] : 0;
}

static double cost_stage(const cost_table *t, uint32_t first, uint32_t end) {
    return t->sum[end] - t->sum[first] + cost_boundary(t, first) + cost_boundary(t, end);
}

/* best[first] = least largest cost of the layers [first, count) in `stages` stages, from the same
 * for one stage less; next[first] = where the second of them begins. */
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
        return rp_fail(RP_ERR_USAGE, "cut: %u layers can not make %u stages", count, stages);
    }
    cost_table t = {.boundary = boundary_cost, .count = count};
    double *best;
    uint32_t *next;
    size_t row = (size_t)count + 1;
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
    rp_cut cut = {.stage_count = stages};
    for (uint32_t k = 0; k < stages; k++) {
        cut.first[k + 1] = next[row * (stages - k) + cut.first[k]];
    }
    *out = cut;
    return RP_OK;
fail:
    return err;
}
