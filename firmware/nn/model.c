#include "nn/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

uint32_t rp_model_find(const rp_model *model, const char *name) {
    uint32_t i = 0;
    while (i < model->layer_count && strcmp(model->layer[i].name, name) != 0) {
        i++;
    }
    return i;
}

uint32_t rp_model_find_behind(const rp_model *model, uint32_t before, const char *name) {
    for (uint32_t i = before + 1; i < model->layer_count; i++) {
        if (strcmp(model->layer[i].name, name) == 0) {
            return i;
        }
    }
    return rp_model_find(model, name);
}

const rp_shape *rp_model_shape(const rp_model *model, uint32_t layer) {
    RP_ASSERT(layer == RP_LAYER_DATA || layer < model->layer_count);
    return layer == RP_LAYER_DATA ? &model->input : &model->plan[layer].out;
}

rp_dtype rp_model_type(const rp_model *model, uint32_t layer) {
    return layer == RP_LAYER_DATA         ? model->input_type
           : model->plan[layer].gives_ids ? RP_I32
                                          : RP_F32;
}

uint32_t rp_model_id_count(const rp_model *model) {
    uint32_t least = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const uint32_t own = model->plan[i].id_count;
        least = own > 0 && (least == 0 || own < least) ? own : least;
    }
    return least;
}

/* The first element of the model's input that an input of a layer, which is token ids, has. */
static uint32_t find_first_id(const rp_model *model, uint32_t producer) {
    uint32_t first = 0;
    for (; producer != RP_LAYER_DATA; producer = model->layer[producer].input[0]) {
        first += model->plan[producer].ids_first;
    }
    return first;
}

rp_err rp_model_id_limits(rp_arena *arena, const rp_model *model, uint32_t **out) {
    rp_err err;
    *out = NULL;
    if (rp_model_id_count(model) == 0) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, rp_shape_count(&model->input), out));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const uint32_t count = model->plan[i].id_count;
        if (count == 0) {
            continue;
        }
        const uint32_t first = find_first_id(model, model->layer[i].input[0]);
        const size_t end = first + rp_shape_count(&model->in[i][0]);
        for (size_t at = first; at < end; at++) {
            (*out)[at] = (*out)[at] == 0 || count < (*out)[at] ? count : (*out)[at];
        }
    }
fail:
    return err;
}

const rp_shape *rp_model_out(const rp_model *model) {
    return rp_model_shape(model, model->layer_count - 1);
}

uint32_t rp_model_readers(const rp_model *model, uint32_t producer, uint32_t first, uint32_t end) {
    RP_ASSERT(first <= end && end <= model->layer_count);
    uint32_t count = 0;
    for (uint32_t i = first; i < end; i++) {
        for (uint32_t j = 0; j < model->layer[i].input_count; j++) {
            count += model->layer[i].input[j] == producer;
        }
    }
    return count;
}

size_t rp_model_param_count(const rp_model *model, rp_param_role role, uint32_t first,
                            uint32_t end) {
    RP_ASSERT(first <= end && end <= model->layer_count);
    size_t count = 0;
    for (uint32_t i = model->param_first[first]; i < model->param_first[end]; i++) {
        count += model->param[i].role == role ? model->param[i].count : 0;
    }
    return count;
}

bool rp_model_has_names(const rp_model *model) {
    bool has = false;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        has |= model->layer[i].names != NULL;
    }
    return has;
}

uint32_t rp_model_tied_count(const rp_model *model) {
    uint32_t count = 0;
    for (uint32_t p = 0; p < model->param_count; p++) {
        count += model->param[p].tied;
    }
    return count;
}

size_t rp_model_tensor_count(const rp_model *model, rp_param_role role) {
    size_t count = 0;
    for (uint32_t i = 0; i < model->param_count; i++) {
        const bool counts = model->param[i].role == role && model->param[i].owner == i;
        count += counts ? model->param[i].count : 0;
    }
    return count;
}

bool rp_model_crosses(const rp_model *model, uint32_t param, uint32_t first, uint32_t end) {
    const uint32_t owner = model->param[param].owner;
    bool crosses = false;
    for (uint32_t p = owner; model->param[param].tied && p < model->param_count; p++) {
        const bool outside = model->param[p].layer < first || model->param[p].layer >= end;
        crosses |= model->param[p].owner == owner && outside;
    }
    return crosses;
}

double rp_model_flops_forward(const rp_model *model, uint32_t first, uint32_t end) {
    RP_ASSERT(first <= end && end <= model->layer_count);
    double flops = 0;
    for (uint32_t i = first; i < end; i++) {
        flops += model->plan[i].flops_forward;
    }
    return flops;
}

double rp_model_flops_backward(const rp_model *model, uint32_t first, uint32_t end) {
    RP_ASSERT(first <= end && end <= model->layer_count);
    double flops = 0;
    for (uint32_t i = first; i < end; i++) {
        flops += model->plan[i].flops_backward;
    }
    return flops;
}

static void fill_constant(float value, size_t count, float *out) {
    for (size_t i = 0; i < count; i++) {
        out[i] = value;
    }
}

static void fill_uniform(const char *stream, uint64_t seed, float bound, size_t count, float *out) {
    rp_rng rng = rp_rng_named(seed, stream);
    /* by blocks, because single words cost four times as much */
    for (size_t i = 0; i < count; i += 4) {
        uint32_t word[4];
        rp_rng_block(&rng, i / 4, word);
        for (size_t j = 0; j < 4 && i + j < count; j++) {
            float u = (float)(word[j] >> 8) * 0x1p-24f;
            out[i + j] = bound * (2.0f * u - 1.0f);
        }
    }
}

/* Box and Muller's method: two values from two words. Each block of four words gives four. */
static void fill_normal(const char *stream, uint64_t seed, float deviation, size_t count,
                        float *out) {
    rp_rng rng = rp_rng_named(seed, stream);
    for (size_t i = 0; i < count; i += 4) {
        uint32_t word[4];
        rp_rng_block(&rng, i / 4, word);
        for (size_t j = 0; j < 4 && i + j < count; j++) {
            const double u = ((double)word[j / 2 * 2] + 1) * 0x1p-32; /* (0, 1] */
            const double angle = 6.283185307179586 * (double)word[j / 2 * 2 + 1] * 0x1p-32;
            const double radius = sqrt(-2 * log(u));
            out[i + j] =
                (float)((double)deviation * radius * (j % 2 == 0 ? cos(angle) : sin(angle)));
        }
    }
}

/* Fills a parameter by its rule. */
static void fill_param(const rp_param *rule, const char *layer, uint64_t seed, size_t count,
                       float *out) {
    char stream[RP_LAYER_NAME_MAX + 64];
    snprintf(stream, sizeof stream, "init/%s/%s", layer, rule->suffix);
    switch (rule->init) {
    case RP_INIT_UNIFORM:
        fill_uniform(stream, seed, rule->init_bound, count, out);
        return;
    case RP_INIT_NORMAL:
        fill_normal(stream, seed, rule->init_bound, count, out);
        return;
    case RP_INIT_ZERO:
        fill_constant(0.0f, count, out);
        return;
    case RP_INIT_ONE:
        fill_constant(1.0f, count, out);
        return;
    case RP_INIT_CONSTANT:
        fill_constant(rule->init_bound, count, out);
        return;
    }
}

void rp_model_init_param(const rp_model *model, uint32_t param, uint64_t seed, float *out) {
    RP_ASSERT(param < model->param_count);
    const rp_model_param *p = &model->param[model->param[param].owner];
    const rp_layer_plan *plan = &model->plan[p->layer];
    fill_param(&plan->param[p->index], model->layer[p->layer].name, seed, p->count, out);
    if (p->index == 0 && plan->zero_row > 0) {
        const size_t row = p->count / plan->param[0].shape.dim[0];
        fill_constant(0.0f, row, out + (plan->zero_row - 1) * row);
    }
}
