#include "data/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 63 };

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
                            .drop = rp_node_find(node, "drop")};
    out->header = header == 0 ? RP_HEADER_AUTO : header == 1 ? RP_HEADER_NO : RP_HEADER_YES;
fail:
    return err;
}

bool rp_columns_is_header(const rp_column_keys *keys, const rp_csv_row *first) {
    double number;
    for (uint32_t i = 0; i < first->count && keys->header == RP_HEADER_AUTO; i++) {
        if (first->field[i][0] == '\0' || rp_columns_is_number(first->field[i], &number)) {
            return false;
        }
    }
    return keys->header != RP_HEADER_NO;
}

/* ---- a training file ------------------------------------------------------------------------- */

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

/* The column of a name, or of a number where there are no names; count: none. */
static uint32_t find_column(const rp_columns *columns, const char *name) {
    if (!columns->header) {
        const bool whole = name[0] != '\0' && strspn(name, "0123456789") == strlen(name);
        const unsigned long number = whole && strlen(name) < 9 ? strtoul(name, NULL, 10) : 0;
        return number >= 1 && number <= columns->count ? (uint32_t)number - 1 : columns->count;
    }
    uint32_t at = 0;
    while (at < columns->count && strcmp(columns->column[at].name, name) != 0) {
        at++;
    }
    return at;
}

static rp_err give_role(rp_columns *columns, const rp_node *item, const char *path,
                        rp_column_role role) {
    if (!rp_node_is_scalar(item)) {
        return rp_node_fail(item, "expected the name of a column");
    }
    const uint32_t at = find_column(columns, rp_node_text(item));
    if (at == columns->count) {
        return rp_node_fail(item,
                            columns->header ? "%s has no column '%s'"
                                            : "%s has no header, so columns are numbers from 1: "
                                              "there is no column '%s'",
                            path, rp_node_text(item));
    }
    if (columns->column[at].role != RP_COLUMN_X) {
        return rp_node_fail(item, "column '%s' is named twice", rp_node_text(item));
    }
    columns->column[at].role = role;
    return RP_OK;
}

static rp_err give_roles(rp_columns *columns, const rp_node *named, const char *path,
                         rp_column_role role) {
    rp_err err = RP_OK;
    if (!named) {
        return RP_OK;
    }
    if (!rp_node_is_list(named)) {
        return give_role(columns, named, path, role);
    }
    for (uint32_t i = 0; i < rp_node_count(named); i++) {
        RP_TRY(give_role(columns, rp_node_item(named, i), path, role));
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

/* Those behind the inputs. */
static void take_last(rp_columns *columns, uint32_t x_wanted) {
    uint32_t left = 0; /* columns that are not left out */
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

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each name once. */
static rp_err check_names(rp_arena *arena, const rp_csv_row *header) {
    const char **name;
    rp_err err = RP_ARENA_NEW(arena, header->count, &name);
    if (err != RP_OK) {
        return err;
    }
    memcpy(name, header->field, header->count * sizeof *name);
    qsort(name, header->count, sizeof *name, compare_names);
    for (uint32_t i = 1; i < header->count; i++) {
        if (strcmp(name[i], name[i - 1]) == 0) {
            return rp_fail(RP_ERR_FORMAT, "%s:%u: the header has two columns '%s'", header->path,
                           header->line, name[i]);
        }
    }
    return RP_OK;
}

rp_err rp_columns_choose(rp_arena *arena, const rp_column_keys *keys, const rp_csv_row *first,
                         uint32_t x_wanted, rp_columns *out) {
    rp_err err;
    RP_TRY(open_columns(arena, first, rp_columns_is_header(keys, first), out));
    RP_TRY(out->header ? check_names(arena, first) : RP_OK);
    RP_TRY(give_roles(out, keys->drop, first->path, RP_COLUMN_DROPPED));
    RP_TRY(give_roles(out, keys->target, first->path, RP_COLUMN_Y));
    if (!keys->target) {
        take_last(out, x_wanted);
    }
    count_columns(out);
fail:
    return err;
}

rp_err rp_columns_match(rp_arena *arena, const rp_columns *train, const rp_csv_row *first,
                        bool header, rp_columns *out) {
    rp_err err;
    RP_TRY(open_columns(arena, first, header, out));
    const bool by_name = header && train->header;
    if (!by_name && out->count != train->count) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s:%u: expected %u columns as in the training file, found %u", first->path,
                       first->line, train->count, out->count);
    }
    for (uint32_t i = 0; i < out->count && by_name; i++) {
        out->column[i].role = RP_COLUMN_DROPPED; /* unless the training file has it */
    }
    for (uint32_t i = 0; i < train->count; i++) {
        const bool here =
            i < out->count && (!by_name || strcmp(out->column[i].name, train->column[i].name) == 0);
        const uint32_t at = here ? i : find_column(out, train->column[i].name);
        if (at < out->count) {
            out->column[at].role = train->column[i].role;
            out->column[at].index = train->column[i].index;
        } else if (train->column[i].role != RP_COLUMN_DROPPED) {
            return rp_fail(RP_ERR_FORMAT, "%s:%u: expected a column '%s' as in the training file",
                           first->path, first->line, train->column[i].name);
        }
    }
    out->x_count = train->x_count;
    out->y_count = train->y_count;
fail:
    return err;
}
