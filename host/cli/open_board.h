/* Opens this machine's device by the options --board and --threads. */
#ifndef RP_CLI_OPEN_BOARD_H
#define RP_CLI_OPEN_BOARD_H

#include "agent/board.h"
#include "cli/cli.h"
#include "device/device.h"

rp_err rp_cli_open_board(rp_arena *arena, const rp_cli_args *args, rp_board *board,
                         rp_device **device) RP_MUST_CHECK;

#endif
