/* What people write (YAML) as a tree with line numbers, read key by key and strictly: a key that
 * nobody asked for, a repeated key, an alias or an anchor is an error that names file and line.
 *
 * Why not libcyaml's schemas: our files are polymorphic (`schedule: gpipe` or a map, `cut: auto` or
 * a list, keys that depend on `kind`), which a fixed C schema can not say; libyaml, below libcyaml,
 * does the parsing here.
 *
 * Messages look like
 * `run.yaml:12: train.batch: expected a whole number from 1 to 65536, found 'x'`. */
#ifndef RP_BASE_CONFIG_H
#define RP_BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"

enum { RP_CONFIG_FILE_BYTES_MAX = 1 << 20, RP_CONFIG_NODES_MAX = 100000, RP_CONFIG_DEPTH_MAX = 32 };

typedef struct rp_node rp_node; /* lives in the arena it was read into */

/* Reads a file ("-": the standard input, see base/input.h) or a text of `bytes`; `name` stands in
 * messages. The root must be a map.
 * errors  USAGE with name and line; IO when the file can not be read (USAGE class exit code) */
rp_err rp_config_read_file(rp_arena *arena, const char *path, rp_node **root) RP_MUST_CHECK;
/* As rp_config_read_file() for a file that may be missing: *root is NULL then. */
rp_err rp_config_read_file_if_any(rp_arena *arena, const char *path, rp_node **root) RP_MUST_CHECK;
/* The first half of it: the bytes of a file, one more than rp_config_read_text() takes at most. */
rp_err rp_config_load(rp_arena *arena, const char *path, const char **text,
                      size_t *bytes) RP_MUST_CHECK;
rp_err rp_config_read_text(rp_arena *arena, const char *text, size_t bytes, const char *name,
                           rp_node **root) RP_MUST_CHECK;

/* `--set train.batch=64`: parses the value as YAML (flow style works) and puts it in place,
 * creating maps on the way. Messages then say `--set` instead of file and line. */
rp_err rp_config_set(rp_arena *arena, rp_node *root, const char *assignment) RP_MUST_CHECK;

/* Puts a value, `text` as YAML, at the end of a list; `name` stands in messages. errors as
 * rp_config_read_text() */
rp_err rp_config_add(rp_arena *arena, rp_node *list, const char *text,
                     const char *name) RP_MUST_CHECK;

bool rp_node_is_map(const rp_node *node);
bool rp_node_is_list(const rp_node *node);
bool rp_node_is_scalar(const rp_node *node);
const char *rp_node_text(const rp_node *node); /* of a scalar */
uint32_t rp_node_line(const rp_node *node);
uint32_t rp_node_count(const rp_node *node); /* of a list or a map */
rp_node *rp_node_item(const rp_node *node, uint32_t index);
const char *rp_node_key(const rp_node *node, uint32_t index); /* of a map */

/* Do both say the same? The order of a map's keys, quotes and the style of writing do not count. */
bool rp_node_same(const rp_node *a, const rp_node *b);

/* What `now` says differently, "train.lr: 2 (was 1); ...", "" when nothing; at most so many.
 * Defaults that `now` has noted count as said; where `before` said nothing of it they are no
 * change. Cut off at `bytes`. errors MEMORY */
rp_err rp_config_changes(const rp_node *before, const rp_node *now, uint32_t most, char *text,
                         size_t bytes) RP_MUST_CHECK;

/* The path that a scalar names, from the folder of the file in which it stands; of `--set` from the
 * current one. Former versions meant the current folder always: where only there is something, that
 * is meant, and the log says so. errors MEMORY */
rp_err rp_node_path(rp_arena *arena, const rp_node *node, const char **out) RP_MUST_CHECK;
/* The node under "data.path", or NULL; marks nothing as known. */
rp_node *rp_node_at(rp_node *root, const char *keys);
/* Of a scalar, as if it stood in quotes; borrowed. */
void rp_node_set_text(rp_node *node, const char *text);

/* The child of a map, or NULL (also when `map` is NULL or no map); marks the key as known. `key` is
 * borrowed as long as the tree lives: hand in literals. */
rp_node *rp_node_find(rp_node *map, const char *key);

/* The child under `key`, or under the key's former name, of which a log line then tells. *out is
 * NULL when there is neither. errors USAGE when both are given */
rp_err rp_node_find_renamed(rp_node *map, const char *key, const char *former,
                            rp_node **out) RP_MUST_CHECK;

/* Typed reads of a map's key. When the key is absent (or `map` is NULL) *out stays as it was, so
 * preset the default; `rp_node_need` first makes absence an error. The bounds are inclusive;
 * doubles must be finite. */
rp_err rp_node_need(rp_node *map, const char *key) RP_MUST_CHECK;
rp_err rp_node_u32(rp_node *map, const char *key, uint32_t min, uint32_t max,
                   uint32_t *out) RP_MUST_CHECK;
rp_err rp_node_u64(rp_node *map, const char *key, uint64_t min, uint64_t max,
                   uint64_t *out) RP_MUST_CHECK;
rp_err rp_node_f64(rp_node *map, const char *key, double min, double max,
                   double *out) RP_MUST_CHECK;
rp_err rp_node_f32(rp_node *map, const char *key, double min, double max, float *out) RP_MUST_CHECK;
rp_err rp_node_bool(rp_node *map, const char *key, bool *out) RP_MUST_CHECK;
rp_err rp_node_string(rp_node *map, const char *key, const char **out) RP_MUST_CHECK;
/* Numbers of a list; index < count. */
rp_err rp_node_item_u32(const rp_node *list, uint32_t index, uint32_t min, uint32_t max,
                        uint32_t *out) RP_MUST_CHECK;
rp_err rp_node_item_bool(const rp_node *list, uint32_t index, bool *out) RP_MUST_CHECK;
rp_err rp_node_item_f64(const rp_node *list, uint32_t index, double min, double max,
                        double *out) RP_MUST_CHECK;
/* One of a NULL-terminated list of words; *out is its index. */
rp_err rp_node_word(rp_node *map, const char *key, const char *const *words,
                    uint32_t *out) RP_MUST_CHECK;

/* What a default decided. From here on the tree notes the value that stays when a typed read finds
 * no key; rp_config_write_whole() has it. To every other function an absent key stays absent. */
void rp_config_note_defaults(rp_arena *arena, rp_node *root);
/* The same for what is no typed read: `text` as YAML. Nothing when the key is there or the tree
 * notes nothing. errors as rp_config_read_text() */
rp_err rp_node_default(rp_node *map, const char *key, const char *text) RP_MUST_CHECK;
/* A map of options, which may be absent, or a word in place of `kind: word` where `kind` is not
 * NULL (the kind of an absent one). A tree that notes defaults then gives a map to read from all
 * the same; otherwise *out is what rp_node_find() finds. errors MEMORY */
rp_err rp_node_section(rp_node *parent, const char *key, const char *kind,
                       rp_node **out) RP_MUST_CHECK;

/* Every key of the map must have been asked for; otherwise USAGE naming the first stranger, its
 * line, and the known keys. */
rp_err rp_node_done(const rp_node *map) RP_MUST_CHECK;
/* As rp_node_done(), before the map is read. `keys` lists all known keys and ends with NULL. A
 * mistyped key is then reported before errors that follow from its absence. */
rp_err rp_node_keys(rp_node *map, const char *const *keys) RP_MUST_CHECK;

/* rp_fail(USAGE) with `file:line: path: ` in front. */
rp_err rp_node_fail(const rp_node *node, const char *format, ...) RP_PRINTF(2, 3);

/* Writes the tree as YAML that reads back to the same tree. */
rp_err rp_config_write(const rp_node *node, FILE *file) RP_MUST_CHECK;
/* The same with every default that was noted: behind what is given, in the order of the reads. */
rp_err rp_config_write_whole(const rp_node *node, FILE *file) RP_MUST_CHECK;
/* That to a file, which is replaced whole or not at all. errors IO */
rp_err rp_config_replace(const rp_node *node, const char *path) RP_MUST_CHECK;
/* As rp_config_write(), into arena text (used to hand parts of a run file to the agents). */
rp_err rp_config_text(rp_arena *arena, const rp_node *node, char **out) RP_MUST_CHECK;
/* `key:` and the node as a block below it. errors MEMORY */
rp_err rp_config_put(rp_arena *arena, FILE *file, const char *key,
                     const rp_node *node) RP_MUST_CHECK;

#endif
