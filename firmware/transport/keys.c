#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "base/folders.h"
#include "base/input.h"
#include "base/replace.h"
#include "base/shell.h"
#include "transport/keys.h"

enum { PATH_BYTES = 4096, LINE_BYTES = 96 };

static const char home_folder[] = "/.config/ringpipe/keys";

static rp_err join_path(const char *dir, const char *name, char out[PATH_BYTES]) {
    int n = snprintf(out, PATH_BYTES, "%s/%s", dir, name);
    if (n < 0 || n >= PATH_BYTES) {
        return rp_fail(RP_ERR_USAGE, "keys: path %.100s... is too long", dir);
    }
    return RP_OK;
}

/* Creates the file as a whole or not at all; never overwrites. */
static rp_err write_new(const char *path, const char *text, mode_t mode) {
    char beside[PATH_BYTES + sizeof ".new"];
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    (void)unlink(beside); /* left by a process that was killed here */
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", beside, strerror(errno));
    }
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof line, "%s\n", text);
    /* fchmod(), because the umask may change the mode given to open() */
    bool ok = fchmod(fd, mode) == 0 && write(fd, line, (size_t)n) == n && fsync(fd) == 0;
    int code = errno;
    explicit_bzero(line, sizeof line);
    if (close(fd) != 0 || !ok) {
        (void)unlink(beside);
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(code));
    }
    ok = link(beside, path) == 0; /* link() does not overwrite, unlike rename() */
    code = errno;
    (void)unlink(beside);
    if (!ok) {
        return code == EEXIST
                   ? rp_fail(RP_ERR_USAGE, "%s: exists already and is not overwritten", path)
                   : rp_fail(RP_ERR_IO, "%s: %s", path, strerror(code));
    }
    return rp_replace_sync_folder(path);
}

rp_err rp_keys_make(rp_keypair *out) {
    return zmq_curve_keypair(out->public_text, out->secret_text) == 0
               ? RP_OK
               : rp_fail(RP_ERR_IO, "keys: %s (libzmq without CURVE?)", zmq_strerror(zmq_errno()));
}

rp_err rp_keys_home(rp_arena *arena, const char **dir) {
    const char *home = getenv("HOME");
    char *path;
    if (!home || !home[0]) {
        return rp_fail(RP_ERR_USAGE, "keys: the environment has no HOME; name the folder");
    }
    rp_err err = rp_arena_printf(arena, &path, "%s%s", home, home_folder);
    *dir = path;
    return err;
}

static rp_err read_key(const char *path, bool secret, char out[RP_KEY_TEXT]) {
    const char *why;
    const int fd = rp_input_open(path, &why);
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, why);
    }
    struct stat st;
    char text[LINE_BYTES] = {0};
    rp_err err = RP_OK;
    ssize_t n = read(fd, text, sizeof text - 1);
    if (fstat(fd, &st) != 0 || n < 0) {
        err = rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    } else if (secret && (st.st_mode & 077)) {
        err = rp_fail(RP_ERR_REFUSED,
                      "%s: other users may read it (mode %03o): run chmod 600 on it, and make a "
                      "new pair if it may have been read",
                      path, (unsigned)st.st_mode & 0777);
    } else {
        text[strcspn(text, "\r\n")] = 0;
        const char *wrong = secret ? rp_key_parse_secret(text, out) : rp_key_parse(text, out);
        err = wrong ? rp_fail(RP_ERR_FORMAT, "%s: its line %s", path, wrong) : RP_OK;
    }
    explicit_bzero(text, sizeof text);
    (void)close(fd);
    return err;
}

/* A process killed between the two files leaves only the secret: derive its public key. */
static rp_err make_or_complete(const char *secret_path, rp_keypair *keys, bool *has_secret) {
    *has_secret = access(secret_path, F_OK) == 0;
    if (!*has_secret) {
        return rp_keys_make(keys);
    }
    const rp_err err = read_key(secret_path, true, keys->secret_text);
    if (err == RP_OK && zmq_curve_public(keys->public_text, keys->secret_text) != 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: not a valid secret key", secret_path);
    }
    return err;
}

rp_err rp_keys_new(const char *dir) {
    rp_err err;
    rp_keypair keys = {0};
    bool has_secret;
    char word[RP_KEY_WORD];
    char secret_word[RP_KEY_SECRET_WORD] = "";
    char public_path[PATH_BYTES];
    char secret_path[PATH_BYTES];
    RP_TRY(join_path(dir, "public.key", public_path));
    RP_TRY(join_path(dir, "secret.key", secret_path));
    RP_TRY(rp_folders_make(dir, 0700));
    if (access(public_path, F_OK) == 0) {
        return rp_fail(RP_ERR_USAGE, "%s: exists already and is not overwritten", public_path);
    }
    RP_TRY(make_or_complete(secret_path, &keys, &has_secret));
    rp_key_write(keys.public_text, word);
    rp_key_write_secret(keys.secret_text, secret_word);
    RP_TRY(has_secret ? RP_OK : write_new(secret_path, secret_word, 0600));
    RP_TRY(write_new(public_path, word, 0644));
fail:
    explicit_bzero(&keys, sizeof keys);
    explicit_bzero(secret_word, sizeof secret_word);
    return err;
}

/* Names the command that makes the pair, without --dir for the default folder. */
static rp_err fail_missing(const char *dir) {
    const char *home = getenv("HOME");
    const size_t bytes = home ? strlen(home) : 0;
    const char *word;
    rp_arena arena;
    if (bytes > 0 && strncmp(dir, home, bytes) == 0 && strcmp(dir + bytes, home_folder) == 0) {
        return rp_fail(RP_ERR_IO, "no keys in %s: make them with `ringpipe keys new`", dir);
    }
    rp_arena_init(&arena, "keys", 0);
    rp_err err = rp_shell_word(&arena, dir, &word);
    if (err == RP_OK) {
        err = rp_fail(RP_ERR_IO, "no keys in %s: make them with `ringpipe keys new --dir %s`", dir,
                      word);
    }
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_keys_read(const char *dir, rp_keypair *out) {
    rp_err err;
    char path[PATH_BYTES];
    char derived[RP_KEY_TEXT];
    RP_TRY(join_path(dir, "public.key", path));
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return fail_missing(dir);
    }
    RP_TRY(read_key(path, false, out->public_text));
    RP_TRY(join_path(dir, "secret.key", path));
    RP_TRY(read_key(path, true, out->secret_text));
    if (zmq_curve_public(derived, out->secret_text) != 0 ||
        memcmp(derived, out->public_text, RP_KEY_TEXT - 1) != 0) {
        err = rp_fail(RP_ERR_FORMAT, "%s: public.key and secret.key are not a pair", dir);
    }
    if (err == RP_OK) {
        return RP_OK;
    }
fail:
    explicit_bzero(out, sizeof *out);
    return err;
}
