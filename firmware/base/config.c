#include "base/config.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_own.h"
#include "base/log.h"
#include "base/nearest.h"

enum { PATH_BYTES = 256, SHOWN_BYTES = 36, WORDS_BYTES = 512 };

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
            at->parent->type == RP_NODE_LIST
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

const char *rp_node_found(const rp_node *node, char *text) {
    if (node->type == RP_NODE_SCALAR) {
        bool cut = strlen(node->text) > SHOWN_BYTES;
        (void)snprintf(text, RP_NODE_FOUND_BYTES, "'%.*s%s'%s", SHOWN_BYTES, node->text,
                       cut ? "..." : "", node->plain ? "" : " in quotes");
    } else {
        (void)snprintf(text, RP_NODE_FOUND_BYTES, node->type == RP_NODE_LIST ? "a list" : "a map");
    }
    return text;
}

rp_err rp_node_expected(const rp_node *node, const char *expected) {
    char found[RP_NODE_FOUND_BYTES];
    return rp_node_fail(node, "expected %s, found %s", expected, rp_node_found(node, found));
}

static const char *nearest_of(const char *word, const char *const *words, uint32_t count) {
    rp_nearest nearest = {.word = word};
    for (uint32_t i = 0; i < count; i++) {
        rp_nearest_offer(&nearest, words[i]);
    }
    return nearest.best;
}

static void list_words(const char *const *words, uint32_t count, char *text, size_t text_bytes) {
    text[0] = '\0';
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < text_bytes; i++) {
        int wrote = snprintf(text + used, text_bytes - used, "%s%s", i ? " " : "", words[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

/* ---- looking at nodes ---- */

bool rp_node_is_map(const rp_node *node) {
    return node && node->type == RP_NODE_MAP;
}

bool rp_node_is_list(const rp_node *node) {
    return node && node->type == RP_NODE_LIST;
}

bool rp_node_is_scalar(const rp_node *node) {
    return node && node->type == RP_NODE_SCALAR;
}

const char *rp_node_text(const rp_node *node) {
    RP_ASSERT(node->type == RP_NODE_SCALAR);
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
    RP_ASSERT(node->type == RP_NODE_MAP && index < node->count);
    return node->items[index]->key;
}

bool rp_node_same(const rp_node *a, const rp_node *b) {
    if (a->type != b->type || a->count != b->count) {
        return false;
    }
    if (a->type == RP_NODE_SCALAR) {
        return strcmp(a->text, b->text) == 0;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        const rp_node *item = a->items[i];
        const rp_node *other = a->type == RP_NODE_MAP ? rp_node_child(b, item->key) : b->items[i];
        if (!other || !rp_node_same(item, other)) {
            return false;
        }
    }
    return true;
}

static void remember_key(rp_node *map, const char *key) {
    for (uint32_t i = 0; i < map->asked_count; i++) {
        if (strcmp(map->asked[i], key) == 0) {
            return;
        }
    }
    if (map->asked_count < RP_NODE_ASKED_MAX) {
        map->asked[map->asked_count++] = key;
    }
}

rp_node *rp_node_find(rp_node *map, const char *key) {
    if (!map || map->type != RP_NODE_MAP) {
        return NULL;
    }
    remember_key(map, key);
    rp_node *child = rp_node_child(map, key);
    if (child) {
        child->known = true;
    }
    return child;
}

rp_err rp_node_find_renamed(rp_node *map, const char *key, const char *former, rp_node **out) {
    const rp_node *old = rp_node_find(map, former);
    char path[PATH_BYTES];
    *out = rp_node_find(map, key);
    if (!old) {
        return RP_OK;
    }
    if (*out) {
        return rp_node_fail(old, "is the former name of `%s`; give `%s` only", key, key);
    }
    path_of(map, path, sizeof path);
    const char *dot = path[0] ? "." : "";
    rp_log_info("%s: %s%s%s is now called %s%s%s", old->name, path, dot, former, path, dot, key);
    *out = rp_node_child(map, former);
    return RP_OK;
}

/* The value under `key`, NULL when absent. */
static rp_err take_value(rp_node *map, const char *key, rp_node **out) {
    *out = NULL;
    if (map && map->type != RP_NODE_MAP) {
        return rp_node_expected(map, "keys with values");
    }
    *out = rp_node_find(map, key);
    return RP_OK;
}

rp_err rp_node_need(rp_node *map, const char *key) {
    if (!map) {
        return rp_fail(RP_ERR_USAGE, "the key '%s' is needed", key);
    }
    if (map->type != RP_NODE_MAP) {
        return rp_node_expected(map, "keys with values");
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

/* Accepts digits only: no sign, no octal or hexadecimal notation. */
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

/* Accepts -12, 0.5, .5, 1e3, 5.0e-4: what strtod() accepts, except hexadecimal, inf and nan. */
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
    if (node->type == RP_NODE_SCALAR && node->plain && parse_u64(node->text, &value) &&
        value >= min && value <= max) {
        *out = value;
        return RP_OK;
    }
    (void)snprintf(expected, sizeof expected, "a whole number from %" PRIu64 " to %" PRIu64, min,
                   max);
    return rp_node_expected(node, expected);
}

static rp_err as_f64(const rp_node *node, double min, double max, double *out) {
    char expected[96];
    double value;
    if (node->type == RP_NODE_SCALAR && node->plain && parse_f64(node->text, &value) &&
        value >= min && value <= max) {
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
    return rp_node_expected(node, expected);
}

rp_err rp_node_u64(rp_node *map, const char *key, uint64_t min, uint64_t max, uint64_t *out) {
    char text[24];
    rp_node *node;
    rp_err err = take_value(map, key, &node);
    if (err != RP_OK || node) {
        return err == RP_OK ? as_u64(node, min, max, out) : err;
    }
    (void)snprintf(text, sizeof text, "%" PRIu64, *out);
    return *out >= min && *out <= max ? rp_node_note(map, key, text) : RP_OK;
}

rp_err rp_node_u32(rp_node *map, const char *key, uint32_t min, uint32_t max, uint32_t *out) {
    uint64_t value = *out;
    rp_err err = rp_node_u64(map, key, min, max, &value);
    if (err == RP_OK) {
        *out = (uint32_t)value;
    }
    return err;
}

/* A number without a fraction. */
static rp_err as_i32(const rp_node *node, int32_t *out) {
    double value;
    if (node->type == RP_NODE_SCALAR && node->plain && parse_f64(node->text, &value) &&
        value >= INT32_MIN && value <= INT32_MAX && value == floor(value)) {
        *out = (int32_t)value;
        return RP_OK;
    }
    return rp_node_expected(node, "a whole number from -2147483648 to 2147483647");
}

rp_err rp_node_i32(rp_node *map, const char *key, int32_t *out) {
    rp_node *node;
    const rp_err err = take_value(map, key, &node);
    return err == RP_OK && node ? as_i32(node, out) : err;
}

rp_err rp_node_f64(rp_node *map, const char *key, double min, double max, double *out) {
    rp_node *node;
    rp_err err = take_value(map, key, &node);
    if (err != RP_OK || node) {
        return err == RP_OK ? as_f64(node, min, max, out) : err;
    }
    return *out >= min && *out <= max ? rp_node_note_f64(map, key, *out) : RP_OK;
}

rp_err rp_node_f32(rp_node *map, const char *key, double min, double max, float *out) {
    double value = (double)*out;
    const double limit = (double)FLT_MAX; /* a value that rounds to infinity is refused */
    rp_node *node;
    rp_err err = take_value(map, key, &node);
    if (err == RP_OK && !node) {
        return value >= min && value <= max ? rp_node_note_f32(map, key, *out) : RP_OK;
    }
    if (err == RP_OK) {
        err = as_f64(node, min > -limit ? min : -limit, max < limit ? max : limit, &value);
    }
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

static rp_err as_bool(const rp_node *node, bool *out) {
    const bool yes = node->type == RP_NODE_SCALAR && strcmp(node->text, "true") == 0;
    if (!node->plain || (!yes && strcmp(node->text, "false") != 0)) {
        return rp_node_expected(node, "true or false");
    }
    *out = yes;
    return RP_OK;
}

rp_err rp_node_bool(rp_node *map, const char *key, bool *out) {
    rp_node *node;
    rp_err err = take_value(map, key, &node);
    if (err != RP_OK || !node) {
        return err == RP_OK ? rp_node_note(map, key, *out ? "true" : "false") : err;
    }
    return as_bool(node, out);
}

rp_err rp_node_item_bool(const rp_node *list, uint32_t index, bool *out) {
    return as_bool(rp_node_item(list, index), out);
}

rp_err rp_node_string(rp_node *map, const char *key, const char **out) {
    rp_node *node;
    rp_err err = take_value(map, key, &node);
    if (err != RP_OK || !node) {
        return err == RP_OK && *out ? rp_node_note(map, key, *out) : err;
    }
    if (node->type != RP_NODE_SCALAR) {
        return rp_node_expected(node, "a text");
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
    rp_err err = take_value(map, key, &node);
    if (err != RP_OK || !node) {
        return err == RP_OK && *out < count ? rp_node_note(map, key, words[*out]) : err;
    }
    for (uint32_t i = 0; node->type == RP_NODE_SCALAR && i < count; i++) {
        if (strcmp(node->text, words[i]) == 0) {
            *out = i;
            return RP_OK;
        }
    }
    const char *nearest =
        node->type == RP_NODE_SCALAR ? nearest_of(node->text, words, count) : NULL;
    if (nearest) {
        return rp_node_fail(node, "expected %s; found '%.40s', did you mean '%s'?", expected,
                            node->text, nearest);
    }
    return rp_node_expected(node, expected);
}

rp_err rp_node_done(const rp_node *map) {
    if (!map) {
        return RP_OK;
    }
    if (map->type != RP_NODE_MAP) {
        return rp_node_expected(map, "keys with values");
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

rp_err rp_node_keys(rp_node *map, const char *const *keys) {
    for (; *keys; keys++) {
        (void)rp_node_find(map, *keys);
    }
    return rp_node_done(map);
}
