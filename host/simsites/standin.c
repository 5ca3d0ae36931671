#include "simsites/standin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "base/safetensors.h"

enum { NAME_BYTES = RP_ST_NAME_MAX + 160, STEPS_MAX = 16 };

/* A step keeps this share of a value and adds up to as much of a drawn one as is left. */
static const float KEPT = 0.875F;
/* What is left of momentum after a step, its part in a step, and the learning rate of a step. */
static const float DECAY = 0.5F, PUSH = 0.25F, RATE = 0.0625F;

static const char *const MOMENTUM = "optim.momentum.", *const DRIFT = "optim.drift.";

rp_err rp_standin_open(rp_arena *arena, const rp_model *model, uint64_t seed, rp_standin *out) {
    rp_err err;
    *out = (rp_standin){.seed = seed};
    RP_TRY(RP_ARENA_NEW(arena, (size_t)model->param_count + 1, &out->tensor));
    for (uint32_t p = 0; p < model->param_count; p++) {
        const rp_model_param *param = &model->param[p];
        if (param->owner != p || param->role == RP_PARAM_SCRATCH || param->count == 0) {
            continue;
        }
        rp_standin_tensor *tensor = &out->tensor[out->tensors++];
        *tensor = (rp_standin_tensor){.name = param->name,
                                      .first = out->values,
                                      .count = param->count < RP_STANDIN_VALUES_MAX
                                                   ? (uint32_t)param->count
                                                   : RP_STANDIN_VALUES_MAX,
                                      .is_statistic = param->role == RP_PARAM_STATE};
        out->values += tensor->count;
    }
fail:
    return err;
}

void rp_standin_begin(const rp_standin *standin, float *out) {
    rp_rng rng = rp_rng_named(standin->seed, "simsites/start");
    for (uint32_t j = 0; j < standin->values; j++) {
        out[j] = 2 * rp_rng_uniform(&rng) - 1;
    }
}

static uint64_t drawn_steps(uint64_t steps) {
    return steps < STEPS_MAX ? steps : STEPS_MAX;
}

double rp_standin_rates(uint64_t steps) {
    return (double)RATE * (double)drawn_steps(steps);
}

static void step_tensor(const rp_standin_tensor *tensor, const rp_standin_state *state,
                        rp_rng *rng) {
    for (uint32_t j = tensor->first; j < tensor->first + tensor->count; j++) {
        float change = (1 - KEPT) * (2 * rp_rng_uniform(rng) - 1);
        if (state->momentum && !tensor->is_statistic) {
            state->momentum[j] = DECAY * state->momentum[j] + change;
            change += PUSH * state->momentum[j];
        }
        if (state->drift && !tensor->is_statistic) {
            change += RATE * state->drift[j];
        }
        state->values[j] = KEPT * state->values[j] + change;
    }
}

void rp_standin_train(const rp_standin *standin, const char *site, uint64_t round, uint64_t steps,
                      const rp_standin_state *state) {
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "simsites/%.64s/%" PRIu64 "/%" PRIu64, site, round, steps);
    rp_rng rng = rp_rng_named(standin->seed, name);
    for (uint64_t step = 0; step < drawn_steps(steps); step++) {
        for (uint32_t t = 0; t < standin->tensors; t++) {
            step_tensor(&standin->tensor[t], state, &rng);
        }
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static rp_err write_values(const rp_standin *standin, rp_arena *arena, const char *path,
                           const float *values, const char *round) {
    const char *const meta[] = {"format", "pt", "round", round, NULL};
    rp_st_writer *writer = NULL;
    rp_st_entry *entry;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)standin->tensors + 1, &entry));
    for (uint32_t i = 0; i < standin->tensors; i++) {
        const rp_standin_tensor *tensor = &standin->tensor[i];
        entry[i] = (rp_st_entry){.name = tensor->name,
                                 .type = RP_ST_F32,
                                 .dims = 1,
                                 .dim = {tensor->count},
                                 .bytes = tensor->count * sizeof(float)};
    }
    RP_TRY(rp_st_create(arena, path, entry, standin->tensors, meta, true, &writer));
    for (uint32_t i = 0; i < standin->tensors; i++) {
        RP_TRY(
            rp_st_write(writer, i, 0, values + standin->tensor[i].first, (size_t)entry[i].bytes));
    }
    err = rp_st_commit(&writer);
fail:
    rp_st_abandon(&writer);
    return err;
}

rp_err rp_standin_write(const rp_standin *standin, const char *path, const float *values,
                        uint64_t round) {
    char number[24];
    rp_arena arena;
    (void)snprintf(number, sizeof number, "%" PRIu64, round);
    rp_arena_init(&arena, "stand-in", 0);
    const rp_err err = write_values(standin, &arena, path, values, number);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_standin_read(const rp_standin *standin, const char *path, float *out) {
    rp_arena arena;
    rp_st_reader *reader = NULL;
    rp_err err;
    rp_arena_init(&arena, "stand-in", 0);
    RP_TRY(rp_st_open(&arena, path, &reader));
    RP_TRY(rp_st_check_sums(reader));
    for (uint32_t i = 0; i < standin->tensors; i++) {
        const rp_standin_tensor *tensor = &standin->tensor[i];
        const uint64_t dim[] = {tensor->count};
        const float *values;
        RP_TRY(rp_st_need_f32(reader, tensor->name, 1, dim, &values));
        memcpy(out + tensor->first, values, tensor->count * sizeof *out);
    }
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

/* ---- files with states ----------------------------------------------------------------------- */

/* The states that a file may have, by the prefix of their names. */
typedef struct {
    const char *prefix;
    float *values; /* NULL: not in the file */
} part;

enum { PARTS = 3 };

static void list_parts(const rp_standin_state *state, part out[PARTS]) {
    out[0] = (part){"", state->values};
    out[1] = (part){MOMENTUM, state->momentum};
    out[2] = (part){DRIFT, state->drift};
}

/* Running statistics have weights only. */
static bool has_part(const part *of, const rp_standin_tensor *tensor) {
    return of->values && (of->prefix[0] == '\0' || !tensor->is_statistic);
}

static rp_err read_part(const rp_standin_tensor *tensor, const part *of, const rp_st_reader *file) {
    const uint64_t dim[] = {tensor->count};
    const float *values;
    char name[NAME_BYTES];
    rp_err err;
    (void)snprintf(name, sizeof name, "%s%s", of->prefix, tensor->name);
    if (of->prefix[0] && !rp_st_find(file, name)) {
        memset(of->values + tensor->first, 0, tensor->count * sizeof *of->values);
        return RP_OK;
    }
    RP_TRY(rp_st_need_f32(file, name, 1, dim, &values));
    memcpy(of->values + tensor->first, values, tensor->count * sizeof *values);
fail:
    return err;
}

rp_err rp_standin_read_start(const rp_standin *standin, const char *path,
                             const rp_standin_state *out) {
    part parts[PARTS];
    rp_arena arena;
    rp_st_reader *reader = NULL;
    rp_err err;
    list_parts(out, parts);
    rp_arena_init(&arena, "stand-in", 0);
    RP_TRY(rp_st_open(&arena, path, &reader));
    for (uint32_t i = 0; i < PARTS * standin->tensors; i++) {
        const rp_standin_tensor *tensor = &standin->tensor[i / PARTS];
        RP_TRY(has_part(&parts[i % PARTS], tensor) ? read_part(tensor, &parts[i % PARTS], reader)
                                                   : RP_OK);
    }
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

static rp_err list_trained(rp_arena *arena, const rp_standin *standin, const part parts[PARTS],
                           rp_st_entry *entry, const float **values, uint32_t *count) {
    rp_err err = RP_OK;
    *count = 0;
    for (uint32_t i = 0; i < PARTS * standin->tensors; i++) {
        const rp_standin_tensor *tensor = &standin->tensor[i / PARTS];
        const part *of = &parts[i % PARTS];
        char *name;
        if (!has_part(of, tensor)) {
            continue;
        }
        RP_TRY(rp_arena_printf(arena, &name, "%s%s", of->prefix, tensor->name));
        values[*count] = of->values + tensor->first;
        entry[(*count)++] = (rp_st_entry){.name = name,
                                          .type = RP_ST_F32,
                                          .dims = 1,
                                          .dim = {tensor->count},
                                          .bytes = tensor->count * sizeof(float)};
    }
fail:
    return err;
}

rp_err rp_standin_write_trained(const rp_standin *standin, const char *path,
                                const rp_standin_state *state) {
    static const char *const meta[] = {"format", "pt", NULL};
    part parts[PARTS];
    rp_arena arena;
    rp_st_writer *writer = NULL;
    rp_st_entry *entry;
    const float **values;
    uint32_t count;
    rp_err err;
    list_parts(state, parts);
    rp_arena_init(&arena, "stand-in", 0);
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)PARTS * standin->tensors + 1, &entry));
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)PARTS * standin->tensors + 1, &values));
    RP_TRY(list_trained(&arena, standin, parts, entry, values, &count));
    RP_TRY(rp_st_create(&arena, path, entry, count, meta, false, &writer));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(rp_st_write(writer, i, 0, values[i], (size_t)entry[i].bytes));
    }
    err = rp_st_commit(&writer);
fail:
    rp_st_abandon(&writer);
    rp_arena_finish(&arena);
    return err;
}
