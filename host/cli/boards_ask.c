#include "cli/boards_ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/roster_args.h"
#include "cli/signals.h"
#include "run/runfile.h"

rp_err rp_cli_asking_open(rp_arena *arena, const rp_cli_args *args, rp_cli_asking *out) {
    const rp_runfile none = {0};
    rp_err err;
    *out = (rp_cli_asking){.args = args, .clock = rp_clock_real()};
    RP_TRY(rp_cli_choose_boards(arena, args, 0, false, &out->boards, &out->count));
    RP_TRY(rp_cli_check_listen(args, out->boards, out->count));
    RP_TRY(rp_runfile_read_keys(&none, args->keys, &out->keys));
    RP_TRY(rp_cli_watch_signals());
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
                                    .stopped = rp_cli_is_stopped,
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
