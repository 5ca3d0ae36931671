#include "cli/boards_ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/roster_args.h"
#include "cli/signals.h"
#include "run/runfile.h"

static bool is_stopped(void *context) {
    rp_cli_asking *asking = context;
    return rp_cli_is_stopped(asking->signals, &asking->stopped);
}

/* Those that the command line names, in its order; without names all of the choice. */
static rp_err keep_named(rp_arena *arena, rp_cli_asking *asking) {
    const rp_cli_args *args = asking->args;
    rp_roster_entry *all = asking->boards;
    const uint32_t count = asking->count;
    rp_err err;
    if (args->words.count == 0) {
        return RP_OK;
    }
    asking->count = args->words.count;
    RP_TRY(RP_ARENA_NEW(arena, asking->count, &asking->boards));
    for (uint32_t i = 0; i < asking->count; i++) {
        uint32_t k = 0;
        while (k < count && strcmp(all[k].name, args->words.item[i]) != 0) {
            k++;
        }
        if (k == count) {
            return rp_fail(RP_ERR_USAGE, "%s: no board is called '%s'", args->roster,
                           args->words.item[i]);
        }
        asking->boards[i] = all[k];
    }
fail:
    return err;
}

rp_err rp_cli_asking_open(rp_arena *arena, const rp_cli_args *args, rp_cli_asking *out) {
    const rp_runfile none = {0};
    rp_err err;
    *out = (rp_cli_asking){.args = args, .clock = rp_clock_real(), .signals = -1};
    if ((args->words.count > 0) == (args->where.count > 0)) {
        return rp_fail(RP_ERR_USAGE, "expected BOARD... or --where KEY=VALUE: which boards?");
    }
    RP_TRY(rp_cli_read_boards(arena, args, &out->boards, &out->count));
    RP_TRY(keep_named(arena, out));
    RP_TRY(rp_cli_check_listen(args, out->boards, out->count));
    RP_TRY(rp_runfile_read_keys(&none, args->keys, &out->keys));
    RP_TRY(rp_cli_open_signals(&out->signals));
fail:
    return err;
}

void rp_cli_asking_close(rp_cli_asking *asking) {
    explicit_bzero(&asking->keys, sizeof asking->keys);
}

rp_err rp_cli_ask_open(rp_arena *arena, rp_cli_asking *asking, const rp_roster_entry *board,
                       rp_asker **out) {
    const rp_ask_options options = {.board = board,
                                    .listen = asking->args->listen,
                                    .keys = &asking->keys,
                                    .clock = &asking->clock,
                                    .stopped = is_stopped,
                                    .context = asking};
    return rp_asker_open(arena, &options, out);
}

void rp_cli_print_line(const char *before, uint64_t time_ms, const char *text) {
    const time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm;
    char clock[32] = "?";
    if (gmtime_r(&seconds, &tm)) {
        (void)strftime(clock, sizeof clock, "%Y-%m-%d %H:%M:%S", &tm);
    }
    (void)printf("%s%s.%03" PRIu64 "Z %s\n", before, clock, time_ms % 1000, text);
}
