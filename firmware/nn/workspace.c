#include "nn/workspace.h"

enum { LISTS = 4 }; /* pairs of samples and implementation that are remembered */

/* For one pair: bytes by layer, UNKNOWN until they are computed. */
typedef struct {
    uint32_t samples; /* 0: not used */
    uint32_t views;   /* lengths that the model had */
    rp_gemm_choice gemm;
    size_t *bytes;
} list;

struct rp_model_workspaces {
    list list[LISTS];
    uint32_t next; /* the list that the next new pair replaces */
};

#define UNKNOWN SIZE_MAX

static size_t find_most(const rp_model *model, uint32_t index, uint32_t samples,
                        rp_gemm_choice gemm) {
    const rp_layer *layer = &model->layer[index];
    size_t most = 0;
    for (uint32_t k = 0; layer->kind->workspace_bytes && k <= model->view_count; k++) {
        const rp_model_view view =
            rp_model_view_at(model, k < model->view_count ? model->view[k].time : 0);
        for (uint32_t n = samples; n > 0; n--) {
            const size_t work =
                layer->kind->workspace_bytes(layer, &view.plan[index], view.in[index], n, gemm);
            most = work > most ? work : most;
        }
    }
    return most;
}

static list *list_of(const rp_model *model, uint32_t samples, rp_gemm_choice gemm) {
    struct rp_model_workspaces *of = model->workspaces;
    for (uint32_t i = 0; i < LISTS; i++) {
        list *known = &of->list[i];
        if (known->samples == samples && known->gemm == gemm && known->views == model->view_count) {
            return known;
        }
    }
    list *made = &of->list[of->next];
    of->next = (of->next + 1) % LISTS;
    made->samples = samples;
    made->views = model->view_count;
    made->gemm = gemm;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        made->bytes[i] = UNKNOWN;
    }
    return made;
}

size_t rp_model_workspace(const rp_model *model, uint32_t layer, uint32_t samples,
                          rp_gemm_choice gemm) {
    if (samples == 0) {
        return 0;
    }
    size_t *bytes = &list_of(model, samples, gemm)->bytes[layer];
    if (*bytes == UNKNOWN) {
        *bytes = find_most(model, layer, samples, gemm);
    }
    return *bytes;
}

rp_err rp_model_new_workspaces(rp_arena *arena, rp_model *model) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &model->workspaces));
    for (uint32_t i = 0; i < LISTS; i++) {
        RP_TRY(RP_ARENA_NEW(arena, model->layer_count, &model->workspaces->list[i].bytes));
    }
fail:
    return err;
}

void rp_model_forget_workspaces(const rp_model *model) {
    for (uint32_t i = 0; i < LISTS; i++) {
        model->workspaces->list[i].samples = 0;
    }
}
