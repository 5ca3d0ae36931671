#include "runs/found.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs/owner.h"
#include "runs/state.h"

enum { PATH_BYTES = 4096, DEPTH_MAX = 5, ENTRIES_MAX = 100000 };

static int by_name(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static rp_err add_folder(rp_arena *arena, const char *folder, rp_runs *runs) {
    char *copy;
    rp_err err;
    for (uint32_t i = 0; i < runs->count; i++) {
        if (strcmp(runs->folder[i], folder) == 0) {
            return RP_OK;
        }
    }
    if (runs->count == RP_RUNS_MAX) {
        runs->more = true;
        return RP_OK;
    }
    RP_TRY(rp_arena_string(arena, folder, &copy));
    runs->folder[runs->count++] = copy;
    qsort(runs->folder, runs->count, sizeof *runs->folder, by_name);
fail:
    return err;
}

/* ---- active runs ----------------------------------------------------------------------------- */

static bool is_number(const char *text) {
    return text[0] && strspn(text, "0123456789") == strlen(text);
}

/* Adds folders that a process keeps open; a controller keeps its run folder open for the lock. */
static rp_err add_open_folders(rp_arena *arena, const char *process, rp_runs *runs) {
    char path[PATH_BYTES];
    char folder[PATH_BYTES];
    rp_err err = RP_OK;
    (void)snprintf(path, sizeof path, "/proc/%s/fd", process);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && err == RP_OK && (entry = readdir(dir));) {
        struct stat facts;
        rp_owner owner;
        if (snprintf(path, sizeof path, "/proc/%s/fd/%s", process, entry->d_name) >= PATH_BYTES ||
            stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
            continue;
        }
        const ssize_t bytes = readlink(path, folder, sizeof folder - 1);
        folder[bytes > 0 ? bytes : 0] = '\0';
        rp_owner_read(folder, &owner);
        if (owner.life == RP_OWNER_ALIVE && owner.pid == strtoll(process, NULL, 10)) {
            err = add_folder(arena, folder, runs);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
    return err;
}

rp_err rp_runs_at_work(rp_arena *arena, rp_runs *runs) {
    char path[PATH_BYTES];
    rp_err err = RP_OK;
    DIR *dir = opendir("/proc");
    for (struct dirent *entry; dir && err == RP_OK && (entry = readdir(dir));) {
        struct stat facts;
        if (is_number(entry->d_name) &&
            snprintf(path, sizeof path, "/proc/%s", entry->d_name) < PATH_BYTES &&
            stat(path, &facts) == 0 && (geteuid() == 0 || facts.st_uid == geteuid())) {
            err = add_open_folders(arena, entry->d_name, runs);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
    return err;
}

/* ---- below a folder -------------------------------------------------------------------------- */

typedef struct {
    rp_arena *arena;
    rp_runs *runs;
    uint32_t entries, found;
} search;

static rp_err walk(search *s, const char *path, uint32_t depth) {
    char below[PATH_BYTES];
    rp_err err = RP_OK;
    if (rp_run_is_folder(path)) {
        s->found++;
        return add_folder(s->arena, path, s->runs);
    }
    DIR *dir = depth < DEPTH_MAX ? opendir(path) : NULL;
    for (struct dirent *entry; dir && err == RP_OK && (entry = readdir(dir));) {
        struct stat facts;
        if (++s->entries > ENTRIES_MAX) {
            s->runs->more = true;
            break;
        }
        if (entry->d_name[0] != '.' &&
            snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < PATH_BYTES &&
            lstat(below, &facts) == 0 && S_ISDIR(facts.st_mode)) {
            err = walk(s, below, depth + 1);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
    return err;
}

rp_err rp_runs_below(rp_arena *arena, const char *path, rp_runs *runs) {
    struct stat facts;
    search s = {.arena = arena, .runs = runs};
    rp_err err;
    char *plain; /* without a '/' at the end */
    if (stat(path, &facts) != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: %s", path, strerror(errno));
    }
    if (!S_ISDIR(facts.st_mode)) {
        return rp_fail(RP_ERR_USAGE, "%s: expected a run folder, or a folder with run folders",
                       path);
    }
    RP_TRY(rp_arena_string(arena, path, &plain));
    for (size_t length = strlen(plain); length > 1 && plain[length - 1] == '/';) {
        plain[--length] = '\0';
    }
    RP_TRY(walk(&s, plain, 0));
    if (s.found == 0) {
        err = rp_fail(RP_ERR_USAGE, "%s: the folder contains no run", path);
    }
fail:
    return err;
}
