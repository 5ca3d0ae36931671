#include "data/fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/input.h"
#include "base/log.h"
#include "data/download.h"
#include "data/unpack.h"

enum { PATH_BYTES = 4096, URL_BYTES = 2048, CIFAR10_RECORD = 3073, CIFAR100_RECORD = 3074 };

typedef struct {
    const char *name;
    uint64_t bytes;
    const char *sha256;
} remote_file;

typedef struct {
    const char *set;
    const char *address; /* prefix of the names */
    remote_file files[4];
    /* If the only file is an archive: the folder in it, the files to unpack, and their sizes. */
    const char *prefix;
    rp_unpack_file unpacked[RP_UNPACK_FILES_MAX];
    uint64_t bytes[RP_UNPACK_FILES_MAX];
} remote_set;

static const remote_set sets[] = {
    {.set = "mnist",
     .address = "https://ossci-datasets.s3.amazonaws.com/mnist/",
     .files = {{"train-images-idx3-ubyte.gz", 9912422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
               {"train-labels-idx1-ubyte.gz", 28881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
               {"t10k-images-idx3-ubyte.gz", 1648877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
               {"t10k-labels-idx1-ubyte.gz", 4542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}},
    {.set = "fashion-mnist",
     .address =
         "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
     .files = {{"train-images-idx3-ubyte.gz", 26421880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
               {"train-labels-idx1-ubyte.gz", 29515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
               {"t10k-images-idx3-ubyte.gz", 4422102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
               {"t10k-labels-idx1-ubyte.gz", 5148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}}},
    {.set = "cifar10",
     .address = "https://www.cs.toronto.edu/~kriz/",
     .files = {{"cifar-10-binary.tar.gz", 170052171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
     .prefix = "cifar-10-batches-bin/",
     .unpacked = {{"data_batch_1.bin", CIFAR10_RECORD},
                  {"data_batch_2.bin", CIFAR10_RECORD},
                  {"data_batch_3.bin", CIFAR10_RECORD},
                  {"data_batch_4.bin", CIFAR10_RECORD},
                  {"data_batch_5.bin", CIFAR10_RECORD},
                  {"test_batch.bin", CIFAR10_RECORD}},
     .bytes = {30730000, 30730000, 30730000, 30730000, 30730000, 30730000}},
    {.set = "cifar100",
     .address = "https://www.cs.toronto.edu/~kriz/",
     .files = {{"cifar-100-binary.tar.gz", 168513733,
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}},
     .prefix = "cifar-100-binary/",
     .unpacked = {{"train.bin", CIFAR100_RECORD},
                  {"test.bin", CIFAR100_RECORD},
                  {"fine_label_names.txt", 1},
                  {"coarse_label_names.txt", 1}},
     .bytes = {153700000, 30740000, 0, 0}},
};

static rp_err join_path(char *path, const char *dir, const char *name, const char *end) {
    int length = snprintf(path, PATH_BYTES, "%s/%s%s", dir, name, end);
    return length > 0 && length < PATH_BYTES
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%s: the path is too long", dir);
}

/* Size and SHA-256 of a file, as text; false: it cannot be read. */
static bool digest_file(const char *path, uint64_t *bytes,
                        char hex[crypto_hash_sha256_BYTES * 2 + 1]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char piece[16384];
    unsigned char sum[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    const char *why;
    FILE *file = rp_input_fopen(path, &why);
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

/* Adds to `problem` what the user can do by hand. */
static rp_err fail_fetch(const remote_set *set, const char *dir, const char *problem) {
    char names[256];
    size_t used = 0;
    names[0] = '\0';
    for (uint32_t i = 0; i < 4 && set->files[i].name && used < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, " %s", set->files[i].name);
    }
    return rp_fail(RP_ERR_IO, "%s; to do it by hand, download%s from %s and %s into %s", problem,
                   names, set->address, set->prefix ? "unpack it" : "put them", dir);
}

static rp_err download_file(const remote_set *set, const remote_file *file, const char *from,
                            const char *dir, const char *target) {
    char url[URL_BYTES];
    char problem[512];
    const char *between = from && from[0] && from[strlen(from) - 1] != '/' ? "/" : "";
    const int length =
        snprintf(url, sizeof url, "%s%s%s", from ? from : set->address, between, file->name);
    if (length < 0 || (size_t)length >= sizeof url) {
        return rp_fail(RP_ERR_USAGE, "--from: the address is too long");
    }
    const rp_download download = {.url = url,
                                  .target = target,
                                  .bytes = file->bytes,
                                  .any_protocol = from != NULL,
                                  .progress = isatty(STDERR_FILENO) == 1};
    if (rp_download_file(&download) == RP_OK) {
        return RP_OK;
    }
    (void)snprintf(problem, sizeof problem, "%s cannot be fetched: %.400s", file->name,
                   rp_err_message());
    return fail_fetch(set, dir, problem);
}

static rp_err fetch_file(const remote_set *set, const remote_file *file, const char *from,
                         const char *dir) {
    char path[PATH_BYTES];
    char temporary[PATH_BYTES];
    char hex[crypto_hash_sha256_BYTES * 2 + 1];
    uint64_t bytes = 0;
    rp_err err = RP_OK;
    RP_TRY(join_path(path, dir, file->name, ""));
    RP_TRY(join_path(temporary, dir, file->name, ".tmp"));
    if (digest_file(path, &bytes, hex) && strcmp(hex, file->sha256) == 0) {
        rp_log_info("%s exists already", path);
        return RP_OK;
    }
    rp_log_info("fetching %s (%.1f MB)", file->name, (double)file->bytes / 1e6);
    RP_TRY(download_file(set, file, from, dir, temporary));
    if (!digest_file(temporary, &bytes, hex)) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be read: %s", temporary, strerror(errno));
    } else if (bytes != file->bytes || strcmp(hex, file->sha256) != 0) {
        err =
            rp_fail(RP_ERR_FORMAT,
                    "%s%s is not the official file: %" PRIu64 " bytes, SHA-256 %.16s..., expected "
                    "%" PRIu64 " and %.16s...",
                    from ? "" : set->address, file->name, bytes, hex, file->bytes, file->sha256);
    } else if (rename(temporary, path) != 0) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
fail:
    if (err != RP_OK) {
        (void)unlink(temporary);
    }
    return err;
}

/* Do the files of the archive exist already? */
static bool is_unpacked(const remote_set *set, const char *dir) {
    for (uint32_t i = 0; i < RP_UNPACK_FILES_MAX && set->unpacked[i].name; i++) {
        char path[PATH_BYTES];
        struct stat facts;
        if (join_path(path, dir, set->unpacked[i].name, "") != RP_OK || stat(path, &facts) != 0 ||
            facts.st_size == 0 || (set->bytes[i] > 0 && (uint64_t)facts.st_size != set->bytes[i])) {
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
    return rp_fail(RP_ERR_USAGE, "data set '%s' has no files to fetch; expected one of:%s", name,
                   known);
}

const char *rp_data_fetch_file(const char *set, uint32_t index) {
    for (size_t i = 0; i < SETS; i++) {
        const remote_set *at = &sets[i];
        if (strcmp(set, at->set) == 0 && at->prefix) {
            return index < RP_UNPACK_FILES_MAX ? at->unpacked[index].name : NULL;
        }
        if (strcmp(set, at->set) == 0) {
            return index < sizeof at->files / sizeof *at->files ? at->files[index].name : NULL;
        }
    }
    return NULL;
}

rp_err rp_data_unpack(const char *set, const char *archive, const char *dir) {
    const remote_set *remote = NULL;
    rp_err err = find_set(set, &remote);
    if (err == RP_OK && !remote->prefix) {
        err = rp_fail(RP_ERR_USAGE, "data set '%s' has no archive", set);
    }
    return err == RP_OK ? rp_unpack(archive, remote->prefix, remote->unpacked, dir) : err;
}

rp_err rp_data_fetch(const char *set, const char *from, const char *dir) {
    const remote_set *remote = NULL;
    rp_err found = find_set(set, &remote);
    if (found != RP_OK) {
        return found;
    }
    if (sodium_init() < 0) {
        return rp_fail(RP_ERR_IO, "libsodium cannot be initialised");
    }
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        return rp_fail(RP_ERR_IO, "%s: the folder cannot be made: %s", dir, strerror(errno));
    }
    if (remote->prefix && is_unpacked(remote, dir)) {
        rp_log_info("%s has the files of %s already", dir, set);
        return RP_OK;
    }
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < 4 && remote->files[i].name; i++) {
        RP_TRY(fetch_file(remote, &remote->files[i], from, dir));
    }
    if (remote->prefix) {
        char path[PATH_BYTES];
        RP_TRY(join_path(path, dir, remote->files[0].name, ""));
        RP_TRY(rp_unpack(path, remote->prefix, remote->unpacked, dir));
        (void)unlink(path);
    }
fail:
    return err;
}
