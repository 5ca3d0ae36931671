#include "sites/asked.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/json_read.h"
#include "base/json_values.h"
#include "base/replace.h"

enum { PIECE = 1 << 20, PATH_BYTES = RP_REPLACE_PATH_BYTES, SHOWN_BYTES = 100 };

static void show_digest(uint64_t hash, char out[RP_SITES_DIGEST]) {
    (void)snprintf(out, RP_SITES_DIGEST, "%016" PRIx64, hash);
}

void rp_sites_digest_text(const char *text, char out[RP_SITES_DIGEST]) {
    show_digest(XXH3_64bits(text, strlen(text)), out);
}

/* Pieces are chained, so the digest is that of the bytes and of PIECE. */
rp_err rp_sites_digest_file(const char *path, char out[RP_SITES_DIGEST]) {
    rp_arena arena;
    char *piece;
    uint64_t hash = 0;
    size_t got;
    FILE *file = NULL;
    rp_err err;
    rp_arena_init(&arena, "digest", 0);
    RP_TRY(RP_ARENA_NEW(&arena, PIECE, &piece));
    file = fopen(path, "rb");
    if (!file) {
        RP_TRY(rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno)));
    }
    while ((got = fread(piece, 1, PIECE, file)) > 0) {
        hash = XXH3_64bits_withSeed(piece, got, hash);
    }
    if (ferror(file)) {
        RP_TRY(rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno)));
    }
    show_digest(hash, out);
fail:
    if (file) {
        (void)fclose(file);
    }
    rp_arena_finish(&arena);
    return err;
}

/* ---- asked.json ------------------------------------------------------------------------------ */

static json_t *json_of_keep(const rp_round_rules *rules) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < rules->keep_count; i++) {
        (void)json_array_append_new(list, json_string(rules->keep[i]));
    }
    return list;
}

/* Rules that are not in use have no key, so folders of older versions stay valid. */
static void put_rules(json_t *object, const rp_round_rules *rules, bool *good) {
    char delta[RP_DELTA_TEXT];
    if (rules->keep_count > 0) {
        json_t *keep = json_of_keep(rules);
        *good = *good && json_array_size(keep) == rules->keep_count;
        rp_json_put(object, "keep", keep, good);
    }
    if (rules->anchor > 0) {
        rp_json_put(object, "anchor", rp_json_of_real(rules->anchor), good);
    }
    if (rules->drift) {
        rp_json_put(object, "drift", json_true(), good);
    }
    if (rules->keeps_optimizer) {
        rp_json_put(object, "optimizer", json_string("keep"), good);
    }
    if (rules->clip > 0) {
        rp_json_put(object, "clip", rp_json_of_real(rules->clip), good);
    }
    if (rules->delta.kind != RP_DELTA_NONE) {
        rp_delta_print(&rules->delta, delta);
        rp_json_put(object, "delta", json_string(delta), good);
    }
}

static json_t *json_of(const rp_round_asked *asked, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "version", json_integer(1), good);
    rp_json_put(object, "round", rp_json_of_whole(asked->round), good);
    rp_json_put(object, "site", json_string(asked->site), good);
    rp_json_put(object, "steps", rp_json_of_whole(asked->steps), good);
    rp_json_put(object, "epochs", rp_json_of_whole(asked->epochs), good);
    put_rules(object, &asked->rules, good);
    rp_json_put(object, "in", json_string(asked->in), good);
    rp_json_put(object, "run", json_string(asked->run), good);
    rp_json_put(object, "split", json_string(asked->split), good);
    return object;
}

/* The first key of `of` whose values differ, or NULL. */
static const char *find_other(json_t *of, const json_t *in) {
    const char *key;
    json_t *value;
    json_object_foreach(of, key, value) {
        if (!json_equal(value, json_object_get(in, key))) {
            return key;
        }
    }
    return NULL;
}

static const char *find_difference(json_t *before, json_t *now) {
    const char *key = find_other(now, before);
    return key ? key : find_other(before, now);
}

/* A number or a text as JSON, for a message. */
static const char *show_value(const json_t *value, char out[SHOWN_BYTES]) {
    const size_t used = value ? json_dumpb(value, out, SHOWN_BYTES - 1, JSON_ENCODE_ANY) : 0;
    out[used < SHOWN_BYTES ? used : 0] = '\0';
    return out[0] ? out : "missing";
}

/* What the user gives for a key, for a message. */
static const char *name_source(const char *key) {
    static const char *const names[][2] = {{"round", "--round"},
                                           {"site", "data.site.name"},
                                           {"steps", "--steps"},
                                           {"epochs", "--epochs"},
                                           {"keep", "--keep"},
                                           {"anchor", "--anchor"},
                                           {"drift", "--drift"},
                                           {"optimizer", "--optimizer"},
                                           {"clip", "--clip"},
                                           {"delta", "--delta"},
                                           {"in", "the digest of --in"},
                                           {"run", "the digest of the run file with --set"},
                                           {"split", "the digest of data.site.split"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i][0], key) == 0) {
            return names[i][1];
        }
    }
    return key;
}

static rp_err compare(const char *path, json_t *now) {
    json_t *before = NULL;
    char was[SHOWN_BYTES];
    char is[SHOWN_BYTES];
    rp_err err = rp_json_read(path, &before);
    if (err != RP_OK) {
        return err;
    }
    const char *key = find_difference(before, now);
    if (key) {
        err = rp_fail(RP_ERR_USAGE,
                      "%s: the folder belongs to another round: %s is %s there and %s now; "
                      "expected a new folder",
                      path, name_source(key), show_value(json_object_get(before, key), was),
                      show_value(json_object_get(now, key), is));
    }
    json_decref(before);
    return err;
}

static void put_path(char out[PATH_BYTES], const char *folder, const char *name) {
    (void)snprintf(out, PATH_BYTES, "%s/%s", folder, name);
}

/* Files that only a folder with asked.json has. */
static rp_err refuse_others(const char *folder) {
    static const char *const names[] = {"round.json", "run/run.yaml"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        put_path(path, folder, names[i]);
        if (access(path, F_OK) == 0) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: exists, but %s has no asked.json: expected a new folder", path,
                           folder);
        }
    }
    return RP_OK;
}

rp_err rp_round_find_claim(const char *folder, const rp_round_asked *asked, bool *claimed) {
    char path[PATH_BYTES];
    bool good = true;
    rp_err err;
    put_path(path, folder, "asked.json");
    *claimed = access(path, F_OK) == 0;
    if (!*claimed) {
        return refuse_others(folder);
    }
    json_t *now = json_of(asked, &good);
    err = good ? compare(path, now) : rp_fail(RP_ERR_MEMORY, "%s: no memory", path);
    json_decref(now);
    return err;
}

rp_err rp_round_claim(const char *folder, const rp_round_asked *asked) {
    char path[PATH_BYTES];
    bool good = true;
    json_t *now = json_of(asked, &good);
    put_path(path, folder, "asked.json");
    FILE *file = good ? rp_replace_begin(path) : NULL;
    good = file && json_dumpf(now, file, JSON_INDENT(1)) == 0 && fputc('\n', file) != EOF;
    json_decref(now);
    return rp_replace_end(file, path, good);
}

rp_err rp_round_release(const char *folder) {
    char path[PATH_BYTES];
    put_path(path, folder, "asked.json");
    return unlink(path) == 0 || errno == ENOENT
               ? rp_replace_sync_folder(path)
               : rp_fail(RP_ERR_IO, "%s: cannot be removed: %s", path, strerror(errno));
}
