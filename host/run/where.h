/* Choosing boards of a roster by name, group, profile and labels. */
#ifndef RP_RUN_WHERE_H
#define RP_RUN_WHERE_H

#include "run/roster.h"

enum { RP_WHERE_TERMS_MAX = 16, RP_WHERE_VALUES_MAX = 256 };

/* A condition on a board: it has one of the values under the key. */
typedef struct {
    const char *key; /* name, group, board (its profile), or a label */
    const char **value;
    uint32_t count;
} rp_where_term;

/* A board is chosen if it meets all terms. */
typedef struct {
    rp_where_term term[RP_WHERE_TERMS_MAX];
    uint32_t count;
    const rp_node *at; /* node that an error names: `ring.where`; NULL: the option --where */
} rp_where;

/* Reads texts KEY=VALUE[,VALUE...] of the command line, and copies them to the arena.
 * errors  USAGE, MEMORY */
rp_err rp_where_parse(rp_arena *arena, const char *const *text, uint32_t count,
                      rp_where *out) RP_MUST_CHECK;
/* Reads `where` of a map, {KEY: VALUE, KEY: [VALUE, ...]}; no terms if it is missing. errors as
 * rp_where_parse() */
rp_err rp_where_read(rp_arena *arena, rp_node *map, rp_where *out) RP_MUST_CHECK;

/* Removes boards that do not match; no terms: keeps all. `roster`: its path, for messages.
 * errors  USAGE: a key or a value that no board has, which catches typing errors; or no board
 * matches */
rp_err rp_where_choose(const rp_where *where, const char *roster, rp_roster_entry *board,
                       uint32_t *count) RP_MUST_CHECK;

#endif
