#include "agent/board.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/config.h"
#include "device/device.h"

const char *rp_board_folder(void) {
    const char *folder = getenv("RINGPIPE_BOARDS");
    return folder ? folder : RP_BOARDS_DIR;
}

static rp_err read_match(rp_node *root, rp_board *out) {
    rp_node *match = rp_node_find(root, "match");
    rp_err err = RP_OK;
    if (!match) {
        return RP_OK;
    }
    RP_TRY(rp_node_string(match, "platform", &out->platform));
    RP_TRY(rp_node_string(match, "device", &out->device));
    RP_TRY(rp_node_done(match));
fail:
    return err;
}

/* Nobody reads these; so a misspelt key that matters is found. */
static void skip_facts(rp_node *root) {
    static const char *const facts[] = {"vendor", "soc",     "tier",  "features",
                                        "link",   "console", "flash", "notes"};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        (void)rp_node_find(root, facts[i]);
    }
}

static rp_err read_profile(rp_arena *arena, const char *name, rp_board *out) {
    char *path;
    rp_node *root;
    rp_err err;
    *out = (rp_board){.memory_fraction = 0.9};
    RP_TRY(rp_arena_printf(arena, &path, "%s/%s/board.yaml", rp_board_folder(), name));
    RP_TRY(rp_config_read_file(arena, path, &root));
    RP_TRY(rp_node_need(root, "name"));
    RP_TRY(rp_node_string(root, "name", &out->name));
    RP_TRY(read_match(root, out));
    RP_TRY(rp_node_f64(root, "memory_fraction", 0.01, 1.0, &out->memory_fraction));
    skip_facts(root);
    RP_TRY(rp_node_done(root));
    RP_TRY(rp_arena_printf(arena, &path, "%s/%s/tuning.json", rp_board_folder(), name));
    out->tuning_path = access(path, R_OK) == 0 ? path : NULL;
fail:
    return err;
}

static bool has_profile(const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s/board.yaml", rp_board_folder(), name);
    return name[0] != '.' && access(path, R_OK) == 0;
}

/* Names of all profiles in alphabetical order, so that a choice does not depend on the disk. */
static rp_err list_profiles(rp_arena *arena, char **names, uint32_t max, uint32_t *count) {
    DIR *dir = opendir(rp_board_folder());
    const struct dirent *entry;
    rp_err err = RP_OK;
    *count = 0;
    while (dir && *count < max && (entry = readdir(dir))) {
        if (!has_profile(entry->d_name)) {
            continue;
        }
        char *name;
        RP_TRY(rp_arena_string(arena, entry->d_name, &name));
        uint32_t at = (*count)++;
        for (; at > 0 && strcmp(names[at - 1], name) > 0; at--) {
            names[at] = names[at - 1];
        }
        names[at] = name;
    }
fail:
    if (dir) {
        (void)closedir(dir);
    }
    return err;
}

static bool pattern_fits(const char *pattern, const char *text) {
    return !pattern || strcasestr(text, pattern);
}

enum { PROFILES_MAX = 64 };

static rp_err find_fitting(rp_arena *arena, uint32_t threads, rp_board *out) {
    char *names[PROFILES_MAX];
    uint32_t count;
    rp_device *device = NULL;
    rp_device_options options = {.threads = threads};
    rp_err err;
    RP_TRY(rp_device_open(arena, &options, &device));
    rp_device_facts facts = *rp_device_facts_of(device);
    rp_device_close(&device);
    RP_TRY(list_profiles(arena, names, PROFILES_MAX, &count));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(read_profile(arena, names[i], out));
        if (pattern_fits(out->platform, facts.platform) && pattern_fits(out->device, facts.name)) {
            return RP_OK;
        }
    }
    *out = (rp_board){.name = "generic", .memory_fraction = 0.9};
fail:
    return err;
}

rp_err rp_board_find(rp_arena *arena, const char *name, uint32_t threads, rp_board *out) {
    char *names[PROFILES_MAX];
    uint32_t count;
    if (strcmp(name, "auto") == 0) {
        return find_fitting(arena, threads, out);
    }
    if (!strchr(name, '/') && has_profile(name)) {
        return read_profile(arena, name, out);
    }
    char known[512] = "";
    rp_err err = list_profiles(arena, names, PROFILES_MAX, &count);
    for (uint32_t i = 0; err == RP_OK && i < count; i++) {
        size_t used = strlen(known);
        (void)snprintf(known + used, sizeof known - used, " %s", names[i]);
    }
    return err != RP_OK ? err
                        : rp_fail(RP_ERR_USAGE, "no board '%s' under %s; there are: auto%s", name,
                                  rp_board_folder(), known);
}
