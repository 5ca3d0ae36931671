#include "update/releases.h"

#include <inttypes.h>
#include <string.h>

#include "base/config.h"
#include "base/quote.h"
#include "base/replace.h"

enum { PATH_BYTES = 1024, SLOTS = 3 };

static const char *const slot_names[SLOTS] = {"", "a", "b"};

static rp_err join_path(const char *dir, char out[PATH_BYTES]) {
    const int n = snprintf(out, PATH_BYTES, "%s/releases", dir);
    return n > 0 && n < PATH_BYTES ? RP_OK
                                   : rp_fail(RP_ERR_USAGE, "%.100s...: path is too long", dir);
}

/* ---- the file -------------------------------------------------------------------------------- */

static rp_err read_release(rp_node *map, rp_release *out) {
    const char *board = "";
    rp_err err;
    if (!rp_node_is_map(map)) {
        return rp_node_fail(map, "expected {board, version}");
    }
    RP_TRY(rp_node_need(map, "board"));
    RP_TRY(rp_node_string(map, "board", &board));
    if (!rp_bundle_is_board(board)) {
        return rp_node_fail(rp_node_find(map, "board"), "expected a profile's name");
    }
    RP_TRY(rp_node_u64(map, "version", 1, INT64_MAX, &out->version));
    RP_TRY(rp_node_done(map));
    (void)snprintf(out->board, sizeof out->board, "%s", board);
fail:
    return err;
}

static rp_err read_all(rp_node *root, rp_releases *out) {
    rp_err err = RP_OK;
    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        rp_node *map = rp_node_find(root, slot_names[slot]);
        RP_TRY(map ? read_release(map, &out->slot[slot]) : RP_OK);
    }
    rp_node *kept = rp_node_find(root, "kept");
    if (kept && (!rp_node_is_list(kept) || rp_node_count(kept) > RP_RELEASES_KEPT)) {
        return rp_node_fail(kept, "expected a list of at most %d", RP_RELEASES_KEPT);
    }
    for (uint32_t i = 0; kept && i < rp_node_count(kept); i++) {
        RP_TRY(read_release(rp_node_item(kept, i), &out->kept[i]));
        out->kept_count++;
    }
    RP_TRY(rp_node_done(root));
fail:
    return err;
}

rp_err rp_releases_read(const char *dir, rp_releases *out) {
    char path[PATH_BYTES];
    rp_arena arena;
    rp_node *root;
    rp_err err;
    *out = (rp_releases){0};
    rp_arena_init(&arena, "releases", 0);
    RP_TRY(join_path(dir, path));
    RP_TRY(rp_config_read_file_if_any(&arena, path, &root));
    RP_TRY(root ? read_all(root, out) : RP_OK);
fail:
    rp_arena_finish(&arena);
    return err;
}

static void write_release(FILE *file, const rp_release *of) {
    (void)fputs("{board: ", file);
    rp_quote_put(file, of->board);
    (void)fprintf(file, ", version: %" PRIu64 "}\n", of->version);
}

rp_err rp_releases_write(const char *dir, const rp_releases *releases) {
    char path[PATH_BYTES];
    rp_err err = join_path(dir, path);
    if (err != RP_OK) {
        return err;
    }
    FILE *file = rp_replace_begin(path);
    for (uint32_t slot = 1; file && slot < SLOTS; slot++) {
        const rp_release *of = &releases->slot[slot];
        if (of->board[0]) {
            (void)fprintf(file, "%s: ", slot_names[slot]);
            write_release(file, of);
        }
    }
    for (uint32_t i = 0; file && i < releases->kept_count; i++) {
        (void)fprintf(file, "%s  - ", i ? "" : "kept:\n");
        write_release(file, &releases->kept[i]);
    }
    return rp_replace_end(file, path, file && !ferror(file));
}

/* ---- contents -------------------------------------------------------------------------------- */

void rp_releases_note(rp_releases *releases, uint32_t slot, const char *board, uint64_t version) {
    rp_release *of = &releases->slot[slot];
    (void)snprintf(of->board, sizeof of->board, "%s", board);
    of->version = version;
}

/* "" if unknown, because an older agent has written the slot. */
static const char *board_of(const rp_releases *releases, uint32_t slot, uint64_t version) {
    const rp_release *of = &releases->slot[slot];
    return slot > 0 && of->version == version ? of->board : "";
}

uint64_t rp_releases_newest(const rp_releases *releases, uint32_t good, uint64_t version,
                            const char *board) {
    const char *own = board_of(releases, good, version);
    if (good > 0 && (!own[0] || strcmp(own, board) == 0)) {
        return version;
    }
    for (uint32_t i = 0; i < releases->kept_count; i++) {
        if (strcmp(releases->kept[i].board, board) == 0) {
            return releases->kept[i].version;
        }
    }
    return 0;
}

bool rp_releases_leave(rp_releases *releases, uint32_t from, uint64_t from_version, uint32_t to,
                       uint64_t to_version) {
    const char *left = board_of(releases, from, from_version);
    const char *board = board_of(releases, to, to_version);
    uint32_t at = 0;
    if (!left[0] || !board[0] || strcmp(left, board) == 0) {
        return false;
    }
    while (at < releases->kept_count && strcmp(releases->kept[at].board, left) != 0) {
        at++;
    }
    at = at < RP_RELEASES_KEPT ? at : RP_RELEASES_KEPT - 1;
    releases->kept_count += at == releases->kept_count;
    memmove(&releases->kept[1], &releases->kept[0], at * sizeof releases->kept[0]);
    releases->kept[0] = releases->slot[from];
    return true;
}
