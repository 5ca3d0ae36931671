/* Makes a bundle of a folder. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/quote.h"
#include "base/replace.h"
#include "update/bundle_own.h"

enum { PIECE = 1 << 16, DEPTH_MAX = 16, PATH_BYTES = 4096 };

typedef struct {
    rp_arena *arena;
    const char *folder;
    rp_bundle bundle; /* the paths below the folder; file: RP_BUNDLE_FILES_MAX */
    uint64_t bytes;
} gathering;

static rp_err add_file(gathering *g, const char *below, const struct stat *st) {
    char *copy;
    if (!rp_bundle_is_path(below)) {
        return rp_fail(RP_ERR_USAGE,
                       "%s/%s: expected names of A-Z a-z 0-9 . _ + - of at most %d bytes",
                       g->folder, below, RP_BUNDLE_PATH_MAX);
    }
    g->bytes += (uint64_t)st->st_size;
    if (g->bundle.count == RP_BUNDLE_FILES_MAX || g->bytes > RP_BUNDLE_BYTES_MAX) {
        return rp_fail(RP_ERR_LIMIT, "%s: a bundle has at most %d files and %" PRIu64 " bytes",
                       g->folder, RP_BUNDLE_FILES_MAX, RP_BUNDLE_BYTES_MAX);
    }
    const rp_err err = rp_arena_string(g->arena, below, &copy);
    g->bundle.file[g->bundle.count++] = (rp_bundle_file){
        .path = copy, .bytes = (uint64_t)st->st_size, .mode = st->st_mode & 0111 ? 0755 : 0644};
    return err;
}

static rp_err gather_files(gathering *g, const char *below, uint32_t depth);

static rp_err gather_entry(gathering *g, const char *below, uint32_t depth) {
    char path[PATH_BYTES];
    struct stat st;
    if (snprintf(path, sizeof path, "%s/%s", g->folder, below) >= (int)sizeof path ||
        lstat(path, &st) != 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (S_ISDIR(st.st_mode)) {
        return gather_files(g, below, depth + 1);
    }
    return S_ISREG(st.st_mode) ? add_file(g, below, &st)
                               : rp_fail(RP_ERR_USAGE, "%s: expected only files and folders", path);
}

static rp_err gather_files(gathering *g, const char *below, uint32_t depth) {
    char path[PATH_BYTES];
    char inside[PATH_BYTES];
    rp_err err = RP_OK;
    DIR *dir = NULL;
    if (depth > DEPTH_MAX ||
        snprintf(path, sizeof path, "%s/%s", g->folder, below) >= (int)sizeof path) {
        return rp_fail(RP_ERR_USAGE, "%s: folders are too deep", g->folder);
    }
    dir = opendir(path);
    if (!dir) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        (void)snprintf(inside, sizeof inside, "%s%s%s", below, below[0] ? "/" : "", entry->d_name);
        RP_TRY(gather_entry(g, inside, depth));
    }
fail:
    (void)closedir(dir);
    return err;
}

static int by_path(const void *a, const void *b) {
    const rp_bundle_file *one = a;
    const rp_bundle_file *other = b;
    return strcmp(one->path, other->path);
}

/* Copies the file's bytes to `to`, unless that is NULL, and computes their sum. */
static rp_err read_file(const gathering *g, const rp_bundle_file *of, FILE *to,
                        uint8_t sum[RP_BUNDLE_SUM]) {
    crypto_hash_sha256_state state;
    char path[PATH_BYTES];
    uint8_t piece[PIECE];
    uint64_t bytes = 0;
    (void)snprintf(path, sizeof path, "%s/%s", g->folder, of->path);
    FILE *from = fopen(path, "rbe");
    if (!from) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    (void)crypto_hash_sha256_init(&state);
    for (size_t got; (got = fread(piece, 1, sizeof piece, from)) > 0; bytes += got) {
        (void)crypto_hash_sha256_update(&state, piece, got);
        if (to) {
            (void)fwrite(piece, 1, got, to);
        }
    }
    (void)crypto_hash_sha256_final(&state, sum);
    const bool good = !ferror(from) && bytes == of->bytes;
    (void)fclose(from);
    return good ? RP_OK : rp_fail(RP_ERR_IO, "%s: has changed or cannot be read", path);
}

/* Appends a line; *used may exceed the size of the text, which shows that it did not fit. */
RP_PRINTF(3, 4)
static void add_line(char *text, size_t *used, const char *format, ...) {
    const size_t room = *used < RP_BUNDLE_MANIFEST_MAX ? RP_BUNDLE_MANIFEST_MAX - *used : 0;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text + (room ? *used : 0), room, format, args);
    va_end(args);
    *used += n > 0 ? (size_t)n : RP_BUNDLE_MANIFEST_MAX;
}

static rp_err write_manifest(const gathering *g, char **text, size_t *bytes) {
    const char *board;
    const char *software;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(g->arena, RP_BUNDLE_MANIFEST_MAX, text));
    RP_TRY(rp_quote(g->arena, g->bundle.board, &board));
    RP_TRY(rp_quote(g->arena, g->bundle.software, &software));
    *bytes = 0;
    add_line(*text, bytes, "board: %s\nversion: %" PRIu64 "\nsoftware: %s\nfiles:\n", board,
             g->bundle.version, software);
    for (uint32_t i = 0; i < g->bundle.count; i++) {
        const rp_bundle_file *file = &g->bundle.file[i];
        char sum[2 * RP_BUNDLE_SUM + 1];
        (void)sodium_bin2hex(sum, sizeof sum, file->sha256, RP_BUNDLE_SUM);
        add_line(*text, bytes, "  - {path: \"%s\", bytes: %" PRIu64 ", mode: %o, sha256: \"%s\"}\n",
                 file->path, file->bytes, file->mode, sum);
    }
    if (*bytes >= RP_BUNDLE_MANIFEST_MAX) {
        err = rp_fail(RP_ERR_LIMIT, "%s: the names are too long for one bundle", g->folder);
    }
fail:
    return err;
}

static void write_head(FILE *file, const char *manifest, size_t bytes,
                       const rp_signing_pair *pair) {
    static uint8_t text[RP_BUNDLE_PURPOSE_BYTES + RP_BUNDLE_MANIFEST_MAX];
    uint8_t signature[RP_SIGNATURE_BYTES];
    const uint8_t size[4] = {(uint8_t)bytes, (uint8_t)(bytes >> 8), (uint8_t)(bytes >> 16),
                             (uint8_t)(bytes >> 24)};
    memcpy(text, RP_BUNDLE_PURPOSE, RP_BUNDLE_PURPOSE_BYTES);
    memcpy(text + RP_BUNDLE_PURPOSE_BYTES, manifest, bytes);
    (void)crypto_sign_detached(signature, NULL, text, RP_BUNDLE_PURPOSE_BYTES + bytes,
                               pair->secret);
    (void)fwrite(RP_BUNDLE_MAGIC, 1, RP_BUNDLE_MAGIC_BYTES, file);
    (void)fwrite(signature, 1, sizeof signature, file);
    (void)fwrite(size, 1, sizeof size, file);
    (void)fwrite(manifest, 1, bytes, file);
}

static rp_err write_bundle(const gathering *g, const char *path, const rp_signing_pair *pair) {
    uint8_t sum[RP_BUNDLE_SUM];
    char *manifest;
    size_t bytes;
    FILE *file;
    rp_err err;
    RP_TRY(write_manifest(g, &manifest, &bytes));
    file = rp_replace_begin(path);
    if (file) {
        write_head(file, manifest, bytes, pair);
    }
    for (uint32_t i = 0; file && err == RP_OK && i < g->bundle.count; i++) {
        err = read_file(g, &g->bundle.file[i], file, sum);
        if (err == RP_OK && memcmp(sum, g->bundle.file[i].sha256, sizeof sum) != 0) {
            err = rp_fail(RP_ERR_IO, "%s/%s: has changed while the bundle was made", g->folder,
                          g->bundle.file[i].path);
        }
    }
    const bool good = file && err == RP_OK && !ferror(file);
    const rp_err ended = rp_replace_end(file, path, good);
    err = err == RP_OK ? ended : err;
fail:
    return err;
}

/* Only an existing bundle may be overwritten. */
static rp_err check_place(const char *path) {
    char magic[RP_BUNDLE_MAGIC_BYTES];
    FILE *file = fopen(path, "re");
    const size_t bytes = file ? fread(magic, 1, sizeof magic, file) : 0;
    const bool is_other =
        bytes > 0 && (bytes < sizeof magic || memcmp(magic, RP_BUNDLE_MAGIC, sizeof magic) != 0);
    if (file) {
        (void)fclose(file);
    }
    return is_other
               ? rp_fail(
                     RP_ERR_USAGE,
                     "%s: exists and is not a bundle, so it is not overwritten: choose a new name",
                     path)
               : RP_OK;
}

rp_err rp_bundle_write(const char *path, const char *folder, const char *board, uint64_t version,
                       const char *software, const rp_signing_pair *pair) {
    gathering g = {.folder = folder,
                   .bundle = {.board = board, .software = software, .version = version}};
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "bundle", 0);
    g.arena = &arena;
    RP_ASSERT(sodium_init() >= 0 && version >= 1);
    if (!rp_bundle_is_board(board)) {
        RP_TRY(rp_fail(RP_ERR_USAGE,
                       "board '%s': expected a profile's name: 1 to %d of A-Z a-z 0-9 "
                       ". _ -",
                       board, RP_BUNDLE_BOARD_MAX));
    }
    RP_TRY(check_place(path));
    RP_TRY(RP_ARENA_NEW(&arena, RP_BUNDLE_FILES_MAX, &g.bundle.file));
    RP_TRY(gather_files(&g, "", 0));
    if (g.bundle.count == 0) {
        RP_TRY(rp_fail(RP_ERR_USAGE, "%s: contains no file", folder));
    }
    qsort(g.bundle.file, g.bundle.count, sizeof *g.bundle.file, by_path);
    for (uint32_t i = 0; i < g.bundle.count; i++) {
        RP_TRY(read_file(&g, &g.bundle.file[i], NULL, g.bundle.file[i].sha256));
    }
    RP_TRY(write_bundle(&g, path, pair));
fail:
    rp_arena_finish(&arena);
    return err;
}
