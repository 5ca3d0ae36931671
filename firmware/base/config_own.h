/* What the files of the configuration share. Private to them. */
#ifndef RP_BASE_CONFIG_OWN_H
#define RP_BASE_CONFIG_OWN_H

#include "base/config.h"

enum {
    RP_NODE_FOUND_BYTES = 64,
    RP_NODE_ASKED_MAX = 32 /* keys of one map that rp_node_done() can name */
};

typedef enum { RP_NODE_SCALAR, RP_NODE_LIST, RP_NODE_MAP } rp_node_type;

struct rp_node {
    rp_node_type type;
    bool plain;        /* a scalar without quotes: may be read as a number */
    bool flow;         /* a list or a map written in one line */
    bool known;        /* somebody asked for this key of its map */
    uint32_t line;     /* 0: not from a file */
    uint32_t position; /* in the parent, which is a list or a map */
    const char *name;  /* of the file */
    const char *key;   /* in the parent, when that is a map */
    const char *text;
    rp_node *parent;
    rp_node **items;
    uint32_t count, room;
    const char **asked; /* of a map: keys somebody asked for, borrowed, for suggestions */
    uint32_t asked_count;
    rp_arena *notes; /* of a root: where defaults are noted; NULL: they are not */
    rp_node
        *defaults;  /* of a map: those that were used, a map; its children's parent is this one */
    rp_node *whole; /* of a scalar that stands for a map with `kind`: that map */
};

/* A map without keys; `like` says where it stands. errors MEMORY */
rp_err rp_node_new_map(rp_arena *arena, const rp_node *like, rp_node **out) RP_MUST_CHECK;
/* errors MEMORY */
rp_err rp_node_append(rp_arena *arena, rp_node *parent, rp_node *child) RP_MUST_CHECK;

/* Where the tree notes defaults, or NULL: it does not. */
rp_arena *rp_node_notes(const rp_node *node);
/* A word or a number, which needs no quotes unless the writer says so. errors MEMORY */
rp_err rp_node_new_scalar(rp_arena *arena, const rp_node *like, const char *text,
                          rp_node **out) RP_MUST_CHECK;
/* As the value of a key that is absent; the first one stays. `key` is borrowed. errors MEMORY */
rp_err rp_node_add_default(rp_arena *arena, rp_node *map, const char *key,
                           rp_node *value) RP_MUST_CHECK;
/* The same of a value, where the tree notes defaults. errors MEMORY */
rp_err rp_node_note(rp_node *map, const char *key, const char *text) RP_MUST_CHECK;
rp_err rp_node_note_f64(rp_node *map, const char *key, double value) RP_MUST_CHECK;
rp_err rp_node_note_f32(rp_node *map, const char *key, float value) RP_MUST_CHECK;

/* The child under `key`, NULL when there is none; nothing is marked. */
rp_node *rp_node_child(const rp_node *map, const char *key);

/* What stands there, as a person would say it; text has RP_NODE_FOUND_BYTES. Returns text. */
const char *rp_node_found(const rp_node *node, char *text);

/* rp_node_fail with "expected ..., found ...". */
rp_err rp_node_expected(const rp_node *node, const char *expected);

#endif
