#include "control/now_counts.h"

rp_now_op rp_now_counts_column(rp_op_kind kind) {
    return kind == RP_OP_FORWARD  ? RP_NOW_FORWARD
           : kind == RP_OP_UPDATE ? RP_NOW_UPDATE
                                  : RP_NOW_BACKWARD;
}

rp_now_counts_board *rp_now_counts_of(rp_now_counts *counts, const char *name) {
    for (uint32_t i = 0; i < counts->board_count; i++) {
        if (counts->board[i].name == name) {
            return &counts->board[i];
        }
    }
    if (counts->board_count == counts->board_max) {
        return NULL;
    }
    rp_now_counts_board *board = &counts->board[counts->board_count++];
    *board = (rp_now_counts_board){.name = name, .last = RP_OP_KINDS};
    return board;
}

void rp_now_counts_add(rp_now_counts *counts, const char *name, const rp_sink_op *op) {
    rp_now_counts_board *board = counts->board ? rp_now_counts_of(counts, name) : NULL;
    const int64_t spent_ns = op->end_ns > op->start_ns ? op->end_ns - op->start_ns : 0;
    if (board && spent_ns < INT64_MAX / 4 - board->op_ns[rp_now_counts_column(op->kind)]) {
        board->op_ns[rp_now_counts_column(op->kind)] += spent_ns;
        board->recent_ns += spent_ns < 60 * RP_NS_PER_S ? spent_ns : 60 * RP_NS_PER_S;
        board->last = op->kind;
    }
}
