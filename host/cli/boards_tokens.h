/* boards enrol --list and --withdraw: the tokens that there are. */
#ifndef RP_CLI_BOARDS_TOKENS_H
#define RP_CLI_BOARDS_TOKENS_H

#include "base/arena.h"
#include "cli/cli.h"

/* errors  USAGE: other words or options; those of the list of tokens */
rp_err rp_cli_boards_tokens(rp_arena *arena, const rp_cli_args *args,
                            const char *keys_folder) RP_MUST_CHECK;

#endif
