#include "folder/folder_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/replace.h"
#include "base/shell.h"
#include "data/describe.h"
#include "planning/tables.h"
#include "run/paths.h"
#include "runs/owner.h"
#include "runs/place.h"

/* ---- which folder ---------------------------------------------------------------------------- */

rp_err rp_folder_open(rp_arena *arena, rp_folder **out) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, out));
    (*out)->arena = arena;
    (*out)->fd = -1;
fail:
    return err;
}

const rp_folder_paths *rp_folder_paths_of(const rp_folder *folder) {
    return &folder->paths;
}

/* Locks the folder for this controller, until it is closed or its process ends. */
static rp_err lock_folder(rp_folder *folder) {
    const char *path = folder->paths.folder;
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (flock(folder->fd, LOCK_EX | LOCK_NB) == 0) {
        return RP_OK;
    }
    if (errno != EWOULDBLOCK) { /* a file system without locks: terms tell two controllers apart */
        rp_log_debug("controller: %s cannot be locked: %s", path, strerror(errno));
        return RP_OK;
    }
    return rp_fail(RP_ERR_USAGE,
                   "%s: another ringpipe trains in this folder; stop it or wait for its end", path);
}

void rp_folder_unlock(rp_folder *folder) {
    if (folder->fd >= 0) {
        (void)close(folder->fd);
        folder->fd = -1;
    }
}

void rp_folder_leave(rp_folder *folder) {
    RP_ASSERT(!folder->is_owned || folder->paths.folder);
    if (folder->is_owned) {
        rp_owner_remove(folder->paths.folder);
        folder->is_owned = false;
    }
    rp_folder_unlock(folder);
}

static rp_err name_files(rp_folder *folder) {
    rp_folder_paths *paths = &folder->paths;
    const struct {
        const char *name;
        const char **path;
    } files[] = {
        {"checkpoint", &paths->checkpoints},        {"weights.safetensors", &paths->weights},
        {"best.safetensors", &paths->best_weights}, {"run.yaml", &paths->run_yaml},
        {"model.yaml", &paths->model_yaml},         {"plan.json", &paths->plan_json},
        {"data.json", &paths->data_json},
    };
    rp_err err = RP_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path;
        RP_TRY(rp_arena_printf(folder->arena, &path, "%s/%s", paths->folder, files[i].name));
        *files[i].path = path;
    }
fail:
    return err;
}

static rp_err name_folder(rp_folder *folder, const rp_folder_choice *choice) {
    char *path;
    rp_err err = RP_OK;
    folder->paths.folder = choice->resume ? choice->resume : choice->out;
    if (!folder->paths.folder) {
        RP_TRY(rp_run_place_make(folder->arena, choice->model, choice->schedule, &path));
        folder->paths.folder = path;
    }
    RP_TRY(name_files(folder));
fail:
    return err;
}

rp_err rp_folder_choose(rp_folder *folder, const rp_folder_choice *choice) {
    const rp_folder_paths *paths = &folder->paths;
    rp_err err;
    RP_ASSERT(!paths->folder && folder->fd < 0); /* only once */
    RP_TRY(name_folder(folder, choice));
    if (choice->resume && access(paths->run_yaml, F_OK) != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: no run to resume: there is no run.yaml", paths->folder);
    }
    RP_TRY(rp_folders_make(paths->folder, 0777));
    RP_TRY(lock_folder(folder));
    RP_TRY(choice->resume ? RP_OK : rp_run_place_check(folder->arena, paths->folder));
    RP_TRY(access(paths->checkpoints, F_OK) == 0 ? rp_folders_make_own(paths->checkpoints, 0777)
                                                 : RP_OK);
    if (!choice->temporary) { /* a simulation has no process of its own */
        RP_TRY(rp_owner_write(paths->folder));
        folder->is_owned = true;
    }
    RP_ASSERT(paths->folder && paths->checkpoints && paths->run_yaml);
fail:
    return err;
}

/* ---- what is written there ------------------------------------------------------------------- */

static rp_err write_plan(const rp_folder *folder, const rp_plan *plan) {
    FILE *file = rp_replace_begin(folder->paths.plan_json);
    const rp_err err = file ? rp_plan_write(plan, file) : RP_OK;
    const rp_err replaced = rp_replace_end(file, folder->paths.plan_json, err == RP_OK);
    return err == RP_OK ? replaced : err;
}

rp_err rp_folder_check_data(const rp_folder *folder, const rp_runfile *run) {
    return rp_data_check_vocab(&run->data, folder->paths.data_json);
}

rp_err rp_folder_write(rp_folder *folder, const rp_folder_contents *contents) {
    const rp_folder_paths *paths = &folder->paths;
    const rp_runfile *run = contents->run;
    void *data = contents->resumed ? rp_resumed_read_data(folder) : NULL;
    rp_err err;
    RP_ASSERT(paths->folder && contents->plan);
    RP_TRY(rp_paths_make_absolute(folder->arena, run->root));
    RP_TRY(contents->resumed ? rp_resumed_note(folder, run, contents->step) : RP_OK);
    RP_TRY(rp_config_replace(run->model_root, paths->model_yaml));
    RP_TRY(rp_data_describe(&run->data, paths->data_json));
    RP_TRY(rp_resumed_compare_data(folder, data, contents->step));
    RP_TRY(write_plan(folder, contents->plan));
    RP_TRY(rp_about_write(paths->folder, contents->about));
    RP_TRY(rp_config_replace(run->root, paths->run_yaml));
fail:
    return err;
}

/* ---- the record ------------------------------------------------------------------------------ */

rp_record *rp_folder_record(const rp_folder *folder) {
    return folder->record;
}

rp_transfers *rp_folder_transfers(const rp_folder *folder) {
    return folder->transfers;
}

rp_err rp_folder_open_record(rp_folder *folder, const rp_record_run *run,
                             const rp_record_totals *start) {
    rp_err err;
    RP_ASSERT(!folder->record);
    RP_TRY(rp_record_open(folder->arena, run, start, &folder->record));
    if (folder->paths.folder && !run->temporary && !folder->transfers) {
        RP_TRY(rp_transfers_open(folder->arena, &folder->transfers));
    }
fail:
    return err;
}

rp_err rp_folder_close_record(rp_folder *folder, const rp_record_end *end) {
    return rp_record_close(&folder->record, end);
}

void rp_folder_close_transfers(rp_folder *folder) {
    rp_transfers_close(&folder->transfers);
}

/* Quotes the words, so that the command works when pasted. */
void rp_folder_print_resume(const rp_folder *folder, FILE *progress, const char *program,
                            const char *keys) {
    const rp_folder_paths *paths = rp_folder_paths_of(folder);
    const char *const words[] = {program ? program : "ringpipe", paths->folder, keys};
    const char *quoted[3] = {"", "", ""};
    rp_arena arena;
    if (!paths->folder || access(paths->run_yaml, F_OK) != 0) {
        return;
    }
    rp_arena_init(&arena, "hint", 0);
    for (uint32_t i = 0; i < 3; i++) {
        if (words[i] && rp_shell_word(&arena, words[i], &quoted[i]) != RP_OK) {
            quoted[i] = words[i];
        }
    }
    rp_print(progress, "go on with: %s resume %s%s%s\n", quoted[0], quoted[1],
             keys ? " --keys " : "", quoted[2]);
    rp_arena_finish(&arena);
}
