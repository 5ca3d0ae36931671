#include "sites/start.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "sites/state.h"
#include "sites/update.h"

enum { NAME_BYTES = RP_ST_NAME_MAX + 1, NUMBER_BYTES = 32 };

typedef enum { GIVEN, OWN, STATE, DRIFT } source;

typedef struct {
    const rp_site_start_order *order;
    rp_arena *arena;
    rp_st_reader *given, *state; /* state NULL: none */
    rp_st_writer *to;
    rp_st_entry *entry; /* of `to` */
    source *source;     /* by entry */
    uint32_t count;
    double rates; /* of the state's round */
    rp_site_start about;
} work;

float rp_site_next_drift(float d, float x, float y, double rates) {
    return rates > 0 ? (float)((double)d + ((double)x - (double)y) / rates) : d;
}

/* The name after a prefix, or NULL. */
static const char *after(const char *name, const char *prefix) {
    const size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : NULL;
}

static void put_name(char out[NAME_BYTES], const char *prefix, const char *name) {
    (void)snprintf(out, NAME_BYTES, "%s%s", prefix, name);
}

/* ---- metadata -------------------------------------------------------------------------------- */

static rp_err fail_meta(const char *path, const char *key) {
    return rp_fail(RP_ERR_FORMAT, "%s: metadata '%s': missing or invalid", path, key);
}

static rp_err read_whole(const rp_st_reader *reader, const char *path, const char *key,
                         uint64_t *out) {
    const char *text = rp_st_meta(reader, key);
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    if (digits == 0 || digits > 19 || text[digits]) {
        return fail_meta(path, key);
    }
    *out = strtoull(text, NULL, 10);
    return RP_OK;
}

static rp_err read_rates(const rp_st_reader *reader, const char *path, double *out) {
    const char *text = rp_st_meta(reader, "rates");
    char *end = NULL;
    *out = text ? strtod(text, &end) : NAN;
    return text && end != text && !*end && *out >= 0 && isfinite(*out) ? RP_OK
                                                                       : fail_meta(path, "rates");
}

/* ---- the site's state ------------------------------------------------------------------------ */

static rp_err check_site(const work *w) {
    const char *was = rp_st_meta(w->state, "site");
    const char *now = w->order->site;
    return was && strcmp(was, now) == 0
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: belongs to site '%.100s': expected a folder of its own for site "
                         "'%.100s'",
                         w->order->state, was ? was : "", now);
}

static rp_err check_optimizer(const work *w) {
    const char *was = rp_st_meta(w->state, "optimizer");
    const char *now = w->order->optimizer;
    return was && strcmp(was, now) == 0
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: belongs to optimizer '%.100s', but the round is of '%.100s': remove "
                         "the folder to start over",
                         w->order->state, was ? was : "", now);
}

static rp_err open_state(work *w) {
    const rp_site_start_order *order = w->order;
    const rp_round_rules *rules = order->rules;
    uint64_t updates;
    rp_err err = RP_OK;
    w->about.from = RP_SITE_NO_ROUND;
    if (!order->state) {
        return RP_OK;
    }
    RP_TRY(rp_st_open(w->arena, order->state, &w->state));
    RP_TRY(rp_st_check_sums(w->state));
    RP_TRY(check_site(w));
    RP_TRY(rules->keeps_optimizer ? check_optimizer(w) : RP_OK);
    RP_TRY(read_rates(w->state, order->state, &w->rates));
    RP_TRY(read_whole(w->state, order->state, "updates", &updates));
    w->about.from = order->from;
    w->about.updates = rules->keeps_optimizer ? updates : 0;
    w->about.optimizer = w->about.updates > 0;
    w->about.drift = rules->drift && order->from + 1 == order->round;
fail:
    return err;
}

/* ---- the list of tensors --------------------------------------------------------------------- */

static void add_entry(work *w, const rp_st_entry *like, source from) {
    uint64_t elements = 1;
    for (uint32_t d = 0; d < like->dims; d++) {
        elements *= like->dim[d];
    }
    w->entry[w->count] = *like;
    w->entry[w->count].type = RP_ST_F32;
    w->entry[w->count].bytes = elements * sizeof(float);
    w->source[w->count++] = from;
}

static bool has_own(const work *w, const char *name) {
    char own[NAME_BYTES];
    put_name(own, "keep.", name);
    return w->state && rp_st_find(w->state, own);
}

static void add_given(work *w, uint32_t *casts) {
    for (uint32_t i = 0; i < rp_st_count(w->given); i++) {
        const rp_st_entry *given = rp_st_entry_at(w->given, i);
        if (!rp_st_is_float(given->type) || after(given->name, "optim.")) {
            continue;
        }
        const bool kept = rp_site_keeps(w->order->rules, given->name);
        const bool own = kept && has_own(w, given->name);
        *casts += given->type != RP_ST_F32;
        w->about.kept += kept;
        w->about.own += own;
        add_entry(w, given, own ? OWN : GIVEN);
    }
}

/* The error of a tensor that leaves the site. */
static void add_error(work *w, const rp_st_entry *entry, const char *name) {
    const rp_round_rules *rules = w->order->rules;
    if (rules->delta.kind != RP_DELTA_NONE && rp_st_find(w->given, name) &&
        !rp_site_keeps(rules, name)) {
        w->about.errors++;
        add_entry(w, entry, STATE);
    }
}

/* A kept tensor has no drift, because the site does not get its average. */
static void add_states(work *w) {
    for (uint32_t i = 0; w->state && i < rp_st_count(w->state); i++) {
        const rp_st_entry *entry = rp_st_entry_at(w->state, i);
        const char *drift = after(entry->name, "optim.drift.");
        const char *error = after(entry->name, RP_UPDATE_ERROR);
        if (error) {
            add_error(w, entry, error);
        } else if (drift && w->about.drift && !rp_site_keeps(w->order->rules, drift)) {
            add_entry(w, entry, DRIFT);
        } else if (!drift && after(entry->name, "optim.") && w->about.optimizer) {
            add_entry(w, entry, STATE);
        }
    }
}

static rp_err list_entries(work *w) {
    const size_t most = (size_t)rp_st_count(w->given) + (w->state ? rp_st_count(w->state) : 0);
    uint32_t casts = 0;
    rp_err err;
    RP_TRY(rp_site_check_keep(w->order->rules, w->given, w->order->given));
    RP_TRY(RP_ARENA_NEW(w->arena, most + 1, &w->entry));
    RP_TRY(RP_ARENA_NEW(w->arena, most + 1, &w->source));
    add_given(w, &casts);
    add_states(w);
    if (casts > 0) {
        rp_log_info("%s: %u tensors are cast to F32", w->order->given, casts);
    }
fail:
    return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

static rp_err need(const rp_st_reader *reader, const char *prefix, const rp_st_entry *like,
                   const char *name, const float **out) {
    char whole[NAME_BYTES];
    put_name(whole, prefix, name);
    return rp_st_need_f32(reader, whole, like->dims, like->dim, out);
}

static rp_err make_drift(work *w, const rp_st_entry *entry, const float *d, const float **out) {
    const char *name = after(entry->name, "optim.drift.");
    const size_t count = (size_t)(entry->bytes / sizeof(float));
    const float *x;
    const float *y;
    float *next;
    rp_err err;
    RP_TRY(need(w->given, "", entry, name, &x));
    RP_TRY(need(w->state, "last.", entry, name, &y));
    RP_TRY(RP_ARENA_NEW(w->arena, count + 1, &next));
    for (size_t i = 0; i < count; i++) {
        next[i] = rp_site_next_drift(d[i], x[i], y[i], w->rates);
        if (!isfinite(next[i])) {
            return rp_fail(RP_ERR_FORMAT, "%s: '%s' would not be finite: the sum of rates is %g",
                           w->order->state, entry->name, w->rates);
        }
    }
    *out = next;
fail:
    return err;
}

static rp_err write_entry(work *w, uint32_t index) {
    const rp_st_entry *entry = &w->entry[index];
    const rp_st_reader *from = w->source[index] == GIVEN ? w->given : w->state;
    const float *values;
    rp_err err;
    RP_TRY(need(from, w->source[index] == OWN ? "keep." : "", entry, entry->name, &values));
    if (w->source[index] == DRIFT) {
        RP_TRY(make_drift(w, entry, values, &values));
    }
    err = rp_st_write(w->to, index, 0, values, (size_t)entry->bytes);
fail:
    return err;
}

static rp_err write_file(work *w, const char *path) {
    const rp_site_start *about = &w->about;
    char updates[NUMBER_BYTES];
    char from[NUMBER_BYTES];
    char kept[NUMBER_BYTES];
    char own[NUMBER_BYTES];
    char errors[NUMBER_BYTES];
    const char *const drift = about->drift ? "1" : "0";
    const char *const meta[] = {"format",      "pt",           RP_CHECKPOINT_START_UPDATES,
                                updates,       "start_from",   from,
                                "start_kept",  kept,           "start_own",
                                own,           "start_errors", errors,
                                "start_drift", drift,          NULL};
    rp_err err;
    (void)snprintf(updates, sizeof updates, "%" PRIu64, about->updates);
    (void)snprintf(from, sizeof from, "%" PRIu64,
                   about->from == RP_SITE_NO_ROUND ? 0 : about->from + 1);
    (void)snprintf(kept, sizeof kept, "%" PRIu32, about->kept);
    (void)snprintf(own, sizeof own, "%" PRIu32, about->own);
    (void)snprintf(errors, sizeof errors, "%" PRIu32, about->errors);
    RP_TRY(rp_st_create(w->arena, path, w->entry, w->count, meta, true, &w->to));
    for (uint32_t i = 0; i < w->count; i++) {
        RP_TRY(write_entry(w, i));
    }
    err = rp_st_commit(&w->to);
fail:
    return err;
}

rp_err rp_site_make_start(rp_arena *arena, const rp_site_start_order *order, const char *path) {
    work w = {.order = order, .arena = arena};
    rp_err err;
    RP_TRY(rp_st_open(arena, order->given, &w.given));
    RP_TRY(open_state(&w));
    RP_TRY(list_entries(&w));
    RP_TRY(write_file(&w, path));
fail:
    rp_st_abandon(&w.to);
    rp_st_close(&w.state);
    rp_st_close(&w.given);
    return err;
}

rp_err rp_site_read_start(rp_arena *arena, const char *path, rp_site_start *out) {
    rp_st_reader *reader = NULL;
    uint64_t from;
    uint64_t kept;
    uint64_t own;
    uint64_t drift;
    uint64_t errors = 0;
    rp_err err;
    RP_TRY(rp_st_open(arena, path, &reader));
    RP_TRY(read_whole(reader, path, RP_CHECKPOINT_START_UPDATES, &out->updates));
    RP_TRY(read_whole(reader, path, "start_from", &from));
    RP_TRY(read_whole(reader, path, "start_kept", &kept));
    RP_TRY(read_whole(reader, path, "start_own", &own));
    RP_TRY(read_whole(reader, path, "start_drift", &drift));
    if (rp_st_meta(reader, "start_errors")) { /* files of older versions have none */
        RP_TRY(read_whole(reader, path, "start_errors", &errors));
    }
    out->from = from == 0 ? RP_SITE_NO_ROUND : from - 1;
    out->kept = (uint32_t)kept;
    out->own = (uint32_t)own;
    out->errors = (uint32_t)errors;
    out->drift = drift > 0;
    out->optimizer = out->updates > 0;
fail:
    rp_st_close(&reader);
    return err;
}
