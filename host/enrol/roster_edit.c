#include "enrol/roster_edit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/replace.h"
#include "transport/keytext.h"

/* A roster as text, and where what is changed lies in it. */
typedef struct {
    const char *path;
    const char *text;
    size_t bytes;
    size_t from, to; /* the lines of the board; equal: it has none, and they belong here */
    size_t indent;   /* of the dash in front of a board */
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

/* The first line from `at` on that is no part of a board whose dash is indented so far. Empty lines
 * and comments in front of such a line are no part of the board either. */
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

/* Of the board called `name`, or behind the last one. */
static rp_err find_lines(edit *e, const rp_node *boards, const char *name) {
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
        return rp_node_fail(item, "expected a board that begins a line with `- ` to change this "
                                  "file: write the list so, one board below the other");
    }
    e->to = end_of_board(e, e->from, e->indent);
    e->from = found ? e->from : e->to;
    return RP_OK;
}

static rp_err open_edit(rp_arena *arena, edit *e, const char *name) {
    rp_node *root;
    rp_err err;
    RP_TRY(rp_config_load(arena, e->path, &e->text, &e->bytes));
    RP_TRY(rp_config_read_text(arena, e->text, e->bytes, e->path, &root));
    rp_node *boards = rp_node_find(root, "boards");
    if (!boards || !rp_node_is_list(boards) || rp_node_count(boards) == 0) {
        return rp_node_fail(root, "boards: expected a list of boards");
    }
    RP_TRY(find_lines(e, boards, name));
fail:
    return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

static rp_err board_line(rp_arena *arena, size_t indent, const rp_roster_entry *board,
                         const char *profile, char **out) {
    char word[RP_KEY_WORD];
    const bool has_profile = profile && profile[0];
    rp_key_write(board->public_text, word);
    return rp_arena_printf(arena, out, "%*s- {name: \"%s\", address: \"%s\", key: %s%s%s%s}\n",
                           (int)indent, "", board->name, board->dials ? "dials" : board->endpoint,
                           word, has_profile ? ", board: \"" : "", has_profile ? profile : "",
                           has_profile ? "\"" : "");
}

static rp_err write_text(const char *path, const char *text) {
    FILE *file = rp_replace_begin(path);
    const bool good = file && fputs(text, file) >= 0;
    return rp_replace_end(file, path, good);
}

/* `line` in place of the board's lines; the whole is read as a roster before it is written. */
static rp_err write_edit(rp_arena *arena, const edit *e, const char *line) {
    rp_roster_entry *boards;
    uint32_t count;
    char *text;
    const bool open_end = e->from > 0 && e->text[e->from - 1] != '\n';
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &text, "%.*s%s%s%.*s", (int)e->from, e->text,
                           open_end ? "\n" : "", line, (int)(e->bytes - e->to), e->text + e->to));
    RP_TRY(rp_roster_read_text(arena, text, strlen(text), e->path, &boards, &count));
    RP_TRY(write_text(e->path, text));
fail:
    return err;
}

rp_err rp_roster_put(const char *path, const rp_roster_entry *board, const char *profile) {
    edit e = {.path = path};
    rp_arena arena;
    char *line;
    rp_err err;
    rp_arena_init(&arena, "roster", 0);
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        e.text = "boards:\n";
        e.bytes = e.from = e.to = strlen(e.text);
        e.indent = 2;
    } else {
        RP_TRY(open_edit(&arena, &e, board->name));
    }
    RP_TRY(board_line(&arena, e.indent, board, profile, &line));
    err = write_edit(&arena, &e, line);
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_roster_remove(const char *path, const char *name) {
    edit e = {.path = path};
    rp_arena arena;
    rp_roster_entry *boards;
    uint32_t count;
    rp_err err;
    rp_arena_init(&arena, "roster", 0);
    RP_TRY(rp_roster_read(&arena, path, &boards, &count));
    RP_TRY(open_edit(&arena, &e, name));
    if (e.from == e.to) {
        RP_TRY(rp_fail(RP_ERR_USAGE, "%s: no board is called '%s'", path, name));
    }
    if (count == 1) {
        RP_TRY(rp_fail(RP_ERR_USAGE,
                       "%s: '%s' is its only board, and a roster has one at least: remove the file",
                       path, name));
    }
    err = write_edit(&arena, &e, "");
fail:
    rp_arena_finish(&arena);
    return err;
}
