#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "base/folders.h"
#include "base/shell.h"
#include "transport/keys.h"

enum { PATH_BYTES = 4096, NAME_MAX_CHARS = 64, TRUSTED_MAX = 1024, LINE_BYTES = 512 };

static const char home_folder[] = "/.config/ringpipe/keys";

static rp_err join_path(const char *dir, const char *name, char out[PATH_BYTES]) {
    int n = snprintf(out, PATH_BYTES, "%s/%s", dir, name);
    if (n < 0 || n >= PATH_BYTES) {
        return rp_fail(RP_ERR_USAGE, "keys: path %.100s... is too long", dir);
    }
    return RP_OK;
}

static bool is_key(const char *text) {
    uint8_t bytes[RP_KEY_BYTES];
    return strlen(text) == RP_KEY_TEXT - 1 && zmq_z85_decode(bytes, text);
}

rp_err rp_key_decode(const char *text, uint8_t out[RP_KEY_BYTES]) {
    if (!text || strlen(text) != RP_KEY_TEXT - 1 || !zmq_z85_decode(out, text)) {
        return rp_fail(RP_ERR_FORMAT, "key '%.60s': expected 40 Z85 characters", text ? text : "");
    }
    return RP_OK;
}

/* Creates the file; never overwrites. */
static rp_err write_new(const char *path, const char *text, mode_t mode) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        if (errno == EEXIST) {
            return rp_fail(RP_ERR_USAGE, "%s: exists already and is not overwritten", path);
        }
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    char line[RP_KEY_TEXT + 1];
    int n = snprintf(line, sizeof line, "%s\n", text);
    /* fchmod: the umask must not make the secret's mode anything else */
    bool ok = fchmod(fd, mode) == 0 && write(fd, line, (size_t)n) == n && fsync(fd) == 0;
    int code = errno;
    explicit_bzero(line, sizeof line);
    if (close(fd) != 0 || !ok) {
        (void)unlink(path);
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(code));
    }
    return RP_OK;
}

rp_err rp_keys_make(rp_keypair *out) {
    do { /* Z85 has '-' and '#': no key that a command line takes for an option */
        if (zmq_curve_keypair(out->public_text, out->secret_text) != 0) {
            return rp_fail(RP_ERR_IO, "keys: %s (libzmq without CURVE?)",
                           zmq_strerror(zmq_errno()));
        }
    } while (out->public_text[0] == '-' || out->public_text[0] == '#');
    return RP_OK;
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

rp_err rp_keys_new(const char *dir) {
    rp_err err;
    rp_keypair keys = {0};
    char public_path[PATH_BYTES];
    char secret_path[PATH_BYTES];
    RP_TRY(join_path(dir, "public.key", public_path));
    RP_TRY(join_path(dir, "secret.key", secret_path));
    RP_TRY(rp_folders_make(dir, 0700));
    if (access(public_path, F_OK) == 0) {
        return rp_fail(RP_ERR_USAGE, "%s: exists already and is not overwritten", public_path);
    }
    RP_TRY(rp_keys_make(&keys));
    RP_TRY(write_new(secret_path, keys.secret_text, 0600));
    err = write_new(public_path, keys.public_text, 0644);
    if (err) {
        (void)unlink(secret_path);
    }
fail:
    explicit_bzero(&keys, sizeof keys);
    return err;
}

/* Names the command that makes the pair; its --dir is left out where it is the default. */
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

static rp_err read_key(const char *path, bool secret, char out[RP_KEY_TEXT]) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    struct stat st;
    char text[RP_KEY_TEXT + 2] = {0};
    rp_err err = RP_OK;
    ssize_t n = read(fd, text, sizeof text - 1);
    if (fstat(fd, &st) != 0 || n < 0) {
        err = rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    } else if (secret && (st.st_mode & 077)) {
        err = rp_fail(RP_ERR_REFUSED,
                      "%s: others may read it (mode %03o): chmod 600 it, and make "
                      "a new pair if anybody could have",
                      path, (unsigned)st.st_mode & 0777);
    } else {
        text[strcspn(text, "\r\n")] = 0;
        if (n > RP_KEY_TEXT + 1 || !is_key(text)) {
            err = rp_fail(RP_ERR_FORMAT, "%s: expected one line of 40 Z85 characters", path);
        } else {
            memcpy(out, text, RP_KEY_TEXT);
        }
    }
    explicit_bzero(text, sizeof text);
    (void)close(fd);
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

/* A line of the trusted file in place: `name key`, a comment or nothing.
 * *name is NULL when the line has none. */
static rp_err split_line(const char *path, uint32_t number, char *line, char **name, char **key) {
    *name = *key = NULL;
    line[strcspn(line, "\r\n")] = 0;
    char *at = line + strspn(line, " \t");
    if (!*at || *at == '#') {
        return RP_OK;
    }
    *name = at;
    at += strcspn(at, " \t");
    if (*at) {
        *at++ = 0;
        at += strspn(at, " \t");
    }
    *key = at;
    at += strcspn(at, " \t");
    bool more = *at && at[strspn(at, " \t")];
    *at = 0;
    if (more || !is_key(*key)) {
        return rp_fail(RP_ERR_FORMAT, "%s:%u: expected `name key`, a key of 40 Z85 characters",
                       path, number);
    }
    return RP_OK;
}

static bool is_name(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i])) {
            return false;
        }
    }
    return length > 0 && length <= NAME_MAX_CHARS;
}

/* Copies every line but the one of `name`, then the new line. */
static rp_err rewrite_list(FILE *from, const char *from_path, FILE *to, const char *name,
                           const char *key) {
    char line[LINE_BYTES];
    char parsed[LINE_BYTES];
    for (uint32_t number = 1; from && fgets(line, sizeof line, from); number++) {
        char *old_name;
        char *old_key;
        memcpy(parsed, line, sizeof parsed);
        rp_err err = split_line(from_path, number, parsed, &old_name, &old_key);
        if (err) {
            return err;
        }
        if (!old_name || strcmp(old_name, name) != 0) {
            line[strcspn(line, "\r\n")] = 0;
            fprintf(to, "%s\n", line);
        }
    }
    fprintf(to, "%s %s\n", name, key);
    if (fflush(to) != 0 || fsync(fileno(to)) != 0 || ferror(to)) {
        return rp_fail(RP_ERR_IO, "%s: %s", from_path, strerror(errno));
    }
    return RP_OK;
}

static rp_err sync_folder(const char *dir) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0) {
        int code = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return rp_fail(RP_ERR_IO, "%s: %s", dir, strerror(code));
    }
    (void)close(fd);
    return RP_OK;
}

rp_err rp_keys_trust(const char *dir, const char *name, const char *public_text) {
    rp_err err;
    char path[PATH_BYTES];
    char new_path[PATH_BYTES];
    FILE *from = NULL;
    FILE *to = NULL;
    if (!is_name(name)) {
        return rp_fail(RP_ERR_USAGE, "keys: name '%s': expected 1 to %d of A-Z a-z 0-9 . _ -", name,
                       NAME_MAX_CHARS);
    }
    if (!is_key(public_text)) {
        return rp_fail(RP_ERR_USAGE, "keys: '%s' is no public key (40 Z85 characters)",
                       public_text);
    }
    RP_TRY(join_path(dir, "trusted", path));
    RP_TRY(join_path(dir, "trusted.new", new_path));
    from = fopen(path, "re");
    if (!from && errno != ENOENT) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    to = fopen(new_path, "we");
    if (!to) {
        err = rp_fail(RP_ERR_IO, "%s: %s", new_path, strerror(errno));
        goto fail;
    }
    RP_TRY(rewrite_list(from, path, to, name, public_text));
    if (rename(new_path, path) != 0) {
        err = rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
        goto fail;
    }
    err = sync_folder(dir);
fail:
    if (from) {
        (void)fclose(from);
    }
    if (to) {
        (void)fclose(to);
        if (err) {
            (void)unlink(new_path);
        }
    }
    return err;
}

rp_err rp_keys_trusted(rp_arena *arena, const char *dir, const char *const **public_texts,
                       uint32_t *count) {
    rp_err err;
    char path[PATH_BYTES];
    char line[LINE_BYTES];
    char *name;
    char *key;
    const char **texts = NULL;
    uint32_t found = 0;
    FILE *file = NULL;
    *public_texts = NULL;
    *count = 0;
    RP_TRY(join_path(dir, "trusted", path));
    file = fopen(path, "re");
    if (!file) {
        return errno == ENOENT ? RP_OK : rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    RP_TRY(RP_ARENA_NEW(arena, TRUSTED_MAX, &texts));
    for (uint32_t number = 1; fgets(line, sizeof line, file); number++) {
        RP_TRY(split_line(path, number, line, &name, &key));
        if (!name) {
            continue;
        }
        if (found == TRUSTED_MAX) {
            err = rp_fail(RP_ERR_LIMIT, "%s:%u: more than %d keys", path, number, TRUSTED_MAX);
            goto fail;
        }
        char *copy;
        RP_TRY(rp_arena_string(arena, key, &copy));
        texts[found++] = copy;
    }
    *public_texts = texts;
    *count = found;
    err = RP_OK;
fail:
    if (file) {
        (void)fclose(file);
    }
    return err;
}
