/* Configuration files (YAML) as a tree with line numbers, read key by key and strictly. A key that
 * the program does not read, a repeated key, an alias or an anchor is an error that names file and
 * line.
 *
 * We do not use libcyaml's schemas because our files are polymorphic (`schedule: gpipe` or a map,
 * `cut: auto` or a list, keys that depend on `kind`), which a fixed C schema cannot express.
 * libyaml, on which libcyaml is built, parses the text.
 *
 * Messages look like `run.yaml:12: train.batch: expected a whole number from 1 to 65536, found
 * 'x'`. */
#ifndef RP_BASE_CONFIG_H
#define RP_BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"

enum { RP_CONFIG_FILE_BYTES_MAX = 1 << 20, RP_CONFIG_NODES_MAX = 100000, RP_CONFIG_DEPTH_MAX = 32 };

typedef struct rp_node rp_node; /* stored in the arena it was read into */

/* Reads a file ("-" is the standard input, see base/input.h) or a text of `bytes`. Messages call it
 * `name`. The root must be a map.
 * errors  USAGE with name and line; IO when the file cannot be read (exit code as for USAGE) */
rp_err rp_config_read_file(rp_arena *arena, const char *path, rp_node **root) RP_MUST_CHECK;
/* Like rp_config_read_file(), for a file that may be missing: *root is then NULL. */
rp_err rp_config_read_file_if_any(rp_arena *arena, const char *path, rp_node **root) RP_MUST_CHECK;
/* Only loads the bytes of the file. *bytes is at most one more than rp_config_read_text() accepts,
 * so that it can report a file that is too long. */
rp_err rp_config_load(rp_arena *arena, const char *path, const char **text,
                      size_t *bytes) RP_MUST_CHECK;
rp_err rp_config_read_text(rp_arena *arena, const char *text, size_t bytes, const char *name,
                           rp_node **root) RP_MUST_CHECK;

/* Applies an assignment such as `train.batch=64`: parses the value as YAML (flow style works) and
 * sets it, creating missing maps. Messages then name `--set` instead of file and line. */
rp_err rp_config_set(rp_arena *arena, rp_node *root, const char *assignment) RP_MUST_CHECK;

/* Appends a value, `text` parsed as YAML, to a list. Messages call it `name`.
 * errors  as rp_config_read_text() */
rp_err rp_config_add(rp_arena *arena, rp_node *list, const char *text,
                     const char *name) RP_MUST_CHECK;

bool rp_node_is_map(const rp_node *node);
bool rp_node_is_list(const rp_node *node);
bool rp_node_is_scalar(const rp_node *node);
const char *rp_node_text(const rp_node *node); /* a scalar's text */
uint32_t rp_node_line(const rp_node *node);
uint32_t rp_node_count(const rp_node *node); /* length of a list or a map */
rp_node *rp_node_item(const rp_node *node, uint32_t index);
const char *rp_node_key(const rp_node *node, uint32_t index); /* of entry `index` of a map */

/* Whether both trees have the same content. The order of a map's keys, quotes and the writing style
 * do not matter. */
bool rp_node_same(const rp_node *a, const rp_node *b);

/* Writes up to `most` differences of `now` from `before` as "train.lr: 2 (was 1); ...", or "" if
 * they are equal. A default that was noted in `now` counts as given; if `before` did not mention
 * that key, it is no difference. The text is cut off at `bytes`. errors MEMORY */
rp_err rp_config_changes(const rp_node *before, const rp_node *now, uint32_t most, char *text,
                         size_t bytes) RP_MUST_CHECK;

/* The path in a scalar, resolved against the folder of the file that contains it; for `--set`
 * against the current folder. Former versions always used the current folder: if the path exists
 * only there, that path is returned and a log line says so. errors MEMORY */
rp_err rp_node_path(rp_arena *arena, const rp_node *node, const char **out) RP_MUST_CHECK;
/* The node at a path of keys such as "data.path", or NULL. Marks no key as known. */
rp_node *rp_node_at(rp_node *root, const char *keys);
/* Replaces a scalar's text, as if it were quoted; `text` is borrowed. */
void rp_node_set_text(rp_node *node, const char *text);

/* The child of a map under `key`, or NULL (also when `map` is NULL or not a map). Marks the key as
 * known. `key` is borrowed as long as the tree exists, so pass literals. */
rp_node *rp_node_find(rp_node *map, const char *key);

/* The child under `key`, or under the key's former name, which is reported in the log. *out is NULL
 * if there is neither. errors USAGE when both are given */
rp_err rp_node_find_renamed(rp_node *map, const char *key, const char *former,
                            rp_node **out) RP_MUST_CHECK;

/* Typed reads of a map's key. When the key is absent (or `map` is NULL), *out keeps its value, so
 * preset the default. rp_node_need() makes absence an error. The bounds are inclusive; doubles must
 * be finite. */
rp_err rp_node_need(rp_node *map, const char *key) RP_MUST_CHECK;
rp_err rp_node_u32(rp_node *map, const char *key, uint32_t min, uint32_t max,
                   uint32_t *out) RP_MUST_CHECK;
rp_err rp_node_u64(rp_node *map, const char *key, uint64_t min, uint64_t max,
                   uint64_t *out) RP_MUST_CHECK;
/* Notes no default. */
rp_err rp_node_i32(rp_node *map, const char *key, int32_t *out) RP_MUST_CHECK;
rp_err rp_node_f64(rp_node *map, const char *key, double min, double max,
                   double *out) RP_MUST_CHECK;
rp_err rp_node_f32(rp_node *map, const char *key, double min, double max, float *out) RP_MUST_CHECK;
rp_err rp_node_bool(rp_node *map, const char *key, bool *out) RP_MUST_CHECK;
rp_err rp_node_string(rp_node *map, const char *key, const char **out) RP_MUST_CHECK;
/* Numbers in a list; index < count. */
rp_err rp_node_item_u32(const rp_node *list, uint32_t index, uint32_t min, uint32_t max,
                        uint32_t *out) RP_MUST_CHECK;
rp_err rp_node_item_bool(const rp_node *list, uint32_t index, bool *out) RP_MUST_CHECK;
rp_err rp_node_item_f64(const rp_node *list, uint32_t index, double min, double max,
                        double *out) RP_MUST_CHECK;
/* One of a NULL-terminated list of words; *out is its index. */
rp_err rp_node_word(rp_node *map, const char *key, const char *const *words,
                    uint32_t *out) RP_MUST_CHECK;

/* Starts noting defaults: when a typed read finds no key, the tree stores the preset value for
 * rp_config_write_whole(). All other functions still see the key as absent. */
void rp_config_note_defaults(rp_arena *arena, rp_node *root);
/* Notes a default that no typed read notes: `text` parsed as YAML. Does nothing when the key is
 * present or the tree does not note defaults. errors as rp_config_read_text() */
rp_err rp_node_default(rp_node *map, const char *key, const char *text) RP_MUST_CHECK;
/* A map of options, which may be absent. If `kind` is not NULL, a single word may stand for `{kind:
 * word}`, and `kind` is also noted as the kind of an absent map. If the tree notes defaults, *out
 * is always a map to read from; otherwise it is what rp_node_find() returns. errors MEMORY */
rp_err rp_node_section(rp_node *parent, const char *key, const char *kind,
                       rp_node **out) RP_MUST_CHECK;

/* Checks that every key of the map has been asked for. Otherwise the error USAGE names the first
 * unknown key, its line, and the known keys. */
rp_err rp_node_done(const rp_node *map) RP_MUST_CHECK;
/* Like rp_node_done(), but before the map is read. `keys` lists all known keys and ends with NULL.
 * A mistyped key is then reported before errors that follow from its absence. */
rp_err rp_node_keys(rp_node *map, const char *const *keys) RP_MUST_CHECK;

/* rp_fail(USAGE), with the prefix `file:line: path: `. */
rp_err rp_node_fail(const rp_node *node, const char *format, ...) RP_PRINTF(2, 3);

/* Writes the tree as YAML that reads back to the same tree. */
rp_err rp_config_write(const rp_node *node, FILE *file) RP_MUST_CHECK;
/* Like rp_config_write(), with noted defaults after the given keys, in read order. */
rp_err rp_config_write_whole(const rp_node *node, FILE *file) RP_MUST_CHECK;
/* Writes the tree with rp_config_write_whole() to a file, which is replaced whole or not at all.
 * errors  IO */
rp_err rp_config_replace(const rp_node *node, const char *path) RP_MUST_CHECK;
/* Like rp_config_write(), into a text in the arena. */
rp_err rp_config_text(rp_arena *arena, const rp_node *node, char **out) RP_MUST_CHECK;
/* Like rp_config_text(), for a map without the entry `key`, which it need not have. */
rp_err rp_config_text_without(rp_arena *arena, const rp_node *map, const char *key,
                              char **out) RP_MUST_CHECK;
/* Writes `key:` and the node as a block below it. errors MEMORY */
rp_err rp_config_put(rp_arena *arena, FILE *file, const char *key,
                     const rp_node *node) RP_MUST_CHECK;

#endif
