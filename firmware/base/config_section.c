/* Defaults that no typed read notes: values given as YAML, and absent maps. */
#include <string.h>

#include "base/config_own.h"

rp_err rp_node_default(rp_node *map, const char *key, const char *text) {
    rp_arena *arena = map && map->type == RP_NODE_MAP ? rp_node_notes(map) : NULL;
    rp_node *value;
    rp_err err = RP_OK;
    if (!arena || rp_node_find(map, key)) {
        return RP_OK;
    }
    char *whole;
    RP_TRY(rp_arena_printf(arena, &whole, "%s: %s", key, text));
    RP_TRY(rp_config_read_text(arena, whole, strlen(whole), map->name, &value));
    err = rp_node_add_default(arena, map, key, value->items[0]);
fail:
    return err;
}

rp_err rp_node_section(rp_node *parent, const char *key, const char *kind, rp_node **out) {
    rp_node *node = rp_node_find(parent, key);
    rp_arena *arena = parent && parent->type == RP_NODE_MAP ? rp_node_notes(parent) : NULL;
    rp_node *map = node ? node->whole : NULL;
    rp_node *word;
    rp_err err = RP_OK;
    *out = node;
    if (!arena || (node && (node->type != RP_NODE_SCALAR || !kind))) {
        return RP_OK;
    }
    if (!node && parent->defaults) {
        map = rp_node_child(parent->defaults, key);
    }
    if (!map) {
        RP_TRY(rp_node_new_map(arena, node ? node : parent, &map));
        map->key = key;
        map->parent = parent;
        if (kind) {
            RP_TRY(rp_node_new_scalar(arena, parent, node ? node->text : kind, &word));
            word->key = "kind";
            RP_TRY(rp_node_append(arena, map, word));
        }
        if (node) {
            node->whole = map;
        } else {
            RP_TRY(rp_node_add_default(arena, parent, key, map));
        }
    }
    *out = map;
fail:
    return err;
}
