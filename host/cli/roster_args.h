/* The boards that a command line means: --roster, --where, --listen. */
#ifndef RP_CLI_ROSTER_ARGS_H
#define RP_CLI_ROSTER_ARGS_H

#include "cli/cli.h"
#include "run/roster.h"

/* Those of --roster that fit --where, in their order. errors  USAGE: no board matches; those of
 * rp_roster_read() */
rp_err rp_cli_read_boards(rp_arena *arena, const rp_cli_args *args, rp_roster_entry **out,
                          uint32_t *count) RP_MUST_CHECK;

/* Those of the roster that --where or the words from `first` on name, in the order of the words;
 * `all`: without either every board. errors  USAGE: a choice is missing, or a name is unknown */
rp_err rp_cli_choose_boards(rp_arena *arena, const rp_cli_args *args, uint32_t first, bool all,
                            rp_roster_entry **out, uint32_t *count) RP_MUST_CHECK;

/* Whether a board may have this name: YAML, shells and lists of keys take it without quotes. */
rp_err rp_cli_check_name(const char *name) RP_MUST_CHECK;

/* errors  USAGE: --listen is no address, or one of the boards dials and it is missing */
rp_err rp_cli_check_listen(const rp_cli_args *args, const rp_roster_entry *boards,
                           uint32_t count) RP_MUST_CHECK;

#endif
