/* Lists the differences of two trees for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_own.h"

enum { PATH_BYTES = 200 };

typedef struct {
    FILE *text;
    uint32_t count, most;
} changes;

/* Compares numbers by value: 0.1 equals 1.0e-1. */
static bool same_scalar(const rp_node *a, const rp_node *b) {
    char *a_end;
    char *b_end;
    if (strcmp(a->text, b->text) == 0) {
        return true;
    }
    const double one = strtod(a->text, &a_end);
    const double two = strtod(b->text, &b_end);
    return a->plain && b->plain && a->text[0] && b->text[0] && !*a_end && !*b_end && one == two;
}

static void put_value(FILE *file, const rp_node *node) {
    if (!node) {
        (void)fputs("nothing", file);
    } else if (node->type == RP_NODE_SCALAR) {
        (void)fprintf(file, "%.60s", node->text);
    } else {
        (void)fputs(node->type == RP_NODE_MAP ? "{" : "[", file);
        for (uint32_t i = 0; i < node->count; i++) {
            (void)fputs(i ? ", " : "", file);
            if (node->type == RP_NODE_MAP) {
                (void)fprintf(file, "%s: ", node->items[i]->key);
            }
            put_value(file, node->items[i]);
        }
        (void)fputs(node->type == RP_NODE_MAP ? "}" : "]", file);
    }
}

static void put_change(changes *c, const char *path, const rp_node *before, const rp_node *now) {
    if (c->count++ < c->most) {
        (void)fprintf(c->text, "%s%s: ", c->count > 1 ? "; " : "", path);
        put_value(c->text, now);
        (void)fputs(" (was ", c->text);
        put_value(c->text, before);
        (void)fputc(')', c->text);
    }
}

/* The effective value under `key`: given, or the noted default. */
static const rp_node *child_of(const rp_node *map, const char *key, bool *given) {
    const rp_node *child = rp_node_child(map, key);
    *given = child != NULL;
    return child || !map->defaults ? child : rp_node_child(map->defaults, key);
}

static void compare_nodes(changes *c, const char *path, const rp_node *before, const rp_node *now);

static void compare_key(changes *c, const char *path, const rp_node *before, const rp_node *now,
                        const char *key) {
    char whole[PATH_BYTES];
    bool had, has;
    const rp_node *old = child_of(before, key, &had);
    const rp_node *new = child_of(now, key, &has);
    (void)snprintf(whole, sizeof whole, "%s%s%s", path, path[0] ? "." : "", key);
    if (old && new) {
        compare_nodes(c, whole, old, new);
    } else if (old || has) { /* a default instead of a missing value is no change */
        put_change(c, whole, old, new);
    }
}

/* The map that a word stands for, with the word as its `kind`. */
static const rp_node *as_map(const rp_node *node) {
    return node->type == RP_NODE_SCALAR && node->whole ? node->whole : node;
}

static void compare_maps(changes *c, const char *path, const rp_node *before, const rp_node *now) {
    for (uint32_t i = 0; i < now->count; i++) {
        compare_key(c, path, before, now, now->items[i]->key);
    }
    for (uint32_t i = 0; now->defaults && i < now->defaults->count; i++) {
        compare_key(c, path, before, now, now->defaults->items[i]->key);
    }
    for (uint32_t i = 0; i < before->count; i++) {
        bool given;
        if (!child_of(now, before->items[i]->key, &given)) {
            compare_key(c, path, before, now, before->items[i]->key);
        }
    }
}

static void compare_nodes(changes *c, const char *path, const rp_node *before, const rp_node *now) {
    now = as_map(now);
    if (before->type == RP_NODE_SCALAR && now->type == RP_NODE_MAP) {
        const rp_node *kind = rp_node_child(now, "kind");
        if (!kind || kind->type != RP_NODE_SCALAR || !same_scalar(before, kind)) {
            put_change(c, path, before, now);
        }
    } else if (before->type != now->type) {
        put_change(c, path, before, now);
    } else if (now->type == RP_NODE_MAP) {
        compare_maps(c, path, before, now);
    } else if (now->type == RP_NODE_SCALAR ? !same_scalar(before, now)
                                           : !rp_node_same(before, now)) {
        put_change(c, path, before, now);
    }
}

rp_err rp_config_changes(const rp_node *before, const rp_node *now, uint32_t most, char *text,
                         size_t bytes) {
    changes c = {.text = fmemopen(text, bytes, "w"), .most = most};
    text[0] = '\0';
    if (!c.text) {
        return rp_fail(RP_ERR_MEMORY, "no memory for a comparison");
    }
    compare_nodes(&c, "", before, now);
    if (c.count > most) {
        (void)fprintf(c.text, "; and %u more", c.count - most);
    }
    (void)fflush(c.text);
    (void)fclose(c.text);
    text[bytes - 1] = '\0';
    return RP_OK;
}
