#include "cli/open_board.h"

rp_err rp_cli_open_board(rp_arena *arena, const rp_cli_args *args, rp_board *board,
                         rp_device **device) {
    rp_err err;
    RP_TRY(rp_board_find(arena, args->board, args->threads, board));
    RP_TRY(rp_board_open_device(arena, board, args->threads, device));
fail:
    return err;
}
