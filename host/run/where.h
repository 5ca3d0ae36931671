/* Which boards of a roster are meant: by name, group, profile and labels. */
#ifndef RP_RUN_WHERE_H
#define RP_RUN_WHERE_H

#include "run/roster.h"

enum { RP_WHERE_TERMS_MAX = 16, RP_WHERE_VALUES_MAX = 256 };

/* A board fits when it has one of the values under each key. */
typedef struct {
    const char *key; /* name, group, board (its profile), or a label */
    const char **value;
    uint32_t count;
} rp_where_term;

typedef struct {
    rp_where_term term[RP_WHERE_TERMS_MAX];
    uint32_t count;
    const rp_node *at; /* what an error names: `ring.where`; NULL: the command line */
} rp_where;

/* Of the command line: texts KEY=VALUE[,VALUE...]. They live as long as the arena.
 * errors  USAGE, MEMORY */
rp_err rp_where_parse(rp_arena *arena, const char *const *text, uint32_t count,
                      rp_where *out) RP_MUST_CHECK;
/* `where` of a map, {KEY: VALUE, KEY: [VALUE, ...]}; nothing where it has none. errors as above */
rp_err rp_where_read(rp_arena *arena, rp_node *map, rp_where *out) RP_MUST_CHECK;

/* Keeps the boards that fit, in their order; nothing is said: all. `roster` stands in messages.
 * errors  USAGE: a key or a value that no board has, so that a slip of the pen is none of few; or
 * nobody fits */
rp_err rp_where_choose(const rp_where *where, const char *roster, rp_roster_entry *board,
                       uint32_t *count) RP_MUST_CHECK;

#endif
