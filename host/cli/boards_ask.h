/* What the verbs of `boards` share. */
#ifndef RP_CLI_BOARDS_ASK_H
#define RP_CLI_BOARDS_ASK_H

#include "ask/ask.h"
#include "cli/cli.h"

typedef struct {
    const rp_cli_args *args;
    rp_keypair keys;
    rp_clock clock;
    rp_roster_entry *boards; /* [count] chosen boards */
    uint32_t count;
} rp_cli_asking;

#define RP_CLI_ASK_NS (8 * RP_NS_PER_S) /* timeout for an answer */

/* Reads roster and keys, and chooses boards by the arguments of the command or by --where.
 * errors  USAGE; those of the files */
rp_err rp_cli_asking_open(rp_arena *arena, const rp_cli_args *args,
                          rp_cli_asking *out) RP_MUST_CHECK;
void rp_cli_asking_close(rp_cli_asking *asking);
/* Opens a connection for questions to one board. */
rp_err rp_cli_ask_open(rp_arena *arena, rp_cli_asking *asking, const rp_roster_entry *board,
                       rp_asker **out) RP_MUST_CHECK;

/* verbs_boards.c: waits until this board has enrolled with its token, and prints that. errors  as
 * rp_enrol_wait() */
rp_err rp_cli_await_board(const rp_cli_args *args, const char *keys_folder, const rp_keypair *keys,
                          const char *listen, const char *name) RP_MUST_CHECK;

/* boards enrol --list or --withdraw. errors  USAGE: unexpected arguments or options; those of the
 * list of tokens */
rp_err rp_cli_boards_tokens(rp_arena *arena, const rp_cli_args *args,
                            const char *keys_folder) RP_MUST_CHECK;

/* Warms the boards of the run file `run_path`, which must answer within `wait_s`. */
rp_err rp_cli_warm(rp_arena *arena, const rp_cli_args *args, const char *run_path,
                   uint32_t wait_s) RP_MUST_CHECK;

/* Prints a line of a board's journal with its time, after `before`. */
void rp_cli_print_line(const char *before, uint64_t time_ms, const char *text);

#endif
