/* `groups` of a roster: common properties of many boards. */
#ifndef RP_RUN_GROUPS_H
#define RP_RUN_GROUPS_H

#include "base/config.h"
#include "run/entry.h"

enum { RP_GROUPS_MAX = 256 };

typedef struct {
    const char *name;
    const char *address;    /* NULL: not set; {name} is replaced by each board's name */
    rp_roster_entry common; /* values of the keys that are is_of_group */
    rp_roster_label label[RP_ROSTER_LABELS_MAX];
    uint32_t label_count;
} rp_group;

typedef struct {
    const rp_group *group;
    uint32_t count;
} rp_groups;

/* Reads the map `groups`. errors  USAGE naming file and line; MEMORY */
rp_err rp_groups_read(rp_arena *arena, rp_node *root, rp_groups *out) RP_MUST_CHECK;

/* Reads the keys of rp_roster_keys and `labels` of a board, with values of its group for those that
 * it lacks. out->name is set already. *address: the group's, filled in, or NULL. errors as
 * rp_groups_read() */
rp_err rp_groups_apply(rp_arena *arena, const rp_groups *groups, rp_node *board,
                       rp_roster_entry *out, const char **address) RP_MUST_CHECK;

/* Finds a group by name. errors  USAGE at `at`: unknown group */
rp_err rp_groups_find(const rp_groups *groups, const rp_node *at, const char *name,
                      const rp_group **out) RP_MUST_CHECK;

#endif
