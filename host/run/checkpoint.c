#include "run/checkpoint_own.h"

#include <stdio.h>
#include <string.h>

enum { PIECE_FLOATS = 65536, PIECE_BYTES = PIECE_FLOATS * sizeof(float) };

/* ---- the list of tensors --------------------------------------------------------------------- */

static rp_err add_tensor(rp_arena *arena, const rp_model *model, uint32_t index, const char *prefix,
                         const char *state, rp_tensor_list *list) {
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

/* What one set holds: its values unless it is the evaluated model's, and the optimiser's states. */
static rp_err add_set(rp_arena *arena, const rp_runfile *run, const char *prefix, bool values,
                      bool states, rp_tensor_list *list) {
    const rp_model *model = run->model;
    const uint32_t count = states ? run->optim.kind->state_count(&run->optim) : 0;
    rp_err err = RP_OK;
    for (uint32_t s = 0; s < count + values; s++) {
        const uint32_t state = s - values;
        const bool is_value = values && s == 0;
        for (uint32_t p = 0; p < model->param_count; p++) {
            if (model->param[p].role == RP_PARAM_TRAINED) {
                RP_TRY(add_tensor(arena, model, p, prefix,
                                  is_value ? NULL : run->optim.kind->state_names[state], list));
            }
        }
    }
fail:
    return err;
}

/* The evaluated model in model order; with `states` also what the method and the optimiser hold. */
rp_err rp_checkpoint_list(rp_arena *arena, const rp_runfile *run, bool states,
                          rp_tensor_list *list) {
    const rp_model *model = run->model;
    const uint32_t sets = states ? rp_method_set_count(&run->method) : 0;
    const uint32_t optimisers = rp_method_optimisers(&run->method);
    const size_t most = (size_t)model->param_count * (2 + sets) * (1 + RP_OPTIM_STATES_MAX);
    rp_err err;
    *list = (rp_tensor_list){0};
    RP_TRY(RP_ARENA_NEW(arena, most + 1, &list->entry));
    RP_TRY(RP_ARENA_NEW(arena, most + 1, &list->param));
    for (uint32_t p = 0; p < model->param_count; p++) {
        if (model->param[p].role != RP_PARAM_SCRATCH) {
            RP_TRY(add_tensor(arena, model, p, "", NULL, list));
        }
    }
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

/* ---- loading --------------------------------------------------------------------------------- */

rp_err rp_checkpoint_check(const rp_runfile *run, const char *path, bool states) {
    rp_arena arena;
    rp_arena_init(&arena, "weights file", 0);
    rp_st_reader *reader = NULL;
    rp_tensor_list list;
    rp_err err;
    RP_TRY(rp_st_open(&arena, path, &reader));
    RP_TRY(rp_checkpoint_list(&arena, run, states, &list));
    for (uint32_t i = 0; i < list.count; i++) {
        const rp_st_entry *entry = &list.entry[i];
        const float *values;
        RP_TRY(rp_st_need_f32(reader, entry->name, entry->dims, entry->dim, &values));
    }
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

static uint32_t stage_of(const rp_model *model, const rp_cut *cut, uint32_t param) {
    uint32_t stage = 0;
    while (model->param[param].layer >= cut->first[stage + 1]) {
        stage++;
    }
    return stage;
}

rp_err rp_checkpoint_send_in_flight(rp_ring *ring, uint32_t stage, uint64_t fill,
                                    const rp_part *all) {
    size_t first = 0;
    rp_err err = RP_OK;
    do {
        const size_t rest = all->bytes - first;
        const size_t bytes = rest < PIECE_BYTES ? rest : PIECE_BYTES;
        const rp_part part = rp_part_of_bytes((const char *)all->data + first, bytes);
        rp_Frame frame = {
            .which_body = RP_KIND_IN_FLIGHT,
            .body.in_flight = {.first = first, .total = all->bytes, .fill_step = fill}};
        err = rp_ring_send(ring, stage, &frame, &part, bytes > 0);
        first += bytes;
    } while (err == RP_OK && first < all->bytes);
    return err;
}

static rp_err send_tensor(rp_ring *ring, uint32_t stage, const rp_st_entry *entry,
                          const float *values) {
    const size_t total = entry->bytes / sizeof(float);
    rp_err err = RP_OK;
    for (size_t first = 0; err == RP_OK && first < total; first += PIECE_FLOATS) {
        const size_t rest = total - first;
        const size_t count = rest < PIECE_FLOATS ? rest : PIECE_FLOATS;
        const rp_part part = rp_part_of_array(RP_DTYPE_F32, values + first, count);
        rp_Frame frame = {.which_body = RP_KIND_TENSOR,
                          .body.tensor = {.first = first, .total = total}};
        rp_Tensor *tensor = &frame.body.tensor;
        (void)snprintf(tensor->name, sizeof tensor->name, "%s", entry->name);
        err = rp_ring_send(ring, stage, &frame, &part, 1);
    }
    return err;
}

/* Where a checkpoint of so many replicas has the tensor `name`. A replica that it does not have yet
 * begins at the centre and has no past: then *out is the centre's name, or "" for an optimiser's
 * state, which is zeros as it stands. */
static void source_of(const rp_method *method, uint32_t replicas, const char *name, char *out,
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

/* On as many stages as before each gets its own; on others all get the most of any: they differ
 * only where a stage has skipped a step of its own. */
static void take_applied(const rp_applied *applied, rp_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        uint64_t *own = ring->board[k].applied;
        for (uint32_t s = 0; s < applied->stages; s++) {
            for (uint32_t r = 0; r < RP_REPLICAS_MAX; r++) {
                const bool counts = applied->stages != ring->count || s == k;
                own[r] = counts && applied->of[s][r] > own[r] ? applied->of[s][r] : own[r];
            }
        }
    }
}

static rp_err send_applied(rp_ring *ring) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < ring->count; k++) {
        const uint32_t replicas = rp_method_replicas(&ring->run->method, ring->count, k);
        rp_Frame frame = {.which_body = RP_KIND_TENSORS_END};
        const rp_part part = rp_part_of_array(RP_DTYPE_U64, ring->board[k].applied, replicas);
        RP_TRY(rp_ring_send(ring, k, &frame, &part, 1));
    }
fail:
    return err;
}

rp_err rp_checkpoint_load(rp_ring *ring, const rp_cut *cut, const char *path,
                          const rp_position *position) {
    rp_arena arena;
    rp_arena_init(&arena, "weights file", 0);
    rp_st_reader *reader = NULL;
    rp_tensor_list list;
    rp_err err;
    RP_TRY(rp_st_open(&arena, path, &reader));
    RP_TRY(rp_checkpoint_list(&arena, ring->run, position != NULL, &list));
    for (uint32_t i = 0; i < list.count; i++) {
        const rp_st_entry *entry = &list.entry[i];
        const rp_method *method = &ring->run->method;
        const float *values;
        char name[RP_ST_NAME_MAX + 1];
        source_of(method, position ? position->replicas : 0, entry->name, name, sizeof name);
        if (!name[0]) {
            continue;
        }
        RP_TRY(rp_st_need_f32(reader, name, entry->dims, entry->dim, &values));
        RP_TRY(send_tensor(ring, stage_of(ring->run->model, cut, list.param[i]), entry, values));
    }
    if (position) {
        take_applied(&position->applied, ring);
    }
    RP_TRY(send_applied(ring));
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}
