/* federation.json, the journal of the last closed round. It is written before the round's files are
 * moved into place, and after all of them exist. If the run is killed in between, the resume moves
 * them. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_values.h"
#include "base/replace.h"
#include "base/safetensors.h"
#include "federation/federation_own.h"
#include "federation/rule.h"
#include "run/patterns.h"

/* Numbers of a site that are sums over rounds. */
static const struct {
    const char *key;
    size_t at;
} counts[] = {
    {"rounds", offsetof(rp_site, rounds)},         {"late", offsetof(rp_site, late)},
    {"failed", offsetof(rp_site, failed)},         {"samples", offsetof(rp_site, samples)},
    {"up_bytes", offsetof(rp_site, up_bytes)},     {"down_bytes", offsetof(rp_site, down_bytes)},
    {"last_round", offsetof(rp_site, last_round)},
};

enum { COUNTS = sizeof counts / sizeof *counts };

/* ---- writing --------------------------------------------------------------------------------- */

static json_t *json_of_site(const rp_site *site, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "site", json_string(site->name), good);
    for (size_t i = 0; i < COUNTS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)site + counts[i].at, sizeof value);
        rp_json_put(object, counts[i].key, rp_json_of_whole(value), good);
    }
    rp_json_put(object, "loss", rp_json_of_real(site->loss), good);
    rp_json_put(object, "seconds", rp_json_of_real(site->seconds), good);
    rp_json_put(object, "accuracy", rp_json_of_real(site->accuracy), good);
    return object;
}

static json_t *json_of_run(const rp_federation *f, bool *good) {
    json_t *root = json_object();
    json_t *list = json_array();
    rp_json_put(root, "version", json_integer(1), good);
    rp_json_put(root, "model", json_string(f->model_name), good);
    rp_json_put(root, "schedule", json_string(f->schedule), good);
    rp_json_put(root, "steps", rp_json_of_whole(f->keys.rounds), good);
    rp_json_put(root, "rule", json_string(rp_rule_name(f->keys.rule.kind)), good);
    rp_json_put(root, "split", json_string(f->split_digest), good);
    rp_json_put(root, "keep", json_string(f->keep), good);
    rp_json_put(root, "round", rp_json_of_whole(f->round), good);
    rp_json_put(root, "scored", rp_json_of_whole(f->scored), good);
    rp_json_put(root, "digest", json_string(f->digest), good);
    rp_json_put(root, "seconds", json_real(rp_federation_seconds(f)), good);
    rp_json_put(root, "virtual_s", json_real(f->virtual_s), good);
    rp_json_put(root, "loss", rp_json_of_real(f->loss), good);
    if (f->rows) {
        rp_json_put(root, "rows", json_incref(f->rows), good);
    }
    for (uint32_t i = 0; i < f->sites; i++) {
        *good = json_array_append_new(list, json_of_site(&f->site[i], good)) == 0 && *good;
    }
    rp_json_put(root, "sites", list, good);
    return root;
}

rp_err rp_federation_write_journal(const rp_federation *f) {
    bool good = true;
    json_t *root = json_of_run(f, &good);
    FILE *file = good ? rp_replace_begin(f->journal) : NULL;
    good = file && json_dumpf(root, file, JSON_INDENT(1)) == 0 && fputc('\n', file) != EOF;
    json_decref(root);
    return rp_replace_end(file, f->journal, good);
}

/* ---- the numbers ----------------------------------------------------------------------------- */

static bool take_whole(const json_t *object, const char *key, uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static double real_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static bool take_site(const json_t *object, rp_site *site) {
    const char *name = json_string_value(json_object_get(object, "site"));
    bool good = name && strcmp(name, site->name) == 0;
    for (size_t i = 0; good && i < COUNTS; i++) {
        uint64_t value;
        good = take_whole(object, counts[i].key, &value);
        memcpy((char *)site + counts[i].at, &value, sizeof value);
    }
    site->loss = real_of(object, "loss");
    site->seconds = real_of(object, "seconds");
    site->accuracy = real_of(object, "accuracy");
    return good && isfinite(site->seconds);
}

static bool take_journal(const json_t *root, rp_federation *f) {
    const json_t *list = json_object_get(root, "sites");
    const char *digest = json_string_value(json_object_get(root, "digest"));
    bool good = digest && strlen(digest) < sizeof f->digest &&
                take_whole(root, "round", &f->round) && take_whole(root, "scored", &f->scored) &&
                json_array_size(list) == f->sites;
    for (uint32_t i = 0; good && i < f->sites; i++) {
        good = take_site(json_array_get(list, i), &f->site[i]);
    }
    f->seconds = real_of(root, "seconds");
    f->virtual_s = real_of(root, "virtual_s");
    f->loss = real_of(root, "loss");
    good = good && f->seconds >= 0 && f->virtual_s >= 0;
    if (good) {
        (void)snprintf(f->digest, sizeof f->digest, "%s", digest);
        f->rows = json_deep_copy(json_object_get(root, "rows"));
    }
    return good;
}

static rp_err check_text(const rp_federation *f, const char *of, const char *before,
                         const char *now) {
    return strcmp(before, now) == 0
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: the run has rounds with %s %s, but now it is %s: expected the same",
                         f->journal, of, before, now);
}

static const char *text_of(const json_t *root, const char *key, const char *missing) {
    const char *text = json_string_value(json_object_get(root, key));
    return text && text[0] ? text : missing;
}

/* What has to be the same for all rounds of a run. The rule's state has no values of tensors that
 * sites keep. */
static rp_err check_same(const rp_federation *f, const json_t *root) {
    const char *keep = f->keep[0] ? f->keep : "none";
    rp_err err;
    RP_TRY(check_text(f, "a split file with digest", text_of(root, "split", "unknown"),
                      f->split_digest));
    RP_TRY(check_text(f, "sites.rule", text_of(root, "rule", "unknown"),
                      rp_rule_name(f->keys.rule.kind)));
    err = check_text(f, "sites.keep", text_of(root, "keep", "none"), keep);
fail:
    return err;
}

rp_err rp_federation_list_keep(rp_federation *f) {
    const rp_node *keep = f->keys.options.keep;
    char *text = "";
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < rp_patterns_count(keep); i++) {
        f->pattern[i] = rp_node_text(rp_patterns_at(keep, i));
        RP_TRY(rp_arena_printf(&f->arena, &text, "%s%s%s", text, i > 0 ? "," : "",
                               rp_node_text(rp_patterns_at(keep, i))));
    }
    f->keep = text;
fail:
    return err;
}

/* ---- the files of a round -------------------------------------------------------------------- */

/* The round for which a file was made; UINT64_MAX: unknown. */
static uint64_t round_of(const char *path) {
    rp_arena arena;
    rp_st_reader *reader = NULL;
    uint64_t round = UINT64_MAX;
    rp_arena_init(&arena, "round", 0);
    if (rp_st_open(&arena, path, &reader) == RP_OK) {
        const char *text = rp_st_meta(reader, "round");
        round = text && sscanf(text, "%" SCNu64, &round) == 1 ? round : UINT64_MAX;
    }
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return round;
}

/* Moves a file into place; removes it if its round was never closed. */
static rp_err place_file(const rp_federation *f, const char *made, const char *to) {
    if (access(made, F_OK) != 0) {
        return RP_OK;
    }
    if (round_of(made) != f->round) {
        (void)unlink(made);
        return RP_OK;
    }
    return rename(made, to) == 0 ? rp_replace_sync_folder(to)
                                 : rp_fail(RP_ERR_IO, "%s: %s", to, strerror(errno));
}

rp_err rp_federation_place_files(const rp_federation *f) {
    rp_err err;
    for (uint32_t i = 0; i < f->sites; i++) {
        RP_TRY(place_file(f, f->site[i].next_own, f->site[i].own));
    }
    RP_TRY(place_file(f, f->next_state, f->state));
    err = place_file(f, f->next_center, f->center);
fail:
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The centre and the rule's state are those of the last closed round. */
static rp_err check_files(const rp_federation *f) {
    rp_arena arena;
    rp_st_reader *reader = NULL;
    rp_err err;
    rp_arena_init(&arena, "centre", 0);
    if (access(f->center, F_OK) != 0) {
        RP_TRY(rp_fail(RP_ERR_FORMAT, "%s: missing: expected the centre of round %" PRIu64,
                       f->center, f->round));
    }
    RP_TRY(rp_st_open(&arena, f->center, &reader));
    if (strcmp(rp_st_sum(reader), f->digest) != 0) {
        RP_TRY(rp_fail(RP_ERR_FORMAT,
                       "%s: its digest is %s, but the centre of round %" PRIu64 " has %s: expected "
                       "that file",
                       f->center, rp_st_sum(reader), f->round, f->digest));
    }
    const bool stateful = rp_rule_has_m(&f->keys.rule) || rp_rule_has_v(&f->keys.rule);
    if (stateful && round_of(f->state) != f->round) {
        RP_TRY(rp_fail(RP_ERR_FORMAT,
                       "%s: missing, or of another round: expected the rule's state after round "
                       "%" PRIu64,
                       f->state, f->round));
    }
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_federation_read_journal(rp_federation *f) {
    json_error_t why;
    json_t *root = NULL;
    rp_err err = RP_OK;
    if (access(f->journal, F_OK) != 0) {
        return RP_OK; /* the run has not begun */
    }
    root = json_load_file(f->journal, 0, &why);
    if (!root) {
        RP_TRY(rp_fail(RP_ERR_FORMAT, "%s:%d: %s", f->journal, why.line, why.text));
    }
    RP_TRY(check_same(f, root));
    if (!take_journal(root, f)) {
        RP_TRY(rp_fail(RP_ERR_FORMAT, "%s: expected the journal of a run with %u sites", f->journal,
                       f->sites));
    }
    if (f->round > f->keys.rounds) {
        RP_TRY(rp_fail(RP_ERR_USAGE,
                       "sites.rounds: %u, but the run has %" PRIu64 " rounds already: expected at "
                       "least as many",
                       f->keys.rounds, f->round));
    }
    RP_TRY(rp_federation_place_files(f));
    RP_TRY(f->round > 0 ? check_files(f) : RP_OK);
fail:
    json_decref(root);
    return err;
}
