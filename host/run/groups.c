#include "run/groups.h"

#include <string.h>

#include "base/nearest.h"

static const char placeholder[] = "{name}";

/* ---- labels ---------------------------------------------------------------------------------- */

/* Keys that --where accepts for every board; a label cannot have such a name. */
static bool is_reserved(const char *key) {
    return strcmp(key, "name") == 0 || rp_roster_find_key(key);
}

static rp_err read_labels(rp_node *map, rp_roster_label *out, uint32_t *count) {
    *count = 0;
    if (!map) {
        return RP_OK;
    }
    if (!rp_node_is_map(map) || rp_node_count(map) > RP_ROSTER_LABELS_MAX) {
        return rp_node_fail(map, "expected a map of at most %d labels, like {rack: a, site: north}",
                            RP_ROSTER_LABELS_MAX);
    }
    for (uint32_t i = 0; i < rp_node_count(map); i++) {
        const rp_node *item = rp_node_item(map, i);
        const char *key = rp_node_key(map, i);
        if (!rp_roster_is_word(key) || is_reserved(key)) {
            return rp_node_fail(item, "invalid name of a label: expected 1 to 63 of A-Z a-z 0-9 . "
                                      "_ -, and not name, group or board, which are reserved");
        }
        if (!rp_node_is_scalar(item) || !rp_roster_is_word(rp_node_text(item))) {
            return rp_node_fail(item, "invalid value: expected 1 to 63 of A-Z a-z 0-9 . _ -");
        }
        out[(*count)++] = (rp_roster_label){key, rp_node_text(item)};
    }
    return RP_OK;
}

/* A board's own labels come first; they override labels of its group. */
static rp_err join_labels(rp_arena *arena, rp_node *own, const rp_group *group,
                          rp_roster_entry *out) {
    rp_roster_label *label;
    rp_err err;
    if (!own && (!group || group->label_count == 0)) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, 2 * RP_ROSTER_LABELS_MAX, &label));
    RP_TRY(read_labels(own, label, &out->label_count));
    const uint32_t owned = out->label_count;
    for (uint32_t i = 0; group && i < group->label_count; i++) {
        uint32_t k = 0;
        while (k < owned && strcmp(label[k].key, group->label[i].key) != 0) {
            k++;
        }
        if (k == owned) {
            label[out->label_count++] = group->label[i];
        }
    }
    out->label = label;
fail:
    return err;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Replaces {name} by a board's name. */
static rp_err fill_name(rp_arena *arena, const char *address, const char *name, const char **out) {
    const char *place = strstr(address, placeholder);
    char *text;
    *out = address;
    if (!place) {
        return RP_OK;
    }
    const rp_err err = rp_arena_printf(arena, &text, "%.*s%s%s", (int)(place - address), address,
                                       name, place + sizeof placeholder - 1);
    *out = err == RP_OK ? text : address;
    return err;
}

/* `otherwise`: the text if the map lacks the key. */
static rp_err read_text(rp_node *map, const rp_roster_key *key, const char *otherwise,
                        rp_roster_entry *out) {
    const char *text = otherwise;
    const rp_err err = rp_node_string(map, key->name, &text);
    rp_roster_set_text(out, key, text);
    return err;
}

static rp_err read_group(rp_arena *arena, rp_node *map, const char *name, rp_group *out) {
    const char *example;
    rp_err err;
    *out = (rp_group){.name = name};
    if (!rp_node_is_map(map) || !rp_roster_is_word(name)) {
        return rp_node_fail(map, "invalid group: expected a name of 1 to 63 of A-Z a-z 0-9 . _ - "
                                 "and a map with board, address or labels");
    }
    for (const rp_roster_key *key = rp_roster_keys; key->name; key++) {
        RP_TRY(key->is_of_group ? read_text(map, key, NULL, &out->common) : RP_OK);
    }
    RP_TRY(rp_node_string(map, "address", &out->address));
    RP_TRY(read_labels(rp_node_find(map, "labels"), out->label, &out->label_count));
    RP_TRY(rp_node_done(map));
    RP_TRY(out->address ? fill_name(arena, out->address, "x", &example) : RP_OK);
    if (out->address && strcmp(out->address, "dials") != 0 && !rp_roster_is_address(example)) {
        return rp_node_fail(rp_node_find(map, "address"),
                            "expected " RP_ROSTER_ADDRESS " ({name} in it becomes the board's "
                            "name), or dials, found '%s'",
                            out->address);
    }
fail:
    return err;
}

rp_err rp_groups_read(rp_arena *arena, rp_node *root, rp_groups *out) {
    rp_node *groups = rp_node_find(root, "groups");
    rp_group *group;
    rp_err err;
    *out = (rp_groups){0};
    if (!groups) {
        return RP_OK;
    }
    if (!rp_node_is_map(groups) || rp_node_count(groups) > RP_GROUPS_MAX) {
        return rp_node_fail(groups,
                            "expected a map of at most %d groups, each with board, address "
                            "or labels",
                            RP_GROUPS_MAX);
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)rp_node_count(groups) + 1, &group));
    for (uint32_t i = 0; i < rp_node_count(groups); i++) {
        RP_TRY(read_group(arena, rp_node_item(groups, i), rp_node_key(groups, i), &group[i]));
    }
    *out = (rp_groups){group, rp_node_count(groups)};
fail:
    return err;
}

rp_err rp_groups_find(const rp_groups *groups, const rp_node *at, const char *name,
                      const rp_group **out) {
    rp_nearest nearest = {.word = name};
    for (uint32_t i = 0; i < groups->count; i++) {
        if (strcmp(groups->group[i].name, name) == 0) {
            *out = &groups->group[i];
            return RP_OK;
        }
        rp_nearest_offer(&nearest, groups->group[i].name);
    }
    return rp_node_fail(at, "unknown group '%s': it is not in `groups`%s%s%s", name,
                        nearest.best ? "; did you mean '" : "", nearest.best ? nearest.best : "",
                        nearest.best ? "'?" : "");
}

rp_err rp_groups_apply(rp_arena *arena, const rp_groups *groups, rp_node *board,
                       rp_roster_entry *out, const char **address) {
    const rp_group *group = NULL;
    rp_err err;
    *address = NULL;
    RP_TRY(read_text(board, &rp_roster_keys[RP_ROSTER_GROUP], NULL, out));
    RP_TRY(out->group ? rp_groups_find(groups, rp_node_find(board, "group"), out->group, &group)
                      : RP_OK);
    for (const rp_roster_key *key = rp_roster_keys + 1; key->name; key++) {
        RP_TRY(read_text(board, key, group ? rp_roster_text(&group->common, key) : NULL, out));
    }
    RP_TRY(join_labels(arena, rp_node_find(board, "labels"), group, out));
    RP_TRY(group && group->address ? fill_name(arena, group->address, out->name, address) : RP_OK);
fail:
    return err;
}
