/* Names of classes, given in a run file or collected from a column. Private to the room. */
#ifndef RP_DATA_LABELS_H
#define RP_DATA_LABELS_H

#include "base/arena.h"
#include "base/config.h"

enum { RP_LABELS_MAX = 65536 };

typedef struct {
    bool given;        /* in the order of the run file; otherwise sorted by bytes */
    const char **name; /* [count]; in the arena */
    uint32_t count, room;
} rp_labels;

/* Reads `key:` of `node`, a list of names; count 0 if it is missing. errors USAGE: not a list,
 * empty, or a repeated name */
rp_err rp_labels_read(rp_arena *arena, rp_node *node, const char *key,
                      rp_labels *out) RP_MUST_CHECK;

/* Index of a name, or `count` if it is unknown. */
uint32_t rp_labels_find(const rp_labels *labels, const char *name);

/* Inserts a name in order, unless it exists. errors LIMIT: more than RP_LABELS_MAX */
rp_err rp_labels_add(rp_arena *arena, rp_labels *labels, const char *name) RP_MUST_CHECK;

#endif
