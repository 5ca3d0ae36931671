/* tune: finds kernel parameters of a device. An existing file is replaced only by faster
 * parameters, after confirmation. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "cli/open_board.h"
#include "device/tune.h"

static void print_line(const char *text) {
    rp_print(stderr, "%s\n", text);
}

static void print_nothing(const char *text) {
    (void)text;
}

/* Makes the folder of a file, like mkdir -p. */
static rp_err make_folder_of(const char *path) {
    char part[512];
    if (strlen(path) >= sizeof part) {
        return rp_fail(RP_ERR_USAGE, "%s: the path is too long", path);
    }
    for (size_t i = 1; path[i]; i++) {
        if (path[i] == '/') {
            memcpy(part, path, i);
            part[i] = '\0';
            if (mkdir(part, 0777) != 0 && errno != EEXIST) {
                return rp_fail(RP_ERR_IO, "%s: %s", part, strerror(errno));
            }
        }
    }
    return RP_OK;
}

static rp_err find_target(rp_arena *arena, const rp_cli_args *args, const rp_device *device,
                          const char **out) {
    const rp_device_facts *facts = rp_device_facts_of(device);
    const rp_tuning_key key = {facts->platform, facts->name, facts->driver};
    const char *folder;
    char *path;
    rp_err err = RP_OK;
    *out = args->out;
    if (!args->out) {
        RP_TRY(rp_tuning_folder(arena, args->system, &folder));
        RP_TRY(rp_tuning_path(arena, folder, &key, &path));
        *out = path;
    }
fail:
    return err;
}

/* Checks the target before minutes are spent. */
static rp_err check_target(const rp_cli_args *args, const char *path) {
    if (access(path, F_OK) == 0 && !args->yes && !isatty(STDIN_FILENO)) {
        return rp_fail(RP_ERR_USAGE,
                       "%s exists already: give --yes to replace it with faster parameters, or "
                       "--out FILE",
                       path);
    }
    return args->out ? RP_OK : make_folder_of(path);
}

static bool may_replace(const rp_cli_args *args, const char *path) {
    char answer[16];
    if (access(path, F_OK) != 0 || args->yes) {
        return true;
    }
    rp_print(stderr, "replace %s? [y/N] ", path);
    (void)fflush(stderr);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static rp_err finish(rp_arena *arena, const rp_cli_args *args, const rp_device *device,
                     const rp_tune_result *result, const char *path) {
    const char *before = rp_device_tuning_origin(device)->applied;
    (void)printf("before  %8.1f GFLOP/s  %s\nfound   %8.1f GFLOP/s  %s\n", result->before,
                 before ? before : "CLBlast's own parameters", result->found,
                 rp_gemm_choice_name(result->gemm));
    if (!result->better) {
        (void)printf("nothing was written: the present parameters are as fast or faster\n");
        return RP_OK;
    }
    if (!may_replace(args, path)) {
        (void)printf("nothing was written\n");
        return RP_OK;
    }
    const rp_err err = rp_tune_write(arena, result, path);
    if (err == RP_OK) {
        (void)printf("%s written: gemm %s\n", path, rp_gemm_choice_name(result->gemm));
    }
    return err;
}

rp_err rp_verb_tune(rp_arena *arena, const rp_cli_args *args) {
    rp_board board;
    rp_device *device = NULL;
    rp_tune_result result;
    const char *path;
    rp_err err;
    if (!(args->minutes > 0)) {
        RP_TRY(rp_fail(RP_ERR_USAGE, "--minutes: expected a time above 0"));
    }
    RP_TRY(rp_cli_open_board(arena, args, &board, &device));
    RP_TRY(find_target(arena, args, device, &path));
    RP_TRY(check_target(args, path));
    RP_TRY(rp_tune_run(arena, device, args->minutes, args->quiet ? print_nothing : print_line,
                       &result));
    RP_TRY(finish(arena, args, device, &result, path));
fail:
    rp_device_close(&device);
    return err;
}
