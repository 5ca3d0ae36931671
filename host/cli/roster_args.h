/* Choosing boards on the command line: --roster, --where, --listen, names. */
#ifndef RP_CLI_ROSTER_ARGS_H
#define RP_CLI_ROSTER_ARGS_H

#include "cli/cli.h"
#include "run/roster.h"

/* Reads the boards of --roster that match --where, in the roster's order. errors  USAGE: no board
 * matches; those of rp_roster_read() */
rp_err rp_cli_read_boards(rp_arena *arena, const rp_cli_args *args, rp_roster_entry **out,
                          uint32_t *count) RP_MUST_CHECK;

/* Chooses boards by --where, or by the positional arguments from `first` on, in their order. `all`:
 * without either all boards are chosen. errors  USAGE: the choice is missing, or a name is unknown
 */
rp_err rp_cli_choose_boards(rp_arena *arena, const rp_cli_args *args, uint32_t first, bool all,
                            rp_roster_entry **out, uint32_t *count) RP_MUST_CHECK;

/* Checks the name of a board, which YAML, shells and lists of keys must take without quotes. errors
 * USAGE */
rp_err rp_cli_check_name(const char *name) RP_MUST_CHECK;

/* errors  USAGE: --listen is invalid, or is missing although one of the boards dials */
rp_err rp_cli_check_listen(const rp_cli_args *args, const rp_roster_entry *boards,
                           uint32_t count) RP_MUST_CHECK;

#endif
