/* Boards that have left the ring: while it is at work they are greeted in the background, and at a
 * pause those that answer join it again. */
#include <stdio.h>

#include "base/log.h"
#include "control/controller_own.h"

/* One that does not answer is greeted anew, over a new link. */
static const int64_t GREET_NS = 5 * RP_NS_PER_S;
/* One that has answered and is not heard for so long has gone again. */
static const int64_t GONE_NS = 3 * RP_NS_PER_S;
static const int64_t HOLD_MAX_NS = 3600 * RP_NS_PER_S;

/* ---- how often ------------------------------------------------------------------------------- */

/* The first comes back behind ring.wait; with every board that leaves the ring waits twice as long
 * before it grows: who comes and goes all the time costs it less and less. */
void rp_away_note_left(rp_controller *c, uint32_t count) {
    rp_away *away = &c->ring.away;
    away->left += count;
    int64_t hold_ns = c->run.wait_s * RP_NS_PER_S;
    for (uint32_t i = 1; i < away->left && hold_ns < HOLD_MAX_NS; i++) {
        hold_ns *= 2;
    }
    away->not_before_ns = c->ring.now_ns + (hold_ns < HOLD_MAX_NS ? hold_ns : HOLD_MAX_NS);
}

static bool is_at_work(const rp_controller *c) {
    return c->machine.state >= RP_CONTROL_TRAIN && c->machine.state <= RP_CONTROL_DRAIN;
}

static bool wants_boards(const rp_controller *c) {
    return c->ring.away.left > 0 && c->ring.count < c->ring.away.boards &&
           c->machine.interrupts == 0 && c->ring.now_ns >= c->ring.away.not_before_ns &&
           is_at_work(c);
}

/* ---- one board ------------------------------------------------------------------------------- */

static rp_err open_link(const rp_controller *c, const rp_roster_entry *entry,
                        rp_away_board *board) {
    const char *endpoint = entry->dials ? c->run.listen : entry->endpoint;
    rp_link_close(&board->control);
    board->answers = false;
    return rp_ring_open_control(&c->ring, entry->dials, endpoint, entry->public_text,
                                &board->control);
}

/* Not of this run's term: a board that is at work for somebody else stays so. */
static rp_err greet(const rp_controller *c, rp_away_board *board) {
    rp_Frame greeting = rp_ring_greeting(&c->ring, c->ring.now_ns);
    board->greeted_ns = c->ring.now_ns;
    return rp_link_send(board->control, &greeting, NULL, 0, true, NULL, NULL);
}

/* What the ring has agreed on holds for one that joins it. */
static bool fits_ring(const rp_controller *c, const rp_Hello *hello) {
    return (hello->features & c->ring.features) == c->ring.features &&
           hello->wire_min <= c->ring.wire.max && hello->wire_max >= c->ring.wire.max;
}

static void take_answer(const rp_controller *c, rp_away_board *board, const rp_Frame *frame) {
    const rp_Hello *hello = &frame->body.hello;
    if (rp_frame_kind(frame) != RP_KIND_HELLO) {
        return;
    }
    const bool is_elsewhere = hello->busy && frame->run_id != c->ring.identity.id;
    const bool fits = fits_ring(c, hello);
    if (!fits && !board->was_refused) {
        board->was_refused = true;
        rp_log_warn("board %s answers again with ringpipe %s, which this ring can not take: it "
                    "does not join; update ringpipe on the board",
                    board->name, hello->software);
    }
    board->answers = fits && !is_elsewhere;
}

static rp_err hear(const rp_controller *c, rp_away_board *board) {
    rp_message *message;
    rp_err err;
    RP_TRY(rp_link_step(board->control));
    while ((err = rp_link_recv(board->control, &message)) == RP_OK) {
        take_answer(c, board, &message->frame);
        rp_link_release(board->control, &message);
    }
    err = err == RP_ERR_AGAIN ? RP_OK : err;
fail:
    return err;
}

/* A board that dials is awaited where it dials. */
static bool needs_link(const rp_controller *c, const rp_roster_entry *entry,
                       const rp_away_board *board) {
    const bool is_long_ago = c->ring.now_ns - board->greeted_ns > GREET_NS;
    if (!board->control) {
        return board->greeted_ns == 0 || is_long_ago;
    }
    const rp_link_health health = rp_link_health_of(board->control);
    if (health.last_heard_ns == 0) {
        return !entry->dials && !health.auth_failed && is_long_ago;
    }
    return health.peer_restarted || c->ring.now_ns - health.last_heard_ns > GONE_NS;
}

static rp_err look_at(const rp_controller *c, const rp_roster_entry *entry, rp_away_board *board,
                      bool ping) {
    rp_err err = RP_OK;
    const bool is_new = needs_link(c, entry, board);
    if (is_new) {
        RP_TRY(open_link(c, entry, board));
    }
    if (!board->control) {
        return RP_OK;
    }
    if (is_new || (!board->answers && c->ring.now_ns - board->greeted_ns > GREET_NS)) {
        RP_TRY(greet(c, board));
    }
    RP_TRY(hear(c, board));
    if (ping) {
        err = rp_link_ping(board->control);
    }
fail:
    return err;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static uint32_t count_tried(const rp_controller *c) {
    return c->run.spares < RP_AWAY_MAX ? c->run.spares : RP_AWAY_MAX;
}

void rp_away_look(rp_controller *c, bool ping) {
    if (!wants_boards(c)) {
        rp_away_close(c);
        return;
    }
    for (uint32_t i = 0; i < count_tried(c); i++) {
        const rp_roster_entry *entry = &c->run.roster[c->run.boards + i];
        rp_away_board *board = &c->ring.away.board[i];
        if (board->name != entry->name) { /* the places of spares have changed */
            rp_link_close(&board->control);
            *board = (rp_away_board){.name = entry->name};
        }
        const rp_err err = look_at(c, entry, board, ping);
        if (err != RP_OK && err != RP_ERR_AGAIN) { /* no fault of the ring */
            rp_log_debug("controller: board %s is not tried: %s", entry->name, rp_err_message());
            rp_link_close(&board->control);
            board->greeted_ns = c->ring.now_ns;
            board->answers = false;
        }
    }
}

void rp_away_close(rp_controller *c) {
    for (uint32_t i = 0; i < RP_AWAY_MAX; i++) {
        rp_link_close(&c->ring.away.board[i].control);
        c->ring.away.board[i].greeted_ns = 0;
        c->ring.away.board[i].answers = false;
    }
}

/* ---- joining --------------------------------------------------------------------------------- */

/* False: its neighbours could not reach it, for example. */
static bool join(rp_controller *c, uint32_t spare) {
    const uint32_t at = rp_setup_return_board(c, spare);
    rp_split_count_stages(c, false);
    if (rp_runfile_check_cut(&c->run) != RP_OK) {
        rp_setup_leave_board(c, at);
        rp_split_count_stages(c, false);
        return false;
    }
    rp_ring_join(&c->ring, at);
    c->ring.away.joined++;
    return true;
}

static bool has_answered(const rp_controller *c, const char *name) {
    for (uint32_t i = 0; i < RP_AWAY_MAX; i++) {
        if (c->ring.away.board[i].name == name) {
            return c->ring.away.board[i].answers;
        }
    }
    return false;
}

static bool in_pairs(const rp_controller *c) {
    return c->run.method.kind->splits && !rp_split_is_listed(c);
}

/* Where each stage has two boards, they join in pairs. */
static uint32_t count_joining(const rp_controller *c) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->run.spares && c->ring.count + count < c->ring.away.boards; i++) {
        count += has_answered(c, c->run.roster[c->run.boards + i].name);
    }
    return in_pairs(c) ? count - (c->ring.count + count) % 2 : count;
}

/* Those that do not fit become the last spares, so all behind the ring are looked at from the end.
 */
bool rp_away_join(rp_controller *c) {
    char *names = c->ring.away.names;
    const size_t bytes = sizeof c->ring.away.names;
    size_t used = 0;
    names[0] = '\0';
    if (!wants_boards(c) || rp_keep_saved_step(c->keep) != c->train.position.step) {
        return false;
    }
    const uint32_t most = c->ring.count + count_joining(c);
    for (uint32_t i = c->run.spares; i-- > 0 && c->ring.count < most;) {
        const char *name = c->run.roster[c->run.boards + i].name;
        if (has_answered(c, name) && join(c, c->run.boards + i)) {
            const int more = snprintf(names + used, bytes - used, "%s%s", used ? ", " : "", name);
            used += more > 0 && used + (size_t)more < bytes ? (size_t)more : 0;
        }
    }
    if (in_pairs(c) && c->ring.count % 2 > 0) { /* one did not fit */
        rp_setup_leave_board(c, c->ring.count - 1);
        rp_ring_leave(&c->ring, c->ring.count - 1);
        rp_split_count_stages(c, false);
    }
    if (used > 0) {
        rp_away_close(c);
    }
    return used > 0;
}
