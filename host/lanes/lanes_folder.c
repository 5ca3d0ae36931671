/* The folder of a run of lanes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/folders.h"
#include "lanes/lanes_own.h"
#include "runs/owner.h"
#include "runs/place.h"

static rp_err name_folder(rp_lanes *lanes) {
    const rp_lanes_options *options = &lanes->options;
    char *path;
    rp_err err = RP_OK;
    lanes->folder = options->resume ? options->run_path : options->out;
    if (!lanes->folder) {
        RP_TRY(rp_run_place_make(&lanes->arena, lanes->model, "lanes", &path));
        lanes->folder = path;
    }
fail:
    return err;
}

static rp_err name_files(rp_lanes *lanes) {
    const struct {
        char **to;
        const char *name;
    } files[] = {
        {&lanes->run_yaml, "run.yaml"},           {&lanes->journal, "lanes.json"},
        {&lanes->center, "center.safetensors"},   {&lanes->next_center, "next-center.safetensors"},
        {&lanes->weights, "weights.safetensors"}, {&lanes->scores, "scores.json"},
        {&lanes->summary, "summary.json"},        {&lanes->log_path, "log.jsonl"}};
    rp_err err = RP_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        RP_TRY(rp_arena_printf(&lanes->arena, files[i].to, "%s/%s", lanes->folder, files[i].name));
    }
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        rp_lane_init(&lanes->lane[k], k, lanes->folder);
    }
    rp_lane_init(&lanes->scorer, 0, lanes->folder);
fail:
    return err;
}

static rp_err lock_folder(rp_lanes *lanes) {
    lanes->folder_fd = open(lanes->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lanes->folder_fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", lanes->folder, strerror(errno));
    }
    return flock(lanes->folder_fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: another ringpipe trains in this folder; stop it or wait for its end",
                         lanes->folder);
}

rp_err rp_lanes_take_folder(rp_lanes *lanes) {
    rp_err err;
    RP_TRY(name_folder(lanes));
    RP_TRY(name_files(lanes));
    RP_TRY(rp_folders_make(lanes->folder, 0777));
    RP_TRY(lock_folder(lanes));
    RP_TRY(lanes->options.resume ? RP_OK : rp_run_place_check(&lanes->arena, lanes->folder));
    RP_TRY(rp_owner_write(lanes->folder));
    lanes->owns_folder = true;
    lanes->log = fopen(lanes->log_path, "ae");
    if (!lanes->log) {
        return rp_fail(RP_ERR_IO, "%s: %s", lanes->log_path, strerror(errno));
    }
fail:
    return err;
}

void rp_lanes_leave_folder(rp_lanes *lanes) {
    if (lanes->log) {
        (void)fclose(lanes->log);
    }
    if (lanes->owns_folder) {
        rp_owner_remove(lanes->folder);
    }
    if (lanes->folder_fd >= 0) {
        (void)close(lanes->folder_fd);
    }
}
