/* boards warm: the kernels of a run are built ahead of it. */
#ifndef RP_CLI_BOARDS_WARM_H
#define RP_CLI_BOARDS_WARM_H

#include "base/arena.h"
#include "cli/cli.h"

/* The same for `run_path`, whose boards have `wait_s` to be there at all. */
rp_err rp_cli_warm(rp_arena *arena, const rp_cli_args *args, const char *run_path,
                   uint32_t wait_s) RP_MUST_CHECK;

#endif
