
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/json_print.h"
#include "cli/roster_args.h"
#include "cli/signals.h"
#include "reach/reach.h"
#include "run/runfile.h"

/* Counts of the boards of a group. */
typedef struct {
    const char *name; /* NULL: boards without a group */
    uint32_t boards;
    uint32_t of[RP_GREET_STATES]; /* boards by state, with --ask */
} summary;

typedef struct {
    const rp_cli_args *args;
    rp_roster_entry *board;
    uint32_t count;
    bool asked;
    rp_fleet found;
    summary *group; /* in the order in which the roster names them */
    uint32_t group_count;
    summary all;
} listing;

static const char *address_of(const rp_roster_entry *board) {
    return board->dials ? "dials" : board->endpoint;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static rp_err ask_boards(rp_arena *arena, listing *l) {
    const rp_clock clock = rp_clock_real();
    const uint32_t wait_s = rp_cli_wait_s(l->args, (uint32_t)(RP_REACH_NS / RP_NS_PER_S));
    rp_runfile none = {0};
    rp_keypair keys = {0};
    rp_err err;
    RP_TRY(rp_cli_check_listen(l->args, l->board, l->count));
    RP_TRY(rp_runfile_read_keys(&none, l->args->keys, &keys));
    RP_TRY(rp_cli_watch_signals());
    const rp_reach_options options = {.roster = l->board,
                                      .count = l->count,
                                      .listen = l->args->listen,
                                      .keys = &keys,
                                      .clock = &clock,
                                      .stopped = rp_cli_is_stopped};
    const int64_t wait_ns = (int64_t)(wait_s ? wait_s : 1) * RP_NS_PER_S;
    RP_TRY(rp_fleet_greet(arena, &options, wait_ns, &l->found));
    l->asked = true;
fail:
    explicit_bzero(&keys, sizeof keys);
    return err;
}

/* ---- summary --------------------------------------------------------------------------------- */

static summary *find_group(listing *l, const char *name) {
    for (uint32_t i = 0; i < l->group_count; i++) {
        const char *its = l->group[i].name;
        if (its == name || (its && name && strcmp(its, name) == 0)) {
            return &l->group[i];
        }
    }
    l->group[l->group_count] = (summary){.name = name};
    return &l->group[l->group_count++];
}

static rp_err count_groups(rp_arena *arena, listing *l) {
    const rp_err err = RP_ARENA_NEW(arena, l->count, &l->group);
    for (uint32_t k = 0; err == RP_OK && k < l->count; k++) {
        summary *group = find_group(l, l->board[k].group);
        group->boards++;
        l->all.boards++;
        if (l->asked) {
            group->of[l->found.board[k].state]++;
            l->all.of[l->found.board[k].state]++;
        }
    }
    return err;
}

static void print_row(const listing *l, const char *name, const summary *row) {
    (void)printf("%-20s %6u", name, row->boards);
    for (uint32_t s = 0; l->asked && s < RP_GREET_STATES; s++) {
        (void)printf(" %11u", row->of[s]);
    }
    (void)printf("\n");
}

/* Prints counts by group, unless there are neither groups nor answers. */
static void print_summary(const listing *l) {
    const bool grouped = l->group_count > 1 || l->group[0].name;
    if (!grouped && !l->asked) {
        return;
    }
    (void)printf("%-20s %6s", "group", "boards");
    for (uint32_t s = 0; l->asked && s < RP_GREET_STATES; s++) {
        (void)printf(" %11s", rp_greet_state_word((rp_greet_state)s));
    }
    (void)printf("\n");
    for (uint32_t i = 0; grouped && i < l->group_count; i++) {
        print_row(l, l->group[i].name ? l->group[i].name : "(none)", &l->group[i]);
    }
    print_row(l, "all", &l->all);
    (void)printf("\n");
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_board(const listing *l, uint32_t k) {
    const rp_roster_entry *board = &l->board[k];
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_key_fingerprint(board->public_text, fingerprint);
    (void)printf("%-16s  %s  %s", board->name, fingerprint, address_of(board));
    if (l->asked) {
        const rp_reach_board *found = &l->found.board[k];
        (void)printf("  %s%s%s", rp_greet_state_word(found->state), found->why[0] ? ": " : "",
                     found->why);
        (void)printf("%s%s", found->software[0] ? ", ringpipe " : "", found->software);
    }
    for (const rp_roster_key *key = rp_roster_keys; key->name; key++) {
        if (rp_roster_text(board, key)) {
            (void)printf("  %s=%s", key->name, rp_roster_text(board, key));
        }
    }
    for (uint32_t i = 0; i < board->label_count; i++) {
        (void)printf("  %s=%s", board->label[i].key, board->label[i].value);
    }
    (void)printf("\n");
}

static void print_text(const listing *l) {
    print_summary(l);
    for (uint32_t k = 0; k < l->count; k++) {
        print_board(l, k);
    }
    (void)printf("%u board%s%s\n", l->count, l->count == 1 ? "" : "s",
                 l->asked ? "" : "; --ask shows which of them answer");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *states_object(const summary *row) {
    json_t *states = json_object();
    for (uint32_t s = 0; s < RP_GREET_STATES; s++) {
        (void)json_object_set_new(states, rp_greet_state_word((rp_greet_state)s),
                                  json_integer(row->of[s]));
    }
    return states;
}

static void set_text(json_t *object, const char *key, const char *text) {
    if (text && text[0]) {
        (void)json_object_set_new(object, key, json_string(text));
    }
}

static json_t *board_object(const listing *l, uint32_t k) {
    const rp_roster_entry *board = &l->board[k];
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_key_fingerprint(board->public_text, fingerprint);
    json_t *object = json_pack("{s:s, s:s, s:s}", "name", board->name, "fingerprint", fingerprint,
                               "address", address_of(board));
    json_t *labels = json_object();
    for (uint32_t i = 0; i < board->label_count; i++) {
        set_text(labels, board->label[i].key, board->label[i].value);
    }
    for (const rp_roster_key *key = rp_roster_keys; key->name; key++) {
        set_text(object, key->name, rp_roster_text(board, key));
    }
    (void)json_object_set_new(object, "labels", labels);
    if (l->asked) {
        const rp_reach_board *found = &l->found.board[k];
        set_text(object, "state", rp_greet_state_word(found->state));
        set_text(object, "why", found->why);
        set_text(object, "software", found->software);
        set_text(object, "device", found->device);
    }
    return object;
}

static rp_err print_json(const listing *l) {
    json_t *boards = json_array();
    json_t *groups = json_array();
    for (uint32_t k = 0; k < l->count; k++) {
        (void)json_array_append_new(boards, board_object(l, k));
    }
    for (uint32_t i = 0; i < l->group_count; i++) {
        json_t *group =
            json_pack("{s:s?, s:i}", "group", l->group[i].name, "boards", (int)l->group[i].boards);
        if (l->asked) {
            (void)json_object_set_new(group, "states", states_object(&l->group[i]));
        }
        (void)json_array_append_new(groups, group);
    }
    json_t *root = json_pack("{s:i, s:o, s:o}", "version", 1, "boards", boards, "groups", groups);
    if (l->asked) {
        (void)json_object_set_new(root, "states", states_object(&l->all));
        (void)json_object_set_new(root, "waits", json_integer(l->found.waits));
        (void)json_object_set_new(root, "strangers", json_integer((json_int_t)l->found.strangers));
    }
    return rp_json_print(root, 0, stdout);
}

rp_err rp_verb_boards_list(rp_arena *arena, const rp_cli_args *args) {
    listing l = {.args = args};
    rp_err err;
    RP_TRY(rp_cli_read_boards(arena, args, &l.board, &l.count));
    RP_TRY(args->fleet.ask ? ask_boards(arena, &l) : RP_OK);
    RP_TRY(count_groups(arena, &l));
    if (rp_cli_is_json(args)) {
        RP_TRY(print_json(&l));
    } else {
        print_text(&l);
    }
fail:
    return err;
}
