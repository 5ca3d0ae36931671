#include "update/signing.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/input.h"
#include "base/replace.h"
#include "transport/bech32m.h"

enum { PATH_BYTES = 4096, LINE_BYTES = 128 };

static const char public_prefix[] = "rpu";
static const char secret_prefix[] = "rpusecret";

static rp_err join_path(const char *dir, const char *name, char out[PATH_BYTES]) {
    const int n = snprintf(out, PATH_BYTES, "%s/%s", dir, name);
    return n > 0 && n < PATH_BYTES ? RP_OK
                                   : rp_fail(RP_ERR_USAGE, "%.100s...: path is too long", dir);
}

/* Writes mode and bytes to a temporary file, then links it to `path`, which must not exist. */
static rp_err write_word(const char *path, const char *prefix, const uint8_t *bytes, mode_t mode) {
    char line[LINE_BYTES];
    char beside[PATH_BYTES + sizeof ".new"];
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    (void)unlink(beside);
    const int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", beside, strerror(errno));
    }
    rp_bech32m_write(prefix, bytes, RP_SIGNING_BYTES, line);
    const size_t count = strlen(line);
    line[count] = '\n';
    const bool good = fchmod(fd, mode) == 0 && write(fd, line, count + 1) == (ssize_t)count + 1 &&
                      fsync(fd) == 0 && link(beside, path) == 0;
    const int code = errno;
    explicit_bzero(line, sizeof line);
    (void)close(fd);
    (void)unlink(beside);
    if (!good) {
        return code == EEXIST
                   ? rp_fail(RP_ERR_USAGE, "%s: exists already and is not overwritten", path)
                   : rp_fail(RP_ERR_IO, "%s: %s", path, strerror(code));
    }
    return rp_replace_sync_folder(path);
}

static rp_err read_word(const char *path, const char *prefix, bool secret, uint8_t *out) {
    char line[LINE_BYTES] = "";
    struct stat st = {0};
    rp_err err = RP_OK;
    const char *why;
    const int fd = rp_input_open(path, &why);
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s: `ringpipe bundle --new-key` makes a pair", path, why);
    }
    const ssize_t n = read(fd, line, sizeof line - 1);
    line[strcspn(line, "\r\n")] = '\0';
    const size_t before = strlen(prefix);
    if (n < 0 || fstat(fd, &st) != 0) {
        err = rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    } else if (secret && (st.st_mode & 077)) {
        err =
            rp_fail(RP_ERR_REFUSED, "%s: other users may read it (mode %03o): run chmod 600 on it",
                    path, (unsigned)st.st_mode & 0777);
    } else if (strncasecmp(line, prefix, before) != 0 || line[before] != '1') {
        err = rp_fail(RP_ERR_FORMAT, "%s: expected a word that begins with %s1", path, prefix);
    } else {
        const char *wrong = rp_bech32m_read(line, prefix, out, RP_SIGNING_BYTES);
        err = wrong ? rp_fail(RP_ERR_FORMAT, "%s: its word %s", path, wrong) : RP_OK;
    }
    explicit_bzero(line, sizeof line);
    (void)close(fd);
    return err;
}

rp_err rp_signing_new(const char *dir) {
    rp_signing_pair pair;
    char public_path[PATH_BYTES];
    char secret_path[PATH_BYTES];
    rp_err err;
    RP_TRY(join_path(dir, "update.key", public_path));
    RP_TRY(join_path(dir, "update-secret.key", secret_path));
    RP_TRY(rp_folders_make(dir, 0700));
    RP_ASSERT(sodium_init() >= 0);
    (void)crypto_sign_keypair(pair.public, pair.secret);
    RP_TRY(
        write_word(secret_path, secret_prefix, pair.secret, 0600)); /* the first half: the seed */
    RP_TRY(write_word(public_path, public_prefix, pair.public, 0644));
fail:
    explicit_bzero(&pair, sizeof pair);
    return err;
}

rp_err rp_signing_read_public(const char *dir, uint8_t out[RP_SIGNING_BYTES]) {
    char path[PATH_BYTES];
    const rp_err err = join_path(dir, "update.key", path);
    return err == RP_OK ? read_word(path, public_prefix, false, out) : err;
}

rp_err rp_signing_read(const char *dir, rp_signing_pair *out) {
    uint8_t seed[RP_SIGNING_BYTES];
    uint8_t public[RP_SIGNING_BYTES];
    char path[PATH_BYTES];
    rp_err err;
    _Static_assert((int)RP_SIGNING_BYTES == (int)crypto_sign_SEEDBYTES, "a seed is a word");
    RP_TRY(join_path(dir, "update-secret.key", path));
    RP_TRY(read_word(path, secret_prefix, true, seed));
    RP_TRY(rp_signing_read_public(dir, public));
    (void)crypto_sign_seed_keypair(out->public, out->secret, seed);
    if (memcmp(public, out->public, sizeof public) != 0) {
        err = rp_fail(RP_ERR_FORMAT, "%s: update.key and update-secret.key are not a pair", dir);
    }
fail:
    explicit_bzero(seed, sizeof seed);
    return err;
}
