/* Finds the newest complete checkpoint of a folder, and removes old ones. */
#include "checkpoint/checkpoint_own.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/folders.h"

enum { KEEP = 2, NAME_BYTES = 64 };

static bool ends_in(const char *name, const char *end) {
    const size_t length = strlen(name);
    return strncmp(name, "step-", 5) == 0 && length > strlen(end) + 5 && length < NAME_BYTES &&
           strcmp(name + length - strlen(end), end) == 0;
}

static bool is_checkpoint(const char *name) {
    return ends_in(name, ".safetensors");
}

static bool is_of_checkpoint(const char *name) {
    return ends_in(name, ".safetensors") || ends_in(name, ".flight") || ends_in(name, ".steer");
}

/* Lists the KEEP newest checkpoints of a folder by name, and so by step; "": no further checkpoint.
 */
static void find_newest(DIR *dir, char newest[KEEP][NAME_BYTES]) {
    const struct dirent *entry;
    memset(newest, 0, KEEP * NAME_BYTES);
    while ((entry = readdir(dir))) {
        for (int i = 0; is_checkpoint(entry->d_name) && i < KEEP; i++) {
            if (strcmp(entry->d_name, newest[i]) > 0) {
                memmove(newest[i + 1 < KEEP ? i + 1 : i], newest[i],
                        (size_t)(KEEP - 1 - i) * NAME_BYTES);
                memcpy(newest[i], entry->d_name, strlen(entry->d_name) + 1);
                break;
            }
        }
    }
    rewinddir(dir);
}

void rp_checkpoint_remove_old(const char *folder) {
    char newest[KEEP][NAME_BYTES];
    const struct dirent *entry;
    DIR *dir = rp_folders_open(folder);
    if (!dir) {
        return;
    }
    find_newest(dir, newest);
    const size_t step = strcspn(newest[KEEP - 1], "."); /* keeps its sidecar files also */
    while ((entry = readdir(dir))) {
        if (is_of_checkpoint(entry->d_name) && strncmp(entry->d_name, newest[KEEP - 1], step) < 0) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    (void)closedir(dir);
}

/* *whole: the file and its sidecar files are complete and match their checksums; false: the last
 * error names the damage. */
static rp_err check_whole(rp_arena *arena, const rp_runfile *run, const char *path,
                          rp_position *position, bool *whole) {
    rp_st_reader *reader = NULL;
    rp_err err = RP_OK;
    *whole = rp_st_open(arena, path, &reader) == RP_OK && rp_st_check_sums(reader) == RP_OK;
    if (*whole) {
        RP_TRY(rp_checkpoint_read_position(arena, reader, run, path, position));
        rp_setup setup = rp_setup_of(run);
        rp_runfile then;
        if (run->method.advance_auto) { /* the checkpoint determines the number of replicas */
            rp_setup_take_advance(&setup, position->setup.advance);
        }
        rp_setup_run(run, &setup, &then);
        *whole = rp_checkpoint_check(&then, path, true) == RP_OK;
    }
fail:
    rp_st_close(&reader);
    return err;
}

static void list_newest(const char *folder, char newest[KEEP][NAME_BYTES]) {
    DIR *dir = rp_folders_open(folder);
    memset(newest, 0, KEEP * NAME_BYTES);
    if (dir) {
        find_newest(dir, newest);
        (void)closedir(dir);
    }
}

static void read_scores(const char *folder, rp_position *position) {
    rp_checkpoint_read_evaluated(folder, RP_SPLIT_TEST, position);
    rp_checkpoint_read_evaluated(folder, RP_SPLIT_VALIDATION, position);
}

rp_err rp_checkpoint_find(rp_arena *arena, const rp_runfile *run, const char *folder, char **path,
                          rp_position *position, char damaged[RP_CHECKPOINT_DAMAGE]) {
    char newest[KEEP][NAME_BYTES];
    bool whole = false;
    rp_err err = RP_OK;
    list_newest(folder, newest);
    *path = NULL;
    damaged[0] = '\0';
    for (int i = 0; !whole && i < KEEP && newest[i][0]; i++) {
        rp_position found = {0};
        RP_TRY(rp_arena_printf(arena, path, "%s/%s", folder, newest[i]));
        RP_TRY(check_whole(arena, run, *path, &found, &whole));
        if (whole) {
            *position = found;
            read_scores(folder, position);
        } else if (i == 0) {
            (void)snprintf(damaged, RP_CHECKPOINT_DAMAGE, "%s", rp_err_message());
        }
    }
    if (newest[0][0] && !whole) {
        err = rp_fail(RP_ERR_FORMAT, "%s; all earlier checkpoints are damaged also", damaged);
    }
fail:
    return err;
}

rp_err rp_checkpoint_find_place(rp_arena *arena, const rp_runfile *run, const char *folder,
                                rp_position *position) {
    char newest[KEEP][NAME_BYTES];
    rp_st_reader *reader = NULL;
    rp_position found = {0};
    char *path;
    rp_err err;
    list_newest(folder, newest);
    if (!newest[0][0]) {
        return rp_fail(RP_ERR_FORMAT, "%s: the folder has no checkpoint", folder);
    }
    RP_TRY(rp_arena_printf(arena, &path, "%s/%s", folder, newest[0]));
    RP_TRY(rp_st_open(arena, path, &reader));
    RP_TRY(rp_st_check_header(reader));
    RP_TRY(rp_checkpoint_read_position(arena, reader, run, path, &found));
    *position = found;
    read_scores(folder, position);
fail:
    rp_st_close(&reader);
    return err;
}
