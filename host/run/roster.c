#include "run/roster.h"

#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "link/link.h"
#include "nn/cut.h"
#include "run/groups.h"

/* The node that an error names: the board's own key, or the board if its group sets the key. */
static const rp_node *find_culprit(rp_node *board, const char *key) {
    const rp_node *own = rp_node_find(board, key);
    return own ? own : board;
}

/* Checks a board's name, and that name, key and address differ from those of boards before it.
 * `host` is reserved: plans use it for the host. */
static rp_err check_unique(rp_node *board, const rp_roster_entry *entry, uint32_t index) {
    const rp_node *at = rp_node_find(board, "name");
    const rp_roster_entry *own = &entry[index];
    const size_t bytes = strlen(own->name);
    if (bytes == 0 || bytes > RP_ROSTER_NAME_MAX || strcmp(own->name, "host") == 0) {
        return rp_node_fail(at,
                            "expected 1 to %d bytes, and not `host`, which is reserved, found "
                            "'%s'",
                            RP_ROSTER_NAME_MAX, own->name);
    }
    for (uint32_t i = 0; i < index; i++) {
        const rp_roster_entry *other = &entry[i];
        if (strcmp(other->name, own->name) == 0) {
            return rp_node_fail(at,
                                "boards %u and %u of the list have the same name '%s'; the first "
                                "is in line %u",
                                i + 1, index + 1, own->name, other->line);
        }
        if (strcmp(other->public_text, own->public_text) == 0) {
            return rp_node_fail(rp_node_find(board, "key"),
                                "boards '%s' and '%s' have the same public key, but each board "
                                "needs its own; '%s' is in line %u",
                                other->name, own->name, other->name, other->line);
        }
        if (!other->dials && strcmp(other->endpoint, own->endpoint) == 0) {
            return rp_node_fail(find_culprit(board, "address"),
                                "boards '%s' and '%s' have the same address %s; '%s' is in line %u",
                                other->name, own->name, other->endpoint, other->name, other->line);
        }
    }
    return RP_OK;
}

/* `common`: address of the board's group, filled in, or NULL. */
static rp_err read_address(rp_node *board, const char *common, rp_roster_entry *out) {
    rp_err err = RP_OK;
    out->endpoint = common;
    RP_TRY(common ? RP_OK : rp_node_need(board, "address"));
    RP_TRY(rp_node_string(board, "address", &out->endpoint));
    if (rp_roster_is_address(out->endpoint)) {
        return RP_OK;
    }
    out->dials = strcmp(out->endpoint, "dials") == 0;
    if (!out->dials) {
        return rp_node_fail(find_culprit(board, "address"),
                            "expected " RP_ROSTER_ADDRESS ", or dials, found '%s'%s", out->endpoint,
                            rp_node_find(board, "address") ? "" : " (set by its group)");
    }
    out->endpoint = "";
fail:
    return err;
}

static rp_err read_key(rp_arena *arena, rp_node *board, const char **out) {
    char key[RP_KEY_TEXT];
    const char *text = "";
    char *copy;
    rp_err err;
    RP_TRY(rp_node_string(board, "key", &text));
    const char *wrong = rp_key_parse(text, key);
    if (wrong) {
        return rp_node_fail(rp_node_find(board, "key"), "%s", wrong);
    }
    RP_TRY(rp_arena_string(arena, key, &copy));
    *out = copy;
fail:
    return err;
}

static rp_err read_board(rp_arena *arena, const rp_groups *groups, rp_node *board,
                         rp_roster_entry *out) {
    const char *common;
    rp_err err;
    if (!rp_node_is_map(board)) {
        return rp_node_fail(board, "expected {name, address, key}");
    }
    out->line = rp_node_line(board);
    RP_TRY(rp_node_need(board, "name"));
    RP_TRY(rp_node_string(board, "name", &out->name));
    RP_TRY(rp_groups_apply(arena, groups, board, out, &common));
    RP_TRY(read_address(board, common, out));
    RP_TRY(rp_node_need(board, "key"));
    RP_TRY(read_key(arena, board, &out->public_text));
    RP_TRY(rp_node_done(board));
fail:
    return err;
}

static rp_err read_text(rp_arena *arena, const char *text, size_t bytes, const char *name,
                        bool begun, rp_roster_entry **out, uint32_t *count) {
    static const char *const keys[] = {"boards", "groups", "hosts", NULL}; /* agents read `hosts` */
    rp_groups groups;
    rp_node *root;
    rp_err err;
    RP_TRY(rp_config_read_text(arena, text, bytes, name, &root));
    RP_TRY(rp_node_keys(root, keys));
    RP_TRY(rp_groups_read(arena, root, &groups));
    RP_TRY(begun ? RP_OK : rp_node_need(root, "boards"));
    const rp_node *boards = rp_node_find(root, "boards");
    *count = 0;
    if (boards && (!rp_node_is_list(boards) || rp_node_count(boards) > RP_CUT_STAGES_MAX ||
                   rp_node_count(boards) == 0)) {
        return rp_node_fail(boards, "expected a list of 1 to %d boards", RP_CUT_STAGES_MAX);
    }
    *count = boards ? rp_node_count(boards) : 0;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)*count + 1, out));
    for (uint32_t i = 0; i < *count; i++) {
        RP_TRY(read_board(arena, &groups, rp_node_item(boards, i), &(*out)[i]));
        (*out)[i].place = i;
        RP_TRY(check_unique(rp_node_item(boards, i), *out, i));
    }
fail:
    return err;
}

rp_err rp_roster_read_text(rp_arena *arena, const char *text, size_t bytes, const char *name,
                           rp_roster_entry **out, uint32_t *count) {
    return read_text(arena, text, bytes, name, false, out, count);
}

static rp_err read_file(rp_arena *arena, const char *path, bool begun, rp_roster_entry **out,
                        uint32_t *count) {
    const char *text;
    size_t bytes;
    const rp_err err = rp_config_load(arena, path, &text, &bytes);
    return err == RP_OK ? read_text(arena, text, bytes, rp_input_name(path), begun, out, count)
                        : err;
}

rp_err rp_roster_read(rp_arena *arena, const char *path, rp_roster_entry **out, uint32_t *count) {
    return read_file(arena, path, false, out, count);
}

rp_err rp_roster_read_begun(rp_arena *arena, const char *path, rp_roster_entry **out,
                            uint32_t *count) {
    return read_file(arena, path, true, out, count);
}

rp_err rp_roster_check_group(const char *path, const char *group) {
    const rp_group *found;
    rp_groups groups;
    rp_arena arena;
    rp_node *root;
    rp_err err;
    rp_arena_init(&arena, "groups", 0);
    RP_TRY(rp_config_read_file(&arena, path, &root));
    RP_TRY(rp_groups_read(&arena, root, &groups));
    RP_TRY(rp_groups_find(&groups, root, group, &found));
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_roster_check_neighbours(const rp_node *at, const rp_roster_entry *a,
                                  const rp_roster_entry *b) {
    return !a->dials || !b->dials
               ? RP_OK
               : rp_node_fail(at,
                              "roster: boards '%s' and '%s' are neighbours, but neither can be "
                              "dialled (address: dials): reorder the boards so that no two such "
                              "boards are neighbours, or give one of them an address",
                              a->name, b->name);
}

/* ---- a board's name -------------------------------------------------------------------------- */

/* Is it a local board's place in the ring, as a number without leading zeros? */
static bool is_place(const char *name, uint32_t boards) {
    const size_t digits = strspn(name, "0123456789");
    const bool plain = digits > 0 && !name[digits] && (name[0] != '0' || digits == 1);
    return plain && digits < 9 && strtoul(name, NULL, 10) < boards;
}

rp_err rp_roster_check_name(const rp_node *node, const char *name, const rp_roster_entry *roster,
                            uint32_t boards) {
    for (uint32_t k = 0; roster && k < boards; k++) {
        if (strcmp(roster[k].name, name) == 0) {
            return RP_OK;
        }
    }
    if (roster) {
        return rp_node_fail(node, "unknown board: it is not in the roster");
    }
    return is_place(name, boards)
               ? RP_OK
               : rp_node_fail(node, "expected a board's place in the ring, from 0 to %u",
                              boards - 1);
}
