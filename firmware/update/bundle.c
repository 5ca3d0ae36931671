#include "update/bundle.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/config.h"
#include "update/bundle_own.h"

_Static_assert(sizeof RP_BUNDLE_MAGIC - 1 == RP_BUNDLE_MAGIC_BYTES, "its length");
_Static_assert(sizeof RP_BUNDLE_PURPOSE - 1 == RP_BUNDLE_PURPOSE_BYTES, "its length");

/* ---- the manifest ---------------------------------------------------------------------------- */

static const char path_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "._+-/";

bool rp_bundle_is_board(const char *board) {
    const size_t bytes = strlen(board);
    return bytes > 0 && bytes <= RP_BUNDLE_BOARD_MAX && board[0] != '.' && !strpbrk(board, "+/") &&
           strspn(board, path_letters) == bytes;
}

uint64_t rp_bundle_bytes(const rp_bundle *bundle) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < bundle->count; i++) {
        bytes += bundle->file[i].bytes;
    }
    return bytes;
}

bool rp_bundle_is_path(const char *path) {
    const size_t bytes = strlen(path);
    if (bytes == 0 || bytes > RP_BUNDLE_PATH_MAX || strspn(path, path_letters) != bytes) {
        return false;
    }
    for (const char *part = path;;) { /* no part may be empty, . or .. */
        const size_t length = strcspn(part, "/");
        if (length == 0 || (part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.')))) {
            return false;
        }
        if (!part[length]) {
            return true;
        }
        part += length + 1;
    }
}

static rp_err read_sum(rp_node *map, uint8_t out[RP_BUNDLE_SUM]) {
    const char *text = "";
    size_t bytes = 0;
    rp_err err;
    RP_TRY(rp_node_need(map, "sha256"));
    RP_TRY(rp_node_string(map, "sha256", &text));
    if (strlen(text) != 2 * RP_BUNDLE_SUM ||
        sodium_hex2bin(out, RP_BUNDLE_SUM, text, strlen(text), NULL, &bytes, NULL) != 0 ||
        bytes != RP_BUNDLE_SUM) {
        return rp_node_fail(rp_node_find(map, "sha256"), "expected %d hexadecimal digits",
                            2 * RP_BUNDLE_SUM);
    }
fail:
    return err;
}

/* Whether an earlier path equals `path` or is one of its folders. */
static bool is_in_the_way(const rp_bundle *bundle, const char *path) {
    for (uint32_t i = 0; i < bundle->count; i++) {
        const char *other = bundle->file[i].path;
        const size_t bytes = strlen(other);
        const size_t own = strlen(path);
        const size_t least = bytes < own ? bytes : own;
        if (strncmp(other, path, least) == 0 &&
            (bytes == own || (bytes < own ? path : other)[least] == '/')) {
            return true;
        }
    }
    return false;
}

static rp_err read_file(rp_node *map, rp_bundle *out, uint64_t *all_bytes) {
    rp_bundle_file *file = &out->file[out->count];
    uint32_t mode = 0;
    rp_err err;
    if (!rp_node_is_map(map)) {
        return rp_node_fail(map, "expected {path, bytes, mode, sha256}");
    }
    RP_TRY(rp_node_need(map, "path"));
    RP_TRY(rp_node_string(map, "path", &file->path));
    if (!rp_bundle_is_path(file->path) || is_in_the_way(out, file->path)) {
        return rp_node_fail(rp_node_find(map, "path"), "'%s' is not a valid path in a bundle",
                            file->path);
    }
    RP_TRY(rp_node_need(map, "bytes"));
    RP_TRY(rp_node_u64(map, "bytes", 0, RP_BUNDLE_BYTES_MAX, &file->bytes));
    *all_bytes += file->bytes;
    if (*all_bytes > RP_BUNDLE_BYTES_MAX) {
        return rp_node_fail(map, "the files have more than %llu bytes together",
                            (unsigned long long)RP_BUNDLE_BYTES_MAX);
    }
    RP_TRY(rp_node_need(map, "mode"));
    RP_TRY(rp_node_u32(map, "mode", 0, 755, &mode));
    if (mode != 644 && mode != 755) {
        return rp_node_fail(rp_node_find(map, "mode"), "expected 644 or 755");
    }
    file->mode = mode == 755 ? 0755 : 0644;
    RP_TRY(read_sum(map, file->sha256));
    RP_TRY(rp_node_done(map));
    out->count++;
fail:
    return err;
}

static rp_err read_manifest(rp_arena *arena, const char *text, size_t bytes, const char *name,
                            rp_bundle *out) {
    uint64_t all_bytes = 0;
    rp_node *root;
    rp_err err;
    RP_TRY(rp_config_read_text(arena, text, bytes, name, &root));
    RP_TRY(rp_node_need(root, "board"));
    RP_TRY(rp_node_string(root, "board", &out->board));
    if (!rp_bundle_is_board(out->board)) {
        return rp_node_fail(rp_node_find(root, "board"), "expected a profile's name");
    }
    RP_TRY(rp_node_need(root, "software"));
    RP_TRY(rp_node_string(root, "software", &out->software));
    RP_TRY(rp_node_need(root, "version"));
    RP_TRY(rp_node_u64(root, "version", 1, INT64_MAX, &out->version));
    rp_node *files = rp_node_find(root, "files");
    if (!files || !rp_node_is_list(files) || rp_node_count(files) == 0 ||
        rp_node_count(files) > RP_BUNDLE_FILES_MAX) {
        return rp_node_fail(root, "files: expected a list of 1 to %d", RP_BUNDLE_FILES_MAX);
    }
    RP_TRY(rp_node_done(root));
    RP_TRY(RP_ARENA_NEW(arena, rp_node_count(files), &out->file));
    for (uint32_t i = 0; i < rp_node_count(files); i++) {
        RP_TRY(read_file(rp_node_item(files, i), out, &all_bytes));
    }
fail:
    return err;
}

/* ---- header ---------------------------------------------------------------------------------- */

static rp_err fail_short(FILE *file, const char *name) {
    return ferror(file) ? rp_fail(RP_ERR_IO, "%s: cannot be read: %s", name, strerror(errno))
                        : rp_fail(RP_ERR_FORMAT, "%s: is cut off", name);
}

rp_err rp_bundle_read(rp_arena *arena, FILE *file, const char *name,
                      const uint8_t key[RP_SIGNING_BYTES], rp_bundle *out) {
    uint8_t head[RP_BUNDLE_MAGIC_BYTES + RP_SIGNATURE_BYTES + 4];
    uint8_t *signed_text;
    rp_err err;
    *out = (rp_bundle){0};
    RP_ASSERT(sodium_init() >= 0);
    const size_t got = fread(head, 1, sizeof head, file);
    const size_t shared = got < RP_BUNDLE_MAGIC_BYTES ? got : RP_BUNDLE_MAGIC_BYTES;
    if (memcmp(head, RP_BUNDLE_MAGIC, shared) != 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: is not a bundle", name);
    }
    if (got < sizeof head) {
        return fail_short(file, name);
    }
    const uint8_t *size = head + RP_BUNDLE_MAGIC_BYTES + RP_SIGNATURE_BYTES;
    const size_t bytes =
        (size_t)size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16 | (size_t)size[3] << 24;
    if (bytes > RP_BUNDLE_MANIFEST_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: its manifest has %zu bytes, expected at most %d", name,
                       bytes, RP_BUNDLE_MANIFEST_MAX);
    }
    RP_TRY(RP_ARENA_NEW(arena, RP_BUNDLE_PURPOSE_BYTES + bytes + 1, &signed_text));
    memcpy(signed_text, RP_BUNDLE_PURPOSE, RP_BUNDLE_PURPOSE_BYTES);
    if (fread(signed_text + RP_BUNDLE_PURPOSE_BYTES, 1, bytes, file) != bytes) {
        return fail_short(file, name);
    }
    if (crypto_sign_verify_detached(head + RP_BUNDLE_MAGIC_BYTES, signed_text,
                                    RP_BUNDLE_PURPOSE_BYTES + bytes, key) != 0) {
        return rp_fail(RP_ERR_REFUSED,
                       "%s: is not signed by the key that this board trusts for software", name);
    }
    RP_TRY(read_manifest(arena, (const char *)signed_text + RP_BUNDLE_PURPOSE_BYTES, bytes, name,
                         out));
fail:
    return err;
}
