#include "transport/hops.h"

#include <stdlib.h>
#include <string.h>

/* ---- layers ---------------------------------------------------------------------------------- */

static rp_err add_layer(rp_arena *arena, rp_link_hops *hops, const rp_link_layer *layer) {
    rp_err err = RP_OK;
    if (hops->count == RP_LINK_LAYERS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "link: more than %d hops, where both directions count",
                       RP_LINK_LAYERS_MAX);
    }
    if (hops->count == hops->room) {
        rp_link_layer *wider;
        const uint32_t room = hops->room ? 2 * hops->room : 8;
        RP_TRY(RP_ARENA_NEW(arena, room, &wider));
        if (hops->count) {
            memcpy(wider, hops->layer, hops->count * sizeof *wider);
        }
        hops->layer = wider;
        hops->room = room;
    }
    hops->layer[hops->count++] = *layer;
fail:
    return err;
}

static bool end_matches(uint32_t end, uint32_t of_layer) {
    return of_layer == RP_LINK_ANY || of_layer == end;
}

/* The key of a shared medium, by its name; never 0. */
static uint64_t medium_of(const char *name) {
    uint64_t key = UINT64_C(0xcbf29ce484222325); /* FNV-1a, by G. Fowler, L. C. Noll, K.-P. Vo */
    for (; *name; name++) {
        key = (key ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    }
    return key | UINT64_C(1) << 63;
}

rp_link_profile rp_link_profile_of(const rp_link_profile *all, const rp_link_hops *hops,
                                   uint32_t from, uint32_t to) {
    rp_link_profile profile = *all;
    for (uint32_t i = 0; i < hops->count; i++) {
        const rp_link_layer *layer = &hops->layer[i];
        if (end_matches(from, layer->from) && end_matches(to, layer->to)) {
            rp_link_profile_lay_over(&profile, &layer->profile, layer->set);
        }
    }
    profile.since_s = hops->since_s;
    profile.medium = profile.shared[0] ? medium_of(profile.shared) : 0;
    return profile;
}

/* ---- reading --------------------------------------------------------------------------------- */

static rp_err parse_end(const rp_node *node, const rp_link_ends *ends, uint32_t *out) {
    const char *text = rp_node_is_scalar(node) ? rp_node_text(node) : "";
    const bool number = text[0] && strspn(text, "0123456789") == strlen(text) && strlen(text) < 9;
    const unsigned long place = number ? strtoul(text, NULL, 10) : 0;
    *out = strcmp(text, "host") == 0 ? RP_LINK_HOST : RP_LINK_ANY;
    if (*out == RP_LINK_HOST || strcmp(text, "any") == 0) {
        return RP_OK;
    }
    for (uint32_t i = 0; ends->name && i < ends->boards; i++) {
        if (strcmp(ends->name[i], text) == 0) {
            *out = i;
            return RP_OK;
        }
    }
    if (ends->boards == 0) {
        return rp_node_fail(node, "expected `host` or `any`, found '%s'", text);
    }
    if (!number || place >= ends->boards) {
        return rp_node_fail(node,
                            "expected a board's place in the ring from 0 to %u%s, `host` or `any`, "
                            "found '%s'",
                            ends->boards - 1, ends->name ? ", its name" : "",
                            rp_node_is_scalar(node) ? text : "a list or a map");
    }
    *out = (uint32_t)place;
    return RP_OK;
}

static rp_err parse_ends(rp_node *node, const rp_link_ends *ends, uint32_t *from, uint32_t *to,
                         bool *both) {
    static const char shape[] =
        "expected {between: [0, 1], ..} for both directions, or {from: 0, to: 1, ..} for one";
    rp_err err = RP_OK;
    if (!rp_node_is_map(node)) {
        return rp_node_fail(node, "%s", shape);
    }
    const rp_node *between = rp_node_find(node, "between");
    const rp_node *ways[2] = {rp_node_find(node, "from"), rp_node_find(node, "to")};
    *from = *to = RP_LINK_ANY;
    *both = between != NULL;
    if (between &&
        (ways[0] || ways[1] || !rp_node_is_list(between) || rp_node_count(between) != 2)) {
        return rp_node_fail(node, "%s", shape);
    }
    if (!between && !ways[0] && !ways[1]) {
        return rp_node_fail(node, "%s", shape);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const rp_node *end = between ? rp_node_item(between, i) : ways[i];
        RP_TRY(end ? parse_end(end, ends, i ? to : from) : RP_OK);
    }
    if (*from == *to && *from != RP_LINK_ANY) {
        return rp_node_fail(node, "expected two different ends");
    }
fail:
    return err;
}

/* Restricts a profile to the wires between two ends: its base and its matching layers. */
static rp_err add_profile(const rp_link_ends *ends, uint32_t from, uint32_t to,
                          const rp_link_profile *all, const rp_link_hops *part,
                          rp_link_hops *hops) {
    const rp_link_layer base = {from, to, RP_LINK_ALL_KEYS, *all};
    rp_err err;
    RP_TRY(add_layer(ends->reader.arena, hops, &base));
    for (uint32_t i = 0; i < part->count; i++) {
        rp_link_layer layer = part->layer[i];
        if ((from == RP_LINK_ANY || end_matches(from, layer.from)) &&
            (to == RP_LINK_ANY || end_matches(to, layer.to))) {
            layer.from = from == RP_LINK_ANY ? layer.from : from;
            layer.to = to == RP_LINK_ANY ? layer.to : to;
            RP_TRY(add_layer(ends->reader.arena, hops, &layer));
        }
    }
fail:
    return err;
}

static rp_err read_profile(const rp_node *name, const rp_link_ends *ends, rp_link_profile *all,
                           rp_link_hops *hops) {
    *all = (rp_link_profile){0};
    *hops = (rp_link_hops){0};
    if (!ends->profile || !rp_node_is_scalar(name) || !rp_node_text(name)[0]) {
        return rp_node_fail(name, ends->profile ? "expected the name of a profile, or a path"
                                                : "expected a map, not the name of a profile");
    }
    return ends->profile(ends->reader.context, ends->reader.arena, name, all, hops);
}

static rp_err parse_hop(rp_node *node, const rp_link_ends *ends, rp_link_hops *hops) {
    rp_link_layer layer = {0};
    rp_link_profile all;
    rp_link_hops part;
    bool both = false;
    rp_err err;
    RP_TRY(parse_ends(node, ends, &layer.from, &layer.to, &both));
    const rp_node *profile = rp_node_find(node, "profile");
    RP_TRY(profile ? read_profile(profile, ends, &all, &part) : RP_OK);
    RP_TRY(rp_link_profile_parse(&layer.profile, node, &ends->reader, &layer.set));
    for (uint32_t way = 0; way < 1u + both; way++) {
        RP_TRY(profile ? add_profile(ends, layer.from, layer.to, &all, &part, hops) : RP_OK);
        RP_TRY(layer.set ? add_layer(ends->reader.arena, hops, &layer) : RP_OK);
        const uint32_t from = layer.from;
        layer.from = layer.to;
        layer.to = from;
    }
fail:
    return err;
}

static rp_err parse_map(rp_node *link, const rp_link_ends *ends, rp_link_profile *all,
                        rp_link_hops *hops) {
    rp_node *list = rp_node_find(link, "hops");
    const rp_node *profile = rp_node_find(link, "profile");
    rp_link_layer own = {.from = RP_LINK_ANY, .to = RP_LINK_ANY};
    rp_err err;
    RP_TRY(profile ? read_profile(profile, ends, all, hops) : RP_OK);
    RP_TRY(rp_link_profile_parse(&own.profile, link, &ends->reader, &own.set));
    if (hops->count > 0 && own.set) { /* the keys given here override those of the named profile */
        RP_TRY(add_layer(ends->reader.arena, hops, &own));
    } else {
        rp_link_profile_lay_over(all, &own.profile, own.set);
    }
    if (list && !rp_node_is_list(list)) {
        return rp_node_fail(list, "expected a list of hops");
    }
    for (uint32_t i = 0; list && i < rp_node_count(list); i++) {
        RP_TRY(parse_hop(rp_node_item(list, i), ends, hops));
    }
fail:
    return err;
}

rp_err rp_link_hops_parse(rp_node *link, const rp_link_ends *ends, rp_link_profile *all,
                          rp_link_hops *hops) {
    if (rp_node_is_map(link)) {
        return parse_map(link, ends, all, hops);
    }
    return rp_node_is_list(link)
               ? rp_node_fail(link, "expected a map like {rate_mbit: 10, delay_ms: 20}")
               : read_profile(link, ends, all, hops);
}

/* ---- text ------------------------------------------------------------------------------------ */

static rp_err put_end(rp_arena *arena, const char *indent, const char *key, uint32_t end,
                      char **text) {
    if (end == RP_LINK_HOST || end == RP_LINK_ANY) {
        return rp_arena_printf(arena, text, "%s%s%s: %s\n", *text, indent, key,
                               end == RP_LINK_HOST ? "host" : "any");
    }
    return rp_arena_printf(arena, text, "%s%s%s: %u\n", *text, indent, key, end);
}

static rp_err put_layer(rp_arena *arena, const rp_link_layer *layer, const char *indent,
                        char **text) {
    char *inner;
    char *first;
    char *keys;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &inner, "%s    ", indent));
    RP_TRY(rp_arena_printf(arena, &first, "%s  - ", indent));
    RP_TRY(put_end(arena, first, "from", layer->from, text));
    RP_TRY(put_end(arena, inner, "to", layer->to, text));
    if (layer->set) {
        RP_TRY(rp_link_profile_text(&layer->profile, layer->set, arena, inner, &keys));
        RP_TRY(rp_arena_printf(arena, text, "%s%s", *text, keys));
    }
fail:
    return err;
}

rp_err rp_link_hops_text(rp_arena *arena, const rp_link_profile *all, const rp_link_hops *hops,
                         const char *indent, char **out) {
    char *text;
    rp_err err;
    RP_TRY(rp_link_profile_text(all, 0, arena, indent, &text));
    if (hops->count) {
        RP_TRY(rp_arena_printf(arena, &text, "%s%shops:\n", text, indent));
    }
    for (uint32_t i = 0; i < hops->count; i++) {
        RP_TRY(put_layer(arena, &hops->layer[i], indent, &text));
    }
    *out = text;
fail:
    return err;
}
