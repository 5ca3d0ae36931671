#include "sites/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/folders.h"
#include "sites/update.h"

enum { KEPT = 2, NAME_BYTES = RP_ST_NAME_MAX + 1, NUMBER_BYTES = 32 };

/* ---- the files ------------------------------------------------------------------------------- */

/* The round of a file's name; false: the file is no state. */
static bool read_name(const char *name, uint64_t *round) {
    int end = 0;
    return strlen(name) == strlen("round-0000000000.safetensors") &&
           sscanf(name, "round-%10" SCNu64 ".safetensors%n", round, &end) == 1 &&
           end == (int)strlen(name);
}

/* The two newest rounds of a folder, newest first; RP_SITE_NO_ROUND: fewer exist. */
static void find_newest(DIR *dir, uint64_t newest[KEPT]) {
    const struct dirent *entry;
    uint64_t round;
    newest[0] = newest[1] = RP_SITE_NO_ROUND;
    rewinddir(dir);
    while ((entry = readdir(dir))) {
        if (!read_name(entry->d_name, &round)) {
            continue;
        }
        if (newest[0] == RP_SITE_NO_ROUND || round > newest[0]) {
            newest[1] = newest[0];
            newest[0] = round;
        } else if (newest[1] == RP_SITE_NO_ROUND || round > newest[1]) {
            newest[1] = round;
        }
    }
}

static rp_err list_newest(const char *folder, uint64_t newest[KEPT]) {
    DIR *dir = rp_folders_open(folder);
    if (!dir) {
        return rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(errno));
    }
    find_newest(dir, newest);
    (void)closedir(dir);
    return RP_OK;
}

static rp_err path_of(rp_arena *arena, const char *folder, uint64_t round, char **out) {
    return rp_arena_printf(arena, out, "%s/round-%010" PRIu64 ".safetensors", folder, round);
}

rp_err rp_site_find_state(rp_arena *arena, const char *folder, uint64_t round, char **path,
                          uint64_t *from) {
    uint64_t newest[KEPT];
    rp_err err;
    *path = NULL;
    *from = RP_SITE_NO_ROUND;
    RP_TRY(list_newest(folder, newest));
    if (newest[0] != RP_SITE_NO_ROUND && newest[0] > round) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: the site has finished round %" PRIu64 ", so what it had before round "
                       "%" PRIu64 " is lost: expected a later round, or a new folder to start "
                       "fresh",
                       folder, newest[0], round);
    }
    *from = newest[0] == round ? newest[1] : newest[0];
    if (*from != RP_SITE_NO_ROUND) {
        RP_TRY(path_of(arena, folder, *from, path));
    }
fail:
    return err;
}

rp_err rp_site_drop_state(const char *folder, uint64_t round) {
    rp_arena arena;
    char *path;
    rp_err err;
    rp_arena_init(&arena, "state", 0);
    RP_TRY(path_of(&arena, folder, round, &path));
    if (unlink(path) != 0 && errno != ENOENT) {
        err = rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

static rp_err remove_old(const char *folder) {
    const struct dirent *entry;
    uint64_t newest[KEPT];
    uint64_t round;
    DIR *dir = rp_folders_open(folder);
    if (!dir) {
        return rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(errno));
    }
    find_newest(dir, newest);
    rewinddir(dir);
    while ((entry = readdir(dir))) {
        if (newest[1] != RP_SITE_NO_ROUND && read_name(entry->d_name, &round) &&
            round < newest[1]) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    (void)closedir(dir);
    return RP_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

typedef struct {
    const rp_site_state *state;
    rp_arena *arena;
    rp_st_reader *trained, *errors; /* errors NULL: none */
    rp_st_writer *to;
    rp_st_entry *entry;       /* of `to` */
    const rp_st_entry **from; /* of `trained`, then of `errors`, by entry */
    uint32_t count, of_trained;
} work;

static rp_err add_entry(work *w, const rp_st_entry *from, const char *prefix) {
    char *name;
    const rp_err err = rp_arena_printf(w->arena, &name, "%s%s", prefix, from->name);
    if (err == RP_OK) {
        w->from[w->count] = from;
        w->entry[w->count] = *from;
        w->entry[w->count++].name = name;
    }
    return err;
}

/* The name after a prefix, or NULL. */
static const char *after(const char *name, const char *prefix) {
    const size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : NULL;
}

static rp_err add_drift(work *w, const rp_st_entry *drift, const char *name) {
    const rp_st_entry *weights = rp_st_find(w->trained, name);
    rp_err err;
    if (!weights) {
        return rp_fail(RP_ERR_FORMAT, "%s: has '%s' but not '%s'", w->state->trained, drift->name,
                       name);
    }
    RP_TRY(add_entry(w, drift, ""));
    RP_TRY(add_entry(w, weights, "last."));
fail:
    return err;
}

static rp_err list_trained(work *w) {
    const rp_round_rules *rules = w->state->rules;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < rp_st_count(w->trained); i++) {
        const rp_st_entry *from = rp_st_entry_at(w->trained, i);
        const char *drift = after(from->name, "optim.drift.");
        if (from->type != RP_ST_F32 || after(from->name, RP_UPDATE_ERROR)) {
            continue; /* errors: of the start */
        }
        if (drift) {
            RP_TRY(rules->drift ? add_drift(w, from, drift) : RP_OK);
        } else if (after(from->name, "optim.")) {
            const bool wanted = rules->keeps_optimizer && !after(from->name, "optim.anchor.");
            RP_TRY(wanted ? add_entry(w, from, "") : RP_OK);
        } else if (rp_site_keeps(rules, from->name)) {
            RP_TRY(add_entry(w, from, "keep."));
        }
    }
    w->of_trained = w->count;
fail:
    return err;
}

static rp_err list_entries(work *w) {
    const uint32_t errors = w->errors ? rp_st_count(w->errors) : 0;
    const size_t most = 2 * (size_t)rp_st_count(w->trained) + errors + 1;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(w->arena, most, &w->entry));
    RP_TRY(RP_ARENA_NEW(w->arena, most, &w->from));
    RP_TRY(list_trained(w));
    for (uint32_t i = 0; i < errors; i++) {
        RP_TRY(add_entry(w, rp_st_entry_at(w->errors, i), RP_UPDATE_ERROR));
    }
fail:
    return err;
}

static rp_err write_file(work *w, const char *path) {
    const rp_site_state *state = w->state;
    char round[NUMBER_BYTES];
    char updates[NUMBER_BYTES];
    char rates[NUMBER_BYTES];
    const char *const meta[] = {
        "format", "pt",    "site", state->site, "round",          round, "updates",
        updates,  "rates", rates,  "optimizer", state->optimizer, NULL};
    rp_err err;
    (void)snprintf(round, sizeof round, "%" PRIu64, state->round);
    (void)snprintf(updates, sizeof updates, "%" PRIu64, state->updates);
    (void)snprintf(rates, sizeof rates, "%.17g", state->rates);
    RP_TRY(rp_st_create(w->arena, path, w->entry, w->count, meta, true, &w->to));
    for (uint32_t i = 0; i < w->count; i++) {
        const rp_st_reader *reader = i < w->of_trained ? w->trained : w->errors;
        RP_TRY(rp_st_write(w->to, i, 0, rp_st_data(reader, w->from[i]), (size_t)w->from[i]->bytes));
    }
    err = rp_st_commit(&w->to);
fail:
    return err;
}

rp_err rp_site_save_state(rp_arena *arena, const rp_site_state *state) {
    work w = {.state = state, .arena = arena};
    uint64_t newest[KEPT];
    char *path;
    rp_err err;
    RP_TRY(list_newest(state->folder, newest));
    if (newest[0] != RP_SITE_NO_ROUND && newest[0] > state->round) {
        return RP_OK;
    }
    RP_TRY(path_of(arena, state->folder, state->round, &path));
    RP_TRY(rp_st_open(arena, state->trained, &w.trained));
    RP_TRY(state->errors ? rp_st_open(arena, state->errors, &w.errors) : RP_OK);
    RP_TRY(list_entries(&w));
    RP_TRY(write_file(&w, path));
    err = remove_old(state->folder);
fail:
    rp_st_abandon(&w.to);
    rp_st_close(&w.errors);
    rp_st_close(&w.trained);
    return err;
}
