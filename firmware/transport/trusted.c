#include "transport/trusted.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/input.h"
#include "transport/keytext.h"

enum { LINE_BYTES = 512 };

/* ---- reading --------------------------------------------------------------------------------- */

/* Parses a line in place: `name key`, a comment or nothing. *name is NULL without a key. */
static rp_err split_line(const char *path, uint32_t number, char *line, char **name,
                         char key[RP_KEY_TEXT]) {
    *name = NULL;
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
    char *text = at;
    at += strcspn(at, " \t");
    const bool more = *at && at[strspn(at, " \t")];
    *at = 0;
    if (more || !*text) {
        return rp_fail(RP_ERR_FORMAT, "%s:%u: expected `name key`", path, number);
    }
    const char *wrong = rp_key_parse(text, key);
    return wrong ? rp_fail(RP_ERR_FORMAT, "%s:%u: the key of %.*s %s", path, number,
                           RP_TRUSTED_NAME_MAX, *name, wrong)
                 : RP_OK;
}

static rp_err read_lines(rp_arena *arena, FILE *file, const char *path, rp_trusted *list,
                         uint32_t *count) {
    char line[LINE_BYTES];
    char key[RP_KEY_TEXT];
    char *name;
    char *copy;
    rp_err err = RP_OK;
    for (uint32_t number = 1; fgets(line, sizeof line, file); number++) {
        RP_TRY(split_line(path, number, line, &name, key));
        if (!name) {
            continue;
        }
        if (*count == RP_TRUSTED_MAX) {
            return rp_fail(RP_ERR_LIMIT, "%s:%u: more than %d keys", path, number, RP_TRUSTED_MAX);
        }
        RP_TRY(rp_arena_string(arena, name, &copy));
        list[*count].name = copy;
        RP_TRY(rp_arena_string(arena, key, &copy));
        list[(*count)++].key = copy;
    }
fail:
    return err;
}

rp_err rp_trusted_read(rp_arena *arena, const char *dir, const rp_trusted **list, uint32_t *count) {
    char *path;
    rp_trusted *found;
    const char *why;
    FILE *file = NULL;
    rp_err err;
    *list = NULL;
    *count = 0;
    RP_TRY(rp_arena_printf(arena, &path, "%s/trusted", dir));
    file = rp_input_fopen(path, &why);
    if (!file) {
        return errno == ENOENT ? RP_OK : rp_fail(RP_ERR_IO, "%s: %s", path, why);
    }
    RP_TRY(RP_ARENA_NEW(arena, RP_TRUSTED_MAX, &found));
    RP_TRY(read_lines(arena, file, path, found, count));
    *list = found;
fail:
    if (file) {
        (void)fclose(file);
    }
    return err;
}

rp_err rp_trusted_keys(rp_arena *arena, const rp_trusted *list, uint32_t count,
                       const char *const **keys) {
    const char **texts;
    const rp_err err = RP_ARENA_NEW(arena, count + (size_t)1, &texts);
    for (uint32_t i = 0; err == RP_OK && i < count; i++) {
        texts[i] = list[i].key;
    }
    *keys = err == RP_OK ? texts : NULL;
    return err;
}

/* ---- changing -------------------------------------------------------------------------------- */

/* Copies all lines except the one of `name`. */
static rp_err copy_lines(FILE *from, const char *path, FILE *to, const char *name) {
    char line[LINE_BYTES];
    char parsed[LINE_BYTES];
    char key[RP_KEY_TEXT];
    for (uint32_t number = 1; from && fgets(line, sizeof line, from); number++) {
        char *old_name;
        memcpy(parsed, line, sizeof parsed);
        rp_err err = split_line(path, number, parsed, &old_name, key);
        if (err) {
            return err;
        }
        if (!old_name || strcmp(old_name, name) != 0) {
            line[strcspn(line, "\r\n")] = 0;
            (void)fprintf(to, "%s\n", line);
        }
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

/* Writes the file without the line of `name`, then `name` and `word`, if not NULL. */
static rp_err write_list(const char *dir, const char *path, const char *new_path, const char *name,
                         const char *word) {
    rp_err err = RP_OK;
    FILE *to = NULL;
    FILE *from = fopen(path, "re");
    if (!from && errno != ENOENT) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    to = fopen(new_path, "we");
    if (!to) {
        err = rp_fail(RP_ERR_IO, "%s: %s", new_path, strerror(errno));
        goto fail;
    }
    RP_TRY(copy_lines(from, path, to, name));
    if (word) {
        (void)fprintf(to, "%s %s\n", name, word);
    }
    if (fflush(to) != 0 || fsync(fileno(to)) != 0 || ferror(to) || rename(new_path, path) != 0) {
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

static rp_err replace_list(const char *dir, const char *name, const char *word) {
    rp_arena arena;
    char *path;
    char *new_path;
    rp_err err;
    rp_arena_init(&arena, "trusted", 0);
    RP_TRY(rp_arena_printf(&arena, &path, "%s/trusted", dir));
    RP_TRY(rp_arena_printf(&arena, &new_path, "%s.new", path));
    err = write_list(dir, path, new_path, name, word);
fail:
    rp_arena_finish(&arena);
    return err;
}

static bool is_name(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i])) {
            return false;
        }
    }
    return length > 0 && length <= RP_TRUSTED_NAME_MAX;
}

rp_err rp_trusted_add(const char *dir, const char *name, const char *key) {
    char z85[RP_KEY_TEXT];
    char word[RP_KEY_WORD];
    if (!is_name(name)) {
        return rp_fail(RP_ERR_USAGE, "keys: name '%s': expected 1 to %d of A-Z a-z 0-9 . _ -", name,
                       RP_TRUSTED_NAME_MAX);
    }
    const char *wrong = rp_key_parse(key, z85);
    if (wrong) { /* it may be a secret key: do not show all of it */
        return rp_fail(RP_ERR_USAGE, "keys: '%.12s%s' %s", key, strlen(key) > 12 ? "..." : "",
                       wrong);
    }
    rp_key_write(z85, word);
    rp_err err = rp_folders_make(dir, 0700);
    return err == RP_OK ? replace_list(dir, name, word) : err;
}

static rp_err fail_unknown(const char *name, const rp_trusted *list, uint32_t count) {
    char known[512] = "";
    for (uint32_t i = 0; i < count; i++) {
        const size_t used = strlen(known);
        (void)snprintf(known + used, sizeof known - used, " %s", list[i].name);
    }
    return rp_fail(RP_ERR_USAGE, "keys: no host on the list is called '%s'; there are:%s", name,
                   count ? known : " none");
}

rp_err rp_trusted_remove(const char *dir, const char *name) {
    rp_arena arena;
    const rp_trusted *list;
    uint32_t count;
    uint32_t at = 0;
    rp_err err;
    rp_arena_init(&arena, "trusted", 0);
    RP_TRY(rp_trusted_read(&arena, dir, &list, &count));
    while (at < count && strcmp(list[at].name, name) != 0) {
        at++;
    }
    err = at < count ? replace_list(dir, name, NULL) : fail_unknown(name, list, count);
fail:
    rp_arena_finish(&arena);
    return err;
}
