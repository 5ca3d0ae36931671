/* The first centre: the weights that a run on its own would start from. */
#include "base/safetensors.h"
#include "checkpoint/checkpoint.h"
#include "federation/federation_own.h"

typedef struct {
    rp_arena arena;
    const rp_model *model;
    rp_st_entry *entry; /* [count] tensors that a weights file has */
    uint32_t *param;    /* [count] */
    uint32_t count;
    const float **given; /* [params] values of train.init; NULL: drawn by the seed */
} start;

static rp_err list_tensors(start *s) {
    const rp_model *model = s->model;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&s->arena, (size_t)model->param_count + 1, &s->entry));
    RP_TRY(RP_ARENA_NEW(&s->arena, (size_t)model->param_count + 1, &s->param));
    RP_TRY(RP_ARENA_NEW(&s->arena, (size_t)model->param_count + 1, &s->given));
    for (uint32_t p = 0; p < model->param_count; p++) {
        const rp_model_param *param = &model->param[p];
        if (param->owner != p || param->role == RP_PARAM_SCRATCH) {
            continue;
        }
        rp_st_entry *entry = &s->entry[s->count];
        *entry = (rp_st_entry){.name = param->name,
                               .type = RP_ST_F32,
                               .dims = param->shape.dims,
                               .bytes = param->count * sizeof(float)};
        for (uint32_t d = 0; d < param->shape.dims; d++) {
            entry->dim[d] = param->shape.dim[d];
        }
        s->param[s->count++] = p;
    }
fail:
    return err;
}

static rp_err take_given(start *s, rp_checkpoint_reader *reader) {
    rp_checkpoint_tensor tensor;
    bool more;
    rp_err err;
    for (;;) {
        RP_TRY(rp_checkpoint_next(reader, &tensor, &more));
        if (!more) {
            return RP_OK;
        }
        s->given[tensor.param] = tensor.values;
    }
fail:
    return err;
}

static rp_err write_tensors(start *s, uint64_t seed, rp_st_writer *writer) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < s->count; i++) {
        const uint32_t p = s->param[i];
        float *drawn = NULL;
        if (!s->given[p]) {
            RP_TRY(RP_ARENA_NEW(&s->arena, s->model->param[p].count + 1, &drawn));
            rp_model_init_param(s->model, p, seed, drawn);
        }
        RP_TRY(rp_st_write(writer, i, 0, drawn ? drawn : s->given[p], (size_t)s->entry[i].bytes));
    }
fail:
    return err;
}

rp_err rp_federation_begin_center(const rp_runfile *run, const char *path) {
    static const char *const meta[] = {"format", "pt", "round", "0", NULL};
    start s = {.model = run->model};
    rp_checkpoint_reader *reader = NULL;
    rp_st_writer *writer = NULL;
    rp_err err;
    rp_arena_init(&s.arena, "first centre", 0);
    RP_TRY(list_tensors(&s));
    if (run->init) {
        RP_TRY(rp_checkpoint_open_start(&s.arena, run, &reader));
        RP_TRY(take_given(&s, reader));
    }
    RP_TRY(rp_st_create(&s.arena, path, s.entry, s.count, meta, true, &writer));
    RP_TRY(write_tensors(&s, run->seed, writer));
    err = rp_st_commit(&writer);
fail:
    rp_st_abandon(&writer);
    if (reader) {
        rp_checkpoint_close_reader(&reader);
    }
    rp_arena_finish(&s.arena);
    return err;
}
