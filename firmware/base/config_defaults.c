/* The tree itself, and noted defaults: values of absent keys, stored separately. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_own.h"

rp_node *rp_node_child(const rp_node *map, const char *key) {
    for (uint32_t i = 0; map->type == RP_NODE_MAP && i < map->count; i++) {
        if (strcmp(map->items[i]->key, key) == 0) {
            return map->items[i];
        }
    }
    return NULL;
}

rp_err rp_node_append(rp_arena *arena, rp_node *parent, rp_node *child) {
    if (parent->count == parent->room) {
        uint32_t room = parent->room ? 2 * parent->room : 8;
        rp_node **items;
        rp_err err = RP_ARENA_NEW(arena, room, &items);
        if (err != RP_OK) {
            return err;
        }
        if (parent->count > 0) {
            memcpy(items, parent->items, parent->count * sizeof *items);
        }
        parent->items = items;
        parent->room = room;
    }
    child->parent = parent;
    child->position = parent->count;
    parent->items[parent->count++] = child;
    return RP_OK;
}

void rp_config_note_defaults(rp_arena *arena, rp_node *root) {
    root->notes = arena;
}

rp_arena *rp_node_notes(const rp_node *node) {
    while (node->parent) {
        node = node->parent;
    }
    return node->notes;
}

rp_err rp_node_new_map(rp_arena *arena, const rp_node *like, rp_node **out) {
    rp_err err = RP_OK;
    rp_node *map;
    RP_TRY(RP_ARENA_NEW(arena, 1, &map));
    *map = (rp_node){.type = RP_NODE_MAP, .flow = true};
    RP_TRY(RP_ARENA_NEW(arena, RP_NODE_ASKED_MAX, &map->asked));
    if (like) {
        map->name = like->name;
        map->line = like->line;
    }
    *out = map;
fail:
    return err;
}

rp_err rp_node_add_default(rp_arena *arena, rp_node *map, const char *key, rp_node *value) {
    rp_err err = RP_OK;
    if (!map->defaults) {
        RP_TRY(rp_node_new_map(arena, map, &map->defaults));
    }
    if (!rp_node_child(map->defaults, key)) {
        value->key = key;
        RP_TRY(rp_node_append(arena, map->defaults, value));
        value->parent = map;
    }
fail:
    return err;
}

rp_err rp_node_new_scalar(rp_arena *arena, const rp_node *like, const char *text, rp_node **out) {
    rp_err err = RP_OK;
    rp_node *scalar;
    char *copy;
    RP_TRY(RP_ARENA_NEW(arena, 1, &scalar));
    RP_TRY(rp_arena_string(arena, text, &copy));
    *scalar = (rp_node){.type = RP_NODE_SCALAR, .plain = true, .name = like->name, .text = copy};
    *out = scalar;
fail:
    return err;
}

rp_err rp_node_note(rp_node *map, const char *key, const char *text) {
    rp_arena *arena = map && map->type == RP_NODE_MAP ? rp_node_notes(map) : NULL;
    rp_node *value;
    if (!arena) {
        return RP_OK;
    }
    rp_err err = rp_node_new_scalar(arena, map, text, &value);
    return err == RP_OK ? rp_node_add_default(arena, map, key, value) : err;
}

/* The shortest text that is read back as the same number. */
rp_err rp_node_note_f64(rp_node *map, const char *key, double value) {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (!(strtod(text, NULL) < value) && !(strtod(text, NULL) > value)) {
            break;
        }
    }
    return isfinite(value) ? rp_node_note(map, key, text) : RP_OK;
}

rp_err rp_node_note_f32(rp_node *map, const char *key, float value) {
    char text[40];
    for (int digits = 6; digits <= 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (!(strtof(text, NULL) < value) && !(strtof(text, NULL) > value)) {
            break;
        }
    }
    return isfinite(value) ? rp_node_note(map, key, text) : RP_OK;
}
