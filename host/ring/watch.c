/* Rounds, heartbeats, and silent boards with their reasons. */
#include "ring/ring_own.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t PING_NS = RP_NS_PER_S;
/* A longer gap between rounds means that the host was asleep: rounds are due with every ping. */
static const int64_t ASLEEP_NS = 3 * RP_NS_PER_S;
/* When one board is lost, boards that have missed some pings are also greeted over a new link. */
static const int64_t LOST_NS = 3 * RP_NS_PER_S;

int64_t rp_ring_greet_ns(int64_t longest_ns) {
    const int64_t most_ns = 5 * RP_NS_PER_S;
    const int64_t quarter_ns = longest_ns / 4;
    return quarter_ns >= RP_NS_PER_S && quarter_ns < most_ns ? quarter_ns : most_ns;
}

void rp_ring_note_progress(rp_ring *ring) {
    ring->progress_ns = ring->now_ns;
}

void rp_ring_watch_boards(rp_ring *ring, bool is_on) {
    RP_ASSERT(ring->board || !is_on);
    ring->is_watching = is_on;
}

void rp_ring_forget_feed_silence(rp_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        ring->board[k].feed_is_silent = false;
    }
}

void rp_ring_note_hung(rp_ring *ring, uint32_t board) {
    RP_ASSERT(board < ring->count);
    ring->board[board].silence.hung = true;
}

void rp_ring_begin_round(rp_ring *ring, int64_t now_ns) {
    RP_ASSERT(now_ns >= ring->now_ns && ring->progress_ns <= ring->now_ns);
    ring->awake_ns = now_ns - ring->now_ns > ASLEEP_NS ? now_ns : ring->awake_ns;
    ring->now_ns = now_ns;
}

/* Silence of a board that has been heard. */
static int64_t silence_ns(const rp_ring *ring, int64_t heard_ns) {
    return ring->now_ns - (heard_ns > ring->awake_ns ? heard_ns : ring->awake_ns);
}

int64_t rp_ring_silence_ns(const rp_ring *ring, uint32_t board) {
    const rp_link *link = ring->board[board].control;
    return link ? silence_ns(ring, rp_link_health_of(link).last_heard_ns) : 0;
}

bool rp_watch_is_silent(const rp_ring *ring, const rp_board_state *board) {
    const int64_t heard_ns = board->control ? rp_link_health_of(board->control).last_heard_ns : 0;
    return heard_ns && silence_ns(ring, heard_ns) > RP_RING_SILENT_NS;
}

bool rp_watch_is_lost(const rp_ring *ring, const rp_board_state *board) {
    if (!board->control) {
        return true;
    }
    const rp_link_health health = rp_link_health_of(board->control);
    const bool is_awaited =
        board->address.dials && health.last_heard_ns == 0; /* it may dial at any time */
    const int64_t silent_ns = health.last_heard_ns ? silence_ns(ring, health.last_heard_ns)
                                                   : ring->now_ns; /* never heard */
    return health.peer_restarted || health.absent || (!is_awaited && silent_ns > LOST_NS);
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

int64_t rp_ring_deadline_ns(const rp_ring *ring) {
    int64_t at_ns = ring->last_ping_ns + PING_NS;
    RP_ASSERT(ring->last_ping_ns <= ring->now_ns);
    for (uint32_t k = 0; k < ring->count; k++) {
        const int64_t late_ns = rp_queue_deadline_ns(ring, &ring->board[k]);
        at_ns = late_ns < at_ns ? late_ns : at_ns;
    }
    return at_ns;
}

rp_err rp_ring_step(rp_ring *ring, uint32_t board) {
    rp_board_state *state = &ring->board[board];
    rp_err err = RP_OK;
    RP_ASSERT(board < ring->count && (state->control || !state->feed));
    if (!state->control) {
        return RP_OK;
    }
    RP_TRY(rp_link_step(state->control));
    RP_TRY(state->feed ? rp_link_step(state->feed) : RP_OK);
    RP_TRY(rp_queue_flush(ring, board));
fail:
    return err;
}

bool rp_ring_ping_is_due(const rp_ring *ring) {
    return ring->now_ns - ring->last_ping_ns >= PING_NS;
}

/* Labels and inputs have their own link: its port may be blocked although the control link
 * works. */
static rp_err watch_feed(const rp_ring *ring, rp_board_state *state, bool is_feeding) {
    if (!state->feed) {
        return RP_OK;
    }
    if (rp_link_health_of(state->feed).auth_failed) {
        return rp_fail(RP_ERR_REFUSED, "board %s: its feed link at %s refused the handshake",
                       state->name, rp_link_endpoint(state->feed));
    }
    if (!is_feeding) {
        rp_link_watch_begin(&state->feed_watch, state->feed, ring->now_ns);
        return RP_OK;
    }
    state->feed_watch.meet_ns = rp_ring_patience_ns(ring->run);
    const rp_watch_state watched = rp_link_look(&state->feed_watch, state->feed, ring->now_ns);
    state->feed_is_silent = watched == RP_WATCH_SILENT || watched == RP_WATCH_LOST;
    switch (watched) {
    case RP_WATCH_LOST:
        return rp_fail(
            RP_ERR_FAULT, "board %s: nothing came back over its feed link at %s for %" PRId64 " s",
            state->name, rp_link_endpoint(state->feed), state->feed_watch.silent_ns / RP_NS_PER_S);
    case RP_WATCH_STUCK:
        return rp_fail(RP_ERR_FAULT,
                       "board %s: a message over its feed link at %s was sent %d times and never "
                       "arrived intact: the path damages or drops large messages",
                       state->name, rp_link_endpoint(state->feed), RP_LINK_REPLAYS_MAX);
    case RP_WATCH_SILENT:
    case RP_WATCH_WELL:
        break;
    }
    return RP_OK;
}

/* At another address it may be another machine with the same key. */
static rp_err say_restarted(const rp_board_state *state) {
    const rp_link_peers peers = rp_link_peers_of(state->control);
    const size_t host = strcspn(peers.before, ":");
    if (host == 0 || strncmp(peers.before, peers.served, host + 1) == 0) {
        return rp_fail(RP_ERR_FAULT, "board %s has restarted", state->name);
    }
    return rp_fail(RP_ERR_FAULT,
                   "board %s has restarted, at %s; before it was at %s: if these are two machines, "
                   "they have the same key",
                   state->name, peers.served, peers.before);
}

rp_err rp_ring_watch(rp_ring *ring, uint32_t board, bool ping, bool is_feeding) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(board < ring->count);
    if (!state->control) {
        return RP_OK;
    }
    const rp_link_health health = rp_link_health_of(state->control);
    RP_ASSERT(ring->links);
    if (health.auth_failed) {
        state->silence.why = RP_SILENT_REFUSES;
        return ring->knows_boards ? RP_OK : rp_ring_why_silent(ring, board);
    }
    if (ring->is_watching && health.peer_restarted) {
        return say_restarted(state);
    }
    if (ring->is_watching && health.absent) {
        return rp_fail(RP_ERR_FAULT,
                       "board %s: its agent has ended: nothing listens at %s any more", state->name,
                       state->address.endpoint);
    }
    if (ring->is_watching && rp_watch_is_silent(ring, state)) {
        return rp_fail(RP_ERR_FAULT, "board %s has been silent for %" PRId64 " s", state->name,
                       (ring->now_ns - health.last_heard_ns) / RP_NS_PER_S);
    }
    if (ping) {
        const rp_err err = rp_link_ping(state->control);
        ring->last_ping_ns = ring->now_ns;
        if (err != RP_OK && err != RP_ERR_AGAIN) {
            return err;
        }
    }
    return watch_feed(ring, state, is_feeding);
}

/* ---- boards that do not come ----------------------------------------------------------------- */

rp_err rp_ring_why_silent(const rp_ring *ring, uint32_t board) {
    const rp_board_state *state = &ring->board[board];
    RP_ASSERT(board < ring->count);
    return rp_cause_fail_silent(state->silence.why, state->name, state->address.endpoint,
                                state->address.public_text);
}

rp_silent_why rp_ring_look_at_silence(rp_ring *ring, uint32_t board) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(board < ring->count);
    if (state->hello || !state->control) {
        return state->silence.why;
    }
    const rp_silent_why now = rp_cause_of_link(state->control, ring->knows_boards);
    state->silence.why = now > state->silence.why ? now : state->silence.why;
    return state->silence.why;
}

rp_err rp_ring_never_came(const rp_ring *ring, uint32_t board, int64_t waited_ns) {
    const rp_board_state *state = &ring->board[board];
    const char *colon = strrchr(state->address.endpoint, ':');
    char strangers[96] = "";
    rp_link_stats stats;
    uint64_t refused = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_link_stats_of(ring->board[k].control, &stats);
        refused += ring->board[k].address.dials ? stats.strangers : 0;
    }
    if (refused > 0) {
        (void)snprintf(strangers, sizeof strangers,
                       " (handshakes with keys that the roster does not have: %" PRIu64 ")",
                       refused);
    }
    return rp_fail(RP_ERR_TIMEOUT,
                   "board %s did not dial in within %" PRId64
                   " s%s; on the board: `ringpipe-agent --host ADDRESS%s`, and are the ports %s "
                   "and the next one of this machine reachable from there?",
                   state->name, waited_ns / RP_NS_PER_S, strangers, colon ? colon : "",
                   colon ? colon + 1 : "");
}
