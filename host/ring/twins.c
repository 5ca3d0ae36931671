#include "ring/kept_out.h"

/* Time between two reports of the same board, even if it restarts repeatedly. */
static const int64_t SAY_NS = 60 * RP_NS_PER_S;

static rp_err say_twins(const rp_board_state *board, rp_record *record, uint64_t step) {
    const rp_link_peers peers = rp_link_peers_of(board->control);
    return rp_record_event(record, &(rp_run_event){.kind = RP_EVENT_TWINS,
                                                   .step = step,
                                                   .board = board->name,
                                                   .address = peers.served,
                                                   .twin_address = peers.twin});
}

rp_err rp_twins_look(rp_ring *ring, rp_record *record, uint64_t step) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; err == RP_OK && record && k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        RP_ASSERT(board->kept_out.twins_said_ns <= ring->now_ns);
        const uint32_t twins = board->control ? rp_link_health_of(board->control).twins : 0;
        const bool is_news = twins > 0 && twins != board->kept_out.twins;
        if (is_news && (board->kept_out.twins_said_ns == 0 ||
                        ring->now_ns - board->kept_out.twins_said_ns > SAY_NS)) {
            board->kept_out.twins_said_ns = ring->now_ns;
            err = say_twins(board, record, step);
        }
        board->kept_out.twins = twins;
    }
    return err;
}
