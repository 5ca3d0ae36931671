#include "simsites/standin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "base/safetensors.h"

enum { NAME_BYTES = 160, STEPS_MAX = 16 };

/* A step keeps this share of a value and adds up to as much of a drawn one as is left. */
static const float KEPT = 0.875F;

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

void rp_standin_train(const rp_standin *standin, const char *site, uint64_t round, uint64_t steps,
                      float *values) {
    char name[NAME_BYTES];
    const uint64_t drawn = steps < STEPS_MAX ? steps : STEPS_MAX;
    (void)snprintf(name, sizeof name, "simsites/%.64s/%" PRIu64 "/%" PRIu64, site, round, steps);
    rp_rng rng = rp_rng_named(standin->seed, name);
    for (uint64_t step = 0; step < drawn; step++) {
        for (uint32_t j = 0; j < standin->values; j++) {
            values[j] = KEPT * values[j] + (1 - KEPT) * (2 * rp_rng_uniform(&rng) - 1);
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
