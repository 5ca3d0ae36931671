#include "run/roster.h"

#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "link/link.h"
#include "nn/cut.h"

enum {
    BOARD_NAME_MAX = 63, /* bytes */
    BOARD_HOST_MAX = 99  /* with tcp:// and a port the longest endpoint that CONNECT carries */
};

/* Names are those of the plan's nodes, where `host` is the host. */
static rp_err check_among(rp_node *board, const rp_roster_entry *entry, uint32_t index) {
    const rp_node *at = rp_node_find(board, "name");
    const size_t bytes = strlen(entry[index].name);
    if (bytes == 0 || bytes > BOARD_NAME_MAX || strcmp(entry[index].name, "host") == 0) {
        return rp_node_fail(at, "expected 1 to %d bytes, and not `host`, found '%s'",
                            BOARD_NAME_MAX, entry[index].name);
    }
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(entry[i].name, entry[index].name) == 0) {
            return rp_node_fail(at, "boards %u and %u of the list are both called '%s'", i + 1,
                                index + 1, entry[i].name);
        }
        if (entry[i].dials && entry[index].dials &&
            strcmp(entry[i].public_text, entry[index].public_text) == 0) {
            return rp_node_fail(rp_node_find(board, "key"),
                                "boards '%s' and '%s' have the same one, and boards that dial "
                                "are told apart by their keys",
                                entry[i].name, entry[index].name);
        }
        if (!entry[i].dials && strcmp(entry[i].endpoint, entry[index].endpoint) == 0) {
            return rp_node_fail(rp_node_find(board, "address"),
                                "boards '%s' and '%s' have the same one, %s", entry[i].name,
                                entry[index].name, entry[i].endpoint);
        }
    }
    return RP_OK;
}

/* Neighbours are told the host's part. */
bool rp_roster_is_address(const char *text) {
    const char *host = strncmp(text, "tcp://", 6) == 0 ? text + 6 : NULL;
    const char *colon = host ? strrchr(host, ':') : NULL;
    const size_t host_bytes = colon ? (size_t)(colon - host) : 0;
    const size_t digits = colon ? strlen(colon + 1) : 0;
    const unsigned long port = digits > 0 && digits <= 5 ? strtoul(colon + 1, NULL, 10) : 0;
    const bool is_number = digits > 0 && strspn(colon + 1, "0123456789") == digits;
    return host_bytes > 0 && host_bytes <= BOARD_HOST_MAX &&
           strcspn(host, " \t\r\n/*") >= host_bytes && is_number && port >= 1 && port <= 65533;
}

static rp_err read_address(rp_node *board, rp_roster_entry *out) {
    const rp_err err = rp_node_string(board, "address", &out->endpoint);
    if (err != RP_OK || rp_roster_is_address(out->endpoint)) {
        return err;
    }
    out->dials = strcmp(out->endpoint, "dials") == 0;
    if (!out->dials) {
        return rp_node_fail(rp_node_find(board, "address"),
                            "expected " RP_ROSTER_ADDRESS ", or dials, found '%s'", out->endpoint);
    }
    out->endpoint = "";
    return RP_OK;
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

static rp_err read_board(rp_arena *arena, rp_node *board, rp_roster_entry *out) {
    rp_err err;
    if (!rp_node_is_map(board)) {
        return rp_node_fail(board, "expected {name, address, key}");
    }
    RP_TRY(rp_node_need(board, "name"));
    RP_TRY(rp_node_string(board, "name", &out->name));
    RP_TRY(rp_node_need(board, "address"));
    RP_TRY(read_address(board, out));
    RP_TRY(rp_node_need(board, "key"));
    RP_TRY(read_key(arena, board, &out->public_text));
    (void)rp_node_find(board, "board"); /* the profile's name, for people */
    RP_TRY(rp_node_done(board));
fail:
    return err;
}

rp_err rp_roster_read(rp_arena *arena, const char *path, rp_roster_entry **out, uint32_t *count) {
    const char *text;
    size_t bytes;
    const rp_err err = rp_config_load(arena, path, &text, &bytes);
    return err == RP_OK ? rp_roster_read_text(arena, text, bytes, rp_input_name(path), out, count)
                        : err;
}

rp_err rp_roster_read_text(rp_arena *arena, const char *text, size_t bytes, const char *name,
                           rp_roster_entry **out, uint32_t *count) {
    rp_node *root;
    rp_err err;
    RP_TRY(rp_config_read_text(arena, text, bytes, name, &root));
    rp_node *boards = rp_node_find(root, "boards");
    if (!boards || !rp_node_is_list(boards) || rp_node_count(boards) > RP_CUT_STAGES_MAX ||
        rp_node_count(boards) == 0) {
        return rp_node_fail(root, "boards: expected a list of 1 to %d boards", RP_CUT_STAGES_MAX);
    }
    *count = rp_node_count(boards);
    RP_TRY(RP_ARENA_NEW(arena, *count, out));
    for (uint32_t i = 0; i < *count; i++) {
        RP_TRY(read_board(arena, rp_node_item(boards, i), &(*out)[i]));
        (*out)[i].place = i;
        RP_TRY(check_among(rp_node_item(boards, i), *out, i));
    }
    (void)rp_node_find(root, "hosts"); /* the agents' half */
    RP_TRY(rp_node_done(root));
fail:
    return err;
}

static rp_err check_neighbours(const rp_node *at, const rp_roster_entry *a,
                               const rp_roster_entry *b) {
    return !a->dials || !b->dials
               ? RP_OK
               : rp_node_fail(at,
                              "roster: boards '%s' and '%s' are neighbours and neither can be "
                              "dialled (address: dials): order the boards so that no two such "
                              "boards are neighbours, or give one of them an address",
                              a->name, b->name);
}

rp_err rp_roster_check_row(const rp_node *at, const rp_roster_entry *roster, uint32_t boards,
                           bool closed) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k + !closed < boards; k++) {
        RP_TRY(check_neighbours(at, &roster[k], &roster[(k + 1) % boards]));
    }
fail:
    return err;
}

rp_err rp_roster_check_halves(const rp_node *at, const rp_roster_entry *roster, uint32_t boards) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < boards / 2; k++) {
        RP_TRY(check_neighbours(at, &roster[k], &roster[boards - 1 - k]));
    }
fail:
    return err;
}

/* ---- a board's name -------------------------------------------------------------------------- */

/* Of a board of this machine: its place as a plain number. */
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
        return rp_node_fail(node, "the roster has no board of this name");
    }
    return is_place(name, boards)
               ? RP_OK
               : rp_node_fail(node, "expected a board's place in the ring, from 0 to %u",
                              boards - 1);
}
