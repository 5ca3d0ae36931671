/* Software on boards: push, slots, validate, revert. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json_print.h"
#include "base/log.h"
#include "cli/push_lines.h"
#include "cli/roster_args.h"
#include "cli/signals.h"
#include "cli/system_slots.h"
#include "push/several.h"
#include "run/runfile.h"

enum { WAIT_S = 600 };

typedef struct {
    const rp_cli_args *args;
    rp_push_lines lines;
} talking;

static void show_progress(void *context, const rp_push_progress *progress) {
    talking *t = context;
    rp_push_lines_show(&t->lines, progress);
}

/* ---- state of a board ------------------------------------------------------------------------ */

static void describe_slots(const rp_Pushed *said, char *out, size_t bytes) {
    char good[48] = "the system's own software";
    char trial[96] = "";
    char failed[64] = "";
    if (said->release > 0) {
        (void)snprintf(good, sizeof good, "release %" PRIu64, said->release);
    }
    if (said->trial_release > 0) {
        (void)snprintf(trial, sizeof trial, "; release %" PRIu64 " is on trial, %u starts left%s",
                       said->trial_release, said->starts, said->is_trial ? ", and runs" : "");
    }
    if (said->failed > 0) {
        (void)snprintf(failed, sizeof failed, "; release %" PRIu64 " failed its trial",
                       said->failed);
    }
    (void)snprintf(out, bytes, "%s is good%s%s", good, trial, failed);
}

static void print_board(const rp_cli_args *args, const char *name, const rp_Pushed *said,
                        rp_err err) {
    char text[256];
    char system[256];
    if (rp_cli_is_json(args)) {
        json_t *one =
            json_pack("{s:s, s:b, s:I, s:I, s:i, s:I, s:I}", "name", name, "ok", err == RP_OK,
                      "release", (json_int_t)said->release, "trial_release",
                      (json_int_t)said->trial_release, "starts", (int)said->starts, "former",
                      (json_int_t)said->former, "failed", (json_int_t)said->failed);
        (void)json_object_set_new(
            one, "systems",
            rp_cli_system_json(said->system, said->system_count, said->system_slot));
        (void)!rp_json_print(one, JSON_COMPACT, stdout);
    } else if (err == RP_OK) {
        describe_slots(said, text, sizeof text);
        (void)printf("%-16s  %s\n", name, text);
        if (rp_cli_say_system(said->system, said->system_count, said->system_slot, system,
                              sizeof system)) {
            (void)printf("%-16s  the whole system: %s%s\n", "", system,
                         said->system_writes ? "; a new system is being written" : "");
        }
    }
    (void)fflush(stdout);
}

/* ---- the verbs ------------------------------------------------------------------------------- */

static void end_line(void *context) {
    rp_push_lines_end(context);
}

static void end_board(void *context, const rp_roster_entry *board, const rp_Pushed *said,
                      rp_err err) {
    talking *t = context;
    rp_push_lines_end(&t->lines);
    print_board(t->args, board->name, said, err);
}

static rp_err run_action(rp_arena *arena, const rp_cli_args *args, rp_push_action action) {
    const uint32_t first = action == RP_PUSH_BUNDLE; /* words before the boards: the bundle */
    const rp_clock clock = rp_clock_real();
    const uint32_t at_once = args->fleet.at_once ? args->fleet.at_once : 1;
    talking t = {.args = args,
                 .lines = {.clock = &clock,
                           .quiet = args->quiet,
                           .rewrites = at_once == 1 && isatty(STDERR_FILENO),
                           .waits = !args->fleet.no_wait}};
    rp_log_hook hook = {.before_line = end_line, .context = &t.lines};
    rp_roster_entry *boards;
    rp_keypair keys = {0};
    const char *folder = args->keys;
    uint32_t count;
    rp_err err = RP_OK;
    RP_TRY(rp_cli_choose_boards(
        arena, args, first, action == RP_PUSH_STATE || action == RP_PUSH_BUNDLE, &boards, &count));
    RP_TRY(rp_cli_check_listen(args, boards, count));
    RP_TRY(folder ? RP_OK : rp_keys_home(arena, &folder));
    RP_TRY(rp_keys_read(folder, &keys));
    RP_TRY(rp_cli_watch_signals());
    const uint32_t wait_s = args->wait_s ? rp_cli_wait_s(args, WAIT_S) : WAIT_S;
    const rp_push_several several = {
        .each = {.listen = args->listen,
                 .keys = &keys,
                 .clock = &clock,
                 .action = action,
                 .bundle = first ? args->words.item[0] : NULL,
                 .bytes_per_s = args->fleet.mbit * 125e3,
                 .wait_ns = args->fleet.no_wait ? 0 : (int64_t)wait_s * RP_NS_PER_S,
                 .stopped = rp_cli_is_stopped,
                 .progress = show_progress,
                 .context = &t},
        .boards = boards,
        .count = count,
        .at_once = at_once,
        .done = end_board};
    rp_log_add_hook(&hook);
    err = rp_push_to_several(&several);
    rp_log_remove_hook(&hook);
fail:
    explicit_bzero(&keys, sizeof keys);
    return err;
}

rp_err rp_verb_push(rp_arena *arena, const rp_cli_args *args) {
    return run_action(arena, args, RP_PUSH_BUNDLE);
}

rp_err rp_verb_slots(rp_arena *arena, const rp_cli_args *args) {
    return run_action(arena, args, RP_PUSH_STATE);
}

rp_err rp_verb_validate(rp_arena *arena, const rp_cli_args *args) {
    return run_action(arena, args, RP_PUSH_VALIDATE);
}

rp_err rp_verb_revert(rp_arena *arena, const rp_cli_args *args) {
    return run_action(arena, args, args->system ? RP_PUSH_REVERT_SYSTEM : RP_PUSH_REVERT);
}
