#include "federation/center.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/safetensors.h"
#include "run/patterns.h"

enum { PIECE = 4096, NAME_BYTES = RP_ST_NAME_MAX + 8 };

typedef struct {
    const rp_center_round *round;
    rp_arena arena;
    rp_rule_round rule;
    rp_st_reader *center, *state, **from; /* from: [count] */
    rp_st_writer *next, *next_state, **moved;
    rp_st_entry *entry; /* [entries] of the next centre, in the order of the centre */
    uint32_t entries;
    rp_st_entry *kept; /* [kept_count] of the next state */
    uint32_t kept_count;
    double *x, *m, *v, *out, *column; /* [PIECE]; column: [count] */
    double **y, **to;                 /* [count][PIECE] */
    float *single;                    /* [PIECE] */
} work;

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err open_sources(work *w, uint32_t *bad) {
    const rp_center_round *round = w->round;
    rp_err err;
    for (uint32_t i = 0; i < round->count; i++) {
        *bad = i;
        RP_TRY(rp_st_open(&w->arena, round->member[i].weights, &w->from[i]));
        RP_TRY(rp_st_check_sums(w->from[i]));
    }
    *bad = round->count;
    RP_TRY(rp_st_open(&w->arena, round->center, &w->center));
    RP_TRY(rp_st_check_sums(w->center));
    if (round->state) {
        RP_TRY(rp_st_open(&w->arena, round->state, &w->state));
        RP_TRY(rp_st_check_sums(w->state));
    }
fail:
    return err;
}

static rp_err take_weights(work *w) {
    const rp_center_round *round = w->round;
    rp_rule_member *member;
    double all = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&w->arena, round->count, &member));
    for (uint32_t i = 0; i < round->count; i++) {
        all += round->rule->equal ? 1 : round->member[i].samples;
    }
    for (uint32_t i = 0; i < round->count; i++) {
        member[i].weight = (round->rule->equal ? 1 : round->member[i].samples) / all;
        member[i].steps = round->member[i].steps;
    }
    w->rule =
        (rp_rule_round){.rule = round->rule, .member = member, .count = round->count, .update = 1};
fail:
    return err;
}

static rp_err new_pieces(work *w, double ***out) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&w->arena, w->round->count, out));
    for (uint32_t i = 0; i < w->round->count; i++) {
        RP_TRY(RP_ARENA_NEW(&w->arena, PIECE, &(*out)[i]));
    }
fail:
    return err;
}

static rp_err make_room(work *w) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&w->arena, w->round->count, &w->from));
    RP_TRY(RP_ARENA_NEW(&w->arena, w->round->count, &w->moved));
    RP_TRY(RP_ARENA_NEW(&w->arena, w->round->count, &w->column));
    RP_TRY(RP_ARENA_NEW(&w->arena, PIECE, &w->x));
    RP_TRY(RP_ARENA_NEW(&w->arena, PIECE, &w->m));
    RP_TRY(RP_ARENA_NEW(&w->arena, PIECE, &w->v));
    RP_TRY(RP_ARENA_NEW(&w->arena, PIECE, &w->out));
    RP_TRY(RP_ARENA_NEW(&w->arena, PIECE, &w->single));
    RP_TRY(new_pieces(w, &w->y));
    RP_TRY(new_pieces(w, &w->to));
fail:
    return err;
}

static bool is_statistic(const rp_model *model, const char *name) {
    for (uint32_t p = 0; p < model->param_count; p++) {
        if (strcmp(model->param[p].name, name) == 0) {
            return model->param[p].role == RP_PARAM_STATE;
        }
    }
    return false;
}

static bool is_averaged(const work *w, const rp_st_entry *entry) {
    return rp_st_is_float(entry->type) && !rp_patterns_fit(w->round->keep, entry->name);
}

static uint64_t element_count(const rp_st_entry *entry) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < entry->dims; d++) {
        count *= entry->dim[d];
    }
    return count;
}

/* Adds the server's tensor `prefix` of an entry of the centre. */
static rp_err keep_state(work *w, const rp_st_entry *of, const char *prefix) {
    char *name;
    rp_err err;
    RP_TRY(rp_arena_printf(&w->arena, &name, "%s.%s", prefix, of->name));
    w->kept[w->kept_count] = *of;
    w->kept[w->kept_count].name = name;
    w->kept[w->kept_count].type = RP_ST_F64;
    w->kept[w->kept_count].bytes = element_count(of) * sizeof(double);
    w->kept_count++;
fail:
    return err;
}

static rp_err list_entries(work *w) {
    const rp_rule *rule = w->round->rule;
    const uint32_t count = rp_st_count(w->center);
    rp_err err;
    w->entries = count;
    RP_TRY(RP_ARENA_NEW(&w->arena, count + 1, &w->entry));
    RP_TRY(RP_ARENA_NEW(&w->arena, 2 * (size_t)count + 1, &w->kept));
    for (uint32_t i = 0; i < count; i++) {
        rp_st_entry *entry = &w->entry[i];
        *entry = *rp_st_entry_at(w->center, i);
        if (!is_averaged(w, entry)) {
            continue;
        }
        entry->type = RP_ST_F32;
        entry->bytes = element_count(entry) * sizeof(float);
        if (!is_statistic(w->round->model, entry->name)) {
            RP_TRY(rp_rule_has_m(rule) ? keep_state(w, entry, "m") : RP_OK);
            RP_TRY(rp_rule_has_v(rule) ? keep_state(w, entry, "v") : RP_OK);
        }
    }
fail:
    return err;
}

/* The number of this update follows from the state, which counts them. */
static rp_err read_update(work *w) {
    const char *text = w->state ? rp_st_meta(w->state, "updates") : "0";
    uint64_t updates;
    char rest;
    if (!text || sscanf(text, "%" SCNu64 "%c", &updates, &rest) != 1 || updates > UINT32_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: expected the number of updates in its metadata",
                       w->round->state);
    }
    w->rule.update = updates + 1;
    return RP_OK;
}

static rp_err create_files(work *w) {
    const rp_center_round *round = w->round;
    char *number;
    char *updates;
    rp_err err;
    RP_TRY(rp_arena_printf(&w->arena, &number, "%" PRIu64, round->round));
    RP_TRY(rp_arena_printf(&w->arena, &updates, "%" PRIu64, w->rule.update));
    const char *const meta[] = {"format", "pt", "round", number, NULL};
    const char *const state[] = {"round", number, "updates", updates, NULL};
    RP_TRY(rp_st_create(&w->arena, round->next, w->entry, w->entries, meta, true, &w->next));
    for (uint32_t i = 0; i < round->count && rp_rule_moves_sites(round->rule->kind); i++) {
        RP_TRY(rp_st_create(&w->arena, round->member[i].moved, w->entry, w->entries, meta, true,
                            &w->moved[i]));
    }
    if (rp_rule_has_v(round->rule)) {
        RP_TRY(rp_st_create(&w->arena, round->next_state, w->kept, w->kept_count, state, true,
                            &w->next_state));
    }
fail:
    return err;
}

/* ---- a tensor -------------------------------------------------------------------------------- */

static void widen(const float *from, size_t count, double *to) {
    for (size_t j = 0; j < count; j++) {
        to[j] = (double)from[j];
    }
}

/* Finds the server's tensor of an entry in the old and the new state. *old NULL: no state yet. */
static rp_err find_state(const work *w, const rp_st_entry *entry, const char *prefix,
                         const char **old, uint32_t *index) {
    char name[NAME_BYTES];
    const rp_st_entry *stored;
    (void)snprintf(name, sizeof name, "%s.%s", prefix, entry->name);
    for (*index = 0; strcmp(w->kept[*index].name, name) != 0; ++*index) {
        RP_ASSERT(*index + 1 < w->kept_count);
    }
    *old = NULL;
    if (!w->state) {
        return RP_OK;
    }
    stored = rp_st_find(w->state, name);
    if (!stored || stored->type != RP_ST_F64 || stored->bytes != w->kept[*index].bytes) {
        return rp_fail(RP_ERR_FORMAT, "%s: tensor '%s': expected %" PRIu64 " bytes as F64",
                       w->round->state, name, w->kept[*index].bytes);
    }
    *old = rp_st_data(w->state, stored);
    return RP_OK;
}

/* One of the server's tensors while the pieces of an entry pass. */
typedef struct {
    const char *old; /* its bytes before; NULL: zeros */
    uint32_t index;  /* in the new state */
    double *piece;   /* NULL: the rule has no such state */
} server;

static void load_state(const server *s, size_t first, size_t count) {
    if (s->piece && s->old) {
        memcpy(s->piece, s->old + first * sizeof(double), count * sizeof(double));
    } else if (s->piece) {
        memset(s->piece, 0, count * sizeof(double));
    }
}

static rp_err store_state(const work *w, const server *s, size_t first, size_t count) {
    return s->piece ? rp_st_write(w->next_state, s->index, first * sizeof(double), s->piece,
                                  count * sizeof(double))
                    : RP_OK;
}

static rp_err store_values(const work *w, rp_st_writer *to, uint32_t index, size_t first,
                           const double *values, size_t count) {
    for (size_t j = 0; j < count; j++) {
        w->single[j] = (float)values[j];
        if (!isfinite(w->single[j])) {
            return rp_fail(RP_ERR_NUMERIC,
                           "rule %s: value %zu of tensor '%s' of the next centre is not finite",
                           rp_rule_name(w->round->rule->kind), first + j, w->entry[index].name);
        }
    }
    return rp_st_write(to, index, first * sizeof(float), w->single, count * sizeof(float));
}

static rp_err store_piece(const work *w, uint32_t index, size_t first, size_t count) {
    rp_err err;
    RP_TRY(store_values(w, w->next, index, first, w->out, count));
    for (uint32_t i = 0; i < w->round->count && w->moved[i]; i++) {
        RP_TRY(store_values(w, w->moved[i], index, first, w->to[i], count));
    }
fail:
    return err;
}

static rp_err pass_pieces(work *w, uint32_t index, const float *x, const float *const *y,
                          const server *m, const server *v) {
    const size_t all = (size_t)(w->entry[index].bytes / sizeof(float));
    rp_rule_values values = {.x = w->x,
                             .y = (const double *const *)w->y,
                             .m = m->piece,
                             .v = v->piece,
                             .moved = w->to,
                             .column = w->column,
                             .next = w->out,
                             .is_statistic = is_statistic(w->round->model, w->entry[index].name)};
    rp_err err = RP_OK;
    for (size_t first = 0; first < all; first += PIECE) {
        values.count = all - first < PIECE ? all - first : PIECE;
        widen(x + first, values.count, w->x);
        for (uint32_t i = 0; i < w->round->count; i++) {
            widen(y[i] + first, values.count, w->y[i]);
        }
        load_state(m, first, values.count);
        load_state(v, first, values.count);
        rp_rule_apply(&w->rule, &values);
        RP_TRY(store_piece(w, index, first, values.count));
        RP_TRY(store_state(w, m, first, values.count));
        RP_TRY(store_state(w, v, first, values.count));
    }
fail:
    return err;
}

static rp_err average_tensor(work *w, uint32_t index, const float **y, uint32_t *bad) {
    const rp_st_entry *entry = &w->entry[index];
    const bool has_state = !is_statistic(w->round->model, entry->name);
    server m = {0};
    server v = {0};
    const float *x;
    rp_err err;
    for (uint32_t i = 0; i < w->round->count; i++) {
        *bad = i;
        RP_TRY(rp_st_need_f32(w->from[i], entry->name, entry->dims, entry->dim, &y[i]));
    }
    *bad = w->round->count;
    RP_TRY(rp_st_need_f32(w->center, entry->name, entry->dims, entry->dim, &x));
    if (has_state && rp_rule_has_m(w->round->rule)) {
        m.piece = w->m;
        RP_TRY(find_state(w, entry, "m", &m.old, &m.index));
    }
    if (has_state && rp_rule_has_v(w->round->rule)) {
        v.piece = w->v;
        RP_TRY(find_state(w, entry, "v", &v.old, &v.index));
    }
    RP_TRY(pass_pieces(w, index, x, y, &m, &v));
fail:
    return err;
}

/* A tensor of integers, or one that sites keep. */
static rp_err copy_tensor(const work *w, uint32_t index) {
    const rp_st_entry *entry = rp_st_entry_at(w->center, index);
    const void *bytes = rp_st_data(w->center, entry);
    rp_err err;
    RP_TRY(rp_st_write(w->next, index, 0, bytes, (size_t)entry->bytes));
    for (uint32_t i = 0; i < w->round->count && w->moved[i]; i++) {
        RP_TRY(rp_st_write(w->moved[i], index, 0, bytes, (size_t)entry->bytes));
    }
fail:
    return err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static rp_err commit_files(work *w) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < w->round->count && w->moved[i]; i++) {
        RP_TRY(rp_st_commit(&w->moved[i]));
    }
    RP_TRY(w->next_state ? rp_st_commit(&w->next_state) : RP_OK);
    RP_TRY(rp_st_commit(&w->next));
fail:
    return err;
}

static rp_err take_digest(work *w, char digest[RP_CENTER_DIGEST]) {
    rp_st_reader *reader = NULL;
    rp_err err;
    RP_TRY(rp_st_open(&w->arena, w->round->next, &reader));
    (void)snprintf(digest, RP_CENTER_DIGEST, "%s", rp_st_sum(reader));
fail:
    rp_st_close(&reader);
    return err;
}

static rp_err write_files(work *w, char digest[RP_CENTER_DIGEST], uint32_t *bad) {
    const float **y;
    rp_err err;
    RP_TRY(make_room(w));
    RP_TRY(RP_ARENA_NEW(&w->arena, w->round->count, &y));
    RP_TRY(open_sources(w, bad));
    RP_TRY(take_weights(w));
    RP_TRY(read_update(w));
    RP_TRY(list_entries(w));
    RP_TRY(create_files(w));
    for (uint32_t i = 0; i < w->entries; i++) {
        RP_TRY(is_averaged(w, rp_st_entry_at(w->center, i)) ? average_tensor(w, i, y, bad)
                                                            : copy_tensor(w, i));
    }
    RP_TRY(commit_files(w));
    err = take_digest(w, digest);
fail:
    return err;
}

static void close_files(work *w) {
    for (uint32_t i = 0; i < w->round->count; i++) {
        if (w->from) {
            rp_st_close(&w->from[i]);
        }
        if (w->moved) {
            rp_st_abandon(&w->moved[i]);
        }
    }
    rp_st_close(&w->center);
    rp_st_close(&w->state);
    rp_st_abandon(&w->next);
    rp_st_abandon(&w->next_state);
}

rp_err rp_center_make(const rp_center_round *round, char digest[RP_CENTER_DIGEST], uint32_t *bad) {
    work w = {.round = round};
    *bad = round->count;
    RP_ASSERT(round->count > 0 && round->count <= RP_FEDERATED_MEMBERS_MAX);
    rp_arena_init(&w.arena, "centre", 0);
    const rp_err err = write_files(&w, digest, bad);
    close_files(&w);
    rp_arena_finish(&w.arena);
    return err;
}
