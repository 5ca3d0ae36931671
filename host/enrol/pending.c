#include "enrol/pending.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/folders.h"
#include "base/quote.h"
#include "base/replace.h"
#include "run/entry.h"

/* ---- reading --------------------------------------------------------------------------------- */

static rp_err read_key(rp_arena *arena, rp_node *map, const char *name, const char **out) {
    const char *text = NULL;
    char key[RP_KEY_TEXT];
    char *copy;
    rp_err err;
    RP_TRY(rp_node_string(map, name, &text));
    if (!text) {
        return RP_OK;
    }
    const char *wrong = rp_key_parse(text, key);
    if (wrong) {
        return rp_node_fail(rp_node_find(map, name), "%s", wrong);
    }
    RP_TRY(rp_arena_string(arena, key, &copy));
    *out = copy;
fail:
    return err;
}

static rp_err read_one(rp_arena *arena, rp_node *map, rp_pending *out) {
    uint64_t ends = 0;
    rp_err err;
    RP_TRY(rp_node_need(map, "name"));
    RP_TRY(rp_node_string(map, "name", &out->name));
    if (!rp_roster_is_word(out->name)) {
        return rp_node_fail(rp_node_find(map, "name"), "expected 1 to %d of A-Z a-z 0-9 . _ -",
                            RP_ROSTER_NAME_MAX);
    }
    RP_TRY(rp_node_need(map, "key"));
    RP_TRY(read_key(arena, map, "key", &out->key));
    RP_TRY(rp_node_need(map, "ends"));
    RP_TRY(rp_node_u64(map, "ends", 0, INT64_MAX, &ends));
    out->ends_s = (int64_t)ends;
    RP_TRY(read_key(arena, map, "used_by", &out->used_by));
    RP_TRY(rp_node_done(map));
fail:
    return err;
}

rp_err rp_pending_read(rp_arena *arena, const char *dir, rp_pending **list, uint32_t *count) {
    rp_node *root;
    char *path;
    rp_err err;
    *list = NULL;
    *count = 0;
    RP_TRY(rp_arena_printf(arena, &path, "%s/tokens", dir));
    if (access(path, F_OK) != 0) {
        return RP_OK;
    }
    RP_TRY(rp_config_read_file(arena, path, &root));
    rp_node *tokens = rp_node_find(root, "tokens");
    if (!tokens || !rp_node_is_list(tokens) || rp_node_count(tokens) > RP_PENDING_MAX) {
        return rp_node_fail(root, "tokens: expected a list of at most %d", RP_PENDING_MAX);
    }
    RP_TRY(rp_node_done(root));
    RP_TRY(RP_ARENA_NEW(arena, rp_node_count(tokens) + (size_t)1, list));
    for (; *count < rp_node_count(tokens); ++*count) {
        rp_node *map = rp_node_item(tokens, *count);
        if (!rp_node_is_map(map)) {
            return rp_node_fail(map, "expected {name, key, ends}");
        }
        RP_TRY(read_one(arena, map, &(*list)[*count]));
    }
fail:
    return err;
}

/* ---- changing -------------------------------------------------------------------------------- */

static void write_one(FILE *file, const rp_pending *one) {
    char key[RP_KEY_WORD];
    rp_key_write(one->key, key);
    (void)fprintf(file, "  - {name: ");
    rp_quote_put(file, one->name);
    (void)fprintf(file, ", key: %s, ends: %" PRId64, key, one->ends_s);
    if (one->used_by) {
        rp_key_write(one->used_by, key);
        (void)fprintf(file, ", used_by: %s", key);
    }
    (void)fprintf(file, "}\n");
}

static rp_err write_all(const char *path, const rp_pending *list, uint32_t count,
                        const rp_pending *one) {
    FILE *file = rp_replace_begin(path);
    if (file) {
        (void)fprintf(file, "# tokens of `ringpipe boards enrol`\ntokens:%s\n",
                      count == 0 && !one ? " []" : "");
        for (uint32_t i = 0; i < count; i++) {
            write_one(file, &list[i]);
        }
        if (one) {
            write_one(file, one);
        }
    }
    return rp_replace_end(file, path, file && !ferror(file));
}

rp_err rp_pending_replace(const char *dir, const char *name, const rp_pending *one, int64_t now_s) {
    rp_arena arena;
    rp_pending *list;
    uint32_t count;
    uint32_t left = 0;
    char *path;
    rp_err err;
    rp_arena_init(&arena, "tokens", 0);
    RP_TRY(rp_folders_make(dir, 0700));
    RP_TRY(rp_arena_printf(&arena, &path, "%s/tokens", dir));
    RP_TRY(rp_pending_read(&arena, dir, &list, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) != 0 && list[i].ends_s > now_s) {
            list[left++] = list[i];
        }
    }
    if (one && left == RP_PENDING_MAX) {
        RP_TRY(rp_fail(RP_ERR_LIMIT,
                       "%s: %d tokens are open already, which is the limit; withdraw some with "
                       "`ringpipe boards enrol --withdraw`",
                       path, RP_PENDING_MAX));
    }
    err = write_all(path, list, left, one);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- by name or id --------------------------------------------------------------------------- */

void rp_pending_id(const rp_pending *one, char out[RP_KEY_FINGERPRINT]) {
    rp_key_fingerprint(one->key, out);
}

rp_err rp_pending_is_listed(const char *dir, const rp_pending *one, bool *out) {
    rp_arena arena;
    rp_pending *list;
    uint32_t count;
    rp_err err;
    *out = false;
    rp_arena_init(&arena, "tokens", 0);
    RP_TRY(rp_pending_read(&arena, dir, &list, &count));
    for (uint32_t i = 0; i < count; i++) {
        *out = *out || (strcmp(list[i].name, one->name) == 0 && strcmp(list[i].key, one->key) == 0);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

static bool is_called(const rp_pending *one, const char *word) {
    char id[RP_KEY_FINGERPRINT];
    rp_pending_id(one, id);
    return strcmp(one->name, word) == 0 || strcmp(id, word) == 0;
}

static rp_err fail_unknown(const char *path, const char *word, const rp_pending *list,
                           uint32_t count) {
    char known[512] = "";
    for (uint32_t i = 0; i < count; i++) {
        const size_t used = strlen(known);
        (void)snprintf(known + used, sizeof known - used, " %s", list[i].name);
    }
    return rp_fail(RP_ERR_USAGE, "%s: unknown token '%s'; the list has:%s", path, word,
                   count ? known : " no tokens");
}

rp_err rp_pending_withdraw(const char *dir, const char *const *word, uint32_t count) {
    rp_arena arena;
    rp_pending *list;
    uint32_t listed;
    uint32_t left = 0;
    char *path;
    bool *goes;
    rp_err err;
    rp_arena_init(&arena, "tokens", 0);
    RP_TRY(rp_arena_printf(&arena, &path, "%s/tokens", dir));
    RP_TRY(rp_pending_read(&arena, dir, &list, &listed));
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)listed + 1, &goes));
    for (uint32_t k = 0; k < count; k++) {
        bool found = false;
        for (uint32_t i = 0; i < listed; i++) {
            const bool is = is_called(&list[i], word[k]);
            goes[i] = goes[i] || is;
            found = found || is;
        }
        RP_TRY(found ? RP_OK : fail_unknown(path, word[k], list, listed));
    }
    for (uint32_t i = 0; i < listed; i++) {
        list[left] = list[i];
        left += !goes[i];
    }
    err = write_all(path, list, left, NULL);
fail:
    rp_arena_finish(&arena);
    return err;
}
