/* The boards of a roster file: who they are, where they listen, by which key they are known, and
 * what people say about them: groups and labels. */
#ifndef RP_RUN_ROSTER_H
#define RP_RUN_ROSTER_H

#include "base/config.h"
#include "run/entry.h"

/* Reads `boards` of the file: *count entries in its order, which live as long as the arena.
 * errors  USAGE naming file and line; IO; MEMORY */
rp_err rp_roster_read(rp_arena *arena, const char *path, rp_roster_entry **out,
                      uint32_t *count) RP_MUST_CHECK;

/* The same of a file whose boards may all be still to come: *count is 0 then. */
rp_err rp_roster_read_begun(rp_arena *arena, const char *path, rp_roster_entry **out,
                            uint32_t *count) RP_MUST_CHECK;

/* The same of a text; `name` stands in messages. */
rp_err rp_roster_read_text(rp_arena *arena, const char *text, size_t bytes, const char *name,
                           rp_roster_entry **out, uint32_t *count) RP_MUST_CHECK;

/* Does the file, which may have no boards yet, have a group of this name? errors USAGE: it has not;
 * IO; MEMORY */
rp_err rp_roster_check_group(const char *path, const char *group) RP_MUST_CHECK;

/* Of two boards that have a link one dials the other. `at`: the node that an error names.
 * errors  USAGE: neither can be dialled */
rp_err rp_roster_check_neighbours(const rp_node *at, const rp_roster_entry *a,
                                  const rp_roster_entry *b) RP_MUST_CHECK;

/* Is `name` that of a board: in the roster, [boards] in any order, or, where that is NULL, a place
 * in a ring of this machine? errors USAGE at `node` */
rp_err rp_roster_check_name(const rp_node *node, const char *name, const rp_roster_entry *roster,
                            uint32_t boards) RP_MUST_CHECK;

#endif
