/* Resolves paths in a file against the folder of that file. */
#include <string.h>
#include <unistd.h>

#include "base/config_own.h"
#include "base/log.h"

/* Length of the folder in the file's name, with the last slash. 0: the file is in the current
 * folder, or the node does not come from a file. */
static size_t folder_bytes(const rp_node *node) {
    const char *slash = node->name && node->line > 0 && strncmp(node->name, "--set", 5) != 0
                            ? strrchr(node->name, '/')
                            : NULL;
    return slash ? (size_t)(slash - node->name) + 1 : 0;
}

rp_err rp_node_path(rp_arena *arena, const rp_node *node, const char **out) {
    const size_t bytes = folder_bytes(node);
    char *beside;
    *out = node->text;
    if (bytes == 0 || node->text[0] == '/' || node->text[0] == '\0') {
        return RP_OK;
    }
    rp_err err = rp_arena_printf(arena, &beside, "%.*s%s", (int)bytes, node->name, node->text);
    if (err != RP_OK) {
        return err;
    }
    if (access(beside, F_OK) != 0 && access(node->text, F_OK) == 0) {
        rp_log_warn("%s:%u: '%s' is relative to the current folder, but paths in a file should be "
                    "relative to that file's folder",
                    node->name, node->line, node->text);
        return RP_OK;
    }
    *out = beside;
    return RP_OK;
}

rp_node *rp_node_at(rp_node *root, const char *keys) {
    rp_node *node = root;
    while (node && *keys) {
        char key[64];
        const size_t bytes = strcspn(keys, ".");
        if (bytes >= sizeof key || !rp_node_is_map(node)) {
            return NULL;
        }
        memcpy(key, keys, bytes);
        key[bytes] = '\0';
        node = rp_node_child(node, key);
        keys += bytes + (keys[bytes] == '.');
    }
    return node;
}

void rp_node_set_text(rp_node *node, const char *text) {
    RP_ASSERT(node->type == RP_NODE_SCALAR);
    node->text = text;
    node->plain = false;
}
