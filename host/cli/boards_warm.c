/* boards warm: a controller starts a ring only until its kernels are built. Boards with a run are
 * not disturbed, so their state is asked first. */

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/printable.h"
#include "cli/boards_ask.h"
#include "cli/signals.h"
#include "run/runfile.h"
#include "run/where.h"

enum { WITHIN_S = 1800, LOOK_S = 8 /* timeout for an answer */ };

/* ---- the ring -------------------------------------------------------------------------------- */

/* Appends 'value', quoted for YAML, to *text. */
static rp_err add_quoted(rp_arena *arena, char **text, const char *value) {
    rp_err err = RP_OK;
    RP_TRY(rp_arena_printf(arena, text, "%s'", *text));
    for (const char *at = value; *at;) {
        const size_t plain = strcspn(at, "'");
        RP_TRY(
            rp_arena_printf(arena, text, "%s%.*s%s", *text, (int)plain, at, at[plain] ? "''" : ""));
        at += plain + (at[plain] != '\0');
    }
    RP_TRY(rp_arena_printf(arena, text, "%s'", *text));
fail:
    return err;
}

static rp_err add_set(rp_cli_args *args, const char *text) {
    if (args->set.count == RP_OPTION_ITEMS_MAX) {
        return rp_fail(RP_ERR_USAGE,
                       "expected at most %d --set, with those for --roster and --where",
                       RP_OPTION_ITEMS_MAX);
    }
    args->set.item[args->set.count++] = text;
    return RP_OK;
}

/* Replaces the ring of a run file for local boards, or the roster of any further run file. */
static rp_err take_roster(rp_arena *arena, const char *run_path, rp_cli_args *args) {
    char path[PATH_MAX];
    const bool found = realpath(args->roster, path) != NULL;
    rp_node *root;
    char *text;
    rp_err err;
    RP_TRY(rp_config_read_file(arena, run_path, &root));
    rp_node *ring = rp_node_find(root, "ring");
    const bool local = !ring || !rp_node_is_map(ring) || !rp_node_find(ring, "roster");
    RP_TRY(rp_arena_string(arena, local ? "ring={roster: " : "ring.roster=", &text));
    RP_TRY(add_quoted(arena, &text, found ? path : args->roster));
    RP_TRY(rp_arena_printf(arena, &text, "%s%s", text, local ? "}" : ""));
    RP_TRY(add_set(args, text));
fail:
    return err;
}

static rp_err take_where(rp_arena *arena, rp_cli_args *args) {
    rp_where where;
    char *text;
    rp_err err;
    RP_TRY(rp_where_parse(arena, args->where.item, args->where.count, &where));
    RP_TRY(rp_arena_string(arena, "ring.where={", &text));
    for (uint32_t i = 0; i < where.count; i++) {
        RP_TRY(rp_arena_printf(arena, &text, "%s%s", text, i ? ", " : ""));
        RP_TRY(add_quoted(arena, &text, where.term[i].key));
        for (uint32_t k = 0; k < where.term[i].count; k++) {
            RP_TRY(rp_arena_printf(arena, &text, "%s%s", text, k ? ", " : ": ["));
            RP_TRY(add_quoted(arena, &text, where.term[i].value[k]));
        }
        RP_TRY(rp_arena_printf(arena, &text, "%s]", text));
    }
    RP_TRY(rp_arena_printf(arena, &text, "%s}", text));
    RP_TRY(add_set(args, text));
fail:
    return err;
}

/* ---- its boards ------------------------------------------------------------------------------ */

/* Refuses a board with a run. Boards that do not answer are left to the controller, which finds the
 * cause. */
static rp_err check_board(rp_arena *arena, rp_cli_asking *asking, const rp_roster_entry *board,
                          bool is_spare, uint32_t wait_s) {
    const rp_Ask ask = {.what = RP_ASK_CONDITION};
    rp_asker *asker = NULL;
    rp_Frame frame;
    rp_greet_state came;
    rp_err err;
    RP_TRY(rp_cli_ask_open(arena, asking, board, &asker));
    RP_TRY(rp_asker_try(asker, &ask, wait_s * RP_NS_PER_S, &frame, NULL, &came));
    if (came == RP_GREET_THERE && rp_frame_kind(&frame) == RP_KIND_CONDITION &&
        frame.body.condition.state != RP_AGENT_HELLO && !asking->args->fleet.force) {
        const uint32_t state = frame.body.condition.state;
        const char *name =
            state < RP_AGENT_STATES ? rp_agent_state_name((rp_agent_state)state) : "unknown";
        err = rp_fail(RP_ERR_FAULT,
                      "%s: has a run (state %s), which warming would end; do it anyway with "
                      "--force%s",
                      board->name, name,
                      is_spare ? ", or skip the spares with --set ring.spare=[]" : "");
    }
fail:
    rp_asker_close(&asker);
    return err;
}

/* Checks all boards but those that dial, because only the controller can listen at their address.
 */
static rp_err check_boards(rp_arena *arena, const rp_cli_args *args, const char *run_path,
                           uint32_t wait_s) {
    rp_cli_asking asking = {.args = args, .clock = rp_clock_real()};
    rp_runfile run = {0};
    rp_err err;
    RP_TRY(rp_runfile_read(arena, run_path, args->set.item, args->set.count, &run));
    RP_TRY(run.local ? RP_OK : rp_runfile_read_keys(&run, args->keys, &asking.keys));
    RP_TRY(rp_cli_watch_signals());
    for (uint32_t k = 0; !run.local && k < run.boards + run.spares; k++) {
        RP_TRY(run.roster[k].dials
                   ? RP_OK
                   : check_board(arena, &asking, &run.roster[k], k >= run.boards, wait_s));
    }
fail:
    rp_cli_asking_close(&asking);
    rp_runfile_close(&run);
    return err;
}

/* ---- the verb -------------------------------------------------------------------------------- */

rp_err rp_cli_warm(rp_arena *arena, const rp_cli_args *args, const char *run_path,
                   uint32_t wait_s) {
    rp_cli_args own = *args;
    const uint32_t within_s = args->fleet.within_s ? args->fleet.within_s : WITHIN_S;
    rp_err err = RP_OK;
    RP_TRY(args->roster ? take_roster(arena, run_path, &own) : RP_OK);
    RP_TRY(args->where.count ? take_where(arena, &own) : RP_OK);
    RP_TRY(check_boards(arena, &own, run_path, wait_s));
    if (!args->quiet) {
        rp_print(stderr, "warming the boards of %s within %u s\n", run_path, within_s);
    }
    RP_TRY(rp_cli_run_warm(&own, run_path, within_s));
fail:
    return err;
}

rp_err rp_verb_boards_warm(rp_arena *arena, const rp_cli_args *args) {
    return rp_cli_warm(arena, args, args->words.item[0], rp_cli_wait_s(args, LOOK_S));
}
