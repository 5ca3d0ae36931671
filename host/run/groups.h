/* `groups` of a roster: what many boards have in common is said once. */
#ifndef RP_RUN_GROUPS_H
#define RP_RUN_GROUPS_H

#include "base/config.h"
#include "run/entry.h"

enum { RP_GROUPS_MAX = 256 };

typedef struct {
    const char *name;
    const char *address;    /* NULL: not said; {name} stands for a board's */
    rp_roster_entry common; /* its keys that are is_of_group */
    rp_roster_label label[RP_ROSTER_LABELS_MAX];
    uint32_t label_count;
} rp_group;

typedef struct {
    const rp_group *group;
    uint32_t count;
} rp_groups;

/* errors  USAGE naming file and line; MEMORY */
rp_err rp_groups_read(rp_arena *arena, rp_node *root, rp_groups *out) RP_MUST_CHECK;

/* The keys of rp_roster_keys, and `labels`, of a board whose name is read; *address: what its group
 * gives it, or NULL. errors as rp_groups_read() */
rp_err rp_groups_apply(rp_arena *arena, const rp_groups *groups, rp_node *board,
                       rp_roster_entry *out, const char **address) RP_MUST_CHECK;

/* errors  USAGE at `at`: there is none of this name */
rp_err rp_groups_find(const rp_groups *groups, const rp_node *at, const char *name,
                      const rp_group **out) RP_MUST_CHECK;

#endif
