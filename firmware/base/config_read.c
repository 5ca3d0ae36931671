/* YAML to nodes, from files, texts and `--set`. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <yaml.h>

#include "base/config_own.h"
#include "base/input.h"

enum {
    PROBLEM_BYTES = 256,
    KEYS_MAX = 4096 /* limit for one map; keeps the search for repeated keys cheap */
};

typedef struct {
    yaml_parser_t parser;
    rp_arena *arena;
    const char *name;  /* used in messages of the parser */
    const char *label; /* stored in the nodes */
    const char *text;  /* text being parsed, `bytes` long */
    size_t bytes;
    bool lines;     /* line numbers are meaningful to the user */
    uint32_t depth; /* depth of the node that will receive the value */
    uint32_t nodes;
} reader;

static rp_err problem_at(const reader *r, size_t line, const char *problem) {
    return r->lines ? rp_fail(RP_ERR_USAGE, "%s:%zu: %s", r->name, line + 1, problem)
                    : rp_fail(RP_ERR_USAGE, "%s: %s", r->name, problem);
}

/* Whether a tab indents the line (counted from 0). YAML allows only spaces, and libyaml's message,
 * "character that cannot start any token", does not name the tab. */
static bool tab_indents(const reader *r, size_t line) {
    const char *at = r->text;
    for (; at && line > 0; line--) {
        at = memchr(at, '\n', (size_t)(r->text + r->bytes - at));
        at = at ? at + 1 : NULL;
    }
    while (at && at < r->text + r->bytes && *at == ' ') {
        at++;
    }
    return at && at < r->text + r->bytes && *at == '\t';
}

static rp_err next_event(reader *r, yaml_event_t *event) {
    if (yaml_parser_parse(&r->parser, event)) {
        return RP_OK;
    }
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) {
        return rp_fail(RP_ERR_MEMORY, "%s: no memory for the YAML parser", r->name);
    }
    if (p->error == YAML_SCANNER_ERROR && tab_indents(r, p->problem_mark.line)) {
        return problem_at(r, p->problem_mark.line, "a tab indents this line; YAML needs spaces");
    }
    char text[256];
    (void)snprintf(text, sizeof text, "not valid YAML: %s%s%s",
                   p->problem ? p->problem : "unknown problem", p->context ? " " : "",
                   p->context ? p->context : "");
    size_t line = p->error == YAML_READER_ERROR ? p->mark.line : p->problem_mark.line;
    return problem_at(r, line, text);
}

static rp_err add_node(reader *r, const yaml_event_t *event, rp_node **out) {
    if (++r->nodes > RP_CONFIG_NODES_MAX) {
        return problem_at(r, event->start_mark.line, "too many values in one file");
    }
    rp_node *node;
    rp_err err = RP_ARENA_NEW(r->arena, 1, &node);
    if (err != RP_OK) {
        return err;
    }
    node->name = r->label;
    node->line = r->lines ? (uint32_t)event->start_mark.line + 1 : 0;
    *out = node;
    return RP_OK;
}

static rp_err read_scalar(reader *r, const yaml_event_t *event, rp_node *node) {
    const char *text = (const char *)event->data.scalar.value;
    size_t bytes = event->data.scalar.length;
    size_t line = event->start_mark.line;
    node->type = RP_NODE_SCALAR;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (memchr(text, '\0', bytes)) {
        return problem_at(r, line, "a text with a zero byte");
    }
    if (node->plain && (bytes == 0 || strcmp(text, "~") == 0 || strcmp(text, "null") == 0)) {
        return problem_at(r, line,
                          "a key or list item without a value (leave the key out instead)");
    }
    char *copy;
    rp_err err = rp_arena_text(r->arena, text, bytes, &copy);
    node->text = copy;
    return err;
}

/* Keys arrive as separate events. *out is the checked and copied text of the key. */
static rp_err read_key(reader *r, const yaml_event_t *event, const rp_node *map, const char **out) {
    size_t line = event->start_mark.line;
    if (event->type != YAML_SCALAR_EVENT || event->data.scalar.length == 0 ||
        memchr(event->data.scalar.value, '\0', event->data.scalar.length)) {
        return problem_at(r, line, "expected a key");
    }
    if (event->data.scalar.anchor || event->data.scalar.tag) {
        return problem_at(r, line, "anchors (&), aliases (*) and tags (!) are not supported");
    }
    const char *text = (const char *)event->data.scalar.value;
    const rp_node *before = rp_node_child(map, text);
    if (before) {
        char problem[PROBLEM_BYTES];
        (void)snprintf(problem, sizeof problem, "key '%.100s' is given twice (first in line %u)",
                       text, before->line ? before->line : 1);
        return problem_at(r, line, problem);
    }
    if (map->count == KEYS_MAX) {
        return problem_at(r, line, "too many keys in one map");
    }
    char *copy;
    rp_err err = rp_arena_text(r->arena, text, event->data.scalar.length, &copy);
    *out = copy;
    return err;
}

static rp_err read_value(reader *r, const yaml_event_t *event, uint32_t depth, rp_node **out);

static rp_err read_children(reader *r, rp_node *parent, uint32_t depth) {
    yaml_event_t event = {0};
    rp_err err = RP_OK;
    for (;;) {
        const char *key = NULL;
        uint32_t key_line = 0;
        RP_TRY(next_event(r, &event));
        if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) {
            break;
        }
        if (parent->type == RP_NODE_MAP) {
            RP_TRY(read_key(r, &event, parent, &key));
            key_line = r->lines ? (uint32_t)event.start_mark.line + 1 : 0;
            yaml_event_delete(&event);
            RP_TRY(next_event(r, &event));
        }
        rp_node *child;
        RP_TRY(read_value(r, &event, depth + 1, &child));
        yaml_event_delete(&event);
        child->key = key;
        child->line = key ? key_line : child->line;
        RP_TRY(rp_node_append(r->arena, parent, child));
    }
fail:
    yaml_event_delete(&event);
    return err;
}

static rp_err read_value(reader *r, const yaml_event_t *event, uint32_t depth, rp_node **out) {
    const yaml_char_t *anchor = NULL;
    const yaml_char_t *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor || tag || event->type == YAML_ALIAS_EVENT) {
        return problem_at(r, event->start_mark.line,
                          "anchors (&), aliases (*) and tags (!) are not supported");
    }
    if (depth > RP_CONFIG_DEPTH_MAX) {
        return problem_at(r, event->start_mark.line, "nested too deeply");
    }
    rp_node *node;
    rp_err err = RP_OK;
    RP_TRY(add_node(r, event, &node));
    *out = node;
    if (event->type == YAML_SCALAR_EVENT) {
        return read_scalar(r, event, node);
    }
    if (event->type == YAML_SEQUENCE_START_EVENT) {
        node->type = RP_NODE_LIST;
        node->flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    } else {
        RP_ASSERT(event->type == YAML_MAPPING_START_EVENT);
        node->type = RP_NODE_MAP;
        node->flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
        RP_TRY(RP_ARENA_NEW(r->arena, RP_NODE_ASKED_MAX, &node->asked));
    }
    err = read_children(r, node, depth);
fail:
    return err;
}

/* Reads one document: stream start, document start, value, document end, stream end. */
static rp_err read_document(reader *r, const char *text, size_t bytes, rp_node **out) {
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark, written by editors on Windows */
    const size_t skipped = bytes >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    r->text = text + skipped;
    r->bytes = bytes - skipped;
    if (!yaml_parser_initialize(&r->parser)) {
        return rp_fail(RP_ERR_MEMORY, "%s: no memory for the YAML parser", r->name);
    }
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)r->text, r->bytes);
    yaml_event_t event = {0};
    rp_err err = RP_OK;
    RP_TRY(next_event(r, &event));
    yaml_event_delete(&event);
    RP_TRY(next_event(r, &event));
    if (event.type == YAML_STREAM_END_EVENT) {
        err = problem_at(r, 0, "is empty");
        goto fail;
    }
    yaml_event_delete(&event);
    RP_TRY(next_event(r, &event));
    RP_TRY(read_value(r, &event, r->depth + 1, out));
    yaml_event_delete(&event);
    RP_TRY(next_event(r, &event));
    yaml_event_delete(&event);
    RP_TRY(next_event(r, &event));
    if (event.type != YAML_STREAM_END_EVENT) {
        err = problem_at(r, event.start_mark.line, "a second document (---) is not supported");
    }
fail:
    yaml_event_delete(&event);
    yaml_parser_delete(&r->parser);
    return err;
}

rp_err rp_config_read_text(rp_arena *arena, const char *text, size_t bytes, const char *name,
                           rp_node **root) {
    if (bytes > RP_CONFIG_FILE_BYTES_MAX) {
        return rp_fail(RP_ERR_USAGE, "%s: has %zu bytes, a YAML file may have at most %d", name,
                       bytes, RP_CONFIG_FILE_BYTES_MAX);
    }
    char *label;
    rp_err err = rp_arena_string(arena, name, &label);
    if (err != RP_OK) {
        return err;
    }
    reader r = {.arena = arena, .name = label, .label = label, .lines = true};
    rp_node *node = NULL;
    err = read_document(&r, text, bytes, &node);
    if (err == RP_OK && node->type != RP_NODE_MAP) {
        err = rp_node_expected(node, "keys with values");
    }
    if (err == RP_OK) {
        *root = node;
    }
    return err;
}

rp_err rp_config_load(rp_arena *arena, const char *path, const char **text, size_t *bytes) {
    FILE *file = fopen(rp_input_path(path), "rbe");
    path = rp_input_name(path);
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    rp_err err = RP_OK;
    char *all;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)RP_CONFIG_FILE_BYTES_MAX + 1, &all));
    *text = all;
    *bytes = fread(all, 1, (size_t)RP_CONFIG_FILE_BYTES_MAX + 1, file);
    if (ferror(file)) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
fail:
    (void)fclose(file);
    return err;
}

rp_err rp_config_read_file(rp_arena *arena, const char *path, rp_node **root) {
    const char *text;
    size_t bytes;
    const rp_err err = rp_config_load(arena, path, &text, &bytes);
    return err == RP_OK ? rp_config_read_text(arena, text, bytes, rp_input_name(path), root) : err;
}

rp_err rp_config_read_file_if_any(rp_arena *arena, const char *path, rp_node **root) {
    *root = NULL;
    return access(path, F_OK) == 0 ? rp_config_read_file(arena, path, root) : RP_OK;
}

/* ---- --set ---- */

static rp_err new_map(reader *r, rp_node **out) {
    const yaml_event_t nowhere = {0};
    rp_err err = RP_OK;
    RP_TRY(add_node(r, &nowhere, out));
    (*out)->type = RP_NODE_MAP;
    err = RP_ARENA_NEW(r->arena, RP_NODE_ASKED_MAX, &(*out)->asked);
fail:
    return err;
}

static void replace_child(rp_node *map, rp_node *child, const rp_node *old) {
    child->parent = map;
    child->position = old->position;
    child->known = old->known;
    map->items[old->position] = child;
}

/* Sets `value` under `keys` ("a.b.c", modified in place) and creates the maps on the way. */
static rp_err put_value(reader *r, rp_node *map, char *keys, rp_node *value) {
    rp_err err = RP_OK;
    for (;;) {
        char *dot = strchr(keys, '.');
        if (dot) {
            *dot = '\0';
        }
        if (keys[0] == '\0') {
            return rp_fail(RP_ERR_USAGE, "%s: expected key.key=value", r->name);
        }
        if (map->type != RP_NODE_MAP) {
            char found[RP_NODE_FOUND_BYTES];
            return rp_fail(RP_ERR_USAGE, "%s: '%s' has no keys: it is %s", r->name, map->key,
                           rp_node_found(map, found));
        }
        if (map->count == KEYS_MAX) {
            return rp_fail(RP_ERR_USAGE, "%s: too many keys", r->name);
        }
        rp_node *old = rp_node_child(map, keys);
        rp_node *child = dot ? old : value;
        if (!child) {
            RP_TRY(new_map(r, &child));
        }
        child->key = keys;
        if (!old) {
            RP_TRY(rp_node_append(r->arena, map, child));
        } else if (child != old) {
            replace_child(map, child, old);
        }
        if (!dot) {
            return RP_OK;
        }
        map = child;
        keys = dot + 1;
    }
fail:
    return err;
}

rp_err rp_config_set(rp_arena *arena, rp_node *root, const char *assignment) {
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment) {
        return rp_fail(RP_ERR_USAGE, "--set %s: expected key.key=value", assignment);
    }
    if (strlen(assignment) > RP_CONFIG_FILE_BYTES_MAX) {
        return rp_fail(RP_ERR_USAGE, "--set: the value is too long");
    }
    rp_err err = RP_OK;
    char *name;
    char *keys;
    rp_node *value = NULL;
    RP_TRY(rp_arena_printf(arena, &name, "--set %s", assignment));
    RP_TRY(rp_arena_text(arena, assignment, (size_t)(equals - assignment), &keys));
    reader r = {.arena = arena, .name = name, .label = "--set", .depth = 1};
    for (const char *c = keys; *c; c++) {
        r.depth += *c == '.';
    }
    RP_TRY(read_document(&r, equals + 1, strlen(equals + 1), &value));
    err = put_value(&r, root, keys, value);
fail:
    return err;
}

rp_err rp_config_add(rp_arena *arena, rp_node *list, const char *text, const char *name) {
    reader r = {.arena = arena, .label = name, .depth = 1};
    rp_node *value = NULL;
    rp_err err = RP_OK;
    char *kept;
    RP_ASSERT(list->type == RP_NODE_LIST);
    RP_TRY(rp_arena_string(arena, name, &kept));
    r.name = kept;
    RP_TRY(read_document(&r, text, strlen(text), &value));
    RP_TRY(rp_node_append(arena, list, value));
fail:
    return err;
}
