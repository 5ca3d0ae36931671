#include "lanes/average.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/safetensors.h"

enum { PIECE = 16384, META_MAX = 96 };

/* The files of a member. */
typedef struct {
    rp_st_reader *from;
    rp_st_writer *to;
    double alpha;
} member;

typedef struct {
    rp_arena arena;
    rp_st_reader *center; /* NULL: no centre yet */
    rp_st_writer *next;
    rp_st_entry *entry; /* entries of the centre, or of the first one */
    uint32_t entries;
    member member[RP_AVERAGE_MEMBERS_MAX];
    uint32_t count;
    float z[PIECE], x[RP_AVERAGE_MEMBERS_MAX][PIECE];
} work;

static bool is_averaged(const char *name) {
    return strncmp(name, "optim.", strlen("optim.")) != 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err open_whole(work *w, const char *path, rp_st_reader **out) {
    rp_err err;
    RP_TRY(rp_st_open(&w->arena, path, out));
    err = rp_st_check_sums(*out);
fail:
    return err;
}

/* In the order of the first member's file. */
static rp_err list_entries(work *w) {
    const rp_st_reader *from = w->center ? w->center : w->member[0].from;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&w->arena, rp_st_count(from) + 1, &w->entry));
    for (uint32_t i = 0; i < rp_st_count(from); i++) {
        if (is_averaged(rp_st_entry_at(from, i)->name)) {
            w->entry[w->entries++] = *rp_st_entry_at(from, i);
        }
    }
fail:
    return err;
}

/* Copies the metadata except the checksums, which the writer computes, and the round. */
static rp_err make_meta(const rp_st_reader *from, const char *round, const char **meta) {
    const char *key;
    const char *value;
    uint32_t used = 0;
    for (uint32_t i = 0; rp_st_meta_at(from, i, &key, &value); i++) {
        if (used + 4 >= META_MAX) {
            return rp_fail(RP_ERR_FORMAT, "a checkpoint has more than %d metadata", META_MAX / 2);
        }
        if (strncmp(key, "xxh3", 4) != 0 && strcmp(key, "round") != 0) {
            meta[used++] = key;
            meta[used++] = value;
        }
    }
    meta[used++] = "round";
    meta[used++] = round;
    meta[used] = NULL;
    return RP_OK;
}

/* Opens the lane's checkpoint; the averaged file is created later. */
static rp_err open_member(work *w, const rp_average_member *of, member *to) {
    to->alpha = of->alpha;
    return open_whole(w, of->from, &to->from);
}

static rp_err make_member(work *w, const rp_average_member *of, const char *round, member *to) {
    const char *meta[META_MAX];
    rp_st_entry *entry;
    rp_err err;
    RP_TRY(make_meta(to->from, round, meta));
    const uint32_t count = rp_st_count(to->from);
    RP_TRY(RP_ARENA_NEW(&w->arena, count + 1, &entry));
    for (uint32_t i = 0; i < count; i++) {
        entry[i] = *rp_st_entry_at(to->from, i);
    }
    err = rp_st_create(&w->arena, of->to, entry, count, meta, true, &to->to);
fail:
    return err;
}

static rp_err open_files(work *w, const rp_average *average, uint32_t *bad) {
    const char *meta[] = {"format", "pt", "round", NULL, NULL};
    char *round;
    rp_err err;
    RP_TRY(rp_arena_printf(&w->arena, &round, "%" PRIu64, average->round));
    meta[3] = round;
    for (uint32_t i = 0; i < average->count; i++) {
        *bad = i;
        w->count++;
        RP_TRY(open_member(w, &average->member[i], &w->member[i]));
    }
    for (uint32_t i = 0; i < average->count; i++) {
        err = make_member(w, &average->member[i], round, &w->member[i]);
        *bad = err == RP_ERR_IO ? average->count : i;
        RP_TRY(err);
    }
    *bad = average->count;
    if (average->center) {
        RP_TRY(open_whole(w, average->center, &w->center));
    }
    RP_TRY(list_entries(w));
    err = rp_st_create(&w->arena, average->next, w->entry, w->entries, meta, true, &w->next);
fail:
    return err;
}

/* ---- a tensor -------------------------------------------------------------------------------- */

/* Averages values [0, count) of w->x and, if there is a centre, of w->z. */
static void average_values(work *w, size_t count, bool begins) {
    for (size_t j = 0; j < count; j++) {
        double mean = 0;
        for (uint32_t i = 0; i < w->count; i++) {
            mean += (double)w->x[i][j];
        }
        const double z = begins ? (double)(float)(mean / w->count) : (double)w->z[j];
        double moved = z;
        for (uint32_t i = 0; i < w->count; i++) {
            const double pull = w->member[i].alpha * ((double)w->x[i][j] - z);
            moved += pull;
            w->x[i][j] = (float)((double)w->x[i][j] - pull);
        }
        w->z[j] = (float)moved;
    }
}

static uint32_t index_of(const rp_st_reader *reader, const char *name) {
    uint32_t i = 0;
    while (i < rp_st_count(reader) && strcmp(rp_st_entry_at(reader, i)->name, name) != 0) {
        i++;
    }
    return i;
}

static rp_err average_tensor(work *w, uint32_t index, uint32_t *bad) {
    const rp_st_entry *entry = &w->entry[index];
    const size_t all = (size_t)(entry->bytes / sizeof(float));
    const uint32_t none = w->count;
    const float *x[RP_AVERAGE_MEMBERS_MAX];
    const float *z = NULL;
    rp_err err;
    for (uint32_t i = 0; i < w->count; i++) {
        *bad = i;
        RP_TRY(rp_st_need_f32(w->member[i].from, entry->name, entry->dims, entry->dim, &x[i]));
    }
    *bad = none;
    if (w->center) {
        RP_TRY(rp_st_need_f32(w->center, entry->name, entry->dims, entry->dim, &z));
    }
    for (size_t first = 0; first < all; first += PIECE) {
        const size_t count = all - first < PIECE ? all - first : PIECE;
        const size_t bytes = count * sizeof(float);
        for (uint32_t i = 0; i < w->count; i++) {
            memcpy(w->x[i], x[i] + first, bytes);
        }
        if (z) {
            memcpy(w->z, z + first, bytes);
        }
        average_values(w, count, !z);
        for (uint32_t i = 0; i < w->count; i++) {
            RP_TRY(rp_st_write(w->member[i].to, index_of(w->member[i].from, entry->name),
                               first * sizeof(float), w->x[i], bytes));
        }
        RP_TRY(rp_st_write(w->next, index, first * sizeof(float), w->z, bytes));
    }
fail:
    return err;
}

/* Copies the tensors that are each lane's own. */
static rp_err copy_rest(const member *m) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < rp_st_count(m->from); i++) {
        const rp_st_entry *entry = rp_st_entry_at(m->from, i);
        if (!is_averaged(entry->name)) {
            RP_TRY(rp_st_write(m->to, i, 0, rp_st_data(m->from, entry), (size_t)entry->bytes));
        }
    }
fail:
    return err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static rp_err check_alphas(const rp_average *average) {
    double sum = 0;
    bool good = average->count > 0 && average->count <= RP_AVERAGE_MEMBERS_MAX;
    for (uint32_t i = 0; good && i < average->count; i++) {
        sum += average->member[i].alpha;
        good = average->member[i].alpha > 0;
    }
    return good && sum <= 1 + 1e-9
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%u members with alphas of %g together cannot be averaged",
                         average->count, sum);
}

static rp_err take_digest(work *w, const char *path, char digest[RP_AVERAGE_DIGEST]) {
    rp_st_reader *reader = NULL;
    rp_err err;
    RP_TRY(rp_st_open(&w->arena, path, &reader));
    (void)snprintf(digest, RP_AVERAGE_DIGEST, "%s", rp_st_sum(reader));
fail:
    rp_st_close(&reader);
    return err;
}

static rp_err write_files(work *w, const rp_average *average, char digest[RP_AVERAGE_DIGEST],
                          uint32_t *bad) {
    rp_err err;
    RP_TRY(open_files(w, average, bad));
    for (uint32_t i = 0; i < w->entries; i++) {
        RP_TRY(average_tensor(w, i, bad));
    }
    for (uint32_t i = 0; i < w->count; i++) {
        RP_TRY(copy_rest(&w->member[i]));
        RP_TRY(rp_st_commit(&w->member[i].to));
    }
    RP_TRY(rp_st_commit(&w->next));
    err = take_digest(w, average->next, digest);
fail:
    return err;
}

rp_err rp_average_make(const rp_average *average, char digest[RP_AVERAGE_DIGEST], uint32_t *bad) {
    rp_arena arena;
    work *w = NULL;
    rp_err err;
    *bad = average->count;
    rp_arena_init(&arena, "average", 0);
    RP_TRY(check_alphas(average));
    RP_TRY(RP_ARENA_NEW(&arena, 1, &w));
    rp_arena_init(&w->arena, "average's files", 0);
    err = write_files(w, average, digest, bad);
    for (uint32_t i = 0; i < w->count; i++) {
        rp_st_close(&w->member[i].from);
        rp_st_abandon(&w->member[i].to);
    }
    rp_st_close(&w->center);
    rp_st_abandon(&w->next);
    rp_arena_finish(&w->arena);
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_average_export(const char *center, const char *path) {
    static const char *const meta[] = {"format", "pt", NULL};
    rp_arena arena;
    rp_st_reader *reader = NULL;
    rp_st_writer *writer = NULL;
    rp_st_entry *entry;
    rp_err err;
    rp_arena_init(&arena, "weights", 0);
    RP_TRY(rp_st_open(&arena, center, &reader));
    RP_TRY(rp_st_check_sums(reader));
    const uint32_t count = rp_st_count(reader);
    RP_TRY(RP_ARENA_NEW(&arena, count + 1, &entry));
    for (uint32_t i = 0; i < count; i++) {
        entry[i] = *rp_st_entry_at(reader, i);
    }
    RP_TRY(rp_st_create(&arena, path, entry, count, meta, false, &writer));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(rp_st_write(writer, i, 0, rp_st_data(reader, &entry[i]), (size_t)entry[i].bytes));
    }
    err = rp_st_commit(&writer);
fail:
    rp_st_abandon(&writer);
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}
