#include "ring/greeting.h"

int64_t rp_ring_greeting_left_ns(const rp_ring *ring, int64_t longest_ns, int64_t within_ns,
                                 int64_t since_ns, int64_t from_ns) {
    const bool again = since_ns > ring->greeted_ns;
    const int64_t over_ns = ring->greeted_ns + within_ns;
    const int64_t answered_ns = since_ns + rp_ring_greet_ns(longest_ns) / 2;
    const int64_t left_ns = (again && answered_ns > over_ns ? answered_ns : over_ns) - from_ns;
    RP_ASSERT(within_ns <= longest_ns);
    return left_ns > 0 ? left_ns : 1; /* 0 would mean no limit */
}

uint32_t rp_ring_count_ended(const rp_ring *ring) {
    uint32_t ended = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_state *board = &ring->board[k];
        ended += !board->hello && board->silence.has_ended && board->control &&
                 !rp_link_health_of(board->control).connected;
    }
    return ended;
}

uint32_t rp_ring_find_missing(const rp_ring *ring) {
    uint32_t found = 0;
    for (uint32_t k = ring->count; k-- > 0;) {
        const rp_board_state *board = &ring->board[k];
        const rp_board_state *best = &ring->board[found];
        const bool is_known = !best->hello && best->silence.why != RP_SILENT_REFUSES;
        const bool refuses = board->silence.why == RP_SILENT_REFUSES;
        found = !board->hello && (!refuses || !is_known) ? k : found;
    }
    return found;
}

void rp_ring_greet_again(rp_ring *ring) {
    const bool long_ago = ring->now_ns - ring->greeted_ns > RP_RING_SILENT_NS;
    rp_ring_reset(ring, UINT32_MAX);
    for (uint32_t k = 0; k < ring->count; k++) {
        if (long_ago && !ring->board[k].control) {
            rp_ring_note_hung(ring, k);
        }
    }
}

rp_err rp_ring_report_refusals(rp_ring *ring, rp_record *record, uint64_t step) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; err == RP_OK && record && k < ring->count; k++) {
        rp_board_silence *silence = &ring->board[k].silence;
        const rp_silent_why why = rp_ring_look_at_silence(ring, k);
        if (why == RP_SILENT_UNKNOWN || silence->is_reported) {
            continue;
        }
        silence->is_reported = true;
        (void)!rp_ring_why_silent(ring, k);
        const bool is_silent = why == RP_SILENT_UNANSWERED;
        err = rp_record_event(record, &(rp_run_event){.kind = is_silent ? RP_EVENT_BOARD_SILENT
                                                                        : RP_EVENT_BOARD_REFUSED,
                                                      .step = step,
                                                      .board = ring->board[k].name,
                                                      .error = rp_err_message()});
    }
    return err;
}

bool rp_lost_is(const rp_lost_boards *lost, const rp_ring *ring, uint32_t board) {
    RP_ASSERT(board < ring->count);
    return lost->wrong != RP_NO_BOARD ? lost->wrong == board
                                      : !ring->board[board].hello || lost->portless == board;
}

uint32_t rp_lost_count(const rp_lost_boards *lost, const rp_ring *ring) {
    uint32_t count = 0;
    for (uint32_t k = 0; ring->board && k < ring->count; k++) {
        count += rp_lost_is(lost, ring, k);
    }
    return count;
}

rp_event_kind rp_lost_why(const rp_lost_boards *lost, const rp_ring *ring, uint32_t board) {
    const rp_silent_why why = ring->board[board].silence.why;
    return lost->wrong != RP_NO_BOARD    ? RP_EVENT_LOST_WRONG
           : lost->portless == board     ? RP_EVENT_LOST_PORT
           : why == RP_SILENT_REFUSES    ? RP_EVENT_LOST_REFUSES
           : why == RP_SILENT_BROKEN_OFF ? RP_EVENT_LOST_BREAKS_OFF
           : why == RP_SILENT_UNANSWERED ? RP_EVENT_LOST_UNANSWERED
                                         : RP_EVENT_LOST_ABSENT;
}
