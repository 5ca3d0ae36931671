#include "ring/rejoin.h"

#include <stdio.h>

#include "base/log.h"

/* A board that does not answer is greeted over a new link after this time. */
static const int64_t GREET_NS = 5 * RP_NS_PER_S;
/* A board that has answered, and is not heard for this long, counts as gone. */
static const int64_t GONE_NS = 3 * RP_NS_PER_S;
static const int64_t HOLD_MAX_NS = 3600 * RP_NS_PER_S;

/* ---- how often ------------------------------------------------------------------------------- */

void rp_rejoin_note_left(rp_ring *ring, uint32_t count) {
    rp_rejoin *away = &ring->rejoin;
    RP_ASSERT(away->boards > 0 && ring->count <= away->boards);
    away->left += count;
    int64_t hold_ns = ring->run->safety.wait_s * RP_NS_PER_S;
    for (uint32_t i = 1; i < away->left && hold_ns < HOLD_MAX_NS; i++) {
        hold_ns *= 2;
    }
    away->not_before_ns = ring->now_ns + (hold_ns < HOLD_MAX_NS ? hold_ns : HOLD_MAX_NS);
    RP_ASSERT(hold_ns >= 0 && away->left >= count);
}

bool rp_rejoin_is_wanted(const rp_ring *ring) {
    return ring->rejoin.left > 0 && ring->count < ring->rejoin.boards &&
           ring->now_ns >= ring->rejoin.not_before_ns;
}

/* ---- one board ------------------------------------------------------------------------------- */

static rp_err open_link(const rp_ring *ring, const rp_roster_entry *entry, rp_rejoin_board *board) {
    const char *endpoint = entry->dials ? ring->run->listen : entry->endpoint;
    RP_ASSERT(ring->links && board->name == entry->name);
    rp_link_close(&board->control);
    board->answers = false;
    return rp_greet_open_link(ring->links, "control", entry->dials, endpoint, entry->public_text,
                              &board->control);
}

/* Sends HELLO without this run's term, so that a board that works for another controller continues
 * to do so. */
static rp_err greet_board(const rp_ring *ring, rp_rejoin_board *board) {
    rp_Frame greeting = rp_greet_hello(ring->now_ns, ring->origin);
    board->greeted_ns = ring->now_ns;
    return rp_link_send(board->control, &greeting, NULL, 0, true, NULL, NULL);
}

/* A board can only join with the ring's wire version and features. */
static bool fits_ring(const rp_ring *ring, const rp_Hello *hello) {
    return (hello->features & ring->features) == ring->features &&
           hello->wire_min <= ring->wire.max && hello->wire_max >= ring->wire.max;
}

static void take_answer(const rp_ring *ring, rp_rejoin_board *board, const rp_Frame *frame) {
    const rp_Hello *hello = &frame->body.hello;
    RP_ASSERT(board->name && board->control);
    if (rp_frame_kind(frame) != RP_KIND_HELLO) {
        return;
    }
    const bool is_elsewhere = hello->busy && frame->run_id != ring->identity.id;
    const bool fits = fits_ring(ring, hello);
    if (!fits && !board->was_refused) {
        board->was_refused = true;
        rp_log_warn("board %s answers again with ringpipe %s, which does not fit this ring, so "
                    "it does not rejoin; update ringpipe on the board",
                    board->name, hello->software);
    }
    board->answers = fits && !is_elsewhere;
}

static rp_err take_messages(const rp_ring *ring, rp_rejoin_board *board) {
    rp_message *message;
    rp_err err;
    RP_TRY(rp_link_step(board->control));
    while ((err = rp_link_recv(board->control, &message)) == RP_OK) {
        take_answer(ring, board, &message->frame);
        rp_link_release(board->control, &message);
    }
    err = err == RP_ERR_AGAIN ? RP_OK : err;
fail:
    return err;
}

/* The link of a board that dials stays open: the board may dial at any time. */
static bool needs_link(const rp_ring *ring, const rp_roster_entry *entry,
                       const rp_rejoin_board *board) {
    const bool is_long_ago = ring->now_ns - board->greeted_ns > GREET_NS;
    if (!board->control) {
        return board->greeted_ns == 0 || is_long_ago;
    }
    const rp_link_health health = rp_link_health_of(board->control);
    if (health.last_heard_ns == 0) {
        return !entry->dials && !health.auth_failed && is_long_ago;
    }
    return health.peer_restarted || ring->now_ns - health.last_heard_ns > GONE_NS;
}

static rp_err look_at(const rp_ring *ring, const rp_roster_entry *entry, rp_rejoin_board *board,
                      bool ping) {
    rp_err err = RP_OK;
    const bool is_new = needs_link(ring, entry, board);
    if (is_new) {
        RP_TRY(open_link(ring, entry, board));
    }
    if (!board->control) {
        return RP_OK;
    }
    if (is_new || (!board->answers && ring->now_ns - board->greeted_ns > GREET_NS)) {
        RP_TRY(greet_board(ring, board));
    }
    RP_TRY(take_messages(ring, board));
    if (ping) {
        err = rp_link_ping(board->control);
    }
fail:
    return err;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static uint32_t count_tried(const rp_ring *ring) {
    return ring->run->spares < RP_REJOIN_MAX ? ring->run->spares : RP_REJOIN_MAX;
}

void rp_rejoin_step(rp_ring *ring, bool looks, bool ping) {
    if (!looks || !rp_rejoin_is_wanted(ring)) {
        rp_rejoin_close(ring);
        return;
    }
    RP_ASSERT(ring->run->boards == ring->count); /* spares follow them in the roster */
    for (uint32_t i = 0; i < count_tried(ring); i++) {
        const rp_roster_entry *entry = &ring->run->roster[ring->run->boards + i];
        rp_rejoin_board *board = &ring->rejoin.board[i];
        if (board->name != entry->name) { /* the order of the spares has changed */
            rp_link_close(&board->control);
            *board = (rp_rejoin_board){.name = entry->name};
        }
        const rp_err err = look_at(ring, entry, board, ping);
        if (err != RP_OK && err != RP_ERR_AGAIN) {
            rp_log_debug("controller: board %s is not tried: %s", entry->name, rp_err_message());
            rp_link_close(&board->control);
            board->greeted_ns = ring->now_ns;
            board->answers = false;
        }
        RP_ASSERT(!board->answers || board->control);
    }
}

void rp_rejoin_close(rp_ring *ring) {
    for (uint32_t i = 0; i < RP_REJOIN_MAX; i++) {
        rp_link_close(&ring->rejoin.board[i].control);
        ring->rejoin.board[i].greeted_ns = 0;
        ring->rejoin.board[i].answers = false;
    }
}

/* ---- joining --------------------------------------------------------------------------------- */

bool rp_rejoin_has_answered(const rp_ring *ring, const char *name) {
    for (uint32_t i = 0; i < RP_REJOIN_MAX; i++) {
        if (ring->rejoin.board[i].name == name) {
            return ring->rejoin.board[i].answers;
        }
    }
    return false;
}

uint32_t rp_rejoin_count_ready(const rp_ring *ring) {
    const rp_runfile *run = ring->run;
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->spares && ring->count + count < ring->rejoin.boards; i++) {
        count += rp_rejoin_has_answered(ring, run->roster[run->boards + i].name);
    }
    return count;
}

void rp_rejoin_take(rp_ring *ring, uint32_t at) {
    RP_ASSERT(ring->count < ring->rejoin.boards);
    rp_ring_join(ring, at);
    ring->rejoin.joined++;
    RP_ASSERT(ring->run->boards == ring->count && ring->board[at].name);
}
