/* Chooses the tuning.json for a device. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/tuning.h"

static const char MACHINE_FOLDER[] = "/etc/ringpipe/tuning";

/* NULL: the user has no home. */
static rp_err find_user_folder(rp_arena *arena, char **out) {
    const char *own = getenv("RINGPIPE_TUNING");
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    *out = NULL;
    if (own && own[0]) {
        return rp_arena_string(arena, own, out);
    }
    if (config && config[0]) {
        return rp_arena_printf(arena, out, "%s/ringpipe/tuning", config);
    }
    return home && home[0] ? rp_arena_printf(arena, out, "%s/.config/ringpipe/tuning", home)
                           : RP_OK;
}

rp_err rp_tuning_folder(rp_arena *arena, bool machine, const char **out) {
    char *user;
    rp_err err;
    *out = MACHINE_FOLDER;
    if (machine) {
        return RP_OK;
    }
    RP_TRY(find_user_folder(arena, &user));
    if (!user) {
        return rp_fail(RP_ERR_USAGE, "HOME is not set: give --system, or --out FILE");
    }
    *out = user;
fail:
    return err;
}

/* Characters that every file system accepts, then a number that keeps names distinct. */
rp_err rp_tuning_path(rp_arena *arena, const char *folder, const rp_tuning_key *key, char **out) {
    const char *const parts[] = {key->platform, key->device, key->driver};
    char name[160];
    size_t used = 0;
    uint32_t number = 2166136261u; /* FNV-1a of all three */
    for (size_t i = 0; i < 3; i++) {
        for (const char *c = parts[i]; *c; c++) {
            number = (number ^ (uint8_t)*c) * 16777619u;
            const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                               (*c >= '0' && *c <= '9') || *c == '.' || *c == '+';
            const bool doubled = !plain && used > 0 && name[used - 1] == '-';
            if (i > 0 && !doubled && used < sizeof name - 2) {
                name[used++] = plain ? *c : '-';
            }
        }
        number = (number ^ 0u) * 16777619u;
        if (i == 1 && used > 0 && name[used - 1] != '-' && used < sizeof name - 2) {
            name[used++] = '-';
        }
    }
    name[used] = '\0';
    return rp_arena_printf(arena, out, "%s/%s-%08x.json", folder, name, number);
}

static bool is_for(const rp_tuning *tuning, const rp_tuning_key *key) {
    return (!tuning->device || strcmp(tuning->device, key->device) == 0) &&
           (!tuning->driver || strcmp(tuning->driver, key->driver) == 0);
}

/* Uses the file if it exists and is for this device. */
static rp_err try_file(rp_arena *arena, const rp_tuning_key *key, const char *path, rp_tuning *out,
                       rp_tuning_origin *origin) {
    rp_tuning found;
    rp_err err;
    if (origin->applied || !path || access(path, F_OK) != 0) {
        return RP_OK;
    }
    RP_TRY(rp_tuning_read(arena, path, &found));
    if (is_for(&found, key)) {
        *out = found;
        origin->applied = path;
    } else {
        origin->ignored = path;
        origin->ignored_device = found.device ? found.device : key->device;
        origin->ignored_driver = found.driver ? found.driver : key->driver;
    }
fail:
    return err;
}

rp_err rp_tuning_choose(rp_arena *arena, const rp_tuning_key *key, const char *board_path,
                        rp_tuning *out, rp_tuning_origin *origin) {
    const char *own = getenv("RINGPIPE_TUNING");
    char *folder;
    char *path = NULL;
    rp_err err;
    *out = rp_tuning_default();
    *origin = (rp_tuning_origin){0};
    RP_TRY(find_user_folder(arena, &folder));
    if (folder) {
        RP_TRY(rp_tuning_path(arena, folder, key, &path));
        RP_TRY(try_file(arena, key, path, out, origin));
    }
    if (!own || !own[0]) {
        RP_TRY(rp_tuning_path(arena, MACHINE_FOLDER, key, &path));
        RP_TRY(try_file(arena, key, path, out, origin));
    }
    RP_TRY(try_file(arena, key, board_path, out, origin));
fail:
    return err;
}
