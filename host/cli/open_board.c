#include "cli/open_board.h"

rp_err rp_cli_open_board(rp_arena *arena, const rp_cli_args *args, rp_board *board,
                         rp_device **device) {
    rp_err err;
    RP_TRY(rp_board_find(arena, args->board, args->threads, board));
    rp_device_options options = {.platform = board->platform,
                                 .device = board->device,
                                 .threads = args->threads,
                                 .tuning_path = board->tuning_path};
    RP_TRY(rp_device_open(arena, &options, device));
fail:
    return err;
}
