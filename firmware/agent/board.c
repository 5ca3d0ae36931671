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

/* Where a profile fits: parts of names, NULL = any. */
typedef struct {
    const char *machine;
    bool any; /* it has a condition; a profile without any is only chosen by name */
} fit;

static rp_err read_match(rp_node *root, rp_board *out, fit *where) {
    rp_node *match = rp_node_find(root, "match");
    rp_err err = RP_OK;
    if (!match) {
        return RP_OK;
    }
    RP_TRY(rp_node_string(match, "platform", &out->platform));
    RP_TRY(rp_node_string(match, "device", &out->device));
    RP_TRY(rp_node_string(match, "machine", &where->machine));
    RP_TRY(rp_node_done(match));
    where->any = true;
fail:
    return err;
}

/* The texts of a list, joined by ' '. */
static rp_err read_words(rp_arena *arena, rp_node *map, const char *key, const char **out,
                         uint32_t *count) {
    rp_node *list = rp_node_find(map, key);
    char *text = NULL;
    rp_err err = RP_OK;
    if (list && !rp_node_is_list(list)) {
        return rp_node_fail(list, "expected a list");
    }
    *count = list ? rp_node_count(list) : 0;
    for (uint32_t i = 0; i < *count; i++) {
        rp_node *item = rp_node_item(list, i);
        if (!rp_node_is_scalar(item)) {
            return rp_node_fail(item, "expected a text");
        }
        RP_TRY(rp_arena_printf(arena, &text, "%s%s%s", text ? text : "", text ? " " : "",
                               rp_node_text(item)));
    }
    *out = text ? text : "";
fail:
    return err;
}

static rp_err read_opencl(rp_arena *arena, rp_node *root, rp_board_about *out) {
    rp_node *opencl = rp_node_find(root, "opencl");
    const char *version = NULL;
    uint32_t number = 0;
    bool is = false;
    rp_err err;
    RP_TRY(rp_node_string(opencl, "route", &out->route));
    RP_TRY(read_words(arena, opencl, "packages", &out->packages, &number));
    RP_TRY(rp_node_string(opencl, "version", &version));
    RP_TRY(rp_node_u32(opencl, "local_kib", 0, 1 << 20, &number));
    RP_TRY(rp_node_u32(opencl, "group_items", 1, 1 << 20, &number));
    RP_TRY(rp_node_bool(opencl, "half", &is));
    RP_TRY(rp_node_bool(opencl, "unified", &is));
    RP_TRY(opencl ? rp_node_done(opencl) : RP_OK);
fail:
    return err;
}

static rp_err read_flash(rp_node *root, rp_board_about *out) {
    rp_node *flash = rp_node_find(root, "flash");
    rp_err err;
    RP_TRY(rp_node_string(flash, "method", &out->method));
    RP_TRY(rp_node_string(flash, "how", &out->how));
    RP_TRY(flash ? rp_node_done(flash) : RP_OK);
fail:
    return err;
}

/* What our image builder needs; a board without it uses its vendor's system. */
static rp_err read_image(rp_node *root, rp_board_about *out) {
    rp_node *image = rp_node_find(root, "image");
    rp_err err = RP_OK;
    if (!image) {
        return RP_OK;
    }
    RP_TRY(rp_node_need(image, "kernel"));
    RP_TRY(rp_node_string(image, "kernel", &out->kernel));
    RP_TRY(rp_node_need(image, "console"));
    RP_TRY(rp_node_string(image, "console", &out->image_console));
    RP_TRY(rp_node_done(image));
fail:
    return err;
}

static rp_err read_facts(rp_arena *arena, rp_node *root, rp_board_about *out) {
    const struct {
        const char *key, **to;
    } texts[] = {
        {"vendor", &out->vendor},     {"board", &out->model},     {"soc", &out->soc},
        {"arch", &out->arch},         {"memory", &out->memory},   {"network", &out->network},
        {"evidence", &out->evidence}, {"checked", &out->checked}, {"console", &out->console}};
    const char *quirks;
    rp_err err;
    *out = (rp_board_about){.tier = 0,
                            .route = "",
                            .packages = "",
                            .method = "",
                            .how = "",
                            .kernel = "",
                            .image_console = ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i].to = "";
        RP_TRY(rp_node_string(root, texts[i].key, texts[i].to));
    }
    RP_TRY(rp_node_u32(root, "tier", 1, 3, &out->tier));
    RP_TRY(read_opencl(arena, root, out));
    RP_TRY(read_flash(root, out));
    RP_TRY(read_image(root, out));
    RP_TRY(read_words(arena, root, "quirks", &quirks, &out->quirk_count));
    (void)rp_node_find(root, "features"); /* these three may have any content */
    (void)rp_node_find(root, "link");
    (void)rp_node_find(root, "notes");
fail:
    return err;
}

static bool is_name(const char *text) {
    return text[0] != '\0' && text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
}

static rp_err read_environment(rp_node *root, bool set) {
    rp_node *map = rp_node_find(root, "environment");
    if (map && !rp_node_is_map(map)) {
        return rp_node_fail(map, "expected a map of variables");
    }
    for (uint32_t i = 0; map && i < rp_node_count(map); i++) {
        const char *name = rp_node_key(map, i);
        const rp_node *value = rp_node_find(map, name);
        if (!is_name(name) || !rp_node_is_scalar(value)) {
            return rp_node_fail(value, "expected VARIABLE: text, of capital letters");
        }
        if (set) {
            (void)setenv(name, rp_node_text(value), 0);
        }
    }
    return RP_OK;
}

static rp_err find_tuning(rp_arena *arena, const char *name, const char **out) {
    char *path;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &path, "%s/%s/tuning.json", rp_board_folder(), name));
    *out = access(path, R_OK) == 0 ? path : NULL;
fail:
    return err;
}

/* Its own tuning, and that of another profile for CPUs. */
static rp_err read_tuning(rp_arena *arena, const char *name, rp_node *root, rp_board *out) {
    rp_node *tuning = rp_node_find(root, "tuning");
    const char *cpu = NULL;
    rp_err err;
    RP_TRY(rp_node_string(tuning, "cpu", &cpu));
    RP_TRY(tuning ? rp_node_done(tuning) : RP_OK);
    RP_TRY(find_tuning(arena, name, &out->tuning_path));
    if (cpu && strchr(cpu, '/')) {
        RP_TRY(rp_node_fail(tuning, "cpu: expected the name of a profile, found '%s'", cpu));
    }
    if (cpu) {
        RP_TRY(find_tuning(arena, cpu, &out->cpu_tuning_path));
    }
fail:
    return err;
}

static rp_err open_profile(rp_arena *arena, const char *name, rp_node **root) {
    char *path;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &path, "%s/%s/board.yaml", rp_board_folder(), name));
    RP_TRY(rp_config_read_file(arena, path, root));
fail:
    return err;
}

/* Reads everything, so that a misspelt key is found whichever part is needed. */
static rp_err read_root(rp_arena *arena, const char *name, rp_node *root, rp_board *out, fit *where,
                        rp_board_about *facts) {
    static const char *const choices[] = {"first", "fastest", NULL};
    uint32_t choice = 0;
    rp_err err;
    *out = (rp_board){.is_profile = true, .memory_fraction = 0.9};
    *where = (fit){0};
    RP_TRY(rp_node_need(root, "name"));
    RP_TRY(rp_node_string(root, "name", &out->name));
    RP_TRY(read_match(root, out, where));
    RP_TRY(rp_node_word(root, "choose", choices, &choice));
    out->fastest = choice == 1;
    RP_TRY(rp_node_f64(root, "memory_fraction", 0.01, 1.0, &out->memory_fraction));
    RP_TRY(read_tuning(arena, name, root, out));
    RP_TRY(read_facts(arena, root, facts));
    RP_TRY(read_environment(root, false));
    RP_TRY(rp_node_done(root));
fail:
    return err;
}

/* `set`: also sets its environment. */
static rp_err read_profile(rp_arena *arena, const char *name, rp_board *out, fit *where, bool set) {
    rp_board_about facts;
    rp_node *root;
    rp_err err;
    RP_TRY(open_profile(arena, name, &root));
    RP_TRY(read_root(arena, name, root, out, where, &facts));
    RP_TRY(set ? read_environment(root, true) : RP_OK);
fail:
    return err;
}

rp_err rp_board_read_about(rp_arena *arena, const char *name, rp_board_about *out) {
    rp_board board;
    rp_node *root;
    fit where;
    rp_err err;
    RP_TRY(open_profile(arena, name, &root));
    RP_TRY(read_root(arena, name, root, &board, &where, out));
fail:
    return err;
}

static bool has_profile(const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s/board.yaml", rp_board_folder(), name);
    return name[0] != '.' && access(path, R_OK) == 0;
}

rp_err rp_board_list(rp_arena *arena, char **names, uint32_t max, uint32_t *count) {
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

/* The machine's own name: RINGPIPE_MACHINE, or the device tree's names, each ending in 0, or the
 * product name in a PC's firmware. */
static void read_machine(char *text, size_t bytes) {
    static const char *const files[] = {"/proc/device-tree/compatible",
                                        "/sys/class/dmi/id/product_name"};
    const char *given = getenv("RINGPIPE_MACHINE");
    size_t used = 0;
    if (given) {
        (void)snprintf(text, bytes, "%s", given);
        return;
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *file = fopen(files[i], "r");
        used += file ? fread(text + used, 1, bytes - 1 - used, file) : 0;
        if (file) {
            (void)fclose(file);
        }
    }
    for (size_t i = 0; i < used; i++) {
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    text[used] = '\0';
}

/* By the machine's name: *found stays false if no profile fits. */
static rp_err find_machine(rp_arena *arena, char *const *names, uint32_t count, rp_board *out,
                           bool *found) {
    char machine[1024];
    rp_err err = RP_OK;
    *found = false;
    read_machine(machine, sizeof machine);
    for (uint32_t i = 0; i < count && !*found; i++) {
        fit where;
        RP_TRY(read_profile(arena, names[i], out, &where, false));
        if (where.machine && strcasestr(machine, where.machine)) {
            *found = true;
            RP_TRY(read_profile(arena, names[i], out, &where, true));
        }
    }
fail:
    return err;
}

/* By the name of its first device. */
static rp_err find_by_device(rp_arena *arena, char *const *names, uint32_t count, uint32_t threads,
                             rp_board *out) {
    rp_device *device = NULL;
    rp_device_options options = {.threads = threads};
    rp_err err;
    RP_TRY(rp_device_open(arena, &options, &device));
    const rp_device_facts facts = *rp_device_facts_of(device);
    rp_device_close(&device);
    for (uint32_t i = 0; i < count; i++) {
        fit where;
        RP_TRY(read_profile(arena, names[i], out, &where, false));
        if (where.any && !where.machine && pattern_fits(out->platform, facts.platform) &&
            pattern_fits(out->device, facts.name)) {
            return RP_OK;
        }
    }
    *out = (rp_board){.name = "generic", .memory_fraction = 0.9};
fail:
    return err;
}

static rp_err find_fitting(rp_arena *arena, uint32_t threads, rp_board *out) {
    char *names[RP_BOARDS_MAX];
    uint32_t count;
    bool found;
    rp_err err;
    RP_TRY(rp_board_list(arena, names, RP_BOARDS_MAX, &count));
    RP_TRY(find_machine(arena, names, count, out, &found));
    RP_TRY(found ? RP_OK : find_by_device(arena, names, count, threads, out));
fail:
    return err;
}

rp_err rp_board_open_device(rp_arena *arena, const rp_board *board, uint32_t threads,
                            rp_device **out) {
    const rp_device_options options = {.platform = board->platform,
                                       .device = board->device,
                                       .threads = threads,
                                       .tuning_path = board->tuning_path,
                                       .cpu_tuning_path = board->cpu_tuning_path};
    return board->fastest ? rp_device_open_fastest(arena, &options, out)
                          : rp_device_open(arena, &options, out);
}

rp_err rp_board_find(rp_arena *arena, const char *name, uint32_t threads, rp_board *out) {
    char *names[RP_BOARDS_MAX];
    uint32_t count;
    if (strcmp(name, "auto") == 0) {
        return find_fitting(arena, threads, out);
    }
    if (!strchr(name, '/') && has_profile(name)) {
        fit where;
        return read_profile(arena, name, out, &where, true);
    }
    char known[512] = "";
    rp_err err = rp_board_list(arena, names, RP_BOARDS_MAX, &count);
    for (uint32_t i = 0; err == RP_OK && i < count; i++) {
        size_t used = strlen(known);
        (void)snprintf(known + used, sizeof known - used, " %s", names[i]);
    }
    return err != RP_OK ? err
                        : rp_fail(RP_ERR_USAGE, "no board '%s' under %s; there are: auto%s", name,
                                  rp_board_folder(), known);
}
