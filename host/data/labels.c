#include "data/labels.h"

#include <string.h>

/* Index of the first name that is not less. */
static uint32_t find_place(const rp_labels *labels, const char *name) {
    uint32_t low = 0;
    uint32_t high = labels->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (strcmp(labels->name[middle], name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t rp_labels_find(const rp_labels *labels, const char *name) {
    if (!labels->given) {
        const uint32_t at = find_place(labels, name);
        const bool found = at < labels->count && strcmp(labels->name[at], name) == 0;
        return found ? at : labels->count;
    }
    for (uint32_t i = 0; i < labels->count; i++) {
        if (strcmp(labels->name[i], name) == 0) {
            return i;
        }
    }
    return labels->count;
}

rp_err rp_labels_add(rp_arena *arena, rp_labels *labels, const char *name) {
    const uint32_t at = find_place(labels, name);
    rp_err err = RP_OK;
    char *copy;
    if (at < labels->count && strcmp(labels->name[at], name) == 0) {
        return RP_OK;
    }
    if (labels->count == RP_LABELS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "more than %d different class names", RP_LABELS_MAX);
    }
    if (labels->count == labels->room) {
        const char **more;
        labels->room = labels->room ? 2 * labels->room : 16;
        RP_TRY(RP_ARENA_NEW(arena, labels->room, &more));
        if (labels->count > 0) {
            memcpy(more, labels->name, labels->count * sizeof *more);
        }
        labels->name = more;
    }
    RP_TRY(rp_arena_string(arena, name, &copy));
    memmove(labels->name + at + 1, labels->name + at, (labels->count - at) * sizeof *labels->name);
    labels->name[at] = copy;
    labels->count++;
fail:
    return err;
}

rp_err rp_labels_read(rp_arena *arena, rp_node *node, const char *key, rp_labels *out) {
    rp_node *list = rp_node_find(node, key);
    rp_err err = RP_OK;
    *out = (rp_labels){0};
    if (!list) {
        return RP_OK;
    }
    if (!rp_node_is_list(list) || rp_node_count(list) == 0 || rp_node_count(list) > RP_LABELS_MAX) {
        return rp_node_fail(list, "expected a list of 1 to %d names", RP_LABELS_MAX);
    }
    out->given = true;
    out->room = rp_node_count(list);
    RP_TRY(RP_ARENA_NEW(arena, out->room, &out->name));
    for (uint32_t i = 0; i < out->room; i++) {
        const rp_node *item = rp_node_item(list, i);
        if (!rp_node_is_scalar(item)) {
            return rp_node_fail(item, "expected a name");
        }
        if (rp_labels_find(out, rp_node_text(item)) < out->count) {
            return rp_node_fail(item, "'%s' is listed twice", rp_node_text(item));
        }
        out->name[out->count++] = rp_node_text(item);
    }
fail:
    return err;
}
