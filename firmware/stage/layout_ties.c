/* The uses of tied tensors (nn/ties.h) that a stage trains, and the memory for their exchange. */
#include "stage/layout_own.h"

static size_t larger_of(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Adds the uses of the tensor that belongs to parameter `owner` of the model. */
static void add_uses(const rp_job *job, uint32_t owner, rp_layout *layout) {
    const rp_model *model = job->model;
    const uint32_t owner_stage = rp_ties_stage_of(model, &job->cut, owner);
    const bool is_far = owner_stage != job->stage && !job->method.kind->flushed;
    for (uint32_t p = owner; p < model->param_count; p++) {
        if (model->param[p].owner != owner) {
            continue;
        }
        rp_layout_use *use = &layout->use[layout->use_count++];
        *use = (rp_layout_use){.owner = owner,
                               .stage = rp_ties_stage_of(model, &job->cut, p),
                               .trained = RP_NOT_TRAINED,
                               .sent = rp_ties_is_sent(model, &job->cut, p),
                               .place = rp_ties_place(model, &job->cut, p),
                               .count = (uint32_t)model->param[p].count,
                               .part = RP_NO_STORAGE,
                               .owner_stage = owner_stage,
                               .owner_place = rp_ties_place(model, &job->cut, owner)};
        if (use->stage == job->stage) {
            use->param = p - layout->param_first;
            use->trained = layout->trained[use->param];
            use->part = is_far ? layout->far_count++ : RP_NO_STORAGE;
            layout->repeats[use->trained] = p != owner;
            layout->far[use->trained] = is_far;
        } else {
            const size_t bytes = rp_ties_row_bytes(model, &job->cut, use->stage);
            layout->tie_far_bytes = larger_of(layout->tie_far_bytes, bytes);
            layout->tie_waits |= !is_far;
            layout->tie_bytes = is_far ? layout->tie_bytes
                                       : larger_of(layout->tie_bytes, use->count * sizeof(float));
        }
    }
}

/* Whether it is the stage's first use of a tied tensor. */
static bool is_first_use(const rp_model *model, const rp_layout *layout, uint32_t param) {
    uint32_t p = layout->param_first;
    while (model->param[p].owner != model->param[param].owner) {
        p++;
    }
    return p == param && model->param[param].tied && model->param[param].role == RP_PARAM_TRAINED;
}

rp_err rp_layout_find_uses(rp_arena *arena, const rp_job *job, rp_layout *layout, uint32_t align) {
    const rp_model *model = job->model;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, layout->trained_count + 1, &layout->repeats));
    RP_TRY(RP_ARENA_NEW(arena, layout->trained_count + 1, &layout->far));
    RP_TRY(RP_ARENA_NEW(arena, rp_model_tied_count(model) + 1, &layout->use));
    for (uint32_t i = 0; i < layout->param_count; i++) {
        if (is_first_use(model, layout, layout->param_first + i)) {
            add_uses(job, model->param[layout->param_first + i].owner, layout);
        }
    }
    layout->tie_row_bytes = rp_ties_row_bytes(model, &job->cut, job->stage);
    layout->scratch_bytes += layout->tie_bytes ? 2 * rp_darena_round(layout->tie_bytes, align) : 0;
fail:
    return err;
}
