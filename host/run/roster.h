/* The boards of a roster file: names, addresses, public keys, groups and labels. */
#ifndef RP_RUN_ROSTER_H
#define RP_RUN_ROSTER_H

#include "base/config.h"
#include "run/entry.h"

/* Reads the list `boards` of the file: *count >= 1 entries in its order, in the arena.
 * errors  USAGE naming file and line; IO; MEMORY */
rp_err rp_roster_read(rp_arena *arena, const char *path, rp_roster_entry **out,
                      uint32_t *count) RP_MUST_CHECK;

/* As rp_roster_read(), but the file may have no `boards` yet; *count is 0 then. */
rp_err rp_roster_read_begun(rp_arena *arena, const char *path, rp_roster_entry **out,
                            uint32_t *count) RP_MUST_CHECK;

/* As rp_roster_read(), from a text; `name` is used in messages. */
rp_err rp_roster_read_text(rp_arena *arena, const char *text, size_t bytes, const char *name,
                           rp_roster_entry **out, uint32_t *count) RP_MUST_CHECK;

/* Checks that the file, which may have no boards yet, has this group. errors USAGE: unknown group;
 * IO; MEMORY */
rp_err rp_roster_check_group(const char *path, const char *group) RP_MUST_CHECK;

/* Checks that at least one of two neighbours can be dialled. `at`: the node that an error names.
 * errors  USAGE: neither can be dialled */
rp_err rp_roster_check_neighbours(const rp_node *at, const rp_roster_entry *a,
                                  const rp_roster_entry *b) RP_MUST_CHECK;

/* Checks that `name` is the name of a board in roster[boards], or, if roster is NULL, a place in a
 * local ring of `boards`. errors USAGE at `node` */
rp_err rp_roster_check_name(const rp_node *node, const char *name, const rp_roster_entry *roster,
                            uint32_t boards) RP_MUST_CHECK;

#endif
