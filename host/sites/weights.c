#include "sites/weights.h"

#include <math.h>

#include "base/safetensors.h"

typedef struct {
    rp_arena *arena;
    rp_st_reader *given, *trained;
    rp_st_writer *to;
    rp_st_entry *entry; /* of `to`, in the order of `given` */
    uint32_t count;
    const rp_round_rules *rules;
    double squares, scale; /* scale: of differences; 1: not clipped */
} work;

/* Does the tensor come from the run? */
static bool is_trained(const work *w, const rp_st_entry *given) {
    return rp_st_is_float(given->type) && !rp_site_keeps(w->rules, given->name) &&
           rp_st_find(w->trained, given->name);
}

static rp_err list_entries(rp_arena *arena, work *w) {
    rp_err err;
    w->count = rp_st_count(w->given);
    RP_TRY(RP_ARENA_NEW(arena, w->count + 1, &w->entry));
    for (uint32_t i = 0; i < w->count; i++) {
        const rp_st_entry *given = rp_st_entry_at(w->given, i);
        w->entry[i] = *given;
        if (is_trained(w, given)) {
            uint64_t elements = 1;
            for (uint32_t d = 0; d < given->dims; d++) {
                elements *= given->dim[d];
            }
            w->entry[i].type = RP_ST_F32;
            w->entry[i].bytes = elements * sizeof(float);
        }
    }
fail:
    return err;
}

typedef struct {
    const float *before, *after;
    size_t count;
} pair;

static rp_err need_pair(const work *w, uint32_t index, pair *out) {
    const rp_st_entry *entry = &w->entry[index];
    rp_err err;
    out->count = (size_t)(entry->bytes / sizeof(float));
    RP_TRY(rp_st_need_f32(w->given, entry->name, entry->dims, entry->dim, &out->before));
    RP_TRY(rp_st_need_f32(w->trained, entry->name, entry->dims, entry->dim, &out->after));
fail:
    return err;
}

static rp_err measure(work *w) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < w->count; i++) {
        pair of = {0};
        if (is_trained(w, rp_st_entry_at(w->given, i))) {
            RP_TRY(need_pair(w, i, &of));
        }
        for (size_t k = 0; k < of.count; k++) {
            const double difference = (double)of.after[k] - (double)of.before[k];
            w->squares += difference * difference;
        }
    }
fail:
    return err;
}

static rp_err write_trained(work *w, uint32_t index) {
    float *scaled;
    pair of;
    rp_err err;
    RP_TRY(need_pair(w, index, &of));
    if (w->scale < 1) {
        RP_TRY(RP_ARENA_NEW(w->arena, of.count + 1, &scaled));
        for (size_t k = 0; k < of.count; k++) {
            const double before = of.before[k];
            scaled[k] = (float)(before + w->scale * ((double)of.after[k] - before));
        }
        of.after = scaled;
    }
    err = rp_st_write(w->to, index, 0, of.after, of.count * sizeof(float));
fail:
    return err;
}

static rp_err write_tensor(work *w, uint32_t index) {
    const rp_st_entry *given = rp_st_entry_at(w->given, index);
    return is_trained(w, given)
               ? write_trained(w, index)
               : rp_st_write(w->to, index, 0, rp_st_data(w->given, given), (size_t)given->bytes);
}

rp_err rp_site_write_weights(rp_arena *arena, const char *given, const char *trained,
                             const char *to, const rp_round_rules *rules, rp_site_difference *out) {
    static const char *const meta[] = {"format", "pt", NULL};
    work w = {.arena = arena, .rules = rules, .scale = 1};
    rp_err err;
    RP_TRY(rp_st_open(arena, given, &w.given));
    RP_TRY(rp_st_open(arena, trained, &w.trained));
    RP_TRY(list_entries(arena, &w));
    RP_TRY(measure(&w));
    out->norm = sqrt(w.squares);
    out->clipped = rules->clip > 0 && out->norm > rules->clip;
    w.scale = out->clipped ? rules->clip / out->norm : 1;
    RP_TRY(rp_st_create(arena, to, w.entry, w.count, meta, false, &w.to));
    for (uint32_t i = 0; i < w.count; i++) {
        RP_TRY(write_tensor(&w, i));
    }
    RP_TRY(rp_st_commit(&w.to));
fail:
    rp_st_abandon(&w.to);
    rp_st_close(&w.trained);
    rp_st_close(&w.given);
    return err;
}
