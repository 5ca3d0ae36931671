/* doctor --roster: reports boards and links of a ring as a table or as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ask/find_cause.h"
#include "base/json_print.h"
#include "cli/roster_args.h"
#include "reach/reach.h"
#include "run/runfile.h"

static const int64_t CAUSE_NS = 2 * RP_NS_PER_S;

static const char *const way_words[] = {"works", "fails", "impossible", "untried"};

static void say_board(const rp_reach_board *board, char *out, size_t bytes) {
    static const char *const hints[] = {
        "",
        "has a run, or serves a different host",
        "its ringpipe is too old to try links; update it",
        "no answer; check that the agent runs and the port is open",
        "it does not trust this host's key, or its key differs from the roster's",
        "has not dialled; check `ringpipe-agent --host` there, --listen here, and both ports"};
    if (board->state == RP_GREET_THERE && board->round_trip_ns) {
        (void)snprintf(out, bytes, "%s, %.1f ms", board->dials ? "has dialled" : "answers",
                       (double)board->round_trip_ns * 1e-6);
    } else {
        (void)snprintf(out, bytes, "%s",
                       board->state == RP_GREET_THERE ? "there" : hints[board->state]);
    }
}

static void print_table(const rp_reach_result *found) {
    for (uint32_t k = 0; k < found->board_count; k++) {
        const rp_reach_board *board = &found->board[k];
        char said[128];
        say_board(board, said, sizeof said);
        (void)printf("%-16s %-24s %s%s%s%s%s\n", board->name,
                     board->dials ? "dials" : board->endpoint, said,
                     board->software[0] ? "; key fits, ringpipe " : "", board->software,
                     board->device[0] ? ", " : "", board->device);
    }
    for (uint32_t p = 0; p < found->pair_count; p++) {
        const rp_reach_pair *pair = &found->pair[p];
        static const char *const words[] = {"works", "fails: ", "-  cannot be dialled",
                                            "-  not tried"};
        (void)printf("%-16s -> %-21s %s%s%s\n", found->board[pair->from].name,
                     found->board[pair->to].name, words[pair->way],
                     pair->way == RP_REACH_FAILS ? pair->why : "",
                     pair->chosen ? "   (a run uses this direction)" : "");
    }
    if (found->strangers > 0) {
        (void)printf("handshakes with keys that are not in the roster: %llu\n",
                     (unsigned long long)found->strangers);
    }
}

static json_t *board_object(const rp_reach_board *board) {
    json_t *object = json_pack("{s:s, s:s, s:b, s:s}", "name", board->name, "state",
                               rp_greet_state_word(board->state), "dials", (int)board->dials,
                               "address", board->endpoint);
    if (board->software[0]) {
        (void)json_object_set_new(object, "software", json_string(board->software));
        (void)json_object_set_new(object, "device", json_string(board->device));
    }
    if (board->round_trip_ns) {
        (void)json_object_set_new(object, "round_trip_s",
                                  json_real((double)board->round_trip_ns * 1e-9));
    }
    return object;
}

static rp_err print_json(const rp_reach_result *found) {
    json_t *boards = json_array();
    json_t *links = json_array();
    for (uint32_t k = 0; k < found->board_count; k++) {
        (void)json_array_append_new(boards, board_object(&found->board[k]));
    }
    for (uint32_t p = 0; p < found->pair_count; p++) {
        const rp_reach_pair *pair = &found->pair[p];
        json_t *link = json_pack("{s:s, s:s, s:s, s:b}", "from", found->board[pair->from].name,
                                 "to", found->board[pair->to].name, "way", way_words[pair->way],
                                 "chosen", (int)pair->chosen);
        if (pair->why[0]) {
            (void)json_object_set_new(link, "why", json_string(pair->why));
        }
        (void)json_array_append_new(links, link);
    }
    json_t *root = json_pack("{s:b, s:I, s:o, s:o}", "complete", (int)found->complete, "strangers",
                             (json_int_t)found->strangers, "boards", boards, "links", links);
    return rp_json_print(root, JSON_REAL_PRECISION(6), stdout);
}

/* The error of a link. Both directions of a pair are adjacent in found->pair. */
static rp_err fail_pair(const rp_reach_result *found, uint32_t index) {
    const rp_reach_pair *pair = &found->pair[index];
    const char *from = found->board[pair->from].name;
    const char *to = found->board[pair->to].name;
    char hint[160] = "";
    if (found->pair[index ^ 1].way == RP_REACH_WORKS) {
        (void)snprintf(hint, sizeof hint, "; but %s reaches %s, so list %s first in the roster", to,
                       from, to);
    }
    return rp_fail(RP_ERR_FAULT, "%s cannot reach %s: %s%s", from, to,
                   pair->way == RP_REACH_FAILS ? pair->why : "neither can be dialled", hint);
}

static rp_err fail_missing(const rp_reach_options *options, const rp_roster_entry *entry,
                           const rp_reach_board *board) {
    const rp_ask_options ask = {.board = entry, .keys = options->keys, .clock = options->clock};
    rp_cause cause;
    char said[128];
    if (board->dials || board->state == RP_GREET_OLD) {
        say_board(board, said, sizeof said);
        return rp_fail(RP_ERR_FAULT, "board %s: %s", board->name, said);
    }
    rp_ask_find_cause(&ask, CAUSE_NS, &cause);
    return rp_fail(board->state == RP_GREET_REFUSED ? RP_ERR_REFUSED : RP_ERR_FAULT, "board %s: %s",
                   board->name, cause.text);
}

/* The first error at which a run would fail. */
static rp_err find_error(const rp_reach_options *options, const rp_reach_result *found) {
    for (uint32_t k = 0; k < found->board_count; k++) {
        if (found->board[k].state != RP_GREET_THERE) {
            return fail_missing(options, &options->roster[k], &found->board[k]);
        }
    }
    for (uint32_t p = 0; p < found->pair_count; p++) {
        const rp_reach_pair *pair = &found->pair[p];
        if (pair->chosen && pair->way != RP_REACH_WORKS) {
            return fail_pair(found, p);
        }
    }
    return RP_OK;
}

rp_err rp_cli_report_reach(rp_arena *arena, const rp_cli_args *args) {
    const rp_clock clock = rp_clock_real();
    rp_runfile run = {0};
    rp_keypair keys = {0};
    rp_reach_result found;
    rp_err err;
    if (!args->roster) {
        RP_TRY(rp_fail(RP_ERR_USAGE, "doctor: --listen and --where need --roster FILE"));
    }
    RP_TRY(rp_cli_read_boards(arena, args, &run.roster, &run.boards));
    if (run.boards > RP_REACH_BOARDS_MAX) {
        RP_TRY(rp_fail(RP_ERR_USAGE,
                       "%s: has %u boards, expected at most %d; choose some with --where, or use "
                       "`ringpipe boards list --ask`, which has no limit",
                       args->roster, run.boards, RP_REACH_BOARDS_MAX));
    }
    RP_TRY(rp_cli_check_listen(args, run.roster, run.boards));
    RP_TRY(rp_runfile_read_keys(&run, args->keys, &keys));
    const rp_reach_options options = {.roster = run.roster,
                                      .count = run.boards,
                                      .listen = args->listen,
                                      .keys = &keys,
                                      .clock = &clock};
    RP_TRY(rp_reach_check_ring(arena, &options, &found));
    if (rp_cli_is_json(args)) {
        RP_TRY(print_json(&found));
    } else {
        print_table(&found);
    }
    RP_TRY(find_error(&options, &found));
fail:
    explicit_bzero(&keys, sizeof keys);
    return err;
}
