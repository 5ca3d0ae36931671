#include "ring/ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/spawner.h"

_Static_assert(RP_RING_BOARDS_MAX + 2 <= RP_LINKS_WAIT_MAX, "every board and two feeds");

static const int64_t PING_NS = RP_NS_PER_S;
/* Rounds come at least as often as pings are due. */
static const int64_t ASLEEP_NS = 3 * RP_NS_PER_S;
/* Boards that have missed some pings when another one is lost are greeted over a new link. */
static const int64_t LOST_NS = 3 * RP_NS_PER_S;

/* ---- opening --------------------------------------------------------------------------------- */

static void drop_pending(rp_board_state *board) {
    board->pending_count = 0;
    for (uint32_t i = 0; i < RP_RING_PENDING_MAX; i++) {
        rp_block_free(board->pending[i].bytes);
        board->pending[i] = (rp_pending_message){0};
    }
}

rp_err rp_ring_open(rp_arena *arena, const rp_runfile *run, const rp_clock *clock, rp_ring *ring) {
    rp_err err;
    *ring = (rp_ring){.arena = arena,
                      .run = run,
                      .clock = clock,
                      .count = run->boards,
                      .pending_bytes = (run->model->param_count + 1) * sizeof(double)};
    RP_TRY(RP_ARENA_NEW(arena, ring->count, &ring->board));
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        char *name;
        RP_TRY(rp_arena_printf(arena, &name, "%u", k));
        board->name = run->local ? name : run->roster[k].name;
        if (!run->local) {
            rp_ring_take_entry(ring, k);
        }
    }
fail:
    return err;
}

void rp_ring_take_entry(rp_ring *ring, uint32_t board) {
    const rp_roster_entry *entry = &ring->run->roster[board];
    rp_board_state *state = &ring->board[board];
    rp_link_close(&state->control);
    drop_pending(state);
    state->name = entry->name;
    state->device = NULL;
    state->has_built = false;
    state->has_ended = false;
    state->refuses = state->broken_off = state->unanswered = false;
    state->refusal_said = state->cause_said = false;
    state->dials = entry->dials;
    rp_ring_set_address(ring, board, entry->dials ? ring->run->listen : entry->endpoint,
                        entry->public_text);
}

/* Boards that have moved: a text points into its board. */
static void take_own_texts(rp_ring *ring, uint32_t first) {
    for (uint32_t k = first; k < ring->count; k++) {
        rp_board_state *moved = &ring->board[k];
        moved->device = moved->device ? moved->device_text : NULL;
    }
}

void rp_ring_leave(rp_ring *ring, uint32_t board) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(ring->count > 1 && board < ring->count);
    rp_link_close(&state->control);
    rp_link_close(&state->feed);
    drop_pending(state);
    ring->count--;
    memmove(state, state + 1, (ring->count - board) * sizeof *state);
    ring->board[ring->count] = (rp_board_state){0};
    take_own_texts(ring, board);
}

rp_err rp_ring_reorder(rp_ring *ring, const uint32_t *at) {
    rp_board_state *before;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "boards", 0);
    RP_TRY(RP_ARENA_NEW(&arena, ring->count, &before));
    memcpy(before, ring->board, ring->count * sizeof *before);
    for (uint32_t k = 0; k < ring->count; k++) {
        ring->board[k] = before[at[k]];
    }
    take_own_texts(ring, 0);
fail:
    rp_arena_finish(&arena);
    return err;
}

void rp_ring_join(rp_ring *ring, uint32_t board) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(board <= ring->count);
    memmove(state + 1, state, (ring->count - board) * sizeof *state);
    ring->count++;
    *state = (rp_board_state){0};
    take_own_texts(ring, board + 1);
    rp_ring_take_entry(ring, board);
}

void rp_ring_set_address(rp_ring *ring, uint32_t board, const char *endpoint,
                         const char *public_text) {
    rp_board_state *state = &ring->board[board];
    (void)snprintf(state->endpoint, sizeof state->endpoint, "%s", endpoint);
    (void)snprintf(state->public_text, sizeof state->public_text, "%s", public_text);
}

rp_err rp_ring_connect(rp_ring *ring, rp_links *links) {
    rp_err err = RP_OK;
    if (!ring->links) {
        ring->links = links;
        ring->owns_links = !links;
    }
    if (!ring->links) {
        const rp_links_options own = {.clock = ring->clock,
                                      .keys = &ring->keys,
                                      .media = ring->media,
                                      .seed = ~ring->run->seed}; /* not a board's */
        RP_TRY(rp_links_open(ring->arena, &own, &ring->links));
    }
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        if (!board->control) {
            RP_TRY(rp_ring_open_control(ring, board->dials, board->endpoint, board->public_text,
                                        &board->control));
        }
    }
fail:
    return err;
}

rp_err rp_ring_open_control(const rp_ring *ring, bool dials, const char *endpoint,
                            const char *public_text, rp_link **out) {
    const rp_link_options options = {
        .name = "control",
        .bind = dials ? endpoint : NULL,
        .connect = dials ? NULL : endpoint,
        .peer_public = public_text,
        .window = 1,
        .send_window = 1,
        .part_bytes_max = RP_LINK_CONTROL_PART_MAX,
    };
    return rp_link_open(ring->links, &options, out);
}

int64_t rp_ring_greet_ns(int64_t longest_ns) {
    const int64_t most_ns = 5 * RP_NS_PER_S;
    const int64_t quarter_ns = longest_ns / 4;
    return quarter_ns >= RP_NS_PER_S && quarter_ns < most_ns ? quarter_ns : most_ns;
}

int64_t rp_ring_patience_ns(const rp_runfile *run) {
    const int64_t wait_ns = run->wait_s * RP_NS_PER_S;
    return wait_ns > RP_RING_HELLO_NS ? wait_ns : RP_RING_HELLO_NS;
}

rp_Frame rp_ring_greeting(const rp_ring *ring, int64_t now_ns) {
    rp_Frame frame = {.which_body = RP_KIND_HELLO,
                      .body.hello = {.name = "host",
                                     .software = RP_VERSION,
                                     .clock_ns = now_ns,
                                     .wire_min = RP_WIRE_MIN,
                                     .wire_max = RP_WIRE_MAX,
                                     .features = RP_WIRE_FEATURES}};
    rp_Hello *hello = &frame.body.hello;
    (void)snprintf(hello->origin, sizeof hello->origin, "%s", ring->origin ? ring->origin : "");
    return frame;
}

void rp_ring_note_progress(rp_ring *ring) {
    ring->progress_ns = ring->now_ns;
}

void rp_ring_begin_round(rp_ring *ring, int64_t now_ns) {
    ring->awake_ns = now_ns - ring->now_ns > ASLEEP_NS ? now_ns : ring->awake_ns;
    ring->now_ns = now_ns;
}

/* Of a board that has been heard. */
static int64_t silence_ns(const rp_ring *ring, int64_t heard_ns, int64_t now_ns) {
    return now_ns - (heard_ns > ring->awake_ns ? heard_ns : ring->awake_ns);
}

int64_t rp_ring_silence_ns(const rp_ring *ring, uint32_t board, int64_t now_ns) {
    const rp_link *link = ring->board[board].control;
    return link ? silence_ns(ring, rp_link_health_of(link).last_heard_ns, now_ns) : 0;
}

static bool is_silent(const rp_ring *ring, const rp_board_state *board, int64_t now_ns) {
    const int64_t heard_ns = board->control ? rp_link_health_of(board->control).last_heard_ns : 0;
    return heard_ns && silence_ns(ring, heard_ns, now_ns) > RP_RING_SILENT_NS;
}

static bool is_lost(const rp_ring *ring, const rp_board_state *board, int64_t now_ns) {
    if (!board->control) {
        return true;
    }
    const rp_link_health health = rp_link_health_of(board->control);
    const bool is_awaited = board->dials && health.last_heard_ns == 0; /* it may come any time */
    const int64_t silent_ns = health.last_heard_ns ? silence_ns(ring, health.last_heard_ns, now_ns)
                                                   : now_ns; /* since ever */
    return health.peer_restarted || health.absent || (!is_awaited && silent_ns > LOST_NS);
}

void rp_ring_reset(rp_ring *ring, uint32_t lost, int64_t now_ns) {
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        rp_link_close(&board->feed);
        drop_pending(board);
        board->hung = board->hung || is_silent(ring, board, now_ns);
        board->has_ended |= board->control && rp_link_health_of(board->control).absent;
        if (k == lost || is_lost(ring, board, now_ns)) {
            rp_link_close(&board->control);
            board->device = NULL;
            board->has_built = false; /* its kernels may have gone, too */
        }
        board->asked = board->hello = board->ready = board->finished = board->saved = false;
        board->building = (rp_board_building){0};
        memset(board->applied, 0, sizeof board->applied);
    }
    ring->watching = ring->feeding = false;
}

void rp_ring_disconnect(rp_ring *ring) {
    for (uint32_t k = 0; ring->board && k < ring->count; k++) {
        rp_link_close(&ring->board[k].control);
        rp_link_close(&ring->board[k].feed);
        drop_pending(&ring->board[k]);
    }
    if (ring->owns_links) {
        rp_links_close(&ring->links);
    }
    ring->links = NULL;
}

void rp_ring_endpoint_at(const rp_board_state *board, uint32_t port, char *out, size_t bytes) {
    const char *colon = strrchr(board->endpoint, ':');
    const int host = colon ? (int)(colon - board->endpoint) : 0;
    (void)snprintf(out, bytes, "%.*s:%u", host, board->endpoint, port);
}

void rp_ring_feed_at(const rp_ring *ring, char *out, size_t bytes) {
    const char *colon = strrchr(ring->run->listen, ':');
    (void)snprintf(out, bytes, "%.*s:%lu", (int)(colon - ring->run->listen), ring->run->listen,
                   strtoul(colon + 1, NULL, 10) + 1);
}

rp_err rp_ring_never_came(const rp_ring *ring, uint32_t board, int64_t waited_ns) {
    const rp_board_state *state = &ring->board[board];
    const char *colon = strrchr(state->endpoint, ':');
    char strangers[96] = "";
    rp_link_stats stats;
    uint64_t refused = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_link_stats_of(ring->board[k].control, &stats);
        refused += ring->board[k].dials ? stats.strangers : 0;
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

/* ---- sending --------------------------------------------------------------------------------- */

static rp_err send_now(rp_ring *ring, uint32_t board, rp_Frame *frame, const rp_part *parts,
                       uint32_t part_count) {
    frame->run_id = ring->identity.id;
    frame->term = ring->identity.term;
    return rp_link_send(ring->board[board].control, frame, parts, part_count, true, NULL, NULL);
}

rp_err rp_ring_offer(rp_ring *ring, uint32_t board, rp_Frame *frame, const rp_part *parts,
                     uint32_t part_count) {
    return ring->board[board].pending_count > 0 ? RP_ERR_AGAIN
                                                : send_now(ring, board, frame, parts, part_count);
}

/* Unacknowledged pieces for each board: enough to keep its link busy, and few enough that its
 * heartbeat is never far behind. */
enum { PIECES_UNACKED_MAX = 32 };

rp_err rp_ring_offer_piece(rp_ring *ring, uint32_t board, rp_Frame *frame, const rp_part *part) {
    rp_link_stats stats;
    rp_link_stats_of(ring->board[board].control, &stats);
    if (stats.unacked >= PIECES_UNACKED_MAX) {
        return RP_ERR_AGAIN;
    }
    const rp_err err = rp_ring_offer(ring, board, frame, part, part != NULL);
    if (err == RP_OK) {
        rp_ring_note_progress(ring);
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
    rp_Frame now = *frame;
    const rp_err err = rp_ring_offer(ring, board, &now, part, part != NULL);
    if (err != RP_ERR_AGAIN) {
        return err;
    }
    if (state->pending_count == RP_RING_PENDING_MAX ||
        (part && part->bytes > ring->pending_bytes)) {
        return rp_fail(RP_ERR_FAULT, "board %s accepts no message: %u are waiting to be sent to it",
                       state->name, state->pending_count);
    }
    const uint32_t at = (state->pending_first + state->pending_count) % RP_RING_PENDING_MAX;
    rp_pending_message *message = &state->pending[at];
    if (part && part->bytes > message->room) { /* seldom: most messages find room in the link */
        rp_block_free(message->bytes);
        *message = (rp_pending_message){0};
        const rp_err none = rp_block_new(part->bytes, (void **)&message->bytes);
        if (none != RP_OK) {
            return none;
        }
        message->room = part->bytes;
    }
    message->frame = *frame;
    message->part_count = part != NULL;
    if (part) {
        message->part = *part;
        message->part.data = message->bytes;
        memcpy(message->bytes, part->data, part->bytes);
    }
    if (state->pending_count++ == 0) {
        state->pending_since_ns = rp_clock_now_ns(ring->clock);
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

static rp_err flush_pending(rp_ring *ring, uint32_t board, int64_t now_ns) {
    rp_board_state *state = &ring->board[board];
    while (state->pending_count > 0) {
        rp_pending_message *message = &state->pending[state->pending_first];
        rp_err err = send_now(ring, board, &message->frame, &message->part, message->part_count);
        if (err == RP_ERR_AGAIN &&
            now_ns - state->pending_since_ns > rp_ring_patience_ns(ring->run)) {
            return rp_fail(RP_ERR_TIMEOUT, "board %s accepts no message", state->name);
        }
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        state->pending_first = (state->pending_first + 1) % RP_RING_PENDING_MAX;
        state->pending_count--;
        state->pending_since_ns = now_ns;
    }
    return RP_OK;
}

rp_err rp_ring_step(rp_ring *ring, uint32_t board, int64_t now_ns) {
    rp_board_state *state = &ring->board[board];
    rp_err err = RP_OK;
    if (!state->control) {
        return RP_OK;
    }
    RP_TRY(rp_link_step(state->control));
    RP_TRY(state->feed ? rp_link_step(state->feed) : RP_OK);
    RP_TRY(flush_pending(ring, board, now_ns));
fail:
    return err;
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

int64_t rp_ring_deadline_ns(const rp_ring *ring) {
    int64_t at_ns = ring->last_ping_ns + PING_NS;
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_state *board = &ring->board[k];
        const int64_t late_ns = board->pending_since_ns + rp_ring_patience_ns(ring->run) + 1;
        at_ns = board->pending_count > 0 && late_ns < at_ns ? late_ns : at_ns;
    }
    return at_ns;
}

bool rp_ring_ping_is_due(const rp_ring *ring, int64_t now_ns) {
    return now_ns - ring->last_ping_ns >= PING_NS;
}

/* Labels and inputs go over a link of their own: the way to its port may be closed while the
 * control link is heard. */
static rp_err watch_feed(const rp_ring *ring, rp_board_state *state, int64_t now_ns) {
    if (!state->feed) {
        return RP_OK;
    }
    if (rp_link_health_of(state->feed).auth_failed) {
        return rp_fail(RP_ERR_REFUSED, "board %s: its feed link at %s refused the handshake",
                       state->name, rp_link_endpoint(state->feed));
    }
    if (!ring->feeding) {
        rp_link_watch_begin(&state->feed_watch, state->feed, now_ns);
        return RP_OK;
    }
    state->feed_watch.meet_ns = rp_ring_patience_ns(ring->run);
    const rp_watch_state watched = rp_link_look(&state->feed_watch, state->feed, now_ns);
    state->feed_is_silent = watched == RP_WATCH_SILENT || watched == RP_WATCH_LOST;
    switch (watched) {
    case RP_WATCH_LOST:
        return rp_fail(
            RP_ERR_FAULT, "board %s: nothing came back over its feed link at %s for %" PRId64 " s",
            state->name, rp_link_endpoint(state->feed), state->feed_watch.silent_ns / RP_NS_PER_S);
    case RP_WATCH_STUCK:
        return rp_fail(RP_ERR_FAULT,
                       "board %s: a message over its feed link at %s was sent %d times and never "
                       "came whole: the way damages large messages, or lets none pass",
                       state->name, rp_link_endpoint(state->feed), RP_LINK_REPLAYS_MAX);
    case RP_WATCH_SILENT:
    case RP_WATCH_WELL:
        break;
    }
    return RP_OK;
}

rp_err rp_ring_refused(const rp_ring *ring, uint32_t board) {
    const rp_board_state *state = &ring->board[board];
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_key_fingerprint(state->public_text, fingerprint);
    return rp_fail(RP_ERR_REFUSED,
                   "board %s at %s refused the handshake: it does not trust our key, or its own is "
                   "not the one with fingerprint %s",
                   state->name, state->endpoint, fingerprint);
}

rp_err rp_ring_broken_off(const rp_ring *ring, uint32_t board) {
    const rp_board_state *state = &ring->board[board];
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_key_fingerprint(state->public_text, fingerprint);
    return rp_fail(RP_ERR_REFUSED,
                   "board %s at %s: handshake after handshake is broken off there: somebody with "
                   "another key than the one with fingerprint %s has its address, or the way "
                   "damages them all",
                   state->name, state->endpoint, fingerprint);
}

rp_err rp_ring_unanswered(const rp_ring *ring, uint32_t board) {
    const rp_board_state *state = &ring->board[board];
    return rp_fail(RP_ERR_FAULT,
                   "board %s at %s: its machine accepts the connection, but its agent does not "
                   "answer: the process is stopped or suspended, or has too much to do",
                   state->name, state->endpoint);
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

rp_err rp_ring_watch(rp_ring *ring, uint32_t board, bool ping, int64_t now_ns) {
    rp_board_state *state = &ring->board[board];
    if (!state->control) {
        return RP_OK;
    }
    const rp_link_health health = rp_link_health_of(state->control);
    if (health.auth_failed) {
        state->refuses = true;
        return ring->knows_boards ? RP_OK : rp_ring_refused(ring, board);
    }
    if (ring->watching && health.peer_restarted) {
        return say_restarted(state);
    }
    if (ring->watching && health.absent) {
        return rp_fail(RP_ERR_FAULT,
                       "board %s: its agent has ended: nothing listens at %s any more", state->name,
                       state->endpoint);
    }
    if (ring->watching && is_silent(ring, state, now_ns)) {
        return rp_fail(RP_ERR_FAULT, "board %s has been silent for %" PRId64 " s", state->name,
                       (now_ns - health.last_heard_ns) / RP_NS_PER_S);
    }
    if (ping) {
        const rp_err err = rp_link_ping(state->control);
        ring->last_ping_ns = now_ns;
        if (err != RP_OK && err != RP_ERR_AGAIN) {
            return err;
        }
    }
    return watch_feed(ring, state, now_ns);
}

_Static_assert(RP_CHUNKS_MAX <= RP_REPLICAS_MAX, "a board's stages have a number each");
