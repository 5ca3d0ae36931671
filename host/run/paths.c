#include "run/paths.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Keys whose value is a path: `train.init` where it is neither a map nor `none`, `data.test` where
 * it is no count. */
static const char *const keys[] = {"data.path",       "data.test",   "train.init",
                                   "train.init.from", "ring.roster", "keys"};

static rp_node *find_path(rp_node *root, size_t index) {
    rp_node *node = rp_node_at(root, keys[index]);
    const char *text = node && rp_node_is_scalar(node) ? rp_node_text(node) : "";
    const bool nothing = strcmp(keys[index], "train.init") == 0 && strcmp(text, "none") == 0;
    return text[0] && text[strspn(text, "0123456789")] && !nothing ? node : NULL;
}

rp_err rp_paths_resolve(rp_arena *arena, rp_node *root) {
    rp_err err = RP_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        rp_node *node = find_path(root, i);
        const char *path;
        if (node) {
            RP_TRY(rp_node_path(arena, node, &path));
            if (path != rp_node_text(node)) {
                rp_node_set_text(node, path);
            }
        }
    }
fail:
    return err;
}

rp_err rp_paths_absolute(rp_arena *arena, const char *path, char **out) {
    char here[4096];
    if (path[0] == '/') {
        return rp_arena_string(arena, path, out);
    }
    return getcwd(here, sizeof here)
               ? rp_arena_printf(arena, out, "%s/%s", here, path)
               : rp_fail(RP_ERR_IO, "the current folder: %s", strerror(errno));
}

rp_err rp_paths_make_absolute(rp_arena *arena, rp_node *root) {
    rp_err err = RP_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        rp_node *node = find_path(root, i);
        char *path;
        if (node && rp_node_text(node)[0] != '/') {
            RP_TRY(rp_paths_absolute(arena, rp_node_text(node), &path));
            rp_node_set_text(node, path);
        }
    }
fail:
    return err;
}
