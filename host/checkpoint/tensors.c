/* Lists the tensors of a file of this run, and reads them one by one. */
#include "checkpoint/checkpoint_own.h"

#include <stdio.h>
#include <string.h>

/* ---- the list of tensors --------------------------------------------------------------------- */

static rp_err add_tensor(rp_arena *arena, const rp_model *model, uint32_t index, const char *prefix,
                         const char *state, rp_checkpoint_list *list) {
    const rp_model_param *param = &model->param[index];
    rp_st_entry *entry = &list->entry[list->count];
    char *name;
    rp_err err = rp_arena_printf(arena, &name, "%s%s%s%s%s", prefix, state ? "optim." : "",
                                 state ? state : "", state ? "." : "", param->name);
    *entry = (rp_st_entry){.name = name,
                           .type = RP_ST_F32,
                           .dims = param->shape.dims,
                           .bytes = param->count * sizeof(float)};
    for (uint32_t d = 0; d < entry->dims; d++) {
        entry->dim[d] = param->shape.dim[d];
    }
    list->param[list->count++] = index;
    return err;
}

/* Adds the tensors of one set: values (unless it is the evaluated model's) and optimiser states. */
static rp_err add_set(rp_arena *arena, const rp_runfile *run, const char *prefix, bool values,
                      bool states, rp_checkpoint_list *list) {
    const rp_model *model = run->model;
    const uint32_t count = states ? rp_optim_state_count(&run->optim) : 0;
    rp_err err = RP_OK;
    for (uint32_t s = 0; s < count + values; s++) {
        const uint32_t state = s - values;
        const bool is_value = values && s == 0;
        for (uint32_t p = 0; p < model->param_count; p++) {
            if (model->param[p].role == RP_PARAM_TRAINED && model->param[p].owner == p) {
                RP_TRY(add_tensor(arena, model, p, prefix,
                                  is_value ? NULL : rp_optim_state_name(&run->optim, state), list));
            }
        }
    }
fail:
    return err;
}

rp_err rp_checkpoint_make_list(rp_arena *arena, const rp_runfile *run, bool states,
                               rp_checkpoint_list *list) {
    const rp_model *model = run->model;
    const uint32_t sets = states ? rp_method_set_count(&run->method) : 0;
    const uint32_t optimisers = rp_method_optimisers(&run->method);
    const size_t most = (size_t)model->param_count * (2 + sets) * (1 + RP_OPTIM_STATES_MAX);
    rp_err err;
    *list = (rp_checkpoint_list){0};
    RP_TRY(RP_ARENA_NEW(arena, most + 1, &list->entry));
    RP_TRY(RP_ARENA_NEW(arena, most + 1, &list->param));
    for (uint32_t p = 0; p < model->param_count; p++) {
        if (model->param[p].role != RP_PARAM_SCRATCH && model->param[p].owner == p) {
            RP_TRY(add_tensor(arena, model, p, "", NULL, list));
        }
    }
    list->evaluated = list->count;
    for (uint32_t set = 0; set < sets; set++) {
        char prefix[32];
        rp_method_set_prefix(&run->method, set, prefix, sizeof prefix);
        RP_TRY(add_set(arena, run, prefix, true, set < optimisers, list));
    }
    if (states && optimisers == 0) {
        RP_TRY(add_set(arena, run, "", false, true, list));
    }
fail:
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

rp_err rp_checkpoint_check(const rp_runfile *run, const char *path, bool states) {
    rp_arena arena;
    rp_arena_init(&arena, "weights file", 0);
    rp_st_reader *reader = NULL;
    rp_checkpoint_list list;
    rp_err err;
    RP_TRY(rp_st_open(&arena, path, &reader));
    RP_TRY(rp_checkpoint_make_list(&arena, run, states, &list));
    for (uint32_t i = 0; i < list.count; i++) {
        const rp_st_entry *entry = &list.entry[i];
        const float *values;
        RP_TRY(rp_st_need_f32(reader, entry->name, entry->dims, entry->dim, &values));
    }
    RP_TRY(states ? rp_checkpoint_check_sidecars(&arena, reader, path) : RP_OK);
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

/* Name of the tensor `name` in a checkpoint with `replicas` replicas. A replica that the checkpoint
 * lacks starts at the centre, so `out` is the centre's name; or "" for its optimiser states, which
 * start as zeros. */
static void find_source(const rp_method *method, uint32_t replicas, const char *name, char *out,
                        size_t bytes) {
    unsigned replica;
    int prefix = 0;
    const bool is_of_replica =
        replicas > 0 && sscanf(name, "replica.%u.%n", &replica, &prefix) == 1 && prefix > 0;
    if (!is_of_replica || replica < replicas) {
        (void)snprintf(out, bytes, "%s", name);
    } else if (strncmp(name + prefix, "optim.", 6) == 0) {
        out[0] = '\0';
    } else {
        const bool kept_apart = method->evaluate != RP_EVALUATE_CENTRE;
        (void)snprintf(out, bytes, "%s%s", kept_apart ? "centre." : "", name + prefix);
    }
}

rp_err rp_checkpoint_open_reader(rp_arena *arena, const rp_runfile *run, const char *path,
                                 const rp_position *position, rp_checkpoint_reader **out) {
    rp_checkpoint_reader *reader = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &reader));
    *reader = (rp_checkpoint_reader){
        .method = &run->method, .model = run->model, .replicas = position ? position->replicas : 0};
    RP_TRY(rp_checkpoint_make_list(arena, run, position != NULL, &reader->list));
    RP_TRY(rp_st_open(arena, path, &reader->file));
    *out = reader;
fail:
    return err;
}

uint64_t rp_checkpoint_start_updates(const rp_checkpoint_reader *reader) {
    return reader->updates;
}

void rp_checkpoint_close_reader(rp_checkpoint_reader **reader) {
    if (*reader) {
        rp_st_close(&(*reader)->file);
        *reader = NULL;
    }
}

rp_err rp_checkpoint_next(rp_checkpoint_reader *reader, rp_checkpoint_tensor *out, bool *more) {
    char name[RP_ST_NAME_MAX + 1] = "";
    const rp_st_entry *entry = NULL;
    const float *values;
    rp_err err;
    while (!name[0] && reader->next < reader->list.count) {
        const char *source = reader->source ? reader->source[reader->next] : NULL;
        entry = &reader->list.entry[reader->next++];
        if (source) {
            (void)snprintf(name, sizeof name, "%s", source);
        } else {
            find_source(reader->method, reader->replicas, entry->name, name, sizeof name);
        }
    }
    *more = name[0] != '\0';
    if (!*more) {
        return RP_OK;
    }
    RP_TRY(rp_st_need_f32(reader->file, name, entry->dims, entry->dim, &values));
    *out = (rp_checkpoint_tensor){.name = entry->name,
                                  .param = reader->list.param[reader->next - 1],
                                  .values = values,
                                  .count = entry->bytes / sizeof(float),
                                  .is_evaluated = reader->next <= reader->list.evaluated};
fail:
    return err;
}
