/* Names of classes: given in a run file, or collected from a column. Private to the room. */
#ifndef RP_DATA_LABELS_H
#define RP_DATA_LABELS_H

#include "base/arena.h"
#include "base/config.h"

enum { RP_LABELS_MAX = 65536 };

typedef struct {
    bool given;        /* in the order that was written; otherwise sorted, as bytes */
    const char **name; /* [count]; in the arena */
    uint32_t count, room;
} rp_labels;

/* `key:` of `node`, a list of names; nothing when it is not there. errors USAGE: no list, a name
 * twice, none */
rp_err rp_labels_read(rp_arena *arena, rp_node *node, const char *key,
                      rp_labels *out) RP_MUST_CHECK;

/* Index of a name, or count when there is none. */
uint32_t rp_labels_find(const rp_labels *labels, const char *name);

/* Puts a name where it belongs, unless it is there. errors LIMIT: more than RP_LABELS_MAX */
rp_err rp_labels_add(rp_arena *arena, rp_labels *labels, const char *name) RP_MUST_CHECK;

#endif
