#include "enrol/roster_edit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/quote.h"
#include "base/replace.h"
#include "run/groups.h"
#include "transport/keytext.h"

/* A roster as text, and the range of bytes that is changed. */
typedef struct {
    const char *path;
    const char *text;
    size_t bytes;
    size_t from, to;       /* the lines of the board; equal: position for a new line */
    size_t indent;         /* of the dash before a board */
    const rp_node *boards; /* the list; NULL: missing */
    bool begins;           /* the new line has to begin the list */
    rp_node *old;          /* the board that is replaced, or NULL */
    rp_groups groups;
    const rp_node *root;
} edit;

/* ---- finding the lines ----------------------------------------------------------------------- */

static size_t line_start(const edit *e, uint32_t line) {
    size_t at = 0;
    for (; line > 1 && at < e->bytes; line--) {
        const char *end = memchr(e->text + at, '\n', e->bytes - at);
        at = end ? (size_t)(end - e->text) + 1 : e->bytes;
    }
    return at;
}

static size_t indent_at(const edit *e, size_t at) {
    return strspn(e->text + at, " ");
}

/* Start of the first line from `at` on that is not a part of the board at this indent.
 * Empty lines and comments before that line are not parts of the board either. */
static size_t end_of_board(const edit *e, size_t at, size_t indent) {
    size_t end = at;
    for (bool first = true; at < e->bytes; first = false) {
        const size_t inside = indent_at(e, at);
        const char *next = memchr(e->text + at, '\n', e->bytes - at);
        const char mark = e->text[at + inside];
        const bool says_nothing = mark == '\n' || mark == '#' || mark == '\0' || mark == '\r';
        if (!first && !says_nothing && inside <= indent) {
            break;
        }
        at = next ? (size_t)(next - e->text) + 1 : e->bytes;
        end = says_nothing ? end : at;
    }
    return end;
}

/* Finds the lines of the board `name`, or the position after the last board. */
static rp_err find_lines(edit *e, const char *name) {
    const rp_node *boards = e->boards;
    const uint32_t count = rp_node_count(boards);
    uint32_t at = 0;
    while (at < count) {
        rp_node *own = rp_node_find(rp_node_item(boards, at), "name");
        if (own && rp_node_is_scalar(own) && strcmp(rp_node_text(own), name) == 0) {
            break;
        }
        at++;
    }
    const bool found = at < count;
    rp_node *item = rp_node_item(boards, found ? at : count - 1);
    e->from = line_start(e, rp_node_line(item));
    e->indent = indent_at(e, e->from);
    if (e->text[e->from + e->indent] != '-') {
        return rp_node_fail(item, "to change this file, each board has to begin a line with `- `; "
                                  "write the list with one board in each line");
    }
    e->to = end_of_board(e, e->from, e->indent);
    e->from = found ? e->from : e->to;
    e->old = found ? item : NULL;
    return RP_OK;
}

/* Begins a list at the end of the file. */
static void begin_list(edit *e) {
    e->begins = true;
    e->from = e->to = e->bytes;
    e->indent = 2;
}

static rp_err open_edit(rp_arena *arena, edit *e) {
    rp_node *root;
    rp_err err;
    RP_TRY(rp_config_load(arena, e->path, &e->text, &e->bytes));
    RP_TRY(rp_config_read_text(arena, e->text, e->bytes, e->path, &root));
    RP_TRY(rp_groups_read(arena, root, &e->groups));
    e->root = root;
    e->boards = rp_node_find(root, "boards");
    if (!e->boards) {
        begin_list(e);
    } else if (!rp_node_is_list(e->boards) || rp_node_count(e->boards) == 0) {
        return rp_node_fail(e->boards, "expected a list of boards");
    }
fail:
    return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The value of a key in the new line: that of the entry, else that of the former line. */
static rp_err choose_text(const edit *e, const rp_roster_entry *board, const rp_roster_key *key,
                          const char **out) {
    *out = rp_roster_text(board, key);
    return *out || !e->old || key->is_of_agent ? RP_OK : rp_node_string(e->old, key->name, out);
}

/* *out NULL: the board is in no group. */
static rp_err find_group(const edit *e, const char *name, const rp_group **out) {
    *out = NULL;
    if (name && !e->root) {
        return rp_fail(RP_ERR_USAGE, "%s: unknown group '%s': the file has no `groups`", e->path,
                       name);
    }
    return name ? rp_groups_find(&e->groups, e->root, name, out) : RP_OK;
}

/* *out: `, labels: {...}` of the former line, or "". */
static rp_err keep_labels(rp_arena *arena, const edit *e, char **out) {
    const rp_node *labels = e->old ? rp_node_find(e->old, "labels") : NULL;
    const char *key;
    const char *said;
    char *text = "";
    rp_err err = RP_OK;
    for (uint32_t i = 0; labels && rp_node_is_map(labels) && i < rp_node_count(labels); i++) {
        const rp_node *value = rp_node_item(labels, i);
        if (!rp_node_is_scalar(value)) {
            return rp_node_fail(value, "expected a value");
        }
        RP_TRY(rp_quote(arena, rp_node_key(labels, i), &key));
        RP_TRY(rp_quote(arena, rp_node_text(value), &said));
        RP_TRY(rp_arena_printf(arena, &text, "%s%s%s: %s%s", text, i ? ", " : ", labels: {", key,
                               said, i + 1 == rp_node_count(labels) ? "}" : ""));
    }
    *out = text;
fail:
    return err;
}

/* Appends `, KEY: "VALUE"`, or nothing if there is no value. */
static rp_err add_pair(rp_arena *arena, const char *key, const char *value, char **text) {
    const char *quoted;
    rp_err err = RP_OK;
    if (value && value[0]) {
        RP_TRY(rp_quote(arena, value, &quoted));
        RP_TRY(rp_arena_printf(arena, text, "%s, %s: %s", *text, key, quoted));
    }
fail:
    return err;
}

/* Makes the board's line. An address of its group overrides the source address of the board. */
static rp_err board_line(rp_arena *arena, const edit *e, const rp_roster_entry *board, char **out) {
    const rp_roster_key *first = &rp_roster_keys[RP_ROSTER_GROUP];
    const char *address = board->dials ? "dials" : board->endpoint;
    char word[RP_KEY_WORD];
    const rp_group *group;
    const char *in;
    const char *said;
    char *at = "";
    char *more = "";
    char *labels = "";
    rp_err err;
    rp_key_write(board->public_text, word);
    RP_TRY(choose_text(e, board, first, &in));
    RP_TRY(find_group(e, in, &group));
    RP_TRY(add_pair(arena, "address", group && group->address ? NULL : address, &at));
    for (const rp_roster_key *key = first + 1; key->name; key++) {
        RP_TRY(choose_text(e, board, key, &said));
        RP_TRY(add_pair(arena, key->name, said, &more));
    }
    RP_TRY(add_pair(arena, first->name, in, &more));
    RP_TRY(keep_labels(arena, e, &labels));
    RP_TRY(rp_quote(arena, board->name, &said));
    RP_TRY(rp_arena_printf(arena, out, "%s%*s- {name: %s%s, key: %s%s%s}\n",
                           e->begins ? "boards:\n" : "", (int)e->indent, "", said, at, word, more,
                           labels));
fail:
    return err;
}

static rp_err write_text(const char *path, const char *text) {
    FILE *file = rp_replace_begin(path);
    const bool good = file && fputs(text, file) >= 0;
    return rp_replace_end(file, path, good);
}

/* Checks the whole text as a roster before it is written. */
static rp_err check_text(rp_arena *arena, const char *path, const char *text) {
    rp_roster_entry *boards;
    uint32_t count;
    return rp_roster_read_text(arena, text, strlen(text), path, &boards, &count);
}

/* Makes and checks the text of the whole roster with the board. */
static rp_err text_with_board(rp_arena *arena, const char *path, const rp_roster_entry *board,
                              char **text) {
    edit e = {.path = path};
    char *line;
    rp_err err;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        e.text = "";
        begin_list(&e);
    } else {
        RP_TRY(open_edit(arena, &e));
        RP_TRY(e.boards ? find_lines(&e, board->name) : RP_OK);
    }
    RP_TRY(board_line(arena, &e, board, &line));
    const bool open_end = e.from > 0 && e.text[e.from - 1] != '\n';
    RP_TRY(rp_arena_printf(arena, text, "%.*s%s%s%.*s", (int)e.from, e.text, open_end ? "\n" : "",
                           line, (int)(e.bytes - e.to), e.text + e.to));
    err = check_text(arena, path, *text);
fail:
    return err;
}

rp_err rp_roster_check_put(const char *path, const rp_roster_entry *board) {
    rp_arena arena;
    char *text;
    rp_arena_init(&arena, "roster", 0);
    const rp_err err = text_with_board(&arena, path, board, &text);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_roster_put(const char *path, const rp_roster_entry *board) {
    rp_arena arena;
    char *text;
    rp_err err;
    rp_arena_init(&arena, "roster", 0);
    RP_TRY(text_with_board(&arena, path, board, &text));
    RP_TRY(write_text(path, text));
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- removing -------------------------------------------------------------------------------- */

/* Marks the bytes of the board's lines. */
static rp_err mark_removed(edit *e, const char *name, uint8_t *goes, uint32_t *gone) {
    const rp_err err = find_lines(e, name);
    if (err == RP_OK && e->from == e->to) {
        return rp_fail(RP_ERR_USAGE, "%s: unknown board '%s'", e->path, name);
    }
    if (err == RP_OK) {
        *gone += !goes[e->from]; /* a name may be given twice */
        memset(goes + e->from, 1, e->to - e->from);
    }
    return err;
}

rp_err rp_roster_remove(const char *path, const char *const *name, uint32_t count) {
    edit e = {.path = path};
    rp_arena arena;
    rp_roster_entry *boards;
    uint32_t all;
    uint32_t gone = 0;
    uint8_t *goes;
    char *text;
    size_t used = 0;
    rp_err err;
    rp_arena_init(&arena, "roster", 0);
    RP_TRY(rp_roster_read(&arena, path, &boards, &all));
    RP_TRY(open_edit(&arena, &e));
    RP_TRY(RP_ARENA_NEW(&arena, e.bytes + 1, &goes));
    RP_TRY(RP_ARENA_NEW(&arena, e.bytes + 1, &text));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(mark_removed(&e, name[i], goes, &gone));
    }
    if (gone == all) {
        RP_TRY(
            rp_fail(RP_ERR_USAGE,
                    "%s: no board would be left after '%s', but a roster has at least one; remove "
                    "the file instead",
                    path, name[count - 1]));
    }
    for (size_t at = 0; at < e.bytes; at++) {
        text[used] = e.text[at];
        used += !goes[at];
    }
    text[used] = '\0';
    RP_TRY(check_text(&arena, path, text));
    RP_TRY(write_text(path, text));
fail:
    rp_arena_finish(&arena);
    return err;
}
