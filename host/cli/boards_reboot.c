/* boards reboot: reboots boards and waits for their return. */
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "cli/boards_ask.h"

enum { WAIT_S = 600 };
#define TRY_NS (3 * RP_NS_PER_S)

static rp_err ask_life(rp_asker *asker, uint64_t *life) {
    const rp_Ask ask = {.what = RP_ASK_CONDITION};
    rp_Frame frame;
    const rp_err err = rp_asker_ask(asker, &ask, RP_CLI_ASK_NS, &frame, NULL);
    *life = err == RP_OK ? frame.body.condition.life : 0;
    return err;
}

/* Has the system been up since before the request? Then only the agent was restarted. */
static bool is_system_up(const rp_Condition *said, int64_t waited_ns) {
    for (uint32_t i = 0; i < said->reading_count; i++) {
        if (said->reading[i].what == RP_READING_UP) {
            return said->reading[i].value > (double)waited_ns * 1e-9 + 1;
        }
    }
    return false;
}

/* Waits until a new process of the agent answers. */
static rp_err await_return(rp_cli_asking *asking, rp_asker *asker, const char *name,
                           uint64_t life) {
    const rp_Ask ask = {.what = RP_ASK_CONDITION};
    const uint32_t wait_s = rp_cli_wait_s(asking->args, WAIT_S);
    const int64_t since_ns = rp_clock_now_ns(&asking->clock);
    rp_err err = RP_OK;
    for (;;) {
        rp_Frame frame;
        rp_greet_state came;
        RP_TRY(rp_asker_try(asker, &ask, TRY_NS, &frame, NULL, &came));
        const int64_t waited_ns = rp_clock_now_ns(&asking->clock) - since_ns;
        if (came == RP_GREET_THERE && frame.body.condition.life != life) {
            (void)printf("%s is back after %.1f s%s\n", name, (double)waited_ns * 1e-9,
                         is_system_up(&frame.body.condition, waited_ns)
                             ? "; only its agent was restarted, not its system"
                             : "");
            (void)fflush(stdout);
            return RP_OK;
        }
        if (waited_ns > wait_s * RP_NS_PER_S) {
            return rp_fail(RP_ERR_FAULT, "%s: has not returned within %u s; look at its console",
                           name, wait_s);
        }
    }
fail:
    return err;
}

static rp_err reboot_board(rp_arena *arena, rp_cli_asking *asking, const rp_roster_entry *board) {
    const rp_cli_args *args = asking->args;
    const rp_Ask ask = {.what = RP_ASK_REBOOT, .force = args->fleet.force};
    rp_asker *asker = NULL;
    uint64_t life;
    rp_Frame frame;
    rp_err err;
    RP_TRY(rp_cli_ask_open(arena, asking, board, &asker));
    RP_TRY(ask_life(asker, &life));
    RP_TRY(rp_asker_ask(asker, &ask, RP_CLI_ASK_NS, &frame, NULL));
    if (!args->quiet) {
        rp_print(stderr, "%s reboots\n", board->name);
    }
    RP_TRY(args->fleet.no_wait ? RP_OK : await_return(asking, asker, board->name, life));
fail:
    rp_asker_close(&asker);
    return err;
}

/* Reboots boards in turn, and stops at the first that does not return. */
rp_err rp_verb_boards_reboot(rp_arena *arena, const rp_cli_args *args) {
    rp_cli_asking asking;
    rp_err err;
    RP_TRY(rp_cli_asking_open(arena, args, &asking));
    for (uint32_t i = 0; i < asking.count; i++) {
        RP_TRY(reboot_board(arena, &asking, &asking.boards[i]));
    }
fail:
    rp_cli_asking_close(&asking);
    return err;
}
