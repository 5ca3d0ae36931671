#include "base/config.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

enum {
    PATH_BYTES = 256,
    FOUND_BYTES = 48,
    KEYS_MAX = 4096, /* of one map: keeps the search for repeated keys cheap */
    ASKED_MAX = 32,  /* keys of one map that rp_node_done() can name */
    WORDS_BYTES = 512
};

typedef enum { SCALAR, LIST, MAP } node_type;

struct rp_node {
    node_type type;
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
};

typedef struct {
    yaml_parser_t parser;
    rp_arena *arena;
    const char *name;  /* in messages of the parser */
    const char *label; /* kept in the nodes */
    bool lines;        /* line numbers mean something to the user */
    uint32_t depth;    /* of the place where the value will hang */
    uint32_t nodes;
} reader;

/* ---- messages ---- */

static void path_of(const rp_node *node, char *path, size_t path_bytes) {
    const rp_node *chain[RP_CONFIG_DEPTH_MAX + 2];
    uint32_t depth = 0;
    while (node->parent && depth < RP_CONFIG_DEPTH_MAX + 2) {
        chain[depth++] = node;
        node = node->parent;
    }
    path[0] = '\0';
    for (size_t used = 0; depth > 0 && used < path_bytes;) {
        const rp_node *at = chain[--depth];
        int wrote =
            at->parent->type == LIST
                ? snprintf(path + used, path_bytes - used, "[%u]", at->position)
                : snprintf(path + used, path_bytes - used, "%s%s", used ? "." : "", at->key);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

rp_err rp_node_fail(const rp_node *node, const char *format, ...) {
    char text[768];
    char path[PATH_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    path_of(node, path, sizeof path);
    const char *colon = path[0] ? ": " : "";
    if (node->line == 0) {
        return rp_fail(RP_ERR_USAGE, "%s: %s%s%s", node->name, path, colon, text);
    }
    return rp_fail(RP_ERR_USAGE, "%s:%u: %s%s%s", node->name, node->line, path, colon, text);
}

/* What stands there, as a person would say it. */
static const char *found_text(const rp_node *node, char *text, size_t text_bytes) {
    if (node->type == SCALAR) {
        bool cut = strlen(node->text) > FOUND_BYTES - 12;
        (void)snprintf(text, text_bytes, "'%.*s%s'%s", FOUND_BYTES - 12, node->text,
                       cut ? "..." : "", node->plain ? "" : " in quotes");
    } else {
        (void)snprintf(text, text_bytes, node->type == LIST ? "a list" : "a map");
    }
    return text;
}

static rp_err fail_expected(const rp_node *node, const char *expected) {
    char found[FOUND_BYTES + 16];
    return rp_node_fail(node, "expected %s, found %s", expected,
                        found_text(node, found, sizeof found));
}

/* Levenshtein's distance with exchanged neighbours, of short words; long ones are far. */
static uint32_t distance_of(const char *a, const char *b) {
    enum { LONG = 32 };
    uint32_t rows[3][LONG + 1];
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    if (a_length > LONG || b_length > LONG) {
        return LONG;
    }
    for (uint32_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (uint32_t i = 1; i <= a_length; i++) {
        uint32_t *now = rows[i % 3];
        const uint32_t *above = rows[(i + 2) % 3];
        const uint32_t *above2 = rows[(i + 1) % 3];
        now[0] = i;
        for (uint32_t j = 1; j <= b_length; j++) {
            uint32_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                above2[j - 2] + 1 < best) {
                best = above2[j - 2] + 1;
            }
            now[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

static const char *nearest_of(const char *word, const char *const *words, uint32_t count) {
    const char *nearest = NULL;
    uint32_t best = strlen(word) < 4 ? 2 : 3; /* exclusive */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t distance = distance_of(word, words[i]);
        if (distance < best) {
            best = distance;
            nearest = words[i];
        }
    }
    return nearest;
}

static void list_words(const char *const *words, uint32_t count, char *text, size_t text_bytes) {
    text[0] = '\0';
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < text_bytes; i++) {
        int wrote = snprintf(text + used, text_bytes - used, "%s%s", i ? " " : "", words[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

/* ---- reading ---- */

static rp_err problem_at(const reader *r, size_t line, const char *problem) {
    return r->lines ? rp_fail(RP_ERR_USAGE, "%s:%zu: %s", r->name, line + 1, problem)
                    : rp_fail(RP_ERR_USAGE, "%s: %s", r->name, problem);
}

static rp_err next_event(reader *r, yaml_event_t *event) {
    if (yaml_parser_parse(&r->parser, event)) {
        return RP_OK;
    }
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) {
        return rp_fail(RP_ERR_MEMORY, "%s: no memory for the YAML parser", r->name);
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

static rp_err append(rp_arena *arena, rp_node *parent, rp_node *child) {
    if (parent->count == parent->room) {
        uint32_t room = parent->room ? 2 * parent->room : 8;
        rp_node **items;
        rp_err err = RP_ARENA_NEW(arena, room, &items);
        if (err != RP_OK) {
            return err;
        }
        if (parent->count > 0) {
            memcpy(items, parent->items, parent->count * sizeof *items);
        }
        parent->items = items;
        parent->room = room;
    }
    child->parent = parent;
    child->position = parent->count;
    parent->items[parent->count++] = child;
    return RP_OK;
}

static rp_node *child_of(const rp_node *map, const char *key) {
    for (uint32_t i = 0; map->type == MAP && i < map->count; i++) {
        if (strcmp(map->items[i]->key, key) == 0) {
            return map->items[i];
        }
    }
    return NULL;
}

static rp_err read_scalar(reader *r, const yaml_event_t *event, rp_node *node) {
    const char *text = (const char *)event->data.scalar.value;
    size_t bytes = event->data.scalar.length;
    size_t line = event->start_mark.line;
    node->type = SCALAR;
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

/* Keys come as events of their own; the result is the key's text, checked and copied. */
static rp_err read_key(reader *r, const yaml_event_t *event, const rp_node *map, const char **out) {
    size_t line = event->start_mark.line;
    if (event->type != YAML_SCALAR_EVENT || event->data.scalar.length == 0 ||
        memchr(event->data.scalar.value, '\0', event->data.scalar.length)) {
        return problem_at(r, line, "expected a key");
    }
    if (event->data.scalar.anchor || event->data.scalar.tag) {
        return problem_at(r, line, "anchors (&), aliases (*) and tags (!) are not used here");
    }
    const char *text = (const char *)event->data.scalar.value;
    const rp_node *before = child_of(map, text);
    if (before) {
        char problem[PATH_BYTES];
        (void)snprintf(problem, sizeof problem, "key '%.100s' stands here twice (first in line %u)",
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
        if (parent->type == MAP) {
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
        RP_TRY(append(r->arena, parent, child));
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
                          "anchors (&), aliases (*) and tags (!) are not used here");
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
        node->type = LIST;
        node->flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    } else {
        RP_ASSERT(event->type == YAML_MAPPING_START_EVENT);
        node->type = MAP;
        node->flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
        RP_TRY(RP_ARENA_NEW(r->arena, ASKED_MAX, &node->asked));
    }
    err = read_children(r, node, depth);
fail:
    return err;
}

/* One document: stream start, document start, value, document end, stream end. */
static rp_err read_document(reader *r, const char *text, size_t bytes, rp_node **out) {
    if (!yaml_parser_initialize(&r->parser)) {
        return rp_fail(RP_ERR_MEMORY, "%s: no memory for the YAML parser", r->name);
    }
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, bytes);
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
        err = problem_at(r, event.start_mark.line, "a second document (---) is not used here");
    }
fail:
    yaml_event_delete(&event);
    yaml_parser_delete(&r->parser);
    return err;
}

rp_err rp_config_read_text(rp_arena *arena, const char *text, size_t bytes, const char *name,
                           rp_node **root) {
    if (bytes > RP_CONFIG_FILE_BYTES_MAX) {
        return rp_fail(RP_ERR_USAGE, "%s: %zu bytes; more than %d is not a file people write", name,
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
    if (err == RP_OK && node->type != MAP) {
        err = fail_expected(node, "keys with values");
    }
    if (err == RP_OK) {
        *root = node;
    }
    return err;
}

rp_err rp_config_read_file(rp_arena *arena, const char *path, rp_node **root) {
    FILE *file = fopen(path, "rbe");
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: can not be opened: %s", path, strerror(errno));
    }
    rp_err err = RP_OK;
    char *text;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)RP_CONFIG_FILE_BYTES_MAX + 1, &text));
    size_t bytes = fread(text, 1, (size_t)RP_CONFIG_FILE_BYTES_MAX + 1, file);
    if (ferror(file)) {
        err = rp_fail(RP_ERR_IO, "%s: can not be read: %s", path, strerror(errno));
        goto fail;
    }
    err = rp_config_read_text(arena, text, bytes, path, root);
fail:
    (void)fclose(file);
    return err;
}

/* ---- --set ---- */

static rp_err new_map(reader *r, rp_node **out) {
    const yaml_event_t nowhere = {0};
    rp_err err = RP_OK;
    RP_TRY(add_node(r, &nowhere, out));
    (*out)->type = MAP;
    err = RP_ARENA_NEW(r->arena, ASKED_MAX, &(*out)->asked);
fail:
    return err;
}

static void replace(rp_node *map, rp_node *child, const rp_node *old) {
    child->parent = map;
    child->position = old->position;
    child->known = old->known;
    map->items[old->position] = child;
}

/* Puts `value` under `keys` ("a.b.c", is cut up); makes the maps between. */
static rp_err put(reader *r, rp_node *map, char *keys, rp_node *value) {
    rp_err err = RP_OK;
    for (;;) {
        char *dot = strchr(keys, '.');
        if (dot) {
            *dot = '\0';
        }
        if (keys[0] == '\0') {
            return rp_fail(RP_ERR_USAGE, "%s: expected key.key=value", r->name);
        }
        if (map->type != MAP) {
            char found[FOUND_BYTES + 16];
            return rp_fail(RP_ERR_USAGE, "%s: '%s' has no keys: it is %s", r->name, map->key,
                           found_text(map, found, sizeof found));
        }
        if (map->count == KEYS_MAX) {
            return rp_fail(RP_ERR_USAGE, "%s: too many keys", r->name);
        }
        rp_node *old = child_of(map, keys);
        rp_node *child = dot ? old : value;
        if (!child) {
            RP_TRY(new_map(r, &child));
        }
        child->key = keys;
        if (!old) {
            RP_TRY(append(r->arena, map, child));
        } else if (child != old) {
            replace(map, child, old);
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
    err = put(&r, root, keys, value);
fail:
    return err;
}

/* ---- looking at nodes ---- */

bool rp_node_is_map(const rp_node *node) {
    return node && node->type == MAP;
}

bool rp_node_is_list(const rp_node *node) {
    return node && node->type == LIST;
}

bool rp_node_is_scalar(const rp_node *node) {
    return node && node->type == SCALAR;
}

const char *rp_node_text(const rp_node *node) {
    RP_ASSERT(node->type == SCALAR);
    return node->text;
}

uint32_t rp_node_line(const rp_node *node) {
    return node->line;
}

uint32_t rp_node_count(const rp_node *node) {
    return node->count;
}

rp_node *rp_node_item(const rp_node *node, uint32_t index) {
    RP_ASSERT(index < node->count);
    return node->items[index];
}

const char *rp_node_key(const rp_node *node, uint32_t index) {
    RP_ASSERT(node->type == MAP && index < node->count);
    return node->items[index]->key;
}

static void remember(rp_node *map, const char *key) {
    for (uint32_t i = 0; i < map->asked_count; i++) {
        if (strcmp(map->asked[i], key) == 0) {
            return;
        }
    }
    if (map->asked_count < ASKED_MAX) {
        map->asked[map->asked_count++] = key;
    }
}

rp_node *rp_node_find(rp_node *map, const char *key) {
    if (!map || map->type != MAP) {
        return NULL;
    }
    remember(map, key);
    rp_node *child = child_of(map, key);
    if (child) {
        child->known = true;
    }
    return child;
}

/* The value under `key`, NULL when absent. */
static rp_err take(rp_node *map, const char *key, rp_node **out) {
    *out = NULL;
    if (map && map->type != MAP) {
        return fail_expected(map, "keys with values");
    }
    *out = rp_node_find(map, key);
    return RP_OK;
}

rp_err rp_node_need(rp_node *map, const char *key) {
    if (!map) {
        return rp_fail(RP_ERR_USAGE, "the key '%s' is needed", key);
    }
    if (map->type != MAP) {
        return fail_expected(map, "keys with values");
    }
    if (rp_node_find(map, key)) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < map->count; i++) {
        const char *other = map->items[i]->key;
        if (!map->items[i]->known && nearest_of(other, &key, 1)) {
            return rp_node_fail(map->items[i], "unknown key; did you mean '%s'?", key);
        }
    }
    return rp_node_fail(map, "the key '%s' is needed here", key);
}

/* Digits only; no sign, no octal look-alikes. */
static bool parse_u64(const char *text, uint64_t *out) {
    uint64_t value = 0;
    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0')) {
        return false;
    }
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value)) {
            return false;
        }
    }
    *out = value;
    return true;
}

/* -12, 0.5, .5, 1e3, 5.0e-4: what strtod also takes, less hexadecimal, inf and nan. */
static bool parse_f64(const char *text, double *out) {
    const char *c = text + (*text == '-' || *text == '+');
    size_t digits = strspn(c, "0123456789");
    c += digits;
    if (*c == '.') {
        size_t fraction = strspn(++c, "0123456789");
        c += fraction;
        digits += fraction;
    }
    if (digits == 0) {
        return false;
    }
    if (*c == 'e' || *c == 'E') {
        c += c[1] == '-' || c[1] == '+' ? 2 : 1;
        size_t exponent = strspn(c, "0123456789");
        if (exponent == 0) {
            return false;
        }
        c += exponent;
    }
    char *end;
    *out = strtod(text, &end);
    return *c == '\0' && end == c && isfinite(*out);
}

static rp_err as_u64(const rp_node *node, uint64_t min, uint64_t max, uint64_t *out) {
    char expected[96];
    uint64_t value;
    if (node->type == SCALAR && node->plain && parse_u64(node->text, &value) && value >= min &&
        value <= max) {
        *out = value;
        return RP_OK;
    }
    (void)snprintf(expected, sizeof expected, "a whole number from %" PRIu64 " to %" PRIu64, min,
                   max);
    return fail_expected(node, expected);
}

static rp_err as_f64(const rp_node *node, double min, double max, double *out) {
    char expected[96];
    double value;
    if (node->type == SCALAR && node->plain && parse_f64(node->text, &value) && value >= min &&
        value <= max) {
        *out = value;
        return RP_OK;
    }
    bool low = min > -(double)FLT_MAX;
    bool high = max < (double)FLT_MAX;
    if (low && high) {
        (void)snprintf(expected, sizeof expected, "a number from %g to %g", min, max);
    } else if (low || high) {
        (void)snprintf(expected, sizeof expected, "a number of at %s %g", low ? "least" : "most",
                       low ? min : max);
    } else {
        (void)snprintf(expected, sizeof expected, "a finite number");
    }
    return fail_expected(node, expected);
}

rp_err rp_node_u64(rp_node *map, const char *key, uint64_t min, uint64_t max, uint64_t *out) {
    rp_node *node;
    rp_err err = take(map, key, &node);
    return err == RP_OK && node ? as_u64(node, min, max, out) : err;
}

rp_err rp_node_u32(rp_node *map, const char *key, uint32_t min, uint32_t max, uint32_t *out) {
    uint64_t value = *out;
    rp_err err = rp_node_u64(map, key, min, max, &value);
    if (err == RP_OK) {
        *out = (uint32_t)value;
    }
    return err;
}

rp_err rp_node_f64(rp_node *map, const char *key, double min, double max, double *out) {
    rp_node *node;
    rp_err err = take(map, key, &node);
    return err == RP_OK && node ? as_f64(node, min, max, out) : err;
}

rp_err rp_node_f32(rp_node *map, const char *key, double min, double max, float *out) {
    double value = (double)*out;
    double limit = (double)FLT_MAX; /* what rounds to infinity is refused */
    rp_err err =
        rp_node_f64(map, key, min > -limit ? min : -limit, max < limit ? max : limit, &value);
    if (err == RP_OK) {
        *out = (float)value;
    }
    return err;
}

rp_err rp_node_item_u32(const rp_node *list, uint32_t index, uint32_t min, uint32_t max,
                        uint32_t *out) {
    uint64_t value = 0;
    rp_err err = as_u64(rp_node_item(list, index), min, max, &value);
    if (err == RP_OK) {
        *out = (uint32_t)value;
    }
    return err;
}

rp_err rp_node_item_f64(const rp_node *list, uint32_t index, double min, double max, double *out) {
    return as_f64(rp_node_item(list, index), min, max, out);
}

rp_err rp_node_bool(rp_node *map, const char *key, bool *out) {
    rp_node *node;
    rp_err err = take(map, key, &node);
    if (err != RP_OK || !node) {
        return err;
    }
    bool yes = node->type == SCALAR && strcmp(node->text, "true") == 0;
    if (!node->plain || (!yes && strcmp(node->text, "false") != 0)) {
        return fail_expected(node, "true or false");
    }
    *out = yes;
    return RP_OK;
}

rp_err rp_node_string(rp_node *map, const char *key, const char **out) {
    rp_node *node;
    rp_err err = take(map, key, &node);
    if (err != RP_OK || !node) {
        return err;
    }
    if (node->type != SCALAR) {
        return fail_expected(node, "a text");
    }
    *out = node->text;
    return RP_OK;
}

rp_err rp_node_word(rp_node *map, const char *key, const char *const *words, uint32_t *out) {
    uint32_t count = 0;
    while (words[count]) {
        count++;
    }
    char list[WORDS_BYTES];
    char expected[WORDS_BYTES + 16];
    list_words(words, count, list, sizeof list);
    (void)snprintf(expected, sizeof expected, "one of: %s", list);
    rp_node *node;
    rp_err err = take(map, key, &node);
    if (err != RP_OK || !node) {
        return err;
    }
    for (uint32_t i = 0; node->type == SCALAR && i < count; i++) {
        if (strcmp(node->text, words[i]) == 0) {
            *out = i;
            return RP_OK;
        }
    }
    const char *nearest = node->type == SCALAR ? nearest_of(node->text, words, count) : NULL;
    if (nearest) {
        return rp_node_fail(node, "expected %s; found '%.40s', did you mean '%s'?", expected,
                            node->text, nearest);
    }
    return fail_expected(node, expected);
}

rp_err rp_node_done(const rp_node *map) {
    if (!map) {
        return RP_OK;
    }
    if (map->type != MAP) {
        return fail_expected(map, "keys with values");
    }
    for (uint32_t i = 0; i < map->count; i++) {
        const rp_node *child = map->items[i];
        if (child->known) {
            continue;
        }
        const char *nearest = nearest_of(child->key, map->asked, map->asked_count);
        if (nearest) {
            return rp_node_fail(child, "unknown key; did you mean '%s'?", nearest);
        }
        char list[WORDS_BYTES];
        list_words(map->asked, map->asked_count, list, sizeof list);
        return rp_node_fail(child, "unknown key; known here: %s", list);
    }
    return RP_OK;
}

/* ---- writing ---- */

typedef struct {
    FILE *file; /* or, when NULL, */
    char *text; /* room of the size counted by an earlier pass with NULL */
    size_t bytes;
} sink;

static int write_piece(void *context, unsigned char *piece, size_t bytes) {
    sink *to = context;
    if (to->file && fwrite(piece, 1, bytes, to->file) != bytes) {
        return 0;
    }
    if (to->text) {
        memcpy(to->text + to->bytes, piece, bytes);
    }
    to->bytes += bytes;
    return 1;
}

static bool emit_text(yaml_emitter_t *emitter, const char *text, bool plain) {
    yaml_event_t event;
    yaml_scalar_style_t style = plain                           ? YAML_PLAIN_SCALAR_STYLE
                                : text[strcspn(text, "\n\r\t")] ? YAML_DOUBLE_QUOTED_SCALAR_STYLE
                                                                : YAML_SINGLE_QUOTED_SCALAR_STYLE;
    return yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                        (int)strlen(text), 1, 1, style) &&
           yaml_emitter_emit(emitter, &event);
}

static bool emit_node(yaml_emitter_t *emitter, const rp_node *node) {
    yaml_event_t event;
    if (node->type == SCALAR) {
        return emit_text(emitter, node->text, node->plain);
    }
    bool made = node->type == LIST
                    ? yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                           node->flow ? YAML_FLOW_SEQUENCE_STYLE
                                                                      : YAML_BLOCK_SEQUENCE_STYLE)
                    : yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
                                                          node->flow ? YAML_FLOW_MAPPING_STYLE
                                                                     : YAML_BLOCK_MAPPING_STYLE);
    if (!made || !yaml_emitter_emit(emitter, &event)) {
        return false;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        const rp_node *child = node->items[i];
        if ((node->type == MAP && !emit_text(emitter, child->key, true)) ||
            !emit_node(emitter, child)) {
            return false;
        }
    }
    made = node->type == LIST ? yaml_sequence_end_event_initialize(&event)
                              : yaml_mapping_end_event_initialize(&event);
    return made && yaml_emitter_emit(emitter, &event);
}

static bool emit_document(yaml_emitter_t *emitter, const rp_node *node) {
    yaml_event_t event;
    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(emitter, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
           yaml_emitter_emit(emitter, &event) && emit_node(emitter, node) &&
           yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(emitter, &event) &&
           yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event) &&
           yaml_emitter_flush(emitter);
}

static rp_err write_to(const rp_node *node, sink *to) {
    yaml_emitter_t emitter;
    if (!yaml_emitter_initialize(&emitter)) {
        return rp_fail(RP_ERR_MEMORY, "no memory for the YAML writer");
    }
    yaml_emitter_set_output(&emitter, write_piece, to);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    rp_err err = RP_OK;
    if (!emit_document(&emitter, node)) {
        err = rp_fail(emitter.error == YAML_WRITER_ERROR ? RP_ERR_IO : RP_ERR_MEMORY,
                      "YAML can not be written: %s",
                      emitter.problem ? emitter.problem : strerror(errno));
    }
    yaml_emitter_delete(&emitter);
    return err;
}

rp_err rp_config_write(const rp_node *node, FILE *file) {
    sink to = {.file = file};
    rp_err err = write_to(node, &to);
    if (err == RP_OK && fflush(file) != 0) {
        err = rp_fail(RP_ERR_IO, "YAML can not be written: %s", strerror(errno));
    }
    return err;
}

rp_err rp_config_text(rp_arena *arena, const rp_node *node, char **out) {
    sink count = {0};
    rp_err err = RP_OK;
    RP_TRY(write_to(node, &count));
    sink to = {0};
    RP_TRY(RP_ARENA_NEW(arena, count.bytes + 1, &to.text));
    RP_TRY(write_to(node, &to));
    *out = to.text;
fail:
    return err;
}
