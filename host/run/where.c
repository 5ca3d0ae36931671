#include "run/where.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

enum { SAID_BYTES = 512 };

static rp_err fail_where(const rp_where *where, const char *said) {
    return where->at ? rp_node_fail(where->at, "%s", said)
                     : rp_fail(RP_ERR_USAGE, "--where: %s", said);
}

/* ---- reading --------------------------------------------------------------------------------- */

static rp_err add_term(rp_arena *arena, rp_where *where, const char *key, uint32_t values,
                       rp_where_term **out) {
    char said[SAID_BYTES];
    for (uint32_t i = 0; i < where->count; i++) {
        if (strcmp(where->term[i].key, key) == 0) {
            (void)snprintf(said, sizeof said,
                           "key '%s' is given twice: expected its values together, as in %s=A,B",
                           key, key);
            return fail_where(where, said);
        }
    }
    if (where->count == RP_WHERE_TERMS_MAX || values == 0 || values > RP_WHERE_VALUES_MAX) {
        (void)snprintf(said, sizeof said, "expected at most %d keys with 1 to %d values each",
                       RP_WHERE_TERMS_MAX, RP_WHERE_VALUES_MAX);
        return fail_where(where, said);
    }
    rp_where_term *term = &where->term[where->count];
    *term = (rp_where_term){.key = key};
    const rp_err err = RP_ARENA_NEW(arena, values, &term->value);
    where->count += err == RP_OK;
    *out = term;
    return err;
}

/* Reads one text, like "board=rk3588,jetson-nano". */
static rp_err parse_term(rp_arena *arena, const char *text, rp_where *out) {
    rp_where_term *term;
    char *copy;
    uint32_t values = 1;
    rp_err err;
    RP_TRY(rp_arena_string(arena, text, &copy));
    char *equals = strchr(copy, '=');
    if (!equals || equals == copy || !equals[1]) {
        char said[SAID_BYTES];
        (void)snprintf(said, sizeof said, "expected KEY=VALUE[,VALUE...], found '%.200s'", text);
        return fail_where(out, said);
    }
    *equals = '\0';
    for (const char *at = equals + 1; *at; at++) {
        values += *at == ',';
    }
    RP_TRY(add_term(arena, out, copy, values, &term));
    for (char *rest = equals + 1; rest;) {
        term->value[term->count++] = strsep(&rest, ",");
    }
fail:
    return err;
}

rp_err rp_where_parse(rp_arena *arena, const char *const *text, uint32_t count, rp_where *out) {
    rp_err err = RP_OK;
    *out = (rp_where){0};
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(parse_term(arena, text[i], out));
    }
fail:
    return err;
}

static rp_err read_term(rp_arena *arena, const rp_node *item, const char *key, rp_where *out) {
    const bool is_list = rp_node_is_list(item);
    const uint32_t values = is_list ? rp_node_count(item) : 1;
    rp_where_term *term;
    rp_err err;
    RP_TRY(add_term(arena, out, key, values, &term));
    for (uint32_t i = 0; i < values; i++) {
        const rp_node *value = is_list ? rp_node_item(item, i) : item;
        if (!rp_node_is_scalar(value)) {
            return rp_node_fail(value, "expected a value, or a list of values");
        }
        term->value[term->count++] = rp_node_text(value);
    }
fail:
    return err;
}

rp_err rp_where_read(rp_arena *arena, rp_node *map, rp_where *out) {
    const rp_node *where = rp_node_find(map, "where");
    rp_err err = RP_OK;
    *out = (rp_where){.at = where};
    if (!where) {
        return RP_OK;
    }
    if (!rp_node_is_map(where) || rp_node_count(where) == 0) {
        return rp_node_fail(where, "expected a map like {board: rk3588, rack: [a, b]}");
    }
    for (uint32_t i = 0; i < rp_node_count(where); i++) {
        RP_TRY(read_term(arena, rp_node_item(where, i), rp_node_key(where, i), out));
    }
fail:
    return err;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* A board's value of a key, or NULL. */
static const char *value_of(const rp_roster_entry *board, const char *key) {
    if (strcmp(key, "name") == 0) {
        return board->name;
    }
    const rp_roster_key *own = rp_roster_find_key(key);
    if (own) {
        return rp_roster_text(board, own);
    }
    for (uint32_t i = 0; i < board->label_count; i++) {
        if (strcmp(board->label[i].key, key) == 0) {
            return board->label[i].value;
        }
    }
    return NULL;
}

static bool has_value(const rp_where_term *term, const rp_roster_entry *board) {
    const char *value = value_of(board, term->key);
    uint32_t i = 0;
    while (value && i < term->count && strcmp(term->value[i], value) != 0) {
        i++;
    }
    return value && i < term->count;
}

static bool matches(const rp_where *where, const rp_roster_entry *board) {
    uint32_t i = 0;
    while (i < where->count && has_value(&where->term[i], board)) {
        i++;
    }
    return i == where->count;
}

static void append_nearest(char said[SAID_BYTES], const char *best) {
    const size_t used = strlen(said);
    if (best) {
        (void)snprintf(said + used, SAID_BYTES - used, "; did you mean '%s'?", best);
    }
}

/* No board has the key: the error suggests the nearest known one. */
static rp_err fail_unknown_key(const rp_where *where, const char *key, const char *roster,
                               const rp_roster_entry *board, uint32_t count) {
    rp_nearest nearest = {.word = key};
    char said[SAID_BYTES];
    rp_nearest_offer(&nearest, "name");
    for (const rp_roster_key *own = rp_roster_keys; own->name; own++) {
        rp_nearest_offer(&nearest, own->name);
    }
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t i = 0; i < board[k].label_count; i++) {
            rp_nearest_offer(&nearest, board[k].label[i].key);
        }
    }
    (void)snprintf(said, sizeof said,
                   "no board of %.100s has %s '%.63s'; expected name, group, board, or a label",
                   roster, rp_roster_find_key(key) ? "a" : "a label", key);
    append_nearest(said, nearest.best);
    return fail_where(where, said);
}

static rp_err fail_unknown_value(const rp_where *where, const char *key, const char *value,
                                 const char *roster, const rp_roster_entry *board, uint32_t count) {
    rp_nearest nearest = {.word = value};
    char said[SAID_BYTES];
    for (uint32_t k = 0; k < count; k++) {
        const char *has = value_of(&board[k], key);
        if (has) {
            rp_nearest_offer(&nearest, has);
        }
    }
    (void)snprintf(said, sizeof said, "no board of %.100s has %.63s=%.63s", roster, key, value);
    append_nearest(said, nearest.best);
    return fail_where(where, said);
}

static rp_err check_term(const rp_where *where, const rp_where_term *term, const char *roster,
                         const rp_roster_entry *board, uint32_t count) {
    bool is_known = false;
    for (uint32_t k = 0; k < count && !is_known; k++) {
        is_known = value_of(&board[k], term->key) != NULL;
    }
    if (!is_known) {
        return fail_unknown_key(where, term->key, roster, board, count);
    }
    for (uint32_t i = 0; i < term->count; i++) {
        const rp_where_term one = {.key = term->key, .value = &term->value[i], .count = 1};
        uint32_t k = 0;
        while (k < count && !has_value(&one, &board[k])) {
            k++;
        }
        if (k == count) {
            return fail_unknown_value(where, term->key, term->value[i], roster, board, count);
        }
    }
    return RP_OK;
}

static rp_err fail_no_match(const rp_where *where, const char *roster) {
    char said[SAID_BYTES];
    int used = snprintf(said, sizeof said, "no board of %.100s matches:", roster);
    for (uint32_t i = 0; i < where->count && used > 0 && used < SAID_BYTES; i++) {
        const rp_where_term *term = &where->term[i];
        used += snprintf(said + used, sizeof said - (size_t)used, "%s %.63s=%.63s%s",
                         i ? " and" : "", term->key, term->value[0], term->count > 1 ? ",.." : "");
    }
    return fail_where(where, said);
}

rp_err rp_where_choose(const rp_where *where, const char *roster, rp_roster_entry *board,
                       uint32_t *count) {
    uint32_t kept = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < where->count; i++) {
        RP_TRY(check_term(where, &where->term[i], roster, board, *count));
    }
    for (uint32_t k = 0; k < *count; k++) {
        if (matches(where, &board[k])) {
            board[kept] = board[k];
            board[kept].place = kept;
            kept++;
        }
    }
    if (kept == 0) {
        return fail_no_match(where, roster);
    }
    *count = kept;
fail:
    return err;
}
