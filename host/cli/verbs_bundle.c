/* bundle: signs software for boards. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "cli/cli.h"
#include "transport/keys.h"
#include "update/bundle.h"

enum { PATH_BYTES = 4096 };

static rp_err make_pair(const rp_cli_args *args, const char *keys) {
    const rp_err err = rp_signing_new(keys);
    if (err == RP_OK && !args->quiet) {
        (void)fprintf(stderr,
                      "copy %s/update.key to the keys folder of every board; keep "
                      "update-secret.key secret\n",
                      keys);
    }
    return err;
}

static bool has_file(const char *folder, const char *name, int mode) {
    char path[PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n < (int)sizeof path && access(path, mode) == 0;
}

/* A bundle without the agent would fail on every board. */
static rp_err check_folder(const char *folder) {
    const bool is_system = has_file(folder, "system", F_OK);
    if (is_system && has_file(folder, "system/root.squashfs", R_OK) &&
        has_file(folder, "system/vmlinuz", R_OK) && has_file(folder, "system/initrd", R_OK)) {
        return RP_OK;
    }
    if (is_system) {
        return rp_fail(
            RP_ERR_USAGE,
            "%s: incomplete system: expected root.squashfs, vmlinuz and initrd in system/", folder);
    }
    return has_file(folder, "bin/ringpipe-agent", X_OK)
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: expected an executable bin/ringpipe-agent in this folder, or a whole "
                         "system made by `ringpipe image --system`",
                         folder);
}

static rp_err make_bundle(rp_arena *arena, const rp_cli_args *args, const char *keys) {
    const char *folder = args->words.item[0];
    const char *out = args->out;
    rp_signing_pair pair = {0};
    struct stat st;
    char *path;
    rp_err err;
    if (strcmp(args->board, "auto") == 0 || args->image.release == 0) {
        return rp_fail(RP_ERR_USAGE,
                       "expected: bundle FOLDER --board NAME --release N, with N from 1");
    }
    RP_TRY(check_folder(folder));
    RP_TRY(rp_signing_read(keys, &pair));
    if (!out) {
        RP_TRY(rp_arena_printf(arena, &path, "%s-%u.rpb", args->board, args->image.release));
        out = path;
    }
    RP_TRY(rp_bundle_write(out, folder, args->board, args->image.release, RP_VERSION, &pair));
    if (!args->quiet && stat(out, &st) == 0) {
        rp_print(stderr, "%s: %lld bytes, release %u for %s\n", out, (long long)st.st_size,
                 args->image.release, args->board);
    }
fail:
    explicit_bzero(&pair, sizeof pair);
    return err;
}

rp_err rp_verb_bundle(rp_arena *arena, const rp_cli_args *args) {
    const char *keys = args->keys;
    rp_err err = RP_OK;
    RP_TRY(keys ? RP_OK : rp_keys_home(arena, &keys));
    if (args->image.new_key == (args->words.count > 0)) {
        RP_TRY(rp_fail(RP_ERR_USAGE, "expected: bundle FOLDER --board NAME --release N | "
                                     "bundle --new-key"));
    }
    err = args->image.new_key ? make_pair(args, keys) : make_bundle(arena, args, keys);
fail:
    return err;
}
