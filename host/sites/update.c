#include "sites/update.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = RP_ST_NAME_MAX + 1 };

typedef enum { STAYS, PLAIN, CODED } way; /* how a tensor leaves a site */

typedef struct {
    const rp_update_facts *facts;
    rp_arena *arena;
    rp_st_reader *given, *trained, *start, *update;
    rp_st_writer *to, *errors;
    rp_st_entry *entry, *error; /* of `to` and of `errors` */
    uint32_t count, error_count;
    double squares;
} work;

/* ---- tensors --------------------------------------------------------------------------------- */

static const rp_model_param *find_param(const rp_model *model, const char *name) {
    for (uint32_t p = 0; p < model->param_count; p++) {
        const rp_model_param *param = &model->param[p];
        if (param->owner == p && param->role != RP_PARAM_SCRATCH &&
            strcmp(param->name, name) == 0) {
            return param;
        }
    }
    return NULL;
}

static way way_of_param(const rp_round_rules *rules, const rp_model_param *param) {
    return !param || rp_site_keeps(rules, param->name) ? STAYS
           : param->role == RP_PARAM_STATE             ? PLAIN
                                                       : CODED;
}

static way way_of(const work *w, const rp_st_entry *given) {
    const rp_update_facts *facts = w->facts;
    return rp_st_is_float(given->type)
               ? way_of_param(facts->rules, find_param(facts->model, given->name))
               : STAYS;
}

static size_t element_count(const rp_st_entry *entry) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < entry->dims; d++) {
        count *= entry->dim[d];
    }
    return (size_t)count;
}

static rp_st_entry as_f32(const rp_st_entry *like) {
    rp_st_entry entry = *like;
    entry.type = RP_ST_F32;
    entry.bytes = element_count(like) * sizeof(float);
    return entry;
}

static rp_st_entry as_bytes(const work *w, const rp_st_entry *like) {
    const uint64_t bytes = rp_delta_bytes(&w->facts->rules->delta, element_count(like));
    return (rp_st_entry){
        .name = like->name, .type = RP_ST_U8, .dims = 1, .dim = {bytes}, .bytes = bytes};
}

static rp_err need(const rp_st_reader *reader, const rp_st_entry *like, const float **out) {
    return rp_st_need_f32(reader, like->name, like->dims, like->dim, out);
}

uint64_t rp_update_bytes(const rp_round_rules *rules, const rp_model *model) {
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < model->param_count; p++) {
        const rp_model_param *param = find_param(model, model->param[p].name);
        const way leaves = way_of_param(rules, param);
        const bool whole = rules->delta.kind == RP_DELTA_NONE;
        if (!param || param != &model->param[p]) {
            continue;
        }
        bytes += whole || leaves == PLAIN ? param->count * sizeof(float)
                 : leaves == CODED        ? rp_delta_bytes(&rules->delta, param->count)
                                          : 0;
    }
    return bytes;
}

/* ---- writing --------------------------------------------------------------------------------- */

static rp_err list_sent(work *w) {
    const uint32_t count = rp_st_count(w->given);
    rp_err err;
    RP_TRY(RP_ARENA_NEW(w->arena, (size_t)count + 1, &w->entry));
    RP_TRY(RP_ARENA_NEW(w->arena, (size_t)count + 1, &w->error));
    for (uint32_t i = 0; i < count; i++) {
        const rp_st_entry *given = rp_st_entry_at(w->given, i);
        const way leaves = way_of(w, given);
        if (leaves == CODED) {
            w->error[w->error_count++] = as_f32(given);
        }
        if (leaves != STAYS) {
            w->entry[w->count++] = leaves == CODED ? as_bytes(w, given) : as_f32(given);
        }
    }
fail:
    return err;
}

static rp_err create_update(work *w, const rp_update_files *files) {
    static const char *const plain[] = {"format", "pt", NULL};
    char codec[RP_DELTA_TEXT];
    const char *const meta[] = {"codec", codec, "in", w->facts->digest, NULL};
    rp_err err;
    rp_delta_print(&w->facts->rules->delta, codec);
    RP_TRY(rp_st_create(w->arena, files->update, w->entry, w->count, meta, false, &w->to));
    err = rp_st_create(w->arena, files->errors, w->error, w->error_count, plain, true, &w->errors);
fail:
    return err;
}

/* e of the round before; *out NULL: zeros. */
static rp_err find_error(const work *w, const rp_st_entry *like, const float **out) {
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s%s", RP_UPDATE_ERROR, like->name);
    *out = NULL;
    return rp_st_find(w->start, name) ? rp_st_need_f32(w->start, name, like->dims, like->dim, out)
                                      : RP_OK;
}

typedef struct {
    const float *x, *y, *e; /* e NULL: zeros */
    size_t count;
} triple;

static rp_err add_difference(const work *w, const char *name, const triple *of, float *sum) {
    for (size_t k = 0; k < of->count; k++) {
        const double before = of->e ? (double)of->e[k] : 0;
        sum[k] = (float)(before + ((double)of->y[k] - (double)of->x[k]));
        if (!isfinite(sum[k])) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: tensor '%s': its difference from the trained weights is not "
                           "finite at value %zu",
                           w->facts->given, name, k);
        }
    }
    return RP_OK;
}

/* Codes one tensor; `arena` is for the time of the call. */
static rp_err write_coded(work *w, rp_arena *arena, uint32_t index, uint32_t error,
                          const triple *of) {
    const rp_delta *delta = &w->facts->rules->delta;
    const size_t bytes = (size_t)w->entry[index].bytes;
    const char *name = w->entry[index].name;
    uint8_t *code;
    float *sum;
    float *sent;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, bytes + 1, &code));
    RP_TRY(RP_ARENA_NEW(arena, of->count + 1, &sum));
    RP_TRY(RP_ARENA_NEW(arena, of->count + 1, &sent));
    RP_TRY(add_difference(w, name, of, sum));
    rp_delta_encode(delta, sum, of->count, code);
    const char *wrong = rp_delta_decode(delta, code, of->count, sent);
    if (wrong) {
        RP_TRY(rp_fail(RP_ERR_FORMAT, "%s: tensor '%s': its difference cannot be coded: %s",
                       w->facts->given, name, wrong));
    }
    for (size_t k = 0; k < of->count; k++) {
        sum[k] = (float)((double)sum[k] - (double)sent[k]);
    }
    RP_TRY(rp_st_write(w->to, index, 0, code, bytes));
    err = rp_st_write(w->errors, error, 0, sum, of->count * sizeof(float));
fail:
    return err;
}

static rp_err write_tensor(work *w, const rp_st_entry *given, uint32_t index, uint32_t error) {
    triple of = {.count = element_count(given)};
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "update", 0);
    RP_TRY(need(w->given, given, &of.x));
    RP_TRY(need(w->trained, given, &of.y));
    for (size_t k = 0; k < of.count; k++) {
        const double difference = (double)of.y[k] - (double)of.x[k];
        w->squares += difference * difference;
    }
    if (way_of(w, given) == PLAIN) {
        RP_TRY(rp_st_write(w->to, index, 0, of.y, of.count * sizeof(float)));
    } else {
        RP_TRY(find_error(w, given, &of.e));
        RP_TRY(write_coded(w, &arena, index, error, &of));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

static rp_err write_tensors(work *w) {
    uint32_t index = 0;
    uint32_t error = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < rp_st_count(w->given); i++) {
        const rp_st_entry *given = rp_st_entry_at(w->given, i);
        const way leaves = way_of(w, given);
        if (leaves != STAYS) {
            RP_TRY(write_tensor(w, given, index, error));
            index++;
            error += leaves == CODED;
        }
    }
fail:
    return err;
}

static void close_files(work *w) {
    rp_st_abandon(&w->to);
    rp_st_abandon(&w->errors);
    rp_st_close(&w->update);
    rp_st_close(&w->start);
    rp_st_close(&w->trained);
    rp_st_close(&w->given);
}

rp_err rp_update_write(rp_arena *arena, const rp_update_facts *facts, const rp_update_files *files,
                       rp_site_difference *out) {
    work w = {.facts = facts, .arena = arena};
    rp_err err;
    RP_ASSERT(facts->rules->delta.kind != RP_DELTA_NONE);
    RP_TRY(rp_st_open(arena, facts->given, &w.given));
    RP_TRY(rp_st_open(arena, files->trained, &w.trained));
    RP_TRY(rp_st_open(arena, files->start, &w.start));
    RP_TRY(list_sent(&w));
    RP_TRY(create_update(&w, files));
    RP_TRY(write_tensors(&w));
    *out = (rp_site_difference){.norm = sqrt(w.squares)};
    RP_TRY(rp_st_commit(&w.errors));
    err = rp_st_commit(&w.to);
fail:
    close_files(&w);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

static rp_err check_meta(const work *w, const char *path, const char *key, const char *want) {
    const char *text = rp_st_meta(w->update, key);
    return text && strcmp(text, want) == 0
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: metadata '%s' is '%.100s', expected '%s'", path, key,
                         text ? text : "", want);
}

static rp_err check_entry(const work *w, const char *path, const rp_st_entry *given) {
    const rp_st_entry want = as_bytes(w, given);
    const rp_st_entry *found = rp_st_find(w->update, given->name);
    return found && found->type == RP_ST_U8 && found->dims == 1 && found->bytes == want.bytes
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: tensor '%s': expected %llu bytes as U8", path,
                         given->name, (unsigned long long)want.bytes);
}

/* The tensors are those that leave a site, and no other. Running statistics are checked when they
 * are read. */
static rp_err check_update(const work *w, const char *path) {
    char codec[RP_DELTA_TEXT];
    uint32_t sent = 0;
    rp_err err;
    rp_delta_print(&w->facts->rules->delta, codec);
    RP_TRY(check_meta(w, path, "codec", codec));
    RP_TRY(check_meta(w, path, "in", w->facts->digest));
    for (uint32_t i = 0; i < rp_st_count(w->given); i++) {
        const rp_st_entry *given = rp_st_entry_at(w->given, i);
        const way leaves = way_of(w, given);
        sent += leaves != STAYS;
        RP_TRY(leaves == CODED ? check_entry(w, path, given) : RP_OK);
    }
    return rp_st_count(w->update) == sent
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: has %u tensors, expected %u", path,
                         rp_st_count(w->update), sent);
fail:
    return err;
}

static rp_err list_whole(work *w) {
    rp_err err;
    w->count = rp_st_count(w->given);
    RP_TRY(RP_ARENA_NEW(w->arena, (size_t)w->count + 1, &w->entry));
    for (uint32_t i = 0; i < w->count; i++) {
        const rp_st_entry *given = rp_st_entry_at(w->given, i);
        w->entry[i] = way_of(w, given) == STAYS ? *given : as_f32(given);
    }
fail:
    return err;
}

static rp_err read_coded(work *w, rp_arena *arena, uint32_t index, const char *path) {
    const rp_st_entry *given = rp_st_entry_at(w->given, index);
    const uint8_t *code = rp_st_data(w->update, rp_st_find(w->update, given->name));
    const size_t count = element_count(given);
    const float *x;
    float *y;
    rp_err err;
    RP_TRY(need(w->given, given, &x));
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &y));
    const char *wrong = rp_delta_decode(&w->facts->rules->delta, code, count, y);
    for (size_t k = 0; k < count && !wrong; k++) {
        y[k] = (float)((double)x[k] + (double)y[k]);
        wrong = isfinite(y[k]) ? NULL : "a weight would not be finite";
    }
    if (wrong) {
        RP_TRY(rp_fail(RP_ERR_FORMAT, "%s: tensor '%s': %s", path, given->name, wrong));
    }
    err = rp_st_write(w->to, index, 0, y, count * sizeof(float));
fail:
    return err;
}

static rp_err read_tensor(work *w, uint32_t index, const char *path) {
    const rp_st_entry *given = rp_st_entry_at(w->given, index);
    const float *value;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "update", 0);
    switch (way_of(w, given)) {
    case CODED:
        err = read_coded(w, &arena, index, path);
        break;
    case PLAIN:
        RP_TRY(need(w->update, given, &value));
        err = rp_st_write(w->to, index, 0, value, element_count(given) * sizeof(float));
        break;
    default:
        err = rp_st_write(w->to, index, 0, rp_st_data(w->given, given), (size_t)given->bytes);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_update_read(rp_arena *arena, const rp_update_facts *facts, const char *update,
                      const char *to) {
    static const char *const meta[] = {"format", "pt", NULL};
    work w = {.facts = facts, .arena = arena};
    rp_err err;
    RP_ASSERT(facts->rules->delta.kind != RP_DELTA_NONE);
    RP_TRY(rp_st_open(arena, facts->given, &w.given));
    RP_TRY(rp_st_open(arena, update, &w.update));
    RP_TRY(check_update(&w, update));
    RP_TRY(list_whole(&w));
    RP_TRY(rp_st_create(arena, to, w.entry, w.count, meta, true, &w.to));
    for (uint32_t i = 0; i < w.count; i++) {
        RP_TRY(read_tensor(&w, i, update));
    }
    err = rp_st_commit(&w.to);
fail:
    close_files(&w);
    return err;
}
