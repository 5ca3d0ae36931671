/* Round trips to the boards, and the delay of a wire that follows from them. */
#include "measure/measure_own.h"
#include "planning/cost.h"

void rp_measure_begin_trips(rp_measure *m) {
    m->trips = 0;
}

static rp_link_stats read_stats(const rp_measure *m, uint32_t board) {
    rp_link_stats stats;
    RP_ASSERT(board < m->needs.ring->count && board < m->board_count);
    rp_link_stats_of(m->needs.ring->board[board].control, &stats);
    return stats;
}

rp_err rp_measure_ping(rp_measure *m) {
    const rp_ring *ring = m->needs.ring;
    rp_ring_note_progress(m->needs.ring);
    for (uint32_t k = 0; k < ring->count; k++) {
        m->board[k].round_trips = read_stats(m, k).round_trips;
        const rp_err err = rp_link_ping(ring->board[k].control);
        if (err != RP_OK && err != RP_ERR_AGAIN) {
            return err;
        }
    }
    return RP_OK;
}

bool rp_measure_has_answered(const rp_measure *m, uint32_t board) {
    return read_stats(m, board).round_trips > m->board[board].round_trips;
}

/* Keeps the shortest trip to each board, because a busy board answers late. */
rp_err rp_measure_note_trips(rp_measure *m, uint32_t wanted, bool *done) {
    RP_ASSERT(m->trips < wanted);
    for (uint32_t k = 0; k < m->needs.ring->count; k++) {
        rp_measure_board *board = &m->board[k];
        const rp_link_stats stats = read_stats(m, k);
        if (m->trips == 0 || stats.round_trip_ns < board->shortest_trip_ns) {
            board->shortest_trip_ns = stats.round_trip_ns;
        }
    }
    m->trips++;
    *done = m->trips == wanted;
    return *done ? RP_OK : rp_measure_ping(m);
}

/* The emulated delay, or half of the longest round trip to a board. */
void rp_measure_take_delay(rp_measure *m) {
    int64_t longest_ns = 0;
    RP_ASSERT(m->needs.run->emulate || m->trips > 0);
    for (uint32_t k = 0; k < m->needs.ring->count; k++) {
        const int64_t own_ns = m->board[k].shortest_trip_ns;
        longest_ns = own_ns > longest_ns ? own_ns : longest_ns;
    }
    m->delay_s =
        m->needs.run->emulate ? rp_cost_link_delay_s(m->needs.run) : (double)longest_ns * 1e-9 / 2;
    RP_ASSERT(m->delay_s >= 0);
}
