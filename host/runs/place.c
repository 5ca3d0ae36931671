#include "runs/place.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/folders.h"
#include "base/shell.h"

enum { NAME_BYTES = 256, SAME_NAME_MAX = 1000 };

/* Files that runs write, including runs with lanes. */
static const char *const names[] = {"model.yaml",
                                    "data.json",
                                    "plan.json",
                                    "about.json",
                                    "log.jsonl",
                                    "trace.json",
                                    "summary.json",
                                    "events.out.tfevents.ringpipe",
                                    "checkpoint",
                                    "best.safetensors",
                                    "weights.safetensors",
                                    "agent-[0-9]*.log",
                                    "lanes.json",
                                    "scores.json",
                                    "center.safetensors",
                                    "next-center.safetensors",
                                    "lane-[0-9]*",
                                    "federation.json",
                                    "state.safetensors",
                                    "next-state.safetensors",
                                    "rounds",
                                    "sites",
                                    "now.json",
                                    NULL};

rp_err rp_run_place_make(rp_arena *arena, const char *model, const char *word, char **folder) {
    const char *slash = strrchr(model, '/');
    char stamp[32];
    struct timespec now;
    struct tm tm;
    rp_err err;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    (void)strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    RP_TRY(rp_folders_make("runs", 0777));
    RP_TRY(rp_arena_printf(arena, folder, "runs/%s-%s-%s", stamp, slash ? slash + 1 : model, word));
    const char *first = *folder;
    for (uint32_t n = 2; mkdir(*folder, 0777) != 0; n++) {
        if (errno != EEXIST || n > SAME_NAME_MAX) {
            return rp_fail(RP_ERR_IO, "%s: %s", *folder, strerror(errno));
        }
        RP_TRY(rp_arena_printf(arena, folder, "%s-%u", first, n));
    }
fail:
    return err;
}

static bool is_there(const char *folder, const char *name, bool counts_empty) {
    char path[RP_FOLDERS_PATH_BYTES];
    struct stat facts;
    const int used = snprintf(path, sizeof path, "%s/%s", folder, name);
    return used < (int)sizeof path && lstat(path, &facts) == 0 &&
           (counts_empty || !S_ISREG(facts.st_mode) || facts.st_size > 0);
}

static bool is_written_by_runs(const char *name) {
    for (uint32_t i = 0; names[i]; i++) {
        if (fnmatch(names[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* Finds the first file by name that a run would overwrite; "": no such file. */
static void find_foreign(const char *folder, char found[NAME_BYTES]) {
    DIR *dir = opendir(folder);
    found[0] = '\0';
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (is_written_by_runs(name) && is_there(folder, name, false) &&
            (!found[0] || strcmp(name, found) < 0)) {
            (void)snprintf(found, NAME_BYTES, "%s", name);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
}

rp_err rp_run_place_check(rp_arena *arena, const char *folder) {
    char found[NAME_BYTES];
    const char *word = folder;
    rp_err err;
    if (is_there(folder, "run.yaml", true)) {
        RP_TRY(rp_shell_word(arena, folder, &word));
        return rp_fail(
            RP_ERR_USAGE,
            "%s: contains a run already; continue it with `ringpipe resume %s`, or choose "
            "a new folder",
            folder, word);
    }
    if (is_there(folder, "identity.json", true) || is_there(folder, "controller.json", true)) {
        return RP_OK; /* the run ended before it began */
    }
    find_foreign(folder, found);
    return found[0] ? rp_fail(RP_ERR_USAGE,
                              "--out %s: %s exists already and would be overwritten; choose a new "
                              "folder",
                              folder, found)
                    : RP_OK;
fail:
    return err;
}
