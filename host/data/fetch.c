#include "data/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>
#include <zlib.h>

#include "base/log.h"

enum { PATH_BYTES = 4096, TAR_BLOCK = 512, CIFAR_FILES = 6, CIFAR_RECORD = 3073 };

typedef struct {
    const char *name;
    uint64_t bytes;
    const char *sha256;
} remote_file;

typedef struct {
    const char *set;
    const char *address; /* in front of the name */
    remote_file files[4];
} remote_set;

static const remote_set sets[] = {
    {"mnist",
     "https://ossci-datasets.s3.amazonaws.com/mnist/",
     {{"train-images-idx3-ubyte.gz", 9912422,
       "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
      {"train-labels-idx1-ubyte.gz", 28881,
       "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
      {"t10k-images-idx3-ubyte.gz", 1648877,
       "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
      {"t10k-labels-idx1-ubyte.gz", 4542,
       "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}},
    {"fashion-mnist",
     "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
     {{"train-images-idx3-ubyte.gz", 26421880,
       "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
      {"train-labels-idx1-ubyte.gz", 29515,
       "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
      {"t10k-images-idx3-ubyte.gz", 4422102,
       "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
      {"t10k-labels-idx1-ubyte.gz", 5148,
       "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}}},
    {"cifar10",
     "https://www.cs.toronto.edu/~kriz/",
     {{"cifar-10-binary.tar.gz", 170052171,
       "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}}},
};

static const char *const cifar_names[CIFAR_FILES] = {"data_batch_1.bin", "data_batch_2.bin",
                                                     "data_batch_3.bin", "data_batch_4.bin",
                                                     "data_batch_5.bin", "test_batch.bin"};

extern char **environ;

static rp_err join_path(char *path, const char *dir, const char *name, const char *end) {
    int length = snprintf(path, PATH_BYTES, "%s/%s%s", dir, name, end);
    return length > 0 && length < PATH_BYTES
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%s: the name is too long", dir);
}

/* Size and SHA-256 of a file as text; false when it can not be read. */
static bool digest_file(const char *path, uint64_t *bytes,
                        char hex[crypto_hash_sha256_BYTES * 2 + 1]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char piece[16384];
    unsigned char sum[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    FILE *file = fopen(path, "rbe");
    if (!file) {
        return false;
    }
    *bytes = 0;
    (void)crypto_hash_sha256_init(&state);
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;) {
        (void)crypto_hash_sha256_update(&state, piece, got);
        *bytes += got;
    }
    const bool good = !ferror(file);
    (void)fclose(file);
    (void)crypto_hash_sha256_final(&state, sum);
    for (size_t i = 0; i < sizeof sum; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[2 * sizeof sum] = '\0';
    return good;
}

/* What a person can do instead. */
static rp_err fail_fetch(const remote_set *set, const char *dir, const char *problem) {
    char names[256];
    size_t used = 0;
    names[0] = '\0';
    for (uint32_t i = 0; i < 4 && set->files[i].name && used < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, " %s", set->files[i].name);
    }
    const bool archive = strcmp(set->set, "cifar10") == 0;
    return rp_fail(RP_ERR_IO, "%s; by hand: get%s from %s and %s in %s", problem, names,
                   set->address, archive ? "unpack it" : "put them", dir);
}

static rp_err run_curl(const remote_set *set, const remote_file *file, const char *dir,
                       const char *target) {
    char url[256];
    char bytes_max[24];
    char problem[160];
    (void)snprintf(url, sizeof url, "%s%s", set->address, file->name);
    (void)snprintf(bytes_max, sizeof bytes_max, "%" PRIu64, file->bytes);
    const char *const arguments[] = {"curl",
                                     "--fail",
                                     "--location",
                                     isatty(STDERR_FILENO) ? "--progress-bar" : "--silent",
                                     "--show-error",
                                     "--proto",
                                     "=https",
                                     "--proto-redir",
                                     "=https",
                                     "--retry",
                                     "2",
                                     "--connect-timeout",
                                     "20",
                                     "--max-filesize",
                                     bytes_max,
                                     "--output",
                                     target,
                                     url,
                                     NULL};
    pid_t child;
    int status = 0;
    int code =
        posix_spawnp(&child, "curl", NULL, NULL, (char *const *)(uintptr_t)arguments, environ);
    if (code != 0) {
        (void)snprintf(problem, sizeof problem, "the program `curl` can not be started: %s",
                       strerror(code));
        return fail_fetch(set, dir, problem);
    }
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return rp_fail(RP_ERR_IO, "curl: %s", strerror(errno));
        }
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)snprintf(problem, sizeof problem, "%s can not be fetched (curl ended with %d)",
                       file->name, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        return fail_fetch(set, dir, problem);
    }
    return RP_OK;
}

static rp_err fetch_file(const remote_set *set, const remote_file *file, const char *dir) {
    char path[PATH_BYTES];
    char temporary[PATH_BYTES];
    char hex[crypto_hash_sha256_BYTES * 2 + 1];
    uint64_t bytes = 0;
    rp_err err = RP_OK;
    RP_TRY(join_path(path, dir, file->name, ""));
    RP_TRY(join_path(temporary, dir, file->name, ".tmp"));
    if (digest_file(path, &bytes, hex) && strcmp(hex, file->sha256) == 0) {
        rp_log_info("%s is there already", path);
        return RP_OK;
    }
    rp_log_info("fetching %s (%.1f MB)", file->name, (double)file->bytes / 1e6);
    RP_TRY(run_curl(set, file, dir, temporary));
    if (!digest_file(temporary, &bytes, hex)) {
        err = rp_fail(RP_ERR_IO, "%s: can not be read: %s", temporary, strerror(errno));
    } else if (bytes != file->bytes || strcmp(hex, file->sha256) != 0) {
        err =
            rp_fail(RP_ERR_FORMAT,
                    "%s%s is not the official file: %" PRIu64 " bytes, SHA-256 %.16s..., expected "
                    "%" PRIu64 " and %.16s...",
                    set->address, file->name, bytes, hex, file->bytes, file->sha256);
    } else if (rename(temporary, path) != 0) {
        err = rp_fail(RP_ERR_IO, "%s: can not be written: %s", path, strerror(errno));
    }
fail:
    if (err != RP_OK) {
        (void)unlink(temporary);
    }
    return err;
}

/* ---- the archive of CIFAR-10 ---- */

static rp_err copy_entry(gzFile from, const char *archive, const char *dir, const char *name,
                         uint64_t bytes) {
    char path[PATH_BYTES];
    char temporary[PATH_BYTES];
    unsigned char piece[8 * TAR_BLOCK];
    rp_err err = RP_OK;
    FILE *file = NULL;
    RP_TRY(join_path(path, dir, name, ""));
    RP_TRY(join_path(temporary, dir, name, ".tmp"));
    file = fopen(temporary, "wbe");
    bool good = file != NULL;
    while (good && bytes > 0) {
        const unsigned wanted = bytes < sizeof piece ? (unsigned)bytes : sizeof piece;
        if (gzread(from, piece, wanted) != (int)wanted) {
            err = rp_fail(RP_ERR_FORMAT, "%s: is cut off or damaged in %s", archive, name);
            goto fail;
        }
        good = fwrite(piece, 1, wanted, file) == wanted;
        bytes -= wanted;
    }
    good = good && fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (!good || rename(temporary, path) != 0) {
        err = rp_fail(RP_ERR_IO, "%s: can not be written: %s", path, strerror(errno));
    }
fail:
    if (file) {
        (void)fclose(file);
    }
    if (err != RP_OK) {
        (void)unlink(temporary);
    }
    return err;
}

/* The wanted name of a tar header, or NULL. */
static const char *wanted_name(const unsigned char *header) {
    for (uint32_t i = 0; i < CIFAR_FILES; i++) {
        char name[100] = "cifar-10-batches-bin/";
        memcpy(name + strlen(name), cifar_names[i], strlen(cifar_names[i]));
        if (strncmp((const char *)header, name, sizeof name) == 0) {
            return cifar_names[i];
        }
    }
    return NULL;
}

/* Octal digits, ended by a blank or a zero. */
static uint64_t read_octal(const unsigned char *text, uint32_t count) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < count && text[i] >= '0' && text[i] <= '7'; i++) {
        value = value * 8 + (uint64_t)(text[i] - '0');
    }
    return value;
}

static rp_err unpack_archive(gzFile from, const char *archive, const char *dir) {
    unsigned char header[TAR_BLOCK];
    uint32_t found = 0;
    rp_err err = RP_OK;
    while (found < CIFAR_FILES && gzread(from, header, TAR_BLOCK) == TAR_BLOCK && header[0]) {
        const uint64_t bytes = read_octal(header + 124, 11); /* 33 bits: no overflow below */
        const uint64_t padding = (TAR_BLOCK - bytes % TAR_BLOCK) % TAR_BLOCK;
        const char *name = wanted_name(header);
        if (name && (bytes == 0 || bytes % CIFAR_RECORD != 0)) {
            return rp_fail(RP_ERR_FORMAT, "%s: %s has %" PRIu64 " bytes, not records of %d",
                           archive, name, bytes, CIFAR_RECORD);
        }
        if (name) {
            RP_TRY(copy_entry(from, archive, dir, name, bytes));
            found++;
        }
        if (gzseek(from, (z_off_t)(padding + (name ? 0 : bytes)), SEEK_CUR) < 0) {
            return rp_fail(RP_ERR_FORMAT, "%s: is cut off or damaged", archive);
        }
    }
    if (found < CIFAR_FILES) {
        err = rp_fail(RP_ERR_FORMAT, "%s: has %u of the 6 batches: cut off or damaged", archive,
                      found);
    }
fail:
    return err;
}

rp_err rp_data_unpack_cifar10(const char *archive, const char *dir) {
    gzFile from = gzopen(archive, "rb");
    if (!from) {
        return rp_fail(RP_ERR_IO, "%s: can not be opened: %s", archive, strerror(errno));
    }
    rp_err err = unpack_archive(from, archive, dir);
    (void)gzclose(from);
    return err;
}

static bool has_cifar10(const char *dir) {
    for (uint32_t i = 0; i < CIFAR_FILES; i++) {
        char path[PATH_BYTES];
        struct stat facts;
        if (join_path(path, dir, cifar_names[i], "") != RP_OK || stat(path, &facts) != 0 ||
            facts.st_size != 10000 * CIFAR_RECORD) {
            return false;
        }
    }
    return true;
}

enum { SETS = sizeof sets / sizeof *sets };

const char *rp_data_fetch_name(uint32_t index) {
    return index < SETS ? sets[index].set : NULL;
}

static rp_err find_set(const char *name, const remote_set **out) {
    char known[256] = "";
    for (size_t i = 0; i < SETS; i++) {
        const size_t used = strlen(known);
        if (strcmp(name, sets[i].set) == 0) {
            *out = &sets[i];
            return RP_OK;
        }
        (void)snprintf(known + used, sizeof known - used, " %s", sets[i].set);
    }
    return rp_fail(RP_ERR_USAGE, "data set '%s' has no files to fetch; these have:%s", name, known);
}

rp_err rp_data_fetch(const char *set, const char *dir) {
    const remote_set *remote = NULL;
    rp_err found = find_set(set, &remote);
    if (found != RP_OK) {
        return found;
    }
    if (sodium_init() < 0) {
        return rp_fail(RP_ERR_IO, "libsodium can not start");
    }
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        return rp_fail(RP_ERR_IO, "%s: can not be made: %s", dir, strerror(errno));
    }
    const bool archive = strcmp(set, "cifar10") == 0;
    if (archive && has_cifar10(dir)) {
        rp_log_info("%s has the six batches already", dir);
        return RP_OK;
    }
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < 4 && remote->files[i].name; i++) {
        RP_TRY(fetch_file(remote, &remote->files[i], dir));
    }
    if (archive) {
        char path[PATH_BYTES];
        RP_TRY(join_path(path, dir, remote->files[0].name, ""));
        RP_TRY(rp_data_unpack_cifar10(path, dir));
        (void)unlink(path);
    }
fail:
    return err;
}
