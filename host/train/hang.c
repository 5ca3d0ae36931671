/* Detects a board that answers but makes no progress: its device has been at one op for too long,
 * or it does not say what it waits for. While another board can work, the ring may only be slow. */
#include <inttypes.h>
#include <stdio.h>

#include "sched/op_limit.h"
#include "train/train_own.h"

typedef enum { BOARD_WAITS, BOARD_WORKS, BOARD_HANGS } board_verdict;

/* Time since any board reported something, not counting the time in which this host was stopped. */
static int64_t quiet_ns(const rp_train *train) {
    const int64_t awake_ns = train->ring->awake_ns;
    return train->ring->now_ns -
           (train->ring->progress_ns > awake_ns ? train->ring->progress_ns : awake_ns);
}

/* What the board waits for by its last message, if recent; waiting boards report every second. */
static rp_waiting_for waits_for(const rp_train *train, const rp_board_state *board) {
    const bool is_fresh = train->ring->now_ns - board->train.waiting_ns <= RP_RING_SILENT_NS;
    return is_fresh ? (rp_waiting_for)board->train.waiting.what : RP_WAITING_NOTHING;
}

static board_verdict judge_board(const rp_train *train, const rp_board_state *board) {
    const rp_waiting_for what = waits_for(train, board);
    const int64_t limit_ns = rp_op_limit_ns(board->train.waiting.longest_ns);
    if (board->train.finished || (what != RP_WAITING_DEVICE && what != RP_WAITING_NOTHING)) {
        return BOARD_WAITS;
    }
    const int64_t for_ns =
        what == RP_WAITING_DEVICE ? board->train.waiting.for_ns : quiet_ns(train);
    return for_ns >= limit_ns ? BOARD_HANGS : BOARD_WORKS;
}

static rp_err fail_for(const rp_train *train, const rp_board_state *board) {
    const rp_Waiting *said = &board->train.waiting;
    char longest[64] = "no earlier op has ended";
    if (waits_for(train, board) == RP_WAITING_NOTHING) {
        return rp_fail(RP_ERR_FAULT,
                       "board %s answers, but for %" PRId64
                       " s it has neither reported anything nor said what it waits for",
                       board->name, quiet_ns(train) / RP_NS_PER_S);
    }
    if (said->longest_ns > 0) {
        (void)snprintf(longest, sizeof longest, "the longest earlier op took %.3g s",
                       (double)said->longest_ns * 1e-9);
    }
    return rp_fail(RP_ERR_FAULT,
                   "board %s: its device hangs: one op has been running for %" PRId64
                   " s (step %" PRIu64 ", stage %" PRIu32 "; %s)",
                   board->name, said->for_ns / RP_NS_PER_S, said->step + 1, said->stage, longest);
}

rp_err rp_train_find_hang(rp_train *train, uint32_t *board) {
    uint32_t hung = train->ring->count;
    if (!(train->ring->features & RP_WIRE_FEATURE_WAITING)) {
        return RP_OK;
    }
    for (uint32_t k = 0; k < train->ring->count; k++) {
        const board_verdict verdict = judge_board(train, &train->ring->board[k]);
        if (verdict == BOARD_WORKS) {
            return RP_OK;
        }
        hung = verdict == BOARD_HANGS && hung == train->ring->count ? k : hung;
    }
    if (hung == train->ring->count) {
        return RP_OK; /* the host may be the cause */
    }
    RP_ASSERT(!train->ring->board[hung].train.finished);
    *board = hung;
    rp_ring_note_hung(train->ring, hung);
    return fail_for(train, &train->ring->board[hung]);
}
