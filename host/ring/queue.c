/* Messages to a board: sent at once, or queued until its link has room. */
#include "ring/ring_own.h"

#include <string.h>

int64_t rp_ring_patience_ns(const rp_runfile *run) {
    const int64_t wait_ns = run->safety.wait_s * RP_NS_PER_S;
    return wait_ns > RP_RING_HELLO_NS ? wait_ns : RP_RING_HELLO_NS;
}

void rp_queue_drop(rp_board_state *board) {
    RP_ASSERT(board->queue.count <= RP_RING_PENDING_MAX);
    board->queue.count = 0;
    for (uint32_t i = 0; i < RP_RING_PENDING_MAX; i++) {
        rp_block_free(board->queue.message[i].bytes);
        board->queue.message[i] = (rp_pending_message){0};
    }
}

static rp_err send_now(rp_ring *ring, uint32_t board, rp_Frame *frame, const rp_part *parts,
                       uint32_t part_count) {
    RP_ASSERT(board < ring->count && ring->board[board].control);
    frame->run_id = ring->identity.id;
    frame->term = ring->identity.term;
    return rp_link_send(ring->board[board].control, frame, parts, part_count, true, NULL, NULL);
}

rp_err rp_ring_offer(rp_ring *ring, uint32_t board, rp_Frame *frame, const rp_part *parts,
                     uint32_t part_count) {
    return ring->board[board].queue.count > 0 ? RP_ERR_AGAIN
                                              : send_now(ring, board, frame, parts, part_count);
}

/* Unacknowledged pieces of a stream for each board: enough to keep its link busy, few enough that
 * its heartbeat is not delayed for long. */
enum { PIECES_UNACKED_MAX = 32 };

rp_err rp_ring_offer_piece(rp_ring *ring, uint32_t board, rp_Frame *frame, const rp_part *part) {
    rp_link_stats stats;
    rp_link_stats_of(ring->board[board].control, &stats);
    if (stats.unacked >= PIECES_UNACKED_MAX) {
        return RP_ERR_AGAIN;
    }
    const rp_err err = rp_ring_offer(ring, board, frame, part, part != NULL);
    if (err == RP_OK) {
        ring->progress_ns = ring->now_ns;
    }
    return err;
}

rp_err rp_ring_check_text(const char *what, const char *text) {
    const size_t bytes = strlen(text);
    return bytes <= RP_LINK_CONTROL_PART_MAX
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "the text of %s has %zu bytes, a message to a board takes at most %d: use "
                         "fewer layers or shorter names of layers",
                         what, bytes, RP_LINK_CONTROL_PART_MAX);
}

rp_err rp_ring_post(rp_ring *ring, uint32_t board, const rp_Frame *frame, const rp_part *part) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(state->queue.count <= RP_RING_PENDING_MAX);
    rp_Frame now = *frame;
    const rp_err err = rp_ring_offer(ring, board, &now, part, part != NULL);
    if (err != RP_ERR_AGAIN) {
        return err;
    }
    if (state->queue.count == RP_RING_PENDING_MAX || (part && part->bytes > ring->pending_bytes)) {
        return rp_fail(RP_ERR_FAULT, "board %s accepts no message: %u are waiting to be sent to it",
                       state->name, state->queue.count);
    }
    const uint32_t at = (state->queue.first + state->queue.count) % RP_RING_PENDING_MAX;
    rp_pending_message *message = &state->queue.message[at];
    if (part &&
        part->bytes > message->room) { /* rare, because most messages find room in the link */
        rp_block_free(message->bytes);
        *message = (rp_pending_message){0};
        const rp_err none = rp_block_new(part->bytes, (void **)&message->bytes);
        if (none != RP_OK) {
            return none;
        }
        message->room = part->bytes;
    }
    RP_ASSERT(!part || message->room >= part->bytes);
    message->frame = *frame;
    message->part_count = part != NULL;
    if (part) {
        message->part = *part;
        message->part.data = message->bytes;
        memcpy(message->bytes, part->data, part->bytes);
    }
    if (state->queue.count++ == 0) {
        state->queue.since_ns = rp_clock_now_ns(ring->clock);
    }
    return RP_OK;
}

rp_err rp_ring_post_all(rp_ring *ring, const rp_Frame *frame) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; err == RP_OK && k < ring->count; k++) {
        err = rp_ring_post(ring, k, frame, NULL);
    }
    return err;
}

rp_err rp_queue_flush(rp_ring *ring, uint32_t board) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(board < ring->count && state->queue.count <= RP_RING_PENDING_MAX);
    while (state->queue.count > 0) {
        rp_pending_message *message = &state->queue.message[state->queue.first];
        rp_err err = send_now(ring, board, &message->frame, &message->part, message->part_count);
        if (err == RP_ERR_AGAIN &&
            ring->now_ns - state->queue.since_ns > rp_ring_patience_ns(ring->run)) {
            return rp_fail(RP_ERR_TIMEOUT, "board %s accepts no message", state->name);
        }
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        RP_ASSERT(state->queue.first < RP_RING_PENDING_MAX);
        state->queue.first = (state->queue.first + 1) % RP_RING_PENDING_MAX;
        state->queue.count--;
        state->queue.since_ns = ring->now_ns;
    }
    return RP_OK;
}

int64_t rp_queue_deadline_ns(const rp_ring *ring, const rp_board_state *board) {
    return board->queue.count > 0 ? board->queue.since_ns + rp_ring_patience_ns(ring->run) + 1
                                  : INT64_MAX;
}

void rp_ring_say_bye(rp_ring *ring) {
    rp_Frame bye = {.which_body = RP_KIND_BYE};
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        if (board->control && board->hello) {
            board->queue.count = 0;
            (void)!rp_ring_offer(ring, k, &bye, NULL, 0);
        }
    }
}
