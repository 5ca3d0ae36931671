/* Private declarations shared by config*.c. */
#ifndef RP_BASE_CONFIG_OWN_H
#define RP_BASE_CONFIG_OWN_H

#include "base/config.h"

enum {
    RP_NODE_FOUND_BYTES = 64,
    RP_NODE_ASKED_MAX = 32 /* most keys of one map that rp_node_done() names */
};

typedef enum { RP_NODE_SCALAR, RP_NODE_LIST, RP_NODE_MAP } rp_node_type;

struct rp_node {
    rp_node_type type;
    bool plain;        /* a scalar without quotes: may be read as a number */
    bool flow;         /* a list or a map written on one line */
    bool known;        /* the program has asked for this key of its map */
    uint32_t line;     /* 0: not from a file */
    uint32_t position; /* index in the parent list or map */
    const char *name;  /* of the file */
    const char *key;   /* in the parent, if that is a map */
    const char *text;
    rp_node *parent;
    rp_node **items;
    uint32_t count, room;
    const char **asked; /* keys of this map that were asked for, borrowed; for suggestions */
    uint32_t asked_count;
    rp_arena *notes;   /* in the root: arena for noted defaults; NULL: none are noted */
    rp_node *defaults; /* map of the noted defaults of a map; its children's parent is this node */
    rp_node *whole;    /* the map that a scalar stands for, with `kind` */
};

/* Creates an empty map with the file position of `like`. errors MEMORY */
rp_err rp_node_new_map(rp_arena *arena, const rp_node *like, rp_node **out) RP_MUST_CHECK;
/* errors MEMORY */
rp_err rp_node_append(rp_arena *arena, rp_node *parent, rp_node *child) RP_MUST_CHECK;

/* The arena for noted defaults, or NULL if the tree does not note them. */
rp_arena *rp_node_notes(const rp_node *node);
/* Creates an unquoted word or number with the file position of `like`. errors MEMORY */
rp_err rp_node_new_scalar(rp_arena *arena, const rp_node *like, const char *text,
                          rp_node **out) RP_MUST_CHECK;
/* Adds `value` as the noted default of an absent key; an earlier one is kept. `key` is borrowed.
 * errors  MEMORY */
rp_err rp_node_add_default(rp_arena *arena, rp_node *map, const char *key,
                           rp_node *value) RP_MUST_CHECK;
/* Like rp_node_add_default(), for a word or number, if the tree notes defaults. errors MEMORY */
rp_err rp_node_note(rp_node *map, const char *key, const char *text) RP_MUST_CHECK;
rp_err rp_node_note_f64(rp_node *map, const char *key, double value) RP_MUST_CHECK;
rp_err rp_node_note_f32(rp_node *map, const char *key, float value) RP_MUST_CHECK;

/* The child under `key`, or NULL. Marks no key as known. */
rp_node *rp_node_child(const rp_node *map, const char *key);

/* Describes the node's content for a message. `text` has RP_NODE_FOUND_BYTES. Returns text. */
const char *rp_node_found(const rp_node *node, char *text);

/* rp_node_fail() with "expected ..., found ...". */
rp_err rp_node_expected(const rp_node *node, const char *expected);

#endif
