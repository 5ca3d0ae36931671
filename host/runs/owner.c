#include "runs/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace.h"

enum { PATH_BYTES = 600, FILE_BYTES_MAX = 4096, WORD_BYTES = 64, STAT_BYTES = 1024 };

static bool write_path(const char *folder, char path[PATH_BYTES]) {
    return snprintf(path, PATH_BYTES, "%s/controller.json", folder) < PATH_BYTES;
}

/* Reads a one-line file of the kernel; "" if it is missing. */
static void read_word(const char *path, char word[WORD_BYTES]) {
    FILE *file = fopen(path, "re");
    word[0] = '\0';
    if (file) {
        if (!fgets(word, WORD_BYTES, file)) {
            word[0] = '\0';
        }
        word[strcspn(word, "\n")] = '\0';
        (void)fclose(file);
    }
}

static void read_boot(char word[WORD_BYTES]) {
    read_word("/proc/sys/kernel/random/boot_id", word);
}

/* The namespace in which process numbers are valid. */
static void read_namespace(char word[WORD_BYTES]) {
    const ssize_t bytes = readlink("/proc/self/ns/pid", word, WORD_BYTES - 1);
    word[bytes > 0 ? bytes : 0] = '\0';
}

/* Start of a process in ticks since boot; 0: it does not exist or is a zombie. proc(5): field 22 of
 * stat; the name, in parentheses, may contain anything. */
static uint64_t read_start(int64_t pid) {
    char path[PATH_BYTES];
    char text[STAT_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    FILE *file = fopen(path, "re");
    const size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) {
        (void)fclose(file);
    }
    text[bytes] = '\0';
    char *at = strrchr(text, ')');
    if (!at || strlen(at) < 3 || strchr("ZX", at[2])) {
        return 0;
    }
    for (uint32_t field = 2; at && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

/* Identity of a folder by device and inode, which differ for a copy; "": it does not exist. */
static void name_folder(const char *folder, char word[WORD_BYTES]) {
    struct stat facts;
    word[0] = '\0';
    if (stat(folder, &facts) == 0) {
        (void)snprintf(word, WORD_BYTES, "%ju:%ju", (uintmax_t)facts.st_dev,
                       (uintmax_t)facts.st_ino);
    }
}

rp_err rp_owner_write(const char *folder) {
    char path[PATH_BYTES];
    char host[256] = "";
    char boot[WORD_BYTES];
    char space[WORD_BYTES];
    char own[WORD_BYTES];
    if (!write_path(folder, path)) {
        return rp_fail(RP_ERR_USAGE, "%s: the path is too long", folder);
    }
    name_folder(folder, own);
    (void)gethostname(host, sizeof host - 1);
    read_boot(boot);
    read_namespace(space);
    json_t *root = json_pack("{s:i, s:I, s:I, s:s, s:s, s:s, s:s}", "version", 1, "pid",
                             (json_int_t)getpid(), "start", (json_int_t)read_start(getpid()),
                             "host", host, "boot", boot, "namespace", space, "folder", own);
    FILE *file = root ? rp_replace_begin(path) : NULL;
    const bool good = file && json_dumpf(root, file, 0) == 0 && fputc('\n', file) != EOF;
    json_decref(root);
    return rp_replace_end(file, path, good);
}

void rp_owner_remove(const char *folder) {
    char path[PATH_BYTES];
    if (write_path(folder, path)) {
        (void)unlink(path);
    }
}

/* NULL: the file is missing or invalid. */
static json_t *load(const char *folder, int64_t *made_ns) {
    char path[PATH_BYTES];
    struct stat facts;
    json_t *root = NULL;
    const int fd =
        write_path(folder, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) &&
        facts.st_size <= FILE_BYTES_MAX) {
        root = json_loadfd(fd, 0, NULL);
        *made_ns = facts.st_mtim.tv_sec * INT64_C(1000000000) + facts.st_mtim.tv_nsec;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return root;
}

static bool is_same(const json_t *root, const char *key, const char *own) {
    const char *text = json_string_value(json_object_get(root, key));
    return text && own[0] && strcmp(text, own) == 0;
}

static rp_owner_life life_of(const json_t *root, const rp_owner *owner, const char *folder) {
    char boot[WORD_BYTES];
    char space[WORD_BYTES];
    char own[WORD_BYTES];
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    read_boot(boot);
    read_namespace(space);
    if (!is_same(root, "boot", boot)) { /* a reboot since then, or a different machine */
        return strcmp(owner->host, host) == 0 ? RP_OWNER_DEAD : RP_OWNER_ELSEWHERE;
    }
    if (!is_same(root, "namespace", space)) {
        return RP_OWNER_ELSEWHERE;
    }
    name_folder(folder, own);
    if (json_object_get(root, "folder") && !is_same(root, "folder", own)) {
        return RP_OWNER_DEAD; /* a copy; the process uses the original */
    }
    return rp_owner_is_alive(owner) ? RP_OWNER_ALIVE : RP_OWNER_DEAD;
}

void rp_owner_read(const char *folder, rp_owner *out) {
    *out = (rp_owner){.life = RP_OWNER_NONE};
    json_t *root = load(folder, &out->made_ns);
    const json_int_t pid = json_integer_value(json_object_get(root, "pid"));
    const json_int_t start = json_integer_value(json_object_get(root, "start"));
    const char *host = json_string_value(json_object_get(root, "host"));
    if (pid > 0 && start > 0 && host) {
        out->pid = pid;
        out->start = (uint64_t)start;
        (void)snprintf(out->host, sizeof out->host, "%s", host);
        out->life = life_of(root, out, folder);
    }
    json_decref(root);
}

bool rp_owner_is_alive(const rp_owner *owner) {
    return owner->start > 0 && read_start(owner->pid) == owner->start;
}
