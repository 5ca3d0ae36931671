#include "nn/ties.h"

uint32_t rp_ties_stage_of(const rp_model *model, const rp_cut *cut, uint32_t param) {
    uint32_t stage = 0;
    while (model->param[param].layer >= cut->first[stage + 1]) {
        stage++;
        RP_ASSERT(stage < cut->stage_count);
    }
    return stage;
}

bool rp_ties_is_sent(const rp_model *model, const rp_cut *cut, uint32_t param) {
    if (!model->param[param].tied || model->param[param].role != RP_PARAM_TRAINED) {
        return false;
    }
    const uint32_t stage = rp_ties_stage_of(model, cut, param);
    return rp_model_crosses(model, param, cut->first[stage], cut->first[stage + 1]);
}

bool rp_ties_cross(const rp_model *model, const rp_cut *cut) {
    bool cross = false;
    for (uint32_t p = 0; !cross && p < model->param_count; p++) {
        cross = rp_ties_is_sent(model, cut, p);
    }
    return cross;
}

/* Whether the stage has a use of the tensor that belongs to `owner`. */
static bool stage_uses(const rp_model *model, const rp_cut *cut, uint32_t stage, uint32_t owner) {
    const uint32_t end = model->param_first[cut->first[stage + 1]];
    bool uses = false;
    for (uint32_t p = model->param_first[cut->first[stage]]; p < end; p++) {
        uses |= model->param[p].owner == owner;
    }
    return uses;
}

bool rp_ties_join(const rp_model *model, const rp_cut *cut, uint32_t stage, uint32_t other) {
    const uint32_t end = model->param_first[cut->first[stage + 1]];
    bool join = false;
    for (uint32_t p = model->param_first[cut->first[stage]]; stage != other && p < end; p++) {
        const rp_model_param *param = &model->param[p];
        join |= param->tied && param->role == RP_PARAM_TRAINED &&
                stage_uses(model, cut, other, param->owner);
    }
    return join;
}

bool rp_ties_owns(const rp_model *model, const rp_cut *cut, uint32_t stage, uint32_t other) {
    const uint32_t end = model->param_first[cut->first[stage + 1]];
    bool owns = false;
    for (uint32_t p = model->param_first[cut->first[stage]]; stage != other && p < end; p++) {
        const rp_model_param *param = &model->param[p];
        owns |= param->tied && param->owner == p && param->role == RP_PARAM_TRAINED &&
                stage_uses(model, cut, other, p);
    }
    return owns;
}

size_t rp_ties_bytes(const rp_model *model, uint32_t param) {
    const size_t bytes = model->param[param].count * sizeof(float);
    return bytes > RP_TIE_BYTES_LEAST ? bytes : RP_TIE_BYTES_LEAST;
}

/* Bytes of the gradients before `end` in the row of the stage. */
static size_t sum_bytes(const rp_model *model, const rp_cut *cut, uint32_t stage, uint32_t end) {
    size_t bytes = 0;
    for (uint32_t p = model->param_first[cut->first[stage]]; p < end; p++) {
        bytes += rp_ties_is_sent(model, cut, p) ? rp_ties_bytes(model, p) : 0;
    }
    return bytes;
}

size_t rp_ties_place(const rp_model *model, const rp_cut *cut, uint32_t param) {
    return sum_bytes(model, cut, rp_ties_stage_of(model, cut, param), param);
}

size_t rp_ties_row_bytes(const rp_model *model, const rp_cut *cut, uint32_t stage) {
    return sum_bytes(model, cut, stage, model->param_first[cut->first[stage + 1]]);
}
