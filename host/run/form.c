#include "run/form.h"

#include <sys/stat.h>
#include <unistd.h>

#include "run/lanes.h"

/* *out NULL: a folder without a run file, which is reported when the run is read. */
static rp_err read_root(rp_arena *arena, const char *path, const char *const *set,
                        uint32_t set_count, rp_node **out) {
    struct stat facts;
    char *text;
    rp_err err;
    *out = NULL;
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        RP_TRY(rp_arena_printf(arena, &text, "%s/run.yaml", path));
        if (access(text, F_OK) != 0) {
            return RP_OK;
        }
        path = text;
    }
    RP_TRY(rp_config_read_file(arena, path, out));
    for (uint32_t i = 0; i < set_count; i++) {
        RP_TRY(rp_config_set(arena, *out, set[i]));
    }
fail:
    return err;
}

rp_err rp_run_find_form(const char *path, const char *const *set, uint32_t set_count,
                        rp_run_form *out) {
    rp_arena arena;
    rp_node *root;
    rp_lanes_keys lanes = {.count = 0};
    rp_err err;
    *out = RP_FORM_RING;
    rp_arena_init(&arena, "run", 0);
    RP_TRY(read_root(&arena, path, set, set_count, &root));
    if (root && rp_node_at(root, "sites")) {
        *out = RP_FORM_SITES;
    } else if (root) {
        RP_TRY(rp_lanes_read(root, &lanes));
        *out = lanes.count > 0 && lanes.own == RP_LANE_NONE ? RP_FORM_LANES : RP_FORM_RING;
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
