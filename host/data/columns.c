#include "data/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/utf8.h"

enum { NUMBER_BYTES = 63, HINT_BYTES = 160, SHOWN_BYTES = 60 };

bool rp_columns_is_number(const char *text, double *out) {
    char *end;
    /* strtod would also take hexadecimal, inf and nan. */
    if (text[0] == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0') {
        return false;
    }
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

rp_err rp_columns_read_real(const rp_csv_row *row, uint32_t at, const char *name, double *out) {
    if (strlen(row->field[at]) > NUMBER_BYTES) {
        return rp_csv_fail(row, at, name, "a number");
    }
    if (!rp_columns_is_number(row->field[at], out) || !isfinite((float)*out)) {
        return rp_csv_fail(row, at, name, "a finite number");
    }
    return RP_OK;
}

rp_err rp_columns_read_keys(rp_node *node, rp_column_keys *out) {
    static const char *const words[] = {"auto", "false", "true", NULL};
    rp_err err;
    uint32_t header = RP_HEADER_AUTO;
    RP_TRY(rp_node_word(node, "header", words, &header));
    *out = (rp_column_keys){.target = rp_node_find(node, "target"),
                            .drop = rp_node_find(node, "drop"),
                            .columns = rp_node_find(node, "columns")};
    out->header = header == 0 ? RP_HEADER_AUTO : header == 1 ? RP_HEADER_NO : RP_HEADER_YES;
    if (out->columns && (out->drop || !out->target)) {
        return rp_node_fail(
            out->columns, out->drop ? "excludes `drop`, because all columns that `columns` and "
                                      "`target` do not name are dropped anyway"
                                    : "needs `target`, because all columns that are not named are "
                                      "dropped");
    }
fail:
    return err;
}

bool rp_columns_is_header(const rp_column_keys *keys, const rp_csv_row *first) {
    double number;
    bool named = false;
    for (uint32_t i = 0; i < first->count && keys->header == RP_HEADER_AUTO; i++) {
        named = named || first->field[i][0] != '\0';
        if (rp_columns_is_number(first->field[i], &number)) {
            return false;
        }
    }
    return keys->header == RP_HEADER_YES || (named && keys->header == RP_HEADER_AUTO);
}

bool rp_columns_are_counted(const rp_csv_row *row) {
    const uint32_t first = strcmp(row->field[0], "1") == 0;
    char text[16];
    for (uint32_t i = 0; i < row->count; i++) {
        (void)snprintf(text, sizeof text, "%u", first + i);
        if (strcmp(row->field[i], text) != 0) {
            return false;
        }
    }
    return row->count > 1;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int compare_columns(const void *a, const void *b, void *field) {
    const char *const *name = field;
    const uint32_t i = *(const uint32_t *)a;
    const uint32_t j = *(const uint32_t *)b;
    const int order = strcmp(name[i], name[j]);
    return order ? order : i < j ? -1 : 1;
}

rp_err rp_column_names_sort(rp_arena *arena, const rp_csv_row *header, rp_column_names *out) {
    rp_err err;
    out->header = header;
    RP_TRY(RP_ARENA_NEW(arena, header->count, &out->at));
    for (uint32_t i = 0; i < header->count; i++) {
        out->at[i] = i;
    }
    qsort_r(out->at, header->count, sizeof *out->at, compare_columns, (void *)header->field);
fail:
    return err;
}

uint32_t rp_column_names_count(const rp_column_names *names, const char *name, uint32_t *first) {
    uint32_t low = 0;
    uint32_t count = 0;
    for (uint32_t high = names->header->count; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        if (strcmp(names->header->field[names->at[middle]], name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low + count < names->header->count &&
           strcmp(names->header->field[names->at[low + count]], name) == 0) {
        count++;
    }
    *first = count > 0 ? names->at[low] : names->header->count;
    return count;
}

/* Hint for an unknown name: the nearest name, or the delimiter if there is only one column. */
static const char *write_hint(const rp_csv_row *header, const char *name, char hint[HINT_BYTES]) {
    rp_nearest nearest = {.word = name};
    char shown[2 * SHOWN_BYTES];
    hint[0] = '\0';
    for (uint32_t i = 0; i < header->count; i++) {
        rp_nearest_offer(&nearest, header->field[i]);
    }
    if (header->count == 1) {
        (void)snprintf(hint, HINT_BYTES, "; the file has one column, '%s': check `delimiter`",
                       rp_utf8_show(header->field[0], SHOWN_BYTES, shown, sizeof shown));
    } else if (nearest.best) {
        (void)snprintf(hint, HINT_BYTES, "; did you mean '%s'?",
                       rp_utf8_show(nearest.best, SHOWN_BYTES, shown, sizeof shown));
    }
    return hint;
}

static rp_err fail_repeated(const rp_csv_row *header, const char *name) {
    return name[0] ? rp_fail(RP_ERR_FORMAT, "%s:%u: the header has two columns named '%s'",
                             header->path, header->line, name)
                   : rp_fail(RP_ERR_FORMAT,
                             "%s:%u: the header has two columns without a name; name them, or drop "
                             "both with `drop: [\"\"]`",
                             header->path, header->line);
}

rp_err rp_column_names_find(const rp_column_names *names, const char *name, uint32_t *at) {
    const uint32_t count = rp_column_names_count(names, name, at);
    const rp_csv_row *header = names->header;
    char hint[HINT_BYTES];
    if (count == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s:%u: expected a column '%s' as in the training file%s",
                       header->path, header->line, name, write_hint(header, name, hint));
    }
    return count == 1 ? RP_OK : fail_repeated(header, name);
}

/* ---- a training file ------------------------------------------------------------------------- */

/* State of choosing the roles of a training file's columns. */
typedef struct {
    rp_columns *columns;
    const rp_csv_row *first;
    rp_column_names names; /* only with a header */
} choosing;

static rp_err open_columns(rp_arena *arena, const rp_csv_row *first, bool header, rp_columns *out) {
    rp_err err;
    *out = (rp_columns){.header = header, .count = first->count};
    RP_TRY(RP_ARENA_NEW(arena, first->count, &out->column));
    for (uint32_t i = 0; i < first->count && header; i++) {
        char *name;
        RP_TRY(rp_arena_string(arena, first->field[i], &name));
        out->column[i].name = name;
    }
fail:
    return err;
}

/* *at: the column with this name or, without a header, number. Returns the number of matches. */
static uint32_t find_column(const choosing *c, const char *name, uint32_t *at) {
    if (c->columns->header) {
        return rp_column_names_count(&c->names, name, at);
    }
    const bool whole = name[0] != '\0' && strspn(name, "0123456789") == strlen(name);
    const unsigned long number = whole && strlen(name) < 9 ? strtoul(name, NULL, 10) : 0;
    *at = (uint32_t)number - 1;
    return number >= 1 && number <= c->columns->count;
}

static rp_err fail_unknown(const choosing *c, const rp_node *item) {
    const char *name = rp_node_text(item);
    char hint[HINT_BYTES];
    if (c->columns->header) {
        return rp_node_fail(item, "%s has no column '%s'%s", c->first->path, name,
                            write_hint(c->first, name, hint));
    }
    hint[0] = '\0';
    for (uint32_t i = 0; i < c->first->count && !hint[0]; i++) {
        if (strcmp(c->first->field[i], name) == 0) {
            (void)snprintf(hint, HINT_BYTES, "; if the first row has names, set `header: true`");
        }
    }
    return rp_node_fail(
        item, "%s has no header, so columns are numbered from 1: unknown column '%s'%s",
        c->first->path, name, c->first->count == 1 ? write_hint(c->first, name, hint) : hint);
}

/* Gives the named column, which has the role `from`, the role `to`. Several columns of one name may
 * be dropped. */
static rp_err give_role(const choosing *c, const rp_node *item, rp_column_role from,
                        rp_column_role to) {
    uint32_t at;
    if (!rp_node_is_scalar(item)) {
        return rp_node_fail(item, "expected the name of a column");
    }
    const char *name = rp_node_text(item);
    const uint32_t count = find_column(c, name, &at);
    if (count == 0) {
        return fail_unknown(c, item);
    }
    if (c->columns->column[at].role != from) {
        return rp_node_fail(item, "column '%s' is named twice", name);
    }
    c->columns->column[at].role = to;
    for (uint32_t i = at + 1; i < c->columns->count && count > 1 && to == RP_COLUMN_DROPPED; i++) {
        if (strcmp(c->columns->column[i].name, name) == 0) {
            c->columns->column[i].role = to;
        }
    }
    return RP_OK;
}

static rp_err give_roles(const choosing *c, const rp_node *named, rp_column_role from,
                         rp_column_role to) {
    rp_err err = RP_OK;
    if (!named) {
        return RP_OK;
    }
    if (!rp_node_is_list(named)) {
        return give_role(c, named, from, to);
    }
    for (uint32_t i = 0; i < rp_node_count(named); i++) {
        RP_TRY(give_role(c, rp_node_item(named, i), from, to));
    }
fail:
    return err;
}

static void count_columns(rp_columns *columns) {
    uint32_t next[] = {0, 0, 0};
    for (uint32_t i = 0; i < columns->count; i++) {
        columns->column[i].index = next[columns->column[i].role]++;
    }
    columns->x_count = next[RP_COLUMN_X];
    columns->y_count = next[RP_COLUMN_Y];
}

/* Makes the columns after the inputs targets. */
static void take_last(rp_columns *columns, uint32_t x_wanted) {
    uint32_t left = 0; /* columns that are not dropped */
    for (uint32_t i = 0; i < columns->count; i++) {
        left += columns->column[i].role == RP_COLUMN_X;
    }
    const uint32_t x_count = x_wanted > 0 ? x_wanted : left - (left > 0);
    for (uint32_t i = 0, x = 0; i < columns->count; i++) {
        if (columns->column[i].role == RP_COLUMN_X && ++x > x_count) {
            columns->column[i].role = RP_COLUMN_Y;
        }
    }
}

/* `columns`: only the named columns are inputs. */
static rp_err keep_named(const choosing *c, const rp_node *named) {
    for (uint32_t i = 0; i < c->columns->count; i++) {
        rp_column *column = &c->columns->column[i];
        column->role = column->role == RP_COLUMN_X ? RP_COLUMN_DROPPED : column->role;
    }
    return give_roles(c, named, RP_COLUMN_DROPPED, RP_COLUMN_X);
}

/* Checks that names are unique, and UTF-8 for data.json. */
static rp_err check_names(const choosing *c) {
    const rp_csv_row *header = c->first;
    uint32_t first;
    for (uint32_t i = 0; i < header->count; i++) {
        if (c->columns->column[i].role == RP_COLUMN_DROPPED) {
            continue;
        }
        if (!rp_utf8_is_valid(header->field[i])) {
            return rp_csv_fail(header, i, NULL, "a name in UTF-8");
        }
        if (rp_column_names_count(&c->names, header->field[i], &first) > 1) {
            return fail_repeated(header, header->field[i]);
        }
    }
    return RP_OK;
}

rp_err rp_columns_choose(rp_arena *arena, const rp_column_keys *keys, const rp_csv_row *first,
                         bool header, uint32_t x_wanted, rp_columns *out) {
    choosing c = {.columns = out, .first = first};
    rp_err err;
    RP_TRY(open_columns(arena, first, header, out));
    RP_TRY(out->header ? rp_column_names_sort(arena, first, &c.names) : RP_OK);
    RP_TRY(give_roles(&c, keys->drop, RP_COLUMN_X, RP_COLUMN_DROPPED));
    RP_TRY(give_roles(&c, keys->target, RP_COLUMN_X, RP_COLUMN_Y));
    RP_TRY(keys->columns ? keep_named(&c, keys->columns) : RP_OK);
    RP_TRY(out->header ? check_names(&c) : RP_OK);
    if (!keys->target) {
        take_last(out, x_wanted);
    }
    count_columns(out);
fail:
    return err;
}

/* ---- a test file ----------------------------------------------------------------------------- */

static rp_err match_names(rp_arena *arena, const rp_columns *train, const rp_csv_row *first,
                          rp_columns *out) {
    rp_column_names names;
    rp_err err;
    RP_TRY(rp_column_names_sort(arena, first, &names));
    for (uint32_t i = 0; i < out->count; i++) {
        out->column[i].role = RP_COLUMN_DROPPED; /* columns that the training file lacks */
    }
    for (uint32_t i = 0; i < train->count; i++) {
        uint32_t at;
        if (train->column[i].role == RP_COLUMN_DROPPED) {
            continue;
        }
        RP_TRY(rp_column_names_find(&names, train->column[i].name, &at));
        out->column[at].role = train->column[i].role;
        out->column[at].index = train->column[i].index;
    }
fail:
    return err;
}

rp_err rp_columns_match(rp_arena *arena, const rp_columns *train, const rp_csv_row *first,
                        bool header, rp_columns *out) {
    rp_err err;
    RP_TRY(open_columns(arena, first, header, out));
    out->x_count = train->x_count;
    out->y_count = train->y_count;
    if (header && train->header) {
        return match_names(arena, train, first, out);
    }
    if (out->count != train->count) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s:%u: expected %u columns as in the training file, found %u", first->path,
                       first->line, train->count, out->count);
    }
    for (uint32_t i = 0; i < train->count; i++) {
        out->column[i].role = train->column[i].role;
        out->column[i].index = train->column[i].index;
    }
fail:
    return err;
}
